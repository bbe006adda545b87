// The live views in a real Jupyter: `node test/lab.mjs URL FOLDER` acts the scenarios that it is asked for, one JSON object a
// line ({scenario, notebook, ...}), and answers each with a line of what it has seen. Pictures go to FOLDER.
//
// Who asks, and who judges what was seen: tests/browser. Not here: how a notebook is used (lab/notebook.mjs).

import path from "node:path";
import { createInterface } from "node:readline";

import { launch } from "../dev/browser.mjs";
import { Notebook } from "./lab/notebook.mjs";
import { SCENARIOS } from "./lab/scenarios.mjs";

const [url, folder] = process.argv.slice(2);
const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
context.setDefaultTimeout(60_000);

const kept = new Map(); // pages, by notebook

/** Act a scenario on a page of its own, or on the one that was kept of the notebook. */
async function act({ scenario, notebook, keeps, ...asked }) {
  const page = kept.get(notebook) ?? (await context.newPage());
  kept.delete(notebook);
  await page.bringToFront();
  const errors = [];
  page.removeAllListeners();
  page.on("pageerror", (error) => errors.push(error.stack ?? String(error)));
  page.on("console", (message) => /nbsglang|anywidget/.test(message.text()) && errors.push(message.text()));
  const answer = await acted(page, scenario, notebook, asked);
  if (keeps && answer.failure === undefined) kept.set(notebook, page);
  else await page.close();
  return { ...answer, errors: errors.filter((error) => !is_jupyters_own(error)) };
}

async function acted(page, scenario, notebook, asked) {
  try {
    return { seen: await SCENARIOS[scenario](new Notebook(page, url, notebook, folder), asked) };
  } catch (error) {
    const picture = path.join(folder, `${notebook}-${scenario}.png`);
    await page.screenshot({ path: picture }).catch(() => {});
    return { failure: `${error.stack ?? error}\n(picture: ${picture})` };
  }
}

/** Whether an error comes from its scripts, with nothing of ours (which are blobs) on the way. */
const is_jupyters_own = (error) => /\/static\/(lab|notebook)\//.test(error) && !error.includes("blob:");

for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(await act(JSON.parse(line))));
await browser.close();
