// The views in a real JupyterLab: `node test/lab.mjs URL` opens lab.ipynb there and prints what it saw as JSON.
//
// The cells of the notebook are those of tests/browser/test_lab.py, which judges what is printed.

import { launch } from "../dev/browser.mjs";

const SETUP = 0, RUN = 1, SLOW = 2, AFTER = 3;
const url = process.argv[2];
const browser = await launch();
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
const seen = { errors: [] };
page.on("pageerror", (error) => seen.errors.push(String(error)));

const cell = (n) => page.locator(".jp-CodeCell").nth(n);
const text = (n) => cell(n).locator(".jp-OutputArea").first().innerText();
const views = (n) => cell(n).locator(".nbs").count();
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function open(path) {
  await page.goto(`${url}${path}`);
  await page.waitForSelector(".jp-CodeCell", { timeout: 90_000 });
  await page.waitForSelector(".jp-Notebook-ExecutionIndicator[data-status=idle]", { timeout: 60_000 });
  await pause(2000);
}

/** Run a cell without waiting for its end; once more where the page was not ready for the keys. */
async function start(n) {
  const prompt = cell(n).locator(".jp-InputPrompt");
  const before = await prompt.innerText();
  for (let i = 0; i < 5; i++) {
    await cell(n).locator(".cm-content").click();
    await page.keyboard.press("Shift+Enter");
    for (let wait = 0; wait < 20; wait++) {
      if ((await prompt.innerText()) !== before) return;
      await pause(100);
    }
  }
  throw new Error(`cell ${n} does not start`);
}

const over = (n) => cell(n).locator(".jp-InputPrompt", { hasText: /\[\d+\]/ }).waitFor({ timeout: 60_000 });

async function run(n) {
  await start(n);
  await over(n);
}

async function cancelled() {
  await start(SLOW);
  const button = cell(SLOW).locator(".nbs-head button:not([hidden]):not([disabled])").last();
  await button.waitFor({ timeout: 30_000 });
  await pause(500);
  const began = performance.now();
  await button.click();
  await over(SLOW);
  return performance.now() - began;
}

async function interrupted() {
  await start(SLOW);
  await cell(SLOW).locator(".nbs").first().waitFor({ timeout: 30_000 });
  await pause(500);
  await cell(SLOW).locator(".jp-InputPrompt").click();
  const began = performance.now();
  await page.keyboard.press("Escape");
  await page.keyboard.press("i");
  await page.keyboard.press("i");
  await over(SLOW);
  return performance.now() - began;
}

/** Contrast of the text of a view with what is painted behind it, by the formula of WCAG 2. */
const contrast = () =>
  page.evaluate(() => {
    const numbers = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
    const light = (colour) => {
      const [r, g, b] = numbers(colour).map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const style = getComputedStyle(document.querySelector(".nbs"));
    const [low, high] = [light(style.color), light(style.backgroundColor)].sort((a, b) => a - b);
    return { ratio: (high + 0.05) / (low + 0.05), is_dark: light(style.backgroundColor) < 0.2, painted: numbers(style.backgroundColor)[3] !== 0 };
  });

try {
  await open("/lab/tree/lab.ipynb?reset");
  await run(SETUP);
  await start(RUN);
  await cell(RUN).locator(".nbs").first().waitFor({ timeout: 30_000 });
  await over(RUN);
  await pause(1500);
  seen.live = { views: await views(RUN), text: await text(RUN) };
  seen.light = await contrast();
  seen.cancel_ms = [];
  for (let i = 0; i < 5; i++) seen.cancel_ms.push(await cancelled());
  seen.interrupt_ms = [];
  for (let i = 0; i < 3; i++) seen.interrupt_ms.push(await interrupted());
  await run(AFTER);
  seen.after = await text(AFTER);
  await page.keyboard.press("Control+s");
  await pause(1500);
  const restarted = "fetch('/api/sessions').then(r => r.json()).then(s => fetch('/api/kernels/' + s[0].kernel.id + '/restart', { method: 'POST' }))";
  await page.evaluate(restarted);
  await pause(3000);
  seen.restarted = { text: await text(RUN), views: await views(RUN) };
  await page.evaluate("fetch('/api/sessions').then(r => r.json()).then(all => Promise.all(all.map(s => fetch('/api/sessions/' + s.id, { method: 'DELETE' }))))");
  await open("/lab/tree/lab.ipynb?reset");
  await pause(3000);
  seen.reopened = { text: await text(RUN), images: await cell(RUN).locator("img").count() };
  if (process.argv[3]) await page.screenshot({ path: process.argv[3] });
} catch (error) {
  if (process.argv[3]) await page.screenshot({ path: process.argv[3] });
  throw error;
} finally {
  await browser.close();
}
console.log(JSON.stringify(seen));
