// A run, its streams and its radix tree by keyboard alone: no mouse, from the open notebook and back to it.

const SETUP = 0, RUN = 1;
const MOST_TABS = 60;

export async function keys(notebook) {
  const { page } = notebook;
  await notebook.open();
  await page.waitForFunction(() => document.activeElement.matches(".jp-Cell"));
  for (const n of [SETUP, RUN]) {
    const before = await notebook.prompt(n).innerText();
    await page.keyboard.press("Shift+Enter");
    await notebook.changed(n, before);
    await notebook.over(n);
  }
  await notebook.cell(RUN).locator(".nbs-state", { hasText: "replay" }).waitFor(); // it is not drawn anew any more
  await page.keyboard.press("ArrowUp"); // back to the cell that has run
  const seen = { tabs: await tab_to(page, ".nbs .lane"), lanes: [], nodes: [] };

  for (const key of ["ArrowDown", "ArrowDown", "Home", "End"]) seen.lanes.push(await pressed(page, key, lane));
  await page.keyboard.press("Enter");
  await page.locator(".nbs .lane.marked").first().waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".nbs .lane.marked").first().waitFor({ state: "detached" });
  seen.left_lanes = await left(page);

  await tab_to(page, ".nbs .tree [role=tree]");
  for (const key of ["Home", "ArrowRight", "ArrowRight", "ArrowDown", "End"]) seen.nodes.push(await pressed(page, key, node));
  await page.keyboard.press("Enter");
  const detail = page.locator(".nbs .tree .detail");
  await detail.waitFor();
  seen.detail = await detail.innerText();
  await page.keyboard.press("Escape");
  await detail.waitFor({ state: "hidden" });
  await page.keyboard.press("Escape");
  seen.left_tree = await left(page);
  await page.keyboard.press("ArrowDown"); // the notebook's key again
  await page.waitForFunction((n) => document.querySelectorAll(".jp-CodeCell")[n].matches(".jp-mod-active"), RUN + 1);
  return seen;
}

/** Press Tab until something like this has the focus; how often that was. */
async function tab_to(page, selector) {
  for (let n = 1; n <= MOST_TABS; n++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((selector) => document.activeElement.matches(selector), selector)) return n;
  }
  throw new Error(`Tab does not come to ${selector}`);
}

/** What is at the keyboard after a key. */
async function pressed(page, key, what) {
  await page.keyboard.press(key);
  return page.evaluate(what);
}

const lane = () => document.activeElement.getAttribute("aria-label").split(",")[0];
const node = () => document.getElementById(document.activeElement.getAttribute("aria-activedescendant"))?.getAttribute("aria-label").split(",")[0];

/** Where the keyboard is, after Escape: "cell" is where a notebook's own keys are. */
const left = (page) => page.evaluate(() => (document.activeElement.matches(".jp-Cell") ? "cell" : document.activeElement.className));
