// The radix tree view without a page: what is drawn of a tree, where, and how a keyboard gets through it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Feed } from "../src/feed.js";
import { choose, key_of } from "../src/views/tree/choose.js";
import { icicle } from "../src/views/tree/icicle.js";
import { moved } from "../src/views/tree/keys.js";
import { build, path_of } from "../src/views/tree/model.js";
import { paper } from "../src/views/tree/paper.js";
import { amount } from "../src/views/tree/signs.js";
import { Wish } from "../src/views/tree/wish.js";
import { lines_of, NAMES } from "./fixtures.js";
import { chance, grown } from "./tree_logs.js";

const LIMIT = 60;
const of_log = (lines) => Feed.of_log(lines).live;
const model_of = (view) => build(view, view.marks);
const drawn_of = (model, wanted = {}) => choose(model, { ...new Wish(), limit: LIMIT, ...wanted });
const sum = (values) => values.reduce((a, b) => a + b, 0);

/** Views of several shapes: made-up ones, and all saved logs. */
const VIEWS = [
  ...[1, 30, 300, 3000].map((n) => [`${n} nodes`, of_log(grown(n, { seed: n }))]),
  ["wide", of_log(wide(500))],
  ["deep", of_log(deep(400))],
  ...NAMES.map((name) => [name, of_log(lines_of(name))]),
];

function deep(n) {
  return Array.from({ length: n }, (_, i) => [i + 1, i, "e", "NodeAdded", { node: i + 1, parent: i, tokens: [i, i], tick: i, request: 1 }]);
}

function wide(n) {
  return Array.from({ length: n }, (_, i) => [i + 1, i, "e", "NodeAdded", { node: i + 1, parent: 0, tokens: Array(1 + (i % 9)).fill(i), tick: i, request: 1 }]);
}

test("a model counts what is below each node, and has all nodes and ghosts", () => {
  for (const [name, view] of VIEWS) {
    const model = model_of(view);
    const ghosts = [...view.marks.evicted.keys()].filter((id) => !view.nodes.has(id));
    const all = [...view.nodes.keys(), ...ghosts];
    // In the hostile log, nodes hang on others that it never had.
    if (name !== "hostile") assert.deepEqual(new Set(model.items.keys()), new Set(all), name);
    for (const id of model.items.keys()) assert.ok(all.includes(id) && path_of(model.items.get(id))[0].node.parent === 0, name);
    for (const item of [model.root, ...model.items.values()]) {
      const own = item.node === null ? 0 : 1;
      assert.equal(item.n_nodes, own + sum(item.children.map((child) => child.n_nodes)));
      assert.equal(item.n_tokens, (own && item.node.tokens.length) + sum(item.children.map((child) => child.n_tokens)));
      for (const [i, child] of item.children.entries()) assert.ok(child.parent === item && (i === 0 || child.first > item.children[i - 1].first));
    }
    const n_tokens = sum([...view.nodes.values()].map((node) => node.tokens.length));
    if (name !== "hostile") assert.deepEqual(model.held, { n_nodes: view.nodes.size, n_tokens }, name);
  }
});

test("what is drawn and what is folded away add up to the tree", () => {
  for (const [name, view] of VIEWS) {
    const model = model_of(view);
    const { drawn } = drawn_of(model);
    assert.equal(sum(drawn.map((part) => part.n_nodes)), model.root.n_nodes, name);
    assert.equal(sum(drawn.map((part) => part.n_tokens)), model.root.n_tokens, name);
    assert.equal(new Set(drawn.map((part) => part.key)).size, drawn.length);
    if (name !== "deep") assert.ok(drawn.length <= LIMIT, `${name}: ${drawn.length}`);
    const before = new Set([model.root]);
    for (const part of drawn) {
      assert.ok(before.has(part.parent), "each comes after its parent");
      if (part.item !== null) before.add(part.item);
    }
  }
});

test("small trees are drawn whole, and a fold never stands for one leaf", () => {
  const small = model_of(of_log(grown(30, { seed: 5 })));
  assert.equal(drawn_of(small).drawn.filter((part) => part.item === null).length, 0);
  for (const [, view] of VIEWS) {
    for (const part of drawn_of(model_of(view)).drawn) {
      if (part.item === null) assert.ok(part.n_nodes > 1, amount(part));
    }
  }
});

test("below a run only what it has touched is drawn, and all of it where there is room", () => {
  const view = of_log(grown(300));
  const marks = { new: new Set([view.nodes.size - 5]), hits: new Map([[1, 2]]), evicted: new Map() };
  const model = build(view, marks);
  const { drawn } = drawn_of(model, { is_run: true });
  for (const part of drawn) if (part.item !== null && part.n_nodes === 1) assert.ok(part.item.n_marked > 0 || !part.item.children.length);
  for (const id of [...marks.new, 1]) assert.ok(drawn.some((part) => part.key === String(id)), `node ${id}`);
  assert.equal(sum(drawn.map((part) => part.n_nodes)), model.root.n_nodes);
});

test("what is asked for is drawn with all above it, however deep", () => {
  for (const [name, view] of VIEWS) {
    const model = model_of(view);
    for (const item of [...model.items.values()].slice(-3)) {
      const { kept, drawn } = drawn_of(model, { limit: 5, must: [item.id] });
      for (const at of path_of(item)) assert.ok(kept.has(at.id), `${name}: ${at.id}`);
      assert.ok(drawn.some((part) => part.item === item));
    }
  }
});

test("in the icicle, width is tokens and height is leaves, and nothing overlaps", () => {
  for (const [name, view] of VIEWS) {
    const { drawn } = drawn_of(model_of(view));
    const sizes = { width: 900, row: 20, least: 0, fold: 100 };
    const { boxes, width, height, scale } = icicle(drawn, sizes);
    assert.ok(width <= 900.01, name);
    const below = new Map();
    for (const part of drawn) below.set(part.parent, [...(below.get(part.parent) ?? []), part]);
    for (const part of drawn) {
      const box = boxes.get(part.key);
      assert.ok(box.x >= 0 && box.x + box.w <= width + 0.01 && box.y + box.h <= height);
      if (part.item === null) continue;
      assert.ok(Math.abs(box.w - part.n_tokens * scale) < 1e-6, "width is tokens");
      const children = (below.get(part.item) ?? []).map((child) => boxes.get(child.key));
      assert.equal(box.h, Math.max(20, sum(children.map((child) => child.h))), "height is that of what is below");
      for (const child of children) assert.ok(Math.abs(child.x - (box.x + box.w)) < 1e-6, "a child begins where its parent ends");
    }
    for (const family of below.values()) {
      family.reduce((y, part) => {
        assert.equal(boxes.get(part.key).y, y, "siblings stand on each other");
        return y + boxes.get(part.key).h;
      }, boxes.get(family[0].key).y);
    }
  }
});

test("areas are KV memory: of two leaves in rows of one height, twice the tokens have twice the area", () => {
  const view = of_log([
    [1, 0, "e", "NodeAdded", { node: 1, parent: 0, tokens: Array(10).fill(1), tick: 1, request: 1 }],
    [2, 0, "e", "NodeAdded", { node: 2, parent: 1, tokens: Array(30).fill(1), tick: 1, request: 1 }],
    [3, 0, "e", "NodeAdded", { node: 3, parent: 1, tokens: Array(15).fill(1), tick: 1, request: 1 }],
  ]);
  const { boxes } = icicle(drawn_of(model_of(view)).drawn, { width: 800, row: 20, least: 4, fold: 100 });
  const area = (key) => boxes.get(key).w * boxes.get(key).h;
  assert.ok(Math.abs(area("2") / area("3") - 2) < 1e-6);
  assert.ok(Math.abs(area("1") / area("3") - (10 * 2) / 15) < 1e-6); // two leaves high
});

test("nodes too short to see have the least width, and the whole still fits", () => {
  const view = of_log([
    [1, 0, "e", "NodeAdded", { node: 1, parent: 0, tokens: Array(5000).fill(1), tick: 1, request: 1 }],
    [2, 0, "e", "NodeAdded", { node: 2, parent: 1, tokens: [7], tick: 1, request: 1 }],
  ]);
  const { boxes, width } = icicle(drawn_of(model_of(view)).drawn, { width: 700, row: 20, least: 24, fold: 100 });
  assert.equal(boxes.get("2").w, 24);
  assert.ok(Math.abs(width - 700) < 0.01);
});

test("the order stays through splits, growth and eviction", () => {
  const lines = grown(60, { seed: 9 });
  let before = [];
  const feed = new Feed();
  let n_compared = 0;
  for (const line of lines) {
    feed.take_delta([line], line[0], line[0]);
    if (!feed.live.nodes.size) continue;
    const { drawn } = drawn_of(model_of(feed.live), { limit: 1000 });
    const order = drawn.map((part) => part.key);
    const both = new Set(before.filter((key) => order.includes(key)));
    assert.deepEqual(order.filter((key) => both.has(key)), before.filter((key) => both.has(key)), `after ${line[3]}`);
    before = order;
    n_compared += both.size;
  }
  assert.ok(n_compared > 1000);
});

test("a model built on the one before is the same as a new one", () => {
  const feed = new Feed();
  let model = null;
  const plain = (made) => drawn_of(made).drawn.map((part) => [part.key, part.n_nodes, part.n_tokens, part.parent.id]);
  for (const line of lines_of("crowd")) {
    feed.take_delta([line], line[0], line[0]);
    if (line[0] % 7) continue;
    model = build(feed.live, feed.live.marks, model);
    assert.deepEqual(plain(model), plain(model_of(feed.live)));
  }
});

test("a log with circles and lost parents makes no trouble", () => {
  const nodes = new Map([[1, { id: 1, parent: 2, tokens: [1] }], [2, { id: 2, parent: 1, tokens: [1] }], [3, { id: 3, parent: 3, tokens: [1] }], [4, { id: 4, parent: 99, tokens: [1] }], [5, { id: 5, parent: 0, tokens: [1, 2] }]]);
  const model = build({ nodes }, { new: new Set(), hits: new Map(), evicted: new Map() });
  assert.deepEqual([...model.items.keys()], [5]);
  assert.equal(model.root.n_tokens, 2);
  for (const parents of [[3, 1, 2, 3], [2, 3, 2, 1], [1, 1, 1], [2, 1, 1, 0]]) {
    const some = new Map(parents.map((parent, i) => [i + 1, { id: i + 1, parent, tokens: [1] }]));
    const { items, root } = build({ nodes: some }, { new: new Set(), hits: new Map(), evicted: new Map() });
    const n = parents.filter((parent) => parent === 0).length;
    assert.deepEqual([items.size, root.n_nodes, root.n_tokens], [n, n, n]);
  }
});

test("the keyboard reaches every node, folded ones too", () => {
  for (const [name, view] of VIEWS) {
    if (view.nodes.size > 1000) continue; // the same again, slowly
    const model = model_of(view);
    const wish = new Wish();
    const reached = new Set();
    let drawn = draw(model, wish);
    move(wish, drawn, "Home");
    for (let n = 0; n < 4 * (model.items.size + 1); n += 1) {
      reached.add(wish.active);
      const part = drawn.find((one) => one.key === wish.active);
      if (part !== undefined && part.item === null) wish.unfold(part); // Enter
      else {
        const before = wish.active;
        move(wish, drawn, "ArrowRight");
        if (wish.active === before) move(wish, drawn, "ArrowDown");
        if (wish.active === before) break;
      }
      drawn = draw(model, wish);
    }
    for (const id of model.items.keys()) assert.ok(reached.has(String(id)), `${name}: node ${id}`);
  }
});

const move = (wish, drawn, name) => (wish.active = moved(drawn, wish.active, name));

function draw(model, wish) {
  const { drawn, kept } = choose(model, { ...wish, limit: 30, must: [Number(wish.active)] });
  wish.settle({ kept, boxes: new Map(drawn.map((part) => [part.key, part])) }, model);
  return drawn;
}

test("arrows go to parent, child and siblings, Home and End to the ends", () => {
  const model = model_of(of_log(grown(25, { seed: 3 })));
  const { drawn } = drawn_of(model);
  const wish = new Wish();
  const go = (key, name) => {
    wish.active = key;
    move(wish, drawn, name);
    return wish.active;
  };
  for (const part of drawn) {
    const { item, parent } = part;
    assert.equal(go(part.key, "ArrowLeft"), parent.node === null ? part.key : String(parent.id));
    assert.equal(go(part.key, "ArrowRight"), item.children.length ? String(item.children[0].id) : part.key);
    const next = parent.children[parent.children.indexOf(item) + 1];
    if (next !== undefined) {
      assert.equal(go(part.key, "ArrowDown"), String(next.id));
      assert.equal(go(next === undefined ? part.key : String(next.id), "ArrowUp"), part.key);
    }
  }
  assert.equal(go("3", "Home"), drawn[0].key);
  assert.equal(go("3", "End"), drawn.at(-1).key);
  assert.equal(moved(drawn, "gone", "ArrowUp"), drawn[0].key);
  assert.equal(moved(drawn, "gone", "End"), drawn.at(-1).key);
  assert.equal(moved([], null, "End"), null);
});

test("a subtree folded by hand stays folded until it is unfolded", () => {
  const model = model_of(of_log(grown(30, { seed: 4 })));
  const wish = new Wish();
  const top = model.root.children[0];
  let drawn = draw(model, wish);
  const before = drawn.map((part) => part.key);
  const toggle = () => wish.toggle(drawn.find((part) => part.item === top));
  toggle();
  drawn = draw(model, wish);
  const fold = drawn.find((part) => part.parent === top);
  assert.equal(fold.item, null);
  assert.equal(fold.n_nodes, top.n_nodes - 1);
  assert.equal(amount(fold), `${fold.n_nodes} nodes, ${fold.n_tokens} tokens`);
  assert.equal(wish.active, String(top.id));
  toggle();
  drawn = draw(model, wish);
  for (const key of before) assert.ok(key.startsWith("f") || drawn.some((part) => part.key === key), key);
});

test("nothing is drawn below what is folded by hand, whatever else is wanted, but what is let in", () => {
  const model = model_of(of_log(grown(200, { seed: 5 })));
  const deep = [...model.items.values()].reduce((a, b) => (path_of(b).length > path_of(a).length ? b : a));
  const [top, middle] = path_of(deep);
  const wish = new Wish();
  for (const { id } of path_of(deep)) wish.opened.add(id);
  const chosen = (from = model.root) => choose(model, { ...wish, limit: 30, must: [deep.id], from: from.id });
  const toggle = (item) => wish.toggle(chosen(item).drawn[0]);
  toggle(middle);
  const { drawn, kept } = chosen();
  assert.ok(kept.has(middle.id) && drawn.every(({ item, parent }) => item === null || parent !== middle));
  assert.equal(key_of(deep.id, model, kept), `f${middle.id}`);
  assert.deepEqual([key_of(top.id, model, kept), key_of(-1, model, kept)], [String(top.id), "-1"]);
  assert.deepEqual(chosen(middle).drawn.map(({ key }) => key), [String(middle.id), `f${middle.id}`]);
  wish.let_in(deep);
  assert.ok(chosen().kept.has(deep.id) && !wish.closed.size);
  toggle(deep);
  assert.equal(wish.closed.size, 0, "nothing is below it");
  const single = [...model.items.values()].find(({ children }) => children.length === 1 && !children[0].children.length);
  toggle(single);
  assert.deepEqual(chosen(single).drawn.map(({ key }) => key), [String(single.id), `f${single.id}`], "a fold of one node, since it was asked for");
});

test("in the graph no circle or text lies on another, and it reads left to right", () => {
  const random = chance(7);
  for (const n of [1, 5, 20, 38]) {
    const { drawn } = drawn_of(model_of(of_log(grown(n, { seed: n + 1 }))));
    const sizes = new Map(drawn.map((part) => [part.key, { w: 20 + 100 * random(), h: 18 + 14 * Math.floor(2 * random()) }]));
    const { spots, width, height } = paper(drawn, sizes, { radius: 15, gap: 8 });
    const rectangles = drawn.flatMap((part) => {
      const { x, y, left, w, h } = spots.get(part.key);
      assert.ok(x + 15 <= width && y + 15 <= height && y - h >= 0);
      assert.ok(left + w <= x - 15, "the text ends before the circle");
      if (part.parent.node !== null) assert.ok(spots.get(String(part.parent.id)).x < left);
      return [[x - 15, y - 15, x + 15, y + 15], [left, y - h, left + w, y]];
    });
    for (let i = 0; i < rectangles.length; i += 1) {
      for (let k = i + 1; k < rectangles.length; k += 1) {
        const [a, b] = [rectangles[i], rectangles[k]];
        assert.ok(a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1], `${a} and ${b}`);
      }
    }
  }
});
