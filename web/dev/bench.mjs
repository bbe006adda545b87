// Measures the views in Chromium and prints what they take, in ms, as JSON: `node dev/bench.mjs [VIEW,VIEW]`.

import { launch } from "./browser.mjs";
import { serve } from "./serve.mjs";

const server = await serve();
const browser = await launch();
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.on("pageerror", (error) => console.error(error.stack));
  page.on("console", (message) => message.type() !== "log" && console.error(message.text()));
  await page.goto(`${server.url}/dev/bench.html?show=${process.argv[2] ?? ""}`);
  const result = await page.waitForFunction(() => globalThis.result, null, { timeout: 60_000 });
  console.log(JSON.stringify(await result.jsonValue()));
} finally {
  await browser.close();
  server.close();
}
