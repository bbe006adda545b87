// The views in a browser, told by a host as a kernel would: `node --test test/browser.mjs` (needs Chromium).
//
// Not here: state and messages without a browser (feed.test.js, store.test.js).

import assert from "node:assert/strict";
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

/** A page of the host; what went wrong on it is in `errors`. */
async function opened(asked) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("dialog", (dialog) => errors.push(`dialog: ${dialog.message()}`));
  page.on("request", (request) => !request.url().startsWith(server.url) && !/^(data|blob):/.test(request.url()) && errors.push(`asks for ${request.url()}`));
  await page.goto(`${server.url}/dev/host.html?${new URLSearchParams(asked)}`);
  await page.waitForSelector("body[data-ready]", { state: "attached", timeout: 20_000 });
  return { page, errors };
}

test("what is told bit by bit is what a replay shows", async () => {
  const numbers = async (asked) => {
    const { page, errors } = await opened({ log: "judge", run: "1", ...asked });
    const text = await page.locator(".numbers dl").innerText();
    const tree = await page.locator(".nbs .tree svg").first().textContent();
    assert.deepEqual(errors, []);
    await page.close();
    return `${text}\n${tree}`;
  };
  assert.equal(await numbers({ mode: "live", step: "97", pause: "5" }), await numbers({}));
});

test("a click on cancel asks the kernel; where clicks do not get through, the button says what to do", async () => {
  const asked = { log: "judge", run: "0", mode: "live", at: "150", pause: "5" };
  const { page, errors } = await opened(asked);
  const button = page.getByRole("button", { name: "■ cancel" }).first();
  await button.click();
  const sent = await page.evaluate(() => host.session.sent);
  assert.equal(sent[0].do, "resync");
  assert.ok(sent.some((message) => message.do === "cancel" && message.source), JSON.stringify(sent));
  assert.equal(await page.getByRole("button", { name: "cancelling…" }).count(), 1);
  assert.deepEqual(errors, []);
  await page.close();

  const deaf = await opened({ ...asked, pong: "no" });
  await deaf.page.getByRole("button", { name: "press ■ to stop" }).first().waitFor({ timeout: 5000 });
  assert.equal(await deaf.page.getByRole("button", { name: "■ cancel" }).count(), 0);
  await deaf.page.close();
});

test("a run that is over stays as it was, whatever the engine does later", async () => {
  const { page, errors } = await opened({ log: "judge", run: "0", mode: "live", step: "97", pause: "5", final: "yes" });
  await page.waitForFunction(() => document.querySelector(".nbs-state").textContent.includes("replay"));
  const { page: then } = await opened({ log: "judge", run: "0", at: "end" });
  const numbers = (on) => on.locator(".numbers dl").innerText();
  assert.equal(await numbers(page), await numbers(then));
  assert.deepEqual(errors, []);
  await Promise.all([page.close(), then.close()]);
});

test("hostile texts stay texts", async () => {
  const { page, errors } = await opened({ log: "hostile" });
  const found = await page.evaluate(() => ({
    elements: document.querySelectorAll("#out script, #out img, #out a, #out iframe, #out table, #out [onload], #out [onerror]").length,
    text: document.getElementById("out").innerText,
  }));
  assert.equal(found.elements, 0);
  assert.ok(found.text.includes("<script>alert(1)</script>"));
  assert.doesNotMatch(found.text, /[\u0000-\u0008\u000b-\u001f\u007f\u202a-\u202e\u2066-\u2069\u200f]/u);
  assert.deepEqual(errors, []);
  await page.close();
});

test("the odds of a choice are shown when asked for, by pointer and by keyboard", async () => {
  const { page, errors } = await opened({ log: "grades", run: "0", show: "streams" });
  const button = page.locator(".odds > button");
  const rows = page.locator(".odds .of");
  assert.equal(await button.innerText(), "79% ▸");
  await button.click();
  assert.deepEqual(await rows.allInnerTexts(), ["◆ A", "Average", "Below average", "Above average"]);
  await page.locator(".lane", { has: page.locator(".odds") }).focus();
  await page.keyboard.press(" ");
  assert.equal(await rows.first().isVisible(), false);
  assert.equal(await button.getAttribute("aria-expanded"), "false");
  assert.deepEqual(errors, []);
  await page.close();
});

test("a view that throws is switched off, and the others go on", async () => {
  const { page, errors } = await opened({ log: "judge", run: "1", mode: "live", step: "97", pause: "5", break: "tree" });
  const note = page.locator(".nbs-off");
  assert.equal(await note.count(), 1);
  assert.match(await note.innerText(), /switched off: <b>broken<\/b><U\+202E>$/);
  assert.match(await page.locator(".numbers dl").innerText(), /hit rate\s+\d+%/);
  assert.ok((await page.locator(".nbs-state").innerText()).startsWith("done in"));
  assert.deepEqual(errors, []);
  await page.close();
});

test("nothing is wider than its place, light or dark, and both colours are painted", async () => {
  const { page, errors } = await opened({ log: "judge", run: "1" });
  const colours = { "": ["rgb(255, 255, 255)", "rgb(26, 26, 26)"], dark: ["rgb(17, 17, 17)", "rgb(224, 224, 224)"] };
  for (const [theme, [background, colour]] of Object.entries(colours))
    for (const width of [1256, 876, 600]) {
      const seen = await page.evaluate(async ([theme, width]) => {
        document.body.className = theme;
        document.getElementById("out").style.width = `${width}px`;
        for (let n = 0; n < 3; n++) await new Promise((done) => requestAnimationFrame(done));
        const root = document.querySelector(".nbs");
        const style = getComputedStyle(root);
        return { over: root.scrollWidth - root.clientWidth, background: style.backgroundColor, colour: style.color };
      }, [theme, width]);
      assert.deepEqual({ ...seen, over: Math.max(seen.over, 0) }, { over: 0, background, colour }, `${width} ${theme}`);
    }
  assert.deepEqual(errors, []);
  await page.close();
});

test("sections fold by keyboard, and what is folded catches up when it is opened", async () => {
  const { page } = await opened({ log: "crowd", show: "tree,numbers" });
  const heading = page.getByRole("button", { name: "Radix tree", exact: true });
  await heading.focus();
  await page.keyboard.press("Enter");
  assert.equal(await heading.getAttribute("aria-expanded"), "false");
  assert.equal(await page.locator(".nbs .tree").isVisible(), false);
  await page.evaluate(() => host.store.seek(700));
  await page.waitForFunction(() => document.querySelector(".time").textContent.includes("700 / ")); // it is all views'
  await page.keyboard.press("Enter");
  assert.equal(await page.locator(".nbs .tree").isVisible(), true);
  await page.waitForFunction(() => document.querySelector(".tree .legend").textContent.startsWith("10 nodes, 349 tokens"));
  await page.close();
});

test("of many lanes only those near are filled, and the others when they come into sight", async () => {
  const { page, errors } = await opened_large(browser, server, "streams");
  const lanes = () => page.evaluate(() => {
    const list = document.querySelector(".lanes").getBoundingClientRect();
    const all = [...document.querySelectorAll(".lane")];
    const in_sight = all.filter((lane) => lane.getBoundingClientRect().top < list.bottom && lane.getBoundingClientRect().bottom > list.top);
    return { n: all.length, n_filled: all.filter((lane) => lane.childElementCount).length, n_blank: in_sight.filter((lane) => !lane.textContent.includes("bench") && !lane.textContent.includes("branch")).length };
  });
  const first = await lanes();
  assert.ok(first.n === 65 && first.n_filled < 50 && first.n_blank === 0, JSON.stringify(first));
  await page.evaluate(() => (document.querySelector(".lanes").scrollTop = 1e6));
  await page.waitForFunction(() => document.querySelector(".lane:last-child").textContent.includes("branch 64"));
  assert.equal((await lanes()).n_blank, 0);
  await page.locator(".lane:last-child").focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("End");
  assert.match(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), /^branch branch 64, running, /);
  assert.deepEqual(errors, []);
  await page.close();
});

test("on the timeline the requests stand out that used the node in focus", async () => {
  const { page, errors } = await opened({ log: "judge", run: "0", show: "tree,timeline" });
  const rows = () => page.evaluate(() => document.querySelector(".timeline canvas.rows").toDataURL());
  const focus = async (node) => {
    await page.evaluate((node) => host.store.set_focus({ node }), node);
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    return rows();
  };
  const before = await focus(null);
  const used = await page.evaluate(() => Number(document.querySelector("[role=treeitem].hit").dataset.key));
  assert.notEqual(await focus(used), before);
  assert.equal(await focus(null), before);
  assert.deepEqual(errors, []);
  await page.close();
});

test("on the timeline a click takes the focus, a click beside seeks, and a drag moves the window", async () => {
  const { page, errors } = await opened({ log: "judge", run: "0", show: "timeline" });
  const box = await page.locator(".timeline .stage").boundingBox();
  await page.mouse.click(box.x + 200, box.y + 48);
  assert.notEqual(await page.evaluate(() => host.store.focus.stream), null);
  assert.equal(await page.evaluate(() => host.store.cursor), null);
  await page.getByRole("button", { name: "Zoom in (+)" }).click();
  const axis = () => page.evaluate(() => document.querySelector(".timeline canvas").toDataURL());
  const before = await axis();
  await page.mouse.move(box.x + 600, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + 500, box.y + 60, { steps: 4 });
  await page.mouse.up();
  assert.notEqual(await axis(), before);
  assert.equal(await page.evaluate(() => host.store.cursor), null, "the click at the end of a drag is none");
  await page.mouse.click(box.x + 400, box.y + box.height - 20);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  assert.notEqual(await page.evaluate(() => host.store.cursor), null);
  assert.deepEqual(errors, []);
  await page.close();
});
