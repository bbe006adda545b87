// fold(log) here equals what Python makes of the same log, from the start, from any dump on the way, and after a gap.

import assert from "node:assert/strict";
import test from "node:test";

import { event_of } from "../src/events.js";
import { dump, restore } from "../src/fold/dump.js";
import { View } from "../src/fold/view.js";
import { dumps_of, lines_of, NAMES, plain } from "./fixtures.js";

/** A view that watches a run from its first event on, as Python's fixtures do. */
function folded(events, run, view = new View()) {
  for (const event of events) {
    if (event.source === run) view.watch(run);
    view.apply(event);
  }
  return view;
}

function last_run(events) {
  return events.filter((event) => event.kind === "StreamBegan").at(-1).source;
}

for (const name of NAMES) {
  const events = lines_of(name).map(event_of);
  const run = last_run(events);
  const dumps = dumps_of(name);

  test(`${name}: the same state as Python's, on the way and at the end`, () => {
    for (const wanted of dumps.on_the_way) {
      const view = folded(events.filter((event) => event.seq <= wanted.seq), run);
      assert.deepEqual(plain(dump(view)), wanted);
    }
  });

  test(`${name}: a reader that comes late has the same state`, () => {
    assert.deepEqual(plain(dump(folded(events.slice(Math.floor(events.length / 2)), run))), dumps.late);
  });

  test(`${name}: a log with a hole in it gives the same state`, () => {
    const holed = events.filter((_, n) => n < Math.floor(events.length / 3) || n >= Math.floor(events.length / 2));
    assert.deepEqual(plain(dump(folded(holed, run))), dumps.holed);
  });

  test(`${name}: a dump from the middle and the rest of the events give the end`, () => {
    const [, , end] = dumps.on_the_way;
    for (const at of [0, 1, Math.floor(events.length / 2), events.length - 3]) {
      const middle = plain(dump(folded(events.slice(0, at), run)));
      assert.deepEqual(plain(dump(restore(plain(middle)))), middle);
      assert.deepEqual(plain(dump(folded(events.slice(at), run, restore(middle)))), end);
    }
  });

  test(`${name}: a clone goes on as the view does, and neither moves the other`, () => {
    const half = Math.floor(events.length / 2);
    const view = folded(events.slice(0, half), run);
    const texts = view.texts.size;
    const before = plain(dump(view));
    const copy = view.clone();
    assert.deepEqual(plain(dump(copy)), before);
    folded(events.slice(half), run, copy);
    assert.deepEqual(plain(dump(copy)), dumps.on_the_way[2]);
    const after = plain(dump(view));
    after.texts = after.texts.slice(0, texts); // texts of ids are shared: they are only ever added to
    assert.deepEqual(after, before);
  });
}

test("the saved logs hold what the reducer has to know", () => {
  const kinds = new Set(NAMES.flatMap((name) => lines_of(name).map((line) => line[3])));
  for (const kind of [
    "NodeSplit", "NodeEvicted", "NodeExtended", "NodeLocked", "Preempted", "Jumped", "Constrained", "ConstraintGraph", "Failed",
    "Snapshot", "StreamRole", "Control", "Loading",
  ])
    assert.ok(kinds.has(kind), kind);
});
