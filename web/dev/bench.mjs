// Measures the views in Chromium and prints what they take, in ms, as JSON: `node dev/bench.mjs [VIEW,VIEW]`.
//
// --runs N: each run has a browser of its own; of each time the median and the best are printed. --height PIXELS of the
// window: 900, in which some views are out of sight, or 3000, in which all are seen. --out FILE writes the result there.

import { writeFileSync } from "node:fs";
import os from "node:os";
import { parseArgs } from "node:util";
import { launch } from "./browser.mjs";
import { serve } from "./serve.mjs";

const OPTIONS = { runs: { type: "string", default: "1" }, height: { type: "string", default: "900" }, out: { type: "string" } };
const { values: asked, positionals } = parseArgs({ options: OPTIONS, allowPositionals: true });

const server = await serve({ is_kept: true });
try {
  const runs = [];
  const heights = asked.out ? [900, 3000] : [Number(asked.height)];
  for (let n = 0; n < Number(asked.runs); n++) for (const height of heights) runs.push({ height, ...(await run(height)) });
  if (!asked.out) console.log(JSON.stringify(runs.length === 1 ? runs[0] : summary(runs)));
  else writeFileSync(asked.out, `${JSON.stringify(report(runs, heights), null, 1)}\n`);
} finally {
  server.close();
}

async function run(height) {
  const browser = await launch();
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height } });
    page.on("pageerror", (error) => console.error(error.stack));
    page.on("console", (message) => message.type() !== "log" && console.error(message.text()));
    const [told] = await Promise.all([ // looking for the result again and again would be measured too
      page.waitForEvent("console", { predicate: (message) => message.type() === "log", timeout: 60_000 }),
      page.goto(`${server.url}/dev/bench.html?show=${positionals[0] ?? ""}`),
    ]);
    return { browser: browser.version(), ...JSON.parse(told.text()) };
  } finally {
    await browser.close();
  }
}

/** Of each time the median and the best of the runs. */
function summary(runs) {
  const names = Object.keys(runs[0]).filter((name) => name.endsWith("_ms") && typeof runs[0][name] === "number");
  return Object.fromEntries(names.map((name) => {
    const values = runs.map((each) => each[name]).sort((a, b) => a - b);
    return [name, { median: values[(values.length - 1) >> 1], best: values[0], worst: values.at(-1) }];
  }));
}

function report(runs, heights) {
  const machine = { cpu: os.cpus()[0].model.replace(/ \d+-Core.*/, ""), cores: os.cpus().length, load: os.loadavg().map((load) => Number(load.toFixed(2))) };
  const command = `node dev/bench.mjs --runs ${asked.runs} --out ${asked.out.split("/").at(-1)}`;
  const versions = { chromium: runs[0].browser, node: process.versions.node };
  const windows = heights.map((height) => [`1280x${height}`, summary(runs.filter((each) => each.height === height))]);
  return { what: "10,000 nodes, 64 streams: ms", versions, machine, command, n_runs: Number(asked.runs), ...Object.fromEntries(windows) };
}
