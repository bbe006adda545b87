// Pictures of the views on saved logs, in two widths, light and dark: `node dev/shoot.mjs FOLDER [NAME ...]`.
//
// The same logs give the same pictures: they are replays, and nothing in them moves.

import { mkdirSync } from "node:fs";
import path from "node:path";
import { launch } from "./browser.mjs";
import { serve } from "./serve.mjs";

/** Name -> what host.js is asked for. */
const PICTURES = {
  run: { log: "judge", run: "0", title: "judge" },
  facts: { log: "judge", run: "last", title: "facts" },
  engine: { log: "judge", title: "the engine" },
  tree: { log: "judge", run: "1", show: "tree,numbers", title: "judge, again" },
  streams: { log: "judge", run: "1", show: "streams", title: "judge, again" },
  timeline: { log: "judge", run: "0", show: "timeline", title: "judge" },
  fsm: { log: "judge", run: "last", show: "fsm", at: "612", title: "facts" },
  grades: { log: "grades", run: "0", show: "streams,fsm", title: "grading" },
  first: { log: "grades", run: "0", show: "fsm", at: "79", title: "grading, at the first token" },
  numbers: { log: "crowd", show: "numbers", title: "the engine" },
  crowd: { log: "crowd", title: "the engine" },
  past: { log: "crowd", show: "tree", at: "700", title: "the engine" },
  mock: { log: "mock", run: "0", title: "judge" },
  cancelled: { log: "mock", run: "last", title: "poem" },
  hostile: { log: "hostile", title: "hostile" },
};
const WIDTHS = [1280, 900];
const THEMES = ["light", "dark"];

const folder = process.argv[2] ?? "shots";
const wanted = process.argv.slice(3);
mkdirSync(folder, { recursive: true });
const server = await serve({ is_kept: true });
const browser = await launch();
try {
  for (const [name, asked] of Object.entries(PICTURES)) {
    if (wanted.length && !wanted.includes(name)) continue;
    for (const width of WIDTHS) for (const theme of THEMES) await shoot(name, { ...asked, theme }, width);
  }
} finally {
  await browser.close();
  server.close();
}

async function shoot(name, asked, width) {
  const page = await browser.newPage({ viewport: { width, height: 800 }, reducedMotion: "reduce" });
  page.on("pageerror", (error) => console.error(`${name}: ${error.stack}`));
  page.on("console", (message) => message.type() !== "log" && console.error(`${name}: ${message.text()}`));
  await page.goto(`${server.url}/dev/host.html?${new URLSearchParams(asked)}`);
  await page.waitForSelector("body[data-ready]", { timeout: 15000 });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (wide > 0) console.error(`${name} at ${width}: ${wide} pixels too wide`);
  await page.screenshot({ path: path.join(folder, `${name}-${width}-${asked.theme}.png`), fullPage: true });
  await page.close();
}
