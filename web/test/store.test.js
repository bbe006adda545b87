// A store shows now or a moment of the past, steps to what is of interest, plays, and tells of changes once a frame.

import assert from "node:assert/strict";
import test from "node:test";

import { explain, nodes_of } from "../src/explain.js";
import { name_of } from "../src/parts/names.js";
import { Feed } from "../src/feed.js";
import { is_of_interest, later } from "../src/moments.js";
import { Store } from "../src/store.js";
import { live_store, saved_store, settled } from "./fake_store.js";
import { lines_of, NAMES } from "./fixtures.js";

test("changes are told once a frame, all together", async () => {
  const { store, push } = live_store();
  const told = [];
  store.on((changes) => told.push([...changes].sort()));
  const lines = lines_of("mock");
  push(lines.slice(0, 10));
  push(lines.slice(10, 20));
  store.set_focus({ node: 3 });
  store.set_focus({ node: 3 });
  store.set({ speed: 2 });
  await settled();
  assert.deepEqual(told, [["focus", "settings", "state"]]);
  store.destroy();
  push(lines.slice(20, 30));
  await settled();
  assert.equal(told.length, 1);
});

test("seek shows the past while the present goes on, and null what is now", () => {
  const lines = lines_of("crowd");
  const { store, push } = live_store();
  push(lines.slice(0, 1000));
  store.seek(400);
  assert.deepEqual([store.view.seq, store.live.seq, store.seeking], [400, 1000, true]);
  push(lines.slice(1000, 1500));
  assert.deepEqual([store.view.seq, store.live.seq], [400, 1500]);
  assert.equal(store.event.seq, 400);
  store.seek(1e9);
  assert.equal(store.cursor, 1500);
  store.seek(null);
  assert.equal(store.view, store.live);
});

test("step goes from one event of interest to the next, and back", () => {
  const store = saved_store("crowd");
  const wanted = store.events.filter(is_of_interest).map((event) => event.seq);
  store.seek(store.range[0]);
  const seen = [];
  for (let n = 0; n < 12; n++) {
    store.step(1);
    seen.push(store.cursor);
  }
  assert.deepEqual(seen, wanted.slice(0, 12));
  store.step(-3);
  assert.equal(store.cursor, wanted[8]);
  store.step(1, (event) => event.kind === "NodeSplit");
  assert.equal(store.event.kind, "NodeSplit");
  store.seek(null);
  store.step(-1);
  assert.equal(store.cursor, wanted.at(-1));
  store.step(1);
  assert.equal(store.cursor, null);
  store.step(-1e6);
  assert.equal(store.cursor, store.range[0]);
});

test("play goes through the log and ends with what is now", async () => {
  const store = saved_store("mock");
  store.set({ speed: 1e6 });
  store.play();
  assert.ok(store.playing && store.cursor !== null);
  await new Promise((done) => setTimeout(done, 120));
  assert.deepEqual([store.playing, store.cursor], [false, null]);
  store.set({ speed: 0.01 });
  store.play();
  store.pause();
  assert.equal(store.playing, false);
  assert.equal(store.cursor, store.range[0]);
});

test("playing takes as long as the log did, but for its silences", () => {
  const lines = [0, 100, 250, 60_000, 60_010].map((ms, n) => [n + 1, 1e9 + ms * 1e6, "r", "Control", { what: "x", detail: "" }]);
  const feed = Feed.of_log(lines);
  assert.deepEqual(later(feed, 1, 99), { seq: 1, left_ms: 99, is_end: false });
  assert.deepEqual(later(feed, 1, 120), { seq: 2, left_ms: 20, is_end: false });
  assert.deepEqual(later(feed, 1, 650), { seq: 4, left_ms: 0, is_end: false });
  assert.deepEqual(later(feed, 1, 660), { seq: 5, left_ms: 0, is_end: true });
});

test("a store of a run has its streams, its span and its marks", () => {
  const lines = lines_of("judge");
  const runs = [...new Set(lines.filter((line) => line[3] === "StreamBegan").map((line) => line[2]))];
  const store = saved_store("judge", { source: runs[1] });
  assert.ok(store.streams().length === 4 && store.streams().every((stream) => stream.source === runs[1]));
  const begins = lines.find((line) => line[2] === runs[1])[0];
  assert.equal(store.range[0], begins - 1);
  assert.ok(store.marks_since_run().hits.size > 0);
  store.seek(begins);
  assert.equal(store.marks_since_run().hits.size, 0);
  assert.equal(new Store(store.feed, { source: "nobody" }).marks_since_run().new.size, 0);
});

test("what is sent reaches the kernel, but not from a replay", () => {
  const { store, sent } = live_store();
  store.send({ do: "cancel", source: "r" });
  assert.deepEqual(sent, [{ do: "cancel", source: "r" }]);
  store.replace(Feed.of_log(lines_of("mock")), { replay: true });
  store.send({ do: "cancel", source: "r" });
  assert.equal(sent.length, 1);
  assert.equal(store.can_cancel, false);
});

test("every event of interest has its sentence, and no sentence holds what cannot be seen", () => {
  for (const name of NAMES) {
    const store = saved_store(name);
    for (const event of store.events) {
      const view = store.feed.at(event.seq, store._past);
      store._past = view;
      const text = explain(event, view);
      if (is_of_interest(event)) assert.ok(text.length > 10, event.kind);
      assert.doesNotMatch(text, /[\p{Cc}\u202a-\u202e\u2066-\u2069\u200f]/u, event.kind);
    }
  }
});

test("a split is explained by where it is, who diverges, and the text there", () => {
  const store = saved_store("judge");
  store.seek(store.range[0]);
  store.step(1, (event) => event.kind === "NodeSplit");
  assert.match(explain(store.event, store.view), /^node \d+ split at token \d+: request \d+ diverges before “.+”; node \d+ has what they share$/);
  const { node, upper } = store.event.body;
  assert.deepEqual(nodes_of(store.event), [node, upper]);
  assert.deepEqual(nodes_of({ kind: "ConstraintGraph", body: { nodes: [1, 2] } }), []);
});

test("a stream is called by its label, a branch without one by its number", () => {
  assert.equal(name_of({ id: "17.5", label: "", parent: "17", branch: 5 }), "branch 5");
  assert.equal(name_of({ id: "17.5", label: "ideas", parent: "17", branch: 5 }), "branch ideas");
  assert.equal(name_of({ id: "17", label: "", parent: "", branch: 0 }), "17");
});
