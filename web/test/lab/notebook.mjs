// A notebook in JupyterLab or Notebook 7, used as a reader would, and waited for by what can be seen.
//
// Not here: what is done with it (scenarios.mjs).

import path from "node:path";

const COUNTED = /^\[\d+\]:$/;

export class Notebook {
  constructor(page, url, name, folder) {
    this.page = page;
    this.url = url;
    this.name = name;
    this.folder = folder;
  }

  /** Open it, and wait until a cell can be run. `way` is "lab/tree" or "notebooks". */
  async open(way = "lab/tree", { needs_kernel = true } = {}) {
    await this.page.goto(`${this.url}/${way}/${this.name}.ipynb${way.startsWith("lab") ? "?reset" : ""}`);
    await this.page.locator(".jp-CodeCell").first().waitFor();
    if (needs_kernel) await this.idle();
  }

  /** Wait for the notebook's kernel to have nothing to do. */
  async idle() {
    await this.page.waitForFunction(() => {
      const context = globalThis.jupyterapp?.shell.currentWidget?.sessionContext;
      return context?.isReady && context.session?.kernel?.status === "idle" && context.session.kernel.connectionStatus === "connected";
    });
  }

  cell(n) {
    return this.page.locator(".jp-CodeCell").nth(n);
  }

  prompt(n) {
    return this.cell(n).locator(".jp-InputPrompt");
  }

  /** All that is written below a cell. */
  text(n) {
    return this.cell(n).locator(".jp-Cell-outputWrapper").innerText();
  }

  /** The live views below a cell. */
  views(n) {
    return this.cell(n).locator(".nbs");
  }

  /** Run a cell, and wait for it to begin. */
  async start(n) {
    const before = await this.prompt(n).innerText();
    await this.cell(n).locator(".cm-content").click();
    await this.page.keyboard.press("Shift+Enter");
    await this.changed(n, before);
  }

  /** Wait for another prompt than this one. */
  async changed(n, before) {
    await this.page.waitForFunction(([n, before]) => document.querySelectorAll(".jp-CodeCell")[n].querySelector(".jp-InputPrompt").innerText !== before, [n, before]);
  }

  /** Wait for the end of a cell that runs. */
  async over(n) {
    await this.prompt(n).filter({ hasText: COUNTED }).waitFor();
  }

  /** Run a cell that must not fail. */
  async run(n) {
    await this.start(n);
    await this.over(n);
    const outputs = await this.page.evaluate((n) => jupyterapp.shell.currentWidget.content.widgets[n].model.outputs.toJSON(), n);
    const error = outputs.find((output) => output.output_type === "error");
    if (error) throw new Error(`cell ${n} failed: ${error.ename}: ${error.evalue}`);
  }

  /** What the head of a live view says, such as "done in 1.2 s". */
  state(n) {
    return this.cell(n).locator(".nbs-state").first().innerText();
  }

  /** Wait for a live view to say how its run ended. */
  async settled(n) {
    await this.cell(n).locator(".nbs-state", { hasText: /^(done|cancelled|failed) in/ }).first().waitFor();
  }

  /** Wait for the kernel to be started anew, from now on. */
  restarted() {
    return this.page.evaluate(() => new Promise((done) => {
      const context = jupyterapp.shell.currentWidget.sessionContext;
      context.statusChanged.connect((_, status) => status === "restarting" && done());
    }));
  }

  /** Choose from the menus, such as ("Kernel", "Restart Kernel…"). */
  async choose(menu, ...names) {
    await this.page.locator(".lm-MenuBar-itemLabel", { hasText: menu }).click();
    for (const name of names) await this.page.locator(".lm-Menu-itemLabel").getByText(name, { exact: true }).click();
  }

  /** Save it with the keys. */
  async save() {
    await this.page.keyboard.press("Control+s");
    await this.page.waitForFunction(() => globalThis.jupyterapp.shell.currentWidget.context.model.dirty === false);
  }

  picture(name) {
    return this.page.screenshot({ path: path.join(this.folder, `${name}.png`) });
  }
}
