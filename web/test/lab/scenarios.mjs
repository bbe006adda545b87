// What is done in a notebook, and what is seen of it; each scenario returns plain facts, which tests/browser judges.
//
// Not here: how a notebook is used (notebook.mjs), keys alone (keys.mjs), many runs (twenty.mjs), colours (colours.mjs).

import { colours } from "./colours.mjs";
import { keys } from "./keys.mjs";
import { twenty } from "./twenty.mjs";

const SETUP = 0, RUN = 1, AFTER = 2;

/** Open, set up, and look at a run while it goes on: how much of its text there is from frame to frame. Then save it. */
async function live(notebook, { way }) {
  await notebook.open(way);
  await notebook.run(SETUP);
  const seen = await looked_at(notebook);
  if (way === undefined) await notebook.save();
  return { ...seen, app: await notebook.page.evaluate(() => jupyterapp.name) };
}

/** Run the cell and look at it. */
async function looked_at(notebook) {
  await notebook.start(RUN);
  const lengths = await notebook.page.evaluate(watched, RUN);
  await notebook.over(RUN);
  await notebook.settled(RUN);
  return { lengths, views: await notebook.views(RUN).count(), text: await notebook.text(RUN), end: await notebook.state(RUN) };
}

/** In the page: the sizes that a live view's streams have while the cell goes on. */
async function watched(n) {
  const cell = document.querySelectorAll(".jp-CodeCell")[n];
  const lengths = new Set();
  while (cell.querySelector(".jp-InputPrompt").innerText.includes("*")) {
    const streams = cell.querySelector(".nbs .lanes");
    if (streams !== null) lengths.add(streams.innerText.length);
    await new Promise((done) => requestAnimationFrame(done));
  }
  return [...lengths];
}

/** Cancel by the button of the view, and by the notebook's own ■, each so many times, while a cell waits for its answers. */
async function stop(notebook, { n_times }) {
  await notebook.open();
  await notebook.run(SETUP);
  const version = await notebook.text(SETUP);
  const took = { cancel: [], interrupt: [] };
  for (let n = 0; n < n_times; n++)
    for (const how of ["cancel", "interrupt"]) took[how].push(await stopped(notebook, how));
  await notebook.run(AFTER);
  return { version, took, stopped: await notebook.text(RUN), after: await notebook.text(AFTER) };
}

/** From the click to the end of the cell, in milliseconds. */
async function stopped(notebook, how) {
  await notebook.start(RUN);
  const button = notebook.cell(RUN).locator(".nbs-head button:not([hidden]):not([disabled])");
  await button.waitFor();
  await notebook.cell(RUN).locator(".nbs-state", { hasText: /running/ }).waitFor();
  const click = how === "cancel" ? button : notebook.page.locator(".jp-NotebookPanel-toolbar [data-command='notebook:interrupt-kernel']");
  const ended = notebook.page.evaluate(clock_of_end, RUN);
  const began = await notebook.page.evaluate(() => performance.timeOrigin + performance.now());
  await click.click();
  return (await ended) - began;
}

/** In the page: when the cell ends, in milliseconds of the wall's clock. */
async function clock_of_end(n) {
  const cell = document.querySelectorAll(".jp-CodeCell")[n];
  while (cell.querySelector(".jp-InputPrompt").innerText.includes("*")) await new Promise((done) => setTimeout(done, 10));
  return performance.timeOrigin + performance.now();
}

/** After a run: a restart from the menu, what is left of the run, and another one. */
async function restart(notebook) {
  await notebook.choose("Kernel", "Restart Kernel…");
  const begins = notebook.restarted();
  await notebook.page.locator(".jp-Dialog button.jp-mod-accept").click();
  await begins;
  await notebook.idle();
  const left = await notebook.text(RUN);
  await notebook.run(SETUP);
  const seen = await looked_at(notebook);
  return { ...seen, left, count: await notebook.prompt(RUN).innerText() };
}

/** A notebook without a kernel, as somebody else gets it: not trusted. */
async function reopened(notebook) {
  await notebook.open("lab/tree", { needs_kernel: false });
  await notebook.page.locator(".jp-Dialog").waitFor();
  await notebook.page.locator(".jp-Dialog select").selectOption({ label: "No Kernel" });
  await notebook.page.locator(".jp-Dialog button.jp-mod-accept").click();
  await notebook.page.locator(".jp-Dialog").waitFor({ state: "detached" });
  const images = notebook.cell(RUN).locator("img");
  await images.first().waitFor();
  const kernel = await notebook.page.evaluate(() => jupyterapp.shell.currentWidget.sessionContext.session?.kernel ?? null);
  const widths = await images.evaluateAll((all) => Promise.all(all.map((image) => image.decode().then(() => image.naturalWidth))));
  return { kernel, widths, views: await notebook.views(RUN).count(), text: await notebook.text(RUN) };
}

export const SCENARIOS = { live, stop, restart, reopened, colours, keys, twenty, leave: async () => ({}) };
