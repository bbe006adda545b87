// The radix tree view without a page: texts and their safety, search, who used what, the slider's jumps, saved files.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Feed } from "../src/feed.js";
import { Store } from "../src/store.js";
import { choose, key_of } from "../src/views/tree/choose.js";
import { build, paths } from "../src/views/tree/model.js";
import { dot_of } from "../src/views/tree/dot.js";
import { picture } from "../src/views/tree/picture.js";
import { json_of } from "../src/views/tree/save.js";
import { svg_source } from "../src/parts/files.js";
import { Hits } from "../src/parts/hits.js";
import { Search } from "../src/views/tree/search.js";
import { spoken } from "../src/views/tree/signs.js";
import { next_of } from "../src/views/time/index.js";
import { brief, cells, fit, n_short, shown, shown_lines, wrap } from "../src/parts/text.js";
import { Wish } from "../src/views/tree/wish.js";
import { lines_of } from "./fixtures.js";
import { grown } from "./tree_logs.js";

const HOSTILE = ["</text><script>alert(1)</script>", '"];n9 [label="x', "\u001b[31mred", "a\\", "\u202eevil", "]]>", "&lt;", "\u0000\uffff", "' onload='z", "\ud800"];

/** A tree of `texts`, each a node of one token, every second one under the one before it. */
function tree_of(texts) {
  const lines = [[1, 0, "e", "TokenTexts", { ids: texts.map((_, i) => i), texts }]];
  texts.forEach((_, i) => lines.push([i + 2, i, "e", "NodeAdded", { node: i + 1, parent: i % 2 ? i : 0, tokens: [i], tick: i, request: i }]));
  return Feed.of_log(lines).live;
}

function picture_of(view, wanted = {}) {
  const model = build(view, view.marks);
  return picture({ model, view, wish: new Wish(), path: new Set(), named: new Set(), must: [], room: 700, char: 7, prefix: "p", selected: null, graph: false, is_run: false, ...wanted });
}

test("control characters and what reorders text are shown, not sent", () => {
  assert.equal(shown("a\u001b[31m\n\u202e\u0000\u007f"), "a␛[31m⏎<U+202E>␀␡");
  assert.equal(shown("👩\u200d🚀 é 中"), "👩\u200d🚀 é 中");
  assert.equal(shown_lines("a\r\nb\tc\u0007"), "a\nb    c␇");
  assert.equal(brief("<|im_start|>user<|im_end|>"), "◇user◇");
  for (const text of HOSTILE) assert.doesNotMatch(shown(text), /[\p{Cc}\p{Cf}\p{Cs}]/u);
});

test("numbers in few characters", () => {
  assert.deepEqual([0, 950, 1234, 34_000, 5_600_000].map(n_short), ["0", "950", "1.2k", "34k", "5.6M"]);
});

test("lines never have more cells than there is room, and say when something is left out", () => {
  const texts = ["You are a terse critic of long essays.", "中文字符很宽的一句话没有空格", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "e\u0301e\u0301e\u0301 combining", ""];
  for (const text of texts) {
    for (let n = 1; n < 30; n += 1) {
      for (const n_lines of [1, 2, 4]) {
        const lines = wrap(text, n, n_lines, 2);
        assert.ok(lines.length <= n_lines);
        lines.forEach((line, i) => assert.ok(Array.from(line).reduce((sum, char) => sum + cells(char), 0) <= (i ? n : n - 2) || line === "", `${n}: ${line}`));
        const all = lines.join("");
        assert.ok(all === text || all.endsWith("…") || n < 6, `${n}, ${n_lines}: ${all}`);
      }
    }
  }
  assert.equal(fit("You are", 20), "You are");
  assert.equal(fit("You are here", 8), "You are…");
});

test("search finds texts that begin in the node above", () => {
  const view = tree_of(["You are", " a Terse", " helpful", " critic"]);
  const model = build(view, view.marks);
  const search = new Search();
  assert.deepEqual(search.find(view, model, "terse"), [2]);
  assert.deepEqual(search.find(view, model, "are a"), [2]);
  assert.deepEqual(search.find(view, model, "YOU"), [1]);
  assert.deepEqual(search.find(view, model, "nothing"), []);
  view.nodes.get(2).tokens = [3];
  assert.deepEqual(search.find(view, model, "critic"), [2, 4], "a text that was kept is not used for other tokens");
});

test("a fold tells how many of its nodes the search has found, and where in it the search stands", () => {
  const { live } = Feed.of_log(grown(2000));
  const model = build(live, live.marks);
  const wish = new Wish();
  wish.look_for(live, model, "rivers");
  for (const graph of [false, true]) {
    if (graph) for (const part of picture_of(live, { model, wish }).drawn) if (part.depth === 0) wish.toggle(part);
    const { drawn, kept, draw } = picture_of(live, { model, wish, graph, room: 9000 });
    const told = drawn.filter(({ item }) => item === null).map((part) => Number(/, (\d+) found"/.exec(JSON.stringify(draw(part)))?.[1] ?? 0));
    assert.ok(told.some((n) => n > 1));
    assert.equal(told.reduce((a, b) => a + b, 0) + wish.found.filter((id) => kept.has(id)).length, wish.found.length);
  }
  const id = wish.next_found(1);
  const { drawn, draw, kept } = picture_of(live, { model, wish });
  const here = drawn.filter((part) => draw(part)[1].class.split(" ").includes("here"));
  assert.deepEqual(here.map(({ key }) => key), [key_of(id, model, kept)]);
});

test("next and previous go round all matches, and the tree may grow meanwhile", () => {
  const feed = Feed.of_log(grown(50));
  const model = build(feed.live, feed.live.marks);
  const wish = new Wish();
  wish.look_for(feed.live, model, "essay");
  assert.equal(wish.here, null);
  const [first, n] = [wish.next_found(1), wish.found.length];
  for (let i = 1; i < n; i += 1) wish.next_found(1);
  assert.equal(wish.next_found(1), first);
  assert.equal(wish.next_found(-1), wish.found.at(-1));
  const { here } = wish;
  wish.follow(feed.live, model);
  assert.equal(wish.here, here);
});

test("who used a node is what the log says, also after a split, and at any moment", () => {
  const events = [
    ["NodeAdded", { node: 1, parent: 0, tokens: [1, 2, 3, 4], tick: 1, request: 1 }],
    ["NodeExtended", { node: 1, tokens: [5], tick: 2, request: 1 }],
    ["NodeTouched", { nodes: [1], tick: 3, request: 2 }],
    ["NodeSplit", { node: 1, upper: 2, at: 2, request: 3 }],
    ["NodeTouched", { nodes: [2], tick: 4, request: 3 }],
    ["NodeTouched", { nodes: [2], tick: 5, request: -1 }],
    ["NodeAdded", { node: 3, parent: 2, tokens: [9], tick: 6, request: 3 }],
  ].map(([kind, body], i) => ({ seq: i + 1, t_ns: i, source: "e", kind, body }));
  const hits = new Hits();
  for (const event of events) hits.apply(event);
  const used = (node, seq) => hits.of_node(node, seq).map(({ request, how, n }) => `${request} ${how} ${n}`);
  assert.deepEqual(used(1), ["1 wrote 1", "2 hit 1"]);
  assert.deepEqual(used(2), ["1 wrote 1", "2 hit 1", "3 hit 1"]);
  assert.deepEqual(used(1, 2), ["1 wrote 1"]);
  assert.deepEqual([...hits.of_request(3)].sort(), [2, 3]);
  const view = Feed.of_log(events.map(({ seq, t_ns, source, kind, body }) => [seq, t_ns, source, kind, body])).live;
  assert.deepEqual([...paths(build(view, view.marks), hits.of_request(2))].sort(), [1, 2]);
});

test("the slider jumps to the next split, eviction or hit, and back", () => {
  const store = new Store(Feed.of_log(lines_of("crowd")), { replay: true });
  for (const kind of ["NodeSplit", "NodeEvicted", "NodeTouched"]) {
    const all = store.events.filter((event) => event.kind === kind && event.body.request !== -1).map((event) => event.seq);
    assert.ok(all.length > 1, kind);
    store.seek(null);
    const there = [];
    for (let event = next_of(store, kind); event !== null; event = next_of(store, kind)) {
      there.push(event.seq);
      store.seek(event.seq);
    }
    assert.deepEqual(there, all);
    assert.equal(next_of(store, kind, true).seq, all.at(-2));
  }
});

test("a node is said in words: number, tokens, state, the beginning of its text", () => {
  const view = tree_of(["You are", " a Terse"]);
  view.marks.hits.set(1, 3);
  view.nodes.get(2).locks = 2;
  const { drawn } = choose(build(view, view.marks), { ...new Wish(), limit: 9 });
  assert.equal(spoken(view, drawn[0]), "node 1, 1 token, hit 3 times, new: 'You are'");
  assert.equal(spoken(view, drawn[1]), "node 2, 1 token, new, locked: 'a Terse'");
});

test("whatever states are told by colour are told by a sign or a line too", () => {
  const view = tree_of(["new", "hit", "old", "locked"]);
  view.marks.new.delete(3);
  view.marks.hits.set(2, 2);
  view.nodes.get(4).locks = 1;
  view.marks.evicted.set(9, { id: 9, parent: 1, tokens: [0, 1], locks: 0, tick: 0 });
  for (const graph of [false, true]) {
    const { drawn, draw } = picture_of(view, { graph });
    const by_key = new Map(drawn.map((part) => [part.key, JSON.stringify(draw(part))]));
    assert.match(by_key.get("1"), /\["tspan".*"\+"|"\+"/);
    assert.match(by_key.get("2"), /●×2/);
    assert.match(by_key.get("9"), /✕.*hatch|hatch.*✕/);
    assert.match(by_key.get("4"), /"inner"/);
    assert.doesNotMatch(by_key.get("3"), /"inner"|hatch|stripe|"sign/);
  }
});

test("hostile texts end nothing in saved files", () => {
  const view = tree_of(HOSTILE);
  const { drawn, draw, width, height } = picture_of(view);
  const source = svg_source({ title: "t", pictures: drawn.map(draw), width, height, style: "", defs: [], background: "#fff" });
  assert.doesNotMatch(source, /<script|\u001b|\u0000|\u202e|[\ud800-\udfff](?![\udc00-\udfff])/);
  const tags = new Set([...source.matchAll(/<\/?([a-z]+)/g)].map((found) => found[1]));
  assert.deepEqual([...tags].filter((tag) => !["svg", "title", "style", "rect", "g", "text", "tspan", "path"].includes(tag)), []);
  const dot = dot_of(view, drawn);
  for (const line of dot.split("\n")) assert.equal(line.replace(/\\./g, "").split('"').length % 2, 1, line); // quotes come in pairs
  assert.equal(dot.split("\n").length, 2 + 1 + 2 * HOSTILE.length + 2);
  const back = JSON.parse(JSON.stringify(json_of(view, drawn)));
  assert.deepEqual(back.nodes.map((node) => [node.id, node.tokens]).sort((a, b) => a[0] - b[0]), HOSTILE.map((_, i) => [i + 1, [i]]));
});

test("a picture of ten thousand nodes has a few hundred parts", () => {
  const { drawn } = picture_of(Feed.of_log(grown(10_000)).live);
  assert.ok(drawn.length > 100 && drawn.length <= 205, `${drawn.length}`);
});
