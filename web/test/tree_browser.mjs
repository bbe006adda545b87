// The radix tree view in a browser, by keyboard and pointer: `node --test test/tree_browser.mjs` (needs Chromium).
//
// Not here: what needs no page (tree.test.js, tree_words.test.js).

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test, { after, before } from "node:test";

import { launch } from "../dev/browser.mjs";
import { serve } from "../dev/serve.mjs";
import { opened_large } from "./large_page.mjs";

let browser;
let server;
before(async () => {
  server = await serve({ is_kept: true });
  browser = await launch();
});
after(async () => {
  await browser?.close();
  server?.close();
});

/** A page with the tree alone: its tree element, and what went wrong. */
async function opened(asked, width = 1280) {
  const page = await browser.newPage({ viewport: { width, height: 800 } });
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("dialog", (dialog) => errors.push(`dialog: ${dialog.message()}`));
  await page.goto(`${server.url}/dev/host.html?${new URLSearchParams({ show: "tree", ...asked })}`);
  await page.waitForSelector("body[data-ready]", { state: "attached", timeout: 20_000 });
  const tree = page.locator("[role=tree]");
  const active = () => page.evaluate(() => {
    const tree = document.querySelector("[role=tree]");
    const node = document.getElementById(tree.getAttribute("aria-activedescendant"));
    return node && { key: node.dataset.key, label: node.getAttribute("aria-label"), level: Number(node.getAttribute("aria-level")), selected: node.getAttribute("aria-selected") };
  });
  return { page, errors, tree, active };
}

const frame = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

test("by keyboard alone: to any node, select it, search, and back", async () => {
  const { page, errors, tree, active } = await opened({ log: "judge", run: "0" });
  await tree.focus();
  const press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
    await frame(page);
  };
  await press("Home", "ArrowRight");
  assert.equal((await active()).level, 2);
  await press("Enter");
  const chosen = await active();
  assert.equal(chosen.selected, "true");
  assert.match(await page.locator(".detail").innerText(), new RegExp(`node ${chosen.key}[^]*tokens[^]*used by`));
  assert.equal(await page.evaluate(() => host.store.focus.node), Number(chosen.key));
  await press("/");
  await page.keyboard.type("honest");
  await press("Enter");
  assert.match((await active()).label, /node/);
  assert.match(await page.locator(".bar .count").innerText(), /^1 of \d+$/);
  await press("Escape");
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "tree");
  const count = () => page.locator("[role=treeitem]").count();
  const whole = await count();
  await press("End", "ArrowLeft", "z");
  assert.ok((await count()) < whole);
  await press("Escape");
  assert.equal(await count(), whole);
  assert.deepEqual(errors, []);
  await page.close();
});

test("the panel's buttons select a node of the path, and close it", async () => {
  const { page, errors, tree } = await opened({ log: "judge", run: "0" });
  await tree.focus();
  for (const key of ["Home", "ArrowRight", "Enter"]) await page.keyboard.press(key);
  await frame(page);
  const panel = page.locator(".detail");
  const [above] = (await panel.locator("dd").first().innerText()).match(/\d+/);
  await panel.getByRole("button", { name: above, exact: true }).click();
  await frame(page);
  assert.equal(await page.evaluate(() => host.store.focus.node), Number(above));
  await panel.getByRole("button", { name: "Close" }).click();
  await frame(page);
  assert.ok(await panel.isHidden());
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "tree");
  assert.deepEqual(errors, []);
  await page.close();
});

test("a key right after Enter moves from what was selected, and stays where it went", async () => {
  const { page, errors, tree, active } = await opened({ log: "judge", run: "0" });
  await tree.focus();
  await page.evaluate(() => { // all within one frame
    const tree = document.querySelector("[role=tree]");
    for (const key of ["Home", "ArrowRight", "Enter", "Home"]) tree.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  });
  await frame(page);
  assert.equal((await active()).level, 1);
  assert.notEqual(await page.evaluate(() => host.store.focus.node), null);
  assert.deepEqual(errors, []);
  await page.close();
});

test("a subtree is folded by hand with a key and with a button, and tells what was found in it", async () => {
  const { page, errors, tree, active } = await opened({ log: "judge", run: "0" });
  const items = page.locator("[role=treeitem]");
  const press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
    await frame(page);
  };
  await page.keyboard.press("Tab");
  await page.getByRole("searchbox").fill("honest");
  await page.locator(".bar .count").filter({ hasText: "found" }).waitFor();
  const n_found = parseInt(await page.locator(".bar .count").innerText());
  await tree.focus();
  const whole = await items.count();
  await press("Home", "ArrowRight", "Enter", "Home", "c");
  assert.equal(await items.count(), 2);
  assert.equal(await page.evaluate(() => host.store.focus.node), null, "what was selected is folded away");
  assert.equal(await items.first().getAttribute("aria-expanded"), "false");
  assert.match(await page.locator(".node.fold.found").textContent(), new RegExp(`, ${n_found} found$`));
  await press("ArrowRight", "c", "Enter");
  assert.ok((await items.count()) > 2);
  await press("Home", "c", "c");
  assert.equal(await items.count(), whole);
  await press("Enter");
  const button = page.getByRole("button", { name: "Fold / unfold" });
  await button.focus();
  for (const n of [2, whole]) {
    await press("Enter");
    assert.equal(await items.count(), n);
    assert.ok(await button.evaluate((element) => element === document.activeElement));
  }
  await tree.focus();
  await press("c", "n");
  assert.ok((await items.count()) > 2, "the match is let in");
  assert.match((await active()).label, /^node/);
  assert.deepEqual(errors, []);
  await page.close();
});

test("the list of requests has them all when somebody looks, and the one that is chosen stands out", async () => {
  const { page, errors, tree } = await opened({ log: "judge", run: "0" });
  const select = page.locator(".tree select");
  const n_options = () => select.locator("option").count();
  assert.equal(await n_options(), 1);
  await select.focus();
  assert.ok((await n_options()) > 5);
  await page.keyboard.press("ArrowDown");
  await frame(page);
  const request = await page.evaluate(() => host.store.focus.request);
  assert.equal(await select.inputValue(), String(request));
  assert.ok(await page.locator("[role=treeitem].on").count());
  await tree.focus();
  await page.evaluate(() => host.store.set_focus({ request: null }));
  await frame(page);
  assert.deepEqual([await n_options(), await select.inputValue()], [1, ""]);
  assert.deepEqual(errors, []);
  await page.close();
});

test("roles and labels are those of an ARIA tree with one tab stop", async () => {
  const { page, errors } = await opened({ log: "crowd", at: "700" });
  const facts = await page.evaluate(() => [...document.querySelectorAll("[role=treeitem]")].map((node) => ({
    level: Number(node.getAttribute("aria-level")), at: Number(node.getAttribute("aria-posinset")), of: Number(node.getAttribute("aria-setsize")),
    selected: node.getAttribute("aria-selected"), label: node.getAttribute("aria-label"), inside: node.closest("[role=tree]") !== null,
  })));
  assert.ok(facts.length > 3);
  for (const { level, at, of, selected, label, inside } of facts) {
    assert.ok(level >= 1 && at >= 1 && at <= of && inside);
    assert.equal(selected, "false");
    assert.match(label, /^node \d+, \d+ tokens?(, [^']+)?: '|^\+\d+ nodes?, /);
  }
  assert.equal(await page.locator("[role=tree][tabindex='0']").count(), 1);
  assert.equal(await page.locator("[role=tree] [tabindex]").count(), 0);
  assert.deepEqual(errors, []);
  await page.close();
});

test("the slider shows the past with a sentence, and the end again", async () => {
  const { page, errors } = await opened({ log: "crowd" });
  const sentence = page.locator(".sentence");
  await page.getByRole("button", { name: "› eviction" }).click();
  await frame(page);
  assert.match(await sentence.innerText(), /^node \d+ is evicted/);
  const named = () => page.evaluate(() => [...document.querySelectorAll("[role=treeitem].named")].map((node) => `${node.dataset.key} ${node.querySelector(".sign").textContent.split(" ")[0]}`));
  const gone = /\d+/.exec(await sentence.innerText())[0];
  assert.deepEqual(await named(), [`${gone} #${gone}`]);
  assert.ok((await page.locator("[role=treeitem].gone").count()) >= 1);
  await page.getByRole("button", { name: "› split" }).click();
  await frame(page);
  assert.match(await sentence.innerText(), /^node \d+ split at token \d+/);
  assert.equal((await named()).length, 2);
  await page.locator("input[type=range]").focus();
  await page.keyboard.press("Home");
  await frame(page);
  await frame(page);
  assert.notEqual(await page.evaluate(() => host.store.cursor), null);
  await page.getByRole("button", { name: "End", exact: true }).click();
  await frame(page);
  assert.equal(await page.evaluate(() => host.store.cursor), null);
  assert.deepEqual(await named(), []);
  assert.deepEqual(errors, []);
  await page.close();
});

test("the time bar stays where it is, wherever in the past the reader goes, and plays at another speed", async () => {
  const { page, errors } = await opened({ log: "judge", show: "" });
  await page.setViewportSize({ width: 1280, height: 2400 });
  await frame(page);
  const bar = page.locator(".time");
  const place = async () => (await bar.boundingBox()).y;
  const high = () => page.evaluate(() => document.querySelector(".nbs").scrollHeight);
  const [before, before_high] = [await place(), await high()];
  for (const seq of [1, 150, 400, 20]) {
    await page.evaluate((seq) => host.store.seek(seq), seq);
    await frame(page);
    assert.ok((await place()) >= before && (await high()) >= before_high, String(seq));
  }
  const at = await place();
  await page.getByRole("button", { name: "› split" }).click();
  await frame(page);
  assert.equal(await place(), at);
  await page.getByRole("button", { name: "1×", exact: true }).click();
  await page.getByRole("button", { name: "4×", exact: true }).waitFor();
  assert.equal(await page.evaluate(() => host.store.settings.speed), 4);
  await page.setViewportSize({ width: 900, height: 2400 });
  await page.evaluate(() => host.store.seek(null));
  await frame(page);
  await page.setViewportSize({ width: 1280, height: 2400 });
  await frame(page);
  assert.equal(await place(), before);
  assert.deepEqual(errors, []);
  await page.close();
});

test("where there is no cache, the tree says so, and has no tools for one", async () => {
  const { page, errors } = await opened({ log: "mock" });
  assert.match(await page.locator(".nbs .tree").innerText(), /^This backend has no cache that could be shown\.$/);
  assert.match(await page.locator(".nbs .time").innerText(), /^◂/);
  assert.deepEqual(errors, []);
  await page.close();
});

test("what is shown can be saved in each format, and nothing in it is markup", async () => {
  const { page, errors } = await opened({ log: "hostile", at: "60" });
  for (const format of ["SVG", "PNG", "JSON", "DOT"]) {
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: format, exact: true }).click()]);
    assert.match(file.suggestedFilename(), new RegExp(`^radix-tree-\\d+\\.${format.toLowerCase()}$`));
    const bytes = await readFile(await file.path());
    assert.ok(bytes.length > 80, format);
    if (format === "PNG") assert.equal(bytes.subarray(1, 4).toString(), "PNG");
    if (format === "JSON") {
      const { nodes, folded } = JSON.parse(bytes);
      assert.ok(nodes.length);
      assert.equal(nodes.length + folded.length, await page.locator("[role=treeitem]").count());
    }
    if (format === "DOT") assert.match(bytes.toString(), /^digraph \{\n[^]*\n\}\n$/);
    if (format !== "SVG") continue;
    assert.doesNotMatch(bytes.toString(), /<script|var\(--/);
    assert.equal(await page.evaluate((text) => new DOMParser().parseFromString(text, "image/svg+xml").querySelector("parsererror"), bytes.toString()), null);
  }
  assert.deepEqual(errors, []);
  await page.close();
});

test("in a narrow output nothing sticks out, in both looks", async () => {
  for (const width of [520, 700, 900]) {
    const { page, errors } = await opened({ log: "judge", run: "0" }, width);
    for (const look of ["icicle", "graph"]) {
      if (look === "graph") await page.getByRole("button", { name: "Graph" }).click();
      await frame(page);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0, `${width} ${look}`);
      const cut = await page.evaluate(() => [...document.querySelectorAll(".nbs .tree button")].filter((button) => button.offsetParent && button.scrollWidth > button.clientWidth + 1).map((button) => button.textContent));
      assert.deepEqual(cut, [], `${width} ${look}`);
    }
    assert.deepEqual(errors, []);
    await page.close();
  }
});

test("labels stay inside their boxes", async () => {
  const { page } = await opened({ log: "judge", run: "0" }, 900);
  const out = await page.evaluate(() => [...document.querySelectorAll("[role=treeitem]")].flatMap((node) => {
    const box = node.querySelector(".fill").getBoundingClientRect();
    return [...node.querySelectorAll("text")].map((text) => text.getBoundingClientRect()).filter((text) => text.right > box.right + 1 || text.bottom > box.bottom + 2 || text.left < box.left - 1).map(() => node.getAttribute("aria-label"));
  }));
  assert.deepEqual(out, []);
  await page.close();
});

test("of a large tree only what is near is on the page, and the rest comes by scrolling and by keys", async () => {
  const { page, errors } = await opened_large(browser, server, "tree");
  const tree = page.locator("[role=tree]");
  const seen = () => page.evaluate(() => {
    const frame = document.querySelector("[role=tree]").getBoundingClientRect();
    const boxes = [...document.querySelectorAll("[role=treeitem]")].map((node) => node.querySelector(".fill").getBoundingClientRect());
    return { n: boxes.length, n_in_sight: boxes.filter((box) => box.top < frame.bottom && box.bottom > frame.top).length, low: Math.max(...boxes.map((box) => box.bottom)) - frame.bottom };
  });
  const first = await seen();
  assert.ok(first.n < 120 && first.n_in_sight > 10 && first.low > 0, JSON.stringify(first));
  await tree.evaluate((element) => (element.scrollTop = element.scrollHeight));
  await frame(page);
  const last = await seen();
  assert.ok(last.n < 120 && last.n_in_sight > 10 && last.low <= 0, JSON.stringify(last));
  await tree.focus();
  for (const key of ["Home", "End", "Home"]) {
    await page.keyboard.press(key);
    await frame(page);
    const at = await page.evaluate(() => {
      const tree = document.querySelector("[role=tree]");
      const [outer, inner] = [tree, document.getElementById(tree.getAttribute("aria-activedescendant"))].map((each) => each.getBoundingClientRect());
      return inner.top >= outer.top - 1 && inner.top < outer.bottom;
    });
    assert.ok(at, `${key}: what has the keyboard is in sight`);
  }
  await page.keyboard.press("Enter");
  await frame(page);
  assert.equal(await page.locator("[role=treeitem].selected").getAttribute("aria-selected"), "true");
  assert.deepEqual(errors, []);
  await page.close();
});
