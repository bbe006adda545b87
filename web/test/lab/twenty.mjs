// Twenty runs with live views in one notebook: how quick each of them is, and how large it is when it is saved.

const SETUP = 0, FIRST = 1, N_RUNS = 20, MEMORY = FIRST + N_RUNS, MANY = MEMORY + 1;

export async function twenty(notebook) {
  const { page } = notebook;
  await notebook.open();
  await notebook.run(SETUP);
  const runs = [];
  const memory = [];
  for (let n = FIRST; n < FIRST + N_RUNS; n++) {
    runs.push(await timed(notebook, n));
    if (n === FIRST + N_RUNS / 2 - 1) memory.push(await measured(notebook, MEMORY));
  }
  memory.push(await measured(notebook, MEMORY));
  const views = [];
  for (let n = FIRST; n < FIRST + N_RUNS; n++) views.push(await notebook.views(n).count());
  await notebook.picture("twenty");
  await notebook.save();
  const small = await size(notebook);
  await notebook.choose("Settings", "Save Widget State Automatically");
  await page.keyboard.press("Escape");
  await notebook.run(MEMORY); // so that there is something to be saved
  await notebook.save();
  const large = await size(notebook);
  await notebook.choose("Settings", "Save Widget State Automatically");
  await page.keyboard.press("Escape");
  await notebook.run(MANY);
  memory.push(await measured(notebook, MEMORY));
  return { runs, memory, views, saved: { small, large } };
}

/** Run a cell: milliseconds to its live view and to its end, and the frames that could be drawn meanwhile. */
async function timed(notebook, n) {
  const { page } = notebook;
  const before = await notebook.prompt(n).innerText();
  await notebook.cell(n).locator(".cm-content").click();
  const watch = page.evaluate(watched, [n, before]);
  await page.keyboard.press("Shift+Enter");
  return watch;
}

/** In the page. */
async function watched([n, before]) {
  const cell = document.querySelectorAll(".jp-CodeCell")[n];
  const prompt = () => cell.querySelector(".jp-InputPrompt").innerText;
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const until = performance.now() + 60_000;
  while (prompt() === before && performance.now() < until) await frame();
  const began = performance.now();
  const seen = { view_ms: null, cell_ms: null, sizes: new Set(), frame_ms: 0 };
  for (let last = began; seen.view_ms === null || seen.cell_ms === null; ) {
    await frame();
    const now = performance.now();
    seen.frame_ms = Math.max(seen.frame_ms, now - last);
    last = now;
    const lanes = cell.querySelector(".nbs .lanes");
    if (lanes !== null) seen.view_ms ??= now - began;
    if (/^\[\d+\]:$/.test(prompt())) seen.cell_ms ??= now - began;
    else if (lanes !== null) seen.sizes.add(lanes.innerText.length);
    if (now > until) throw new Error(`run ${n}: ${JSON.stringify(seen)}`);
  }
  return { ...seen, sizes: seen.sizes.size };
}

/** What a cell prints as JSON. */
async function measured(notebook, n) {
  await notebook.run(n);
  return JSON.parse((await notebook.cell(n).locator(".jp-OutputArea-output pre").last().innerText()).trim().split("\n").at(-1));
}

/** Of the file, in bytes. */
const size = (notebook) => notebook.page.evaluate(async (name) => (await (await fetch(`/files/${name}.ipynb`)).arrayBuffer()).byteLength, notebook.name);
