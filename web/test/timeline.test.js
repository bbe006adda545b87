// The timeline without a page: phases of requests and streams, rows, seeking, times to pixels, windows.

import assert from "node:assert/strict";
import test from "node:test";
import { event_of, n_until } from "../src/events.js";
import { columns_of } from "../src/views/timeline/areas.js";
import { Follower, seq_at, time_at } from "../src/parts/follow.js";
import { first_place, moved, row_of } from "../src/views/timeline/places.js";
import { found_at, rows_of } from "../src/views/timeline/rows.js";
import { span_words, ticks_of, time_of, x_of } from "../src/views/timeline/scale.js";
import { counts_at, phase_at, times_of, Track } from "../src/views/timeline/track.js";
import { Window } from "../src/views/timeline/window.js";
import { bar_words, lane_words } from "../src/views/timeline/words.js";
import { lines_of, NAMES } from "./fixtures.js";

const events_of = (name) => lines_of(name).map(event_of);
const RUNNING = new Set(["prefill", "decode", "jump"]);

function track_of(events, engine = "") {
  const track = new Track(engine);
  for (const event of events) track.apply(event);
  return track;
}

/** Events of [t_ns, kind, fields]. */
function told(...rows) {
  return rows.map(([t_ns, kind, body], i) => ({ seq: i + 1, t_ns, source: /^(Stream|Call)/.test(kind) ? "r" : "e", kind, body }));
}

const request = { request: 1, call_id: "c" };
const STORY = told(
  [0, "StreamBegan", { stream: "s", parent: "", branch: 0, label: "story" }],
  [5, "CallBegan", { stream: "s", call_id: "c", kind: "gen", name: "v" }],
  [10, "Queued", { ...request, n_prompt: 7 }],
  [30, "Admitted", { ...request, n_hit: 3, n_new: 4, node: 0 }],
  [60, "Tokens", { requests: [1], ids: [[1]] }],
  [100, "Jumped", { ...request, ids: [2, 3] }],
  [130, "Tokens", { requests: [1], ids: [[4]] }],
  [150, "Preempted", { ...request, n_tokens: 11 }],
  [170, "Admitted", { ...request, n_hit: 5, n_new: 6, node: 0 }],
  [180, "Tokens", { requests: [1], ids: [[5]] }],
  [200, "Finished", { ...request, reason: "constraint", n_prompt: 7, n_cached: 3, n_generated: 5 }],
  [201, "Jumped", { ...request, ids: [6] }],
  [210, "CallEnded", { stream: "s", call_id: "c", error: "" }],
  [215, "StreamBegan", { stream: "s1", parent: "s", branch: 0, label: "" }],
  [240, "StreamEnded", { stream: "s1", how: "joined" }],
  [250, "StreamEnded", { stream: "s", how: "done" }],
);

test("phases: a request from its queue to its end", () => {
  const bar = track_of(STORY).bars.get(1);
  assert.deepEqual(bar.phases, ["queued", "prefill", "decode", "jump", "decode", "preempted", "prefill", "decode"]);
  assert.deepEqual(times_of(bar, 1000), { queued: 20, prefill: 40, decode: 80, jump: 30, preempted: 20 });
  assert.deepEqual([bar.n_hit, bar.n_prompt, bar.n_jumped, bar.reason, bar.end], [3, 7, 3, "constraint", 200]);
  assert.deepEqual([9, 10, 59, 60, 199, 200].map((t) => phase_at(bar, t)), [null, "queued", "prefill", "decode", "decode", null]);
});

test("phases: a stream is answered, waits for the program, and for its branches", () => {
  const lane = track_of(STORY).lanes.get("s");
  assert.deepEqual(times_of(lane, 1000), { program: 5 + 5 + 10, call: 205, "join-wait": 25 });
});

test("phases: a prefix hint is nothing that a stream waits for", () => {
  const events = told([0, "StreamBegan", { stream: "s", parent: "", branch: 0, label: "" }], [5, "CallBegan", { stream: "s", call_id: "p", kind: "prefix", name: "" }], [9, "CallEnded", { stream: "s", call_id: "p", error: "" }]);
  assert.deepEqual(track_of(events).lanes.get("s").phases, ["program"]);
});

test("phases: they sum up to the whole time of each request and stream, in every log", () => {
  for (const name of NAMES) {
    const track = track_of(events_of(name));
    for (const what of [...track.bars.values(), ...track.lanes.values()]) {
      const end = what.end ?? what.ended ?? track.last_ns;
      const sum = Object.values(times_of(what, track.last_ns)).reduce((a, b) => a + b, 0);
      assert.equal(sum, end - what.starts[0], `${name} ${what.id}`);
      assert.ok(what.starts.every((start, i) => i === 0 || start >= what.starts[i - 1]));
      assert.ok(what.phases.every((phase, i) => i === 0 || phase !== what.phases[i - 1]));
    }
  }
});

test("phases: after each step, as many run and wait as the engine says", () => {
  for (const name of ["judge", "crowd"]) {
    const track = track_of(events_of(name));
    assert.ok(track.steps.length > 50);
    for (const step of track.steps) {
      const counts = counts_at(track, step.t_ns);
      const n = (wanted) => Object.entries(counts).reduce((sum, [phase, k]) => sum + (wanted(phase) ? k : 0), 0);
      assert.deepEqual([n((p) => RUNNING.has(p)), n((p) => !RUNNING.has(p))], [step.n_running, step.n_waiting], `${name} at ${step.t_ns}`);
    }
  }
});

test("seeking: what was at a moment is told by the whole log as by a log that ends there", () => {
  for (const name of NAMES) {
    const events = events_of(name);
    const whole = track_of(events);
    for (let i = 40; i < events.length; i += 83) {
      const then = track_of(events.slice(0, i));
      if (events[i]?.t_ns === then.last_ns) continue; // more happened at that very moment
      for (const [id, bar] of then.bars) {
        assert.equal(phase_at(whole.bars.get(id), then.last_ns), phase_at(bar, then.last_ns), `${name} ${id} at ${i}`);
        assert.deepEqual(times_of(whole.bars.get(id), then.last_ns), times_of(bar, then.last_ns));
      }
      assert.deepEqual(counts_at(whole, then.last_ns), counts_at(then, then.last_ns));
    }
  }
});

test("seeking: a time and the event that was the last by then", () => {
  const events = told(...[10, 20, 20, 30].map((t) => [t, "Control", {}]));
  assert.deepEqual([5, 10, 19, 20, 99].map((t) => seq_at(events, t)), [1, 1, 1, 3, 4]);
  assert.deepEqual([0, 1, 3, 9].map((seq) => time_at(events, seq)), [null, 10, 20, 30]);
  assert.deepEqual([0, 2, 9].map((seq) => n_until(events, seq)), [0, 2, 4]);
  assert.equal(seq_at([], 5), null);
});

test("follower: piece by piece it is the same as at once", () => {
  const events = events_of("crowd");
  const follower = new Follower(() => new Track());
  for (let i = 0; i < events.length; i += 111) follower.catch_up(events.slice(0, i));
  assert.deepEqual(follower.catch_up(events), track_of(events));
});

test("track: requests of other engines do not count", () => {
  assert.equal(track_of(STORY, "e").bars.size, 1);
  assert.equal(track_of(STORY, "another").bars.size, 0);
  assert.equal(track_of(STORY, "another").lanes.size, 2);
});

test("track: kinds that are none of ours are left alone, whatever they are called", () => {
  const events = ["constructor", "apply", "__proto__", "torn"].map((kind, i) => ({ seq: i + 1, t_ns: i, source: "x", kind, body: {} }));
  assert.equal(track_of(events).first_ns, null);
});

test("rows: streams with their requests below, side by side where they run at once", () => {
  const events = told(
    [0, "StreamBegan", { stream: "s", parent: "", branch: 0, label: "top" }],
    [0, "StreamBegan", { stream: "s1", parent: "s", branch: 0, label: "left" }],
    [1, "CallBegan", { stream: "s", call_id: "c", kind: "gen", name: "v" }],
    [2, "Queued", { request: 1, call_id: "c", n_prompt: 1 }],
    [2, "Queued", { request: 2, call_id: "c", n_prompt: 1 }],
    [3, "Finished", { request: 1, call_id: "c", reason: "stop", n_prompt: 1, n_cached: 0, n_generated: 0 }],
    [4, "Queued", { request: 3, call_id: "c", n_prompt: 1 }],
    [5, "Queued", { request: 4, call_id: "elsewhere", n_prompt: 1 }],
  );
  const track = track_of(events);
  const seen = (source) => rows_of(track, source).map((row) => [row.label, row.depth, row.bars?.map((bar) => bar.id) ?? null]);
  const mine = [["top", 0, null], ["", 0, [1, 3]], ["", 0, [2]], ["branch left", 1, null]];
  assert.deepEqual(seen("r"), mine);
  assert.deepEqual(seen(""), [...mine, ["other requests", 0, [4]]]);
  const row = rows_of(track, "r")[1];
  assert.equal(found_at(row, 2.5, 0).bar.id, 1);
  assert.equal(found_at(row, 3.4, 0.5).bar.id, 1);
  assert.equal(found_at(row, 3.5, 0.1), null);
  assert.equal(found_at(row, 99, 0).bar.id, 3, "it still goes on");
});

test("rows: bars of one row never overlap", () => {
  for (const name of NAMES) {
    for (const row of rows_of(track_of(events_of(name)), "")) {
      row.bars?.forEach((bar, i) => assert.ok(i === 0 || bar.starts[0] >= row.bars[i - 1].end, `${name} ${bar.id}`));
    }
  }
});

test("track: ten thousand requests on many streams", () => {
  const rows = [];
  for (let i = 0; i < 200; i++) rows.push([0, "StreamBegan", { stream: `s${i}`, parent: "", branch: 0, label: "" }]);
  for (let i = 0; i < 10_000; i++) {
    const [call_id, stream] = [`c${i}`, `s${i % 200}`];
    rows.push([i, "CallBegan", { stream, call_id, kind: "gen", name: "v" }], [i, "Queued", { request: i, call_id, n_prompt: 1 }], [i, "Admitted", { request: i, call_id, n_hit: 0, n_new: 1, node: 0 }]);
    rows.push([i + 0.5, "Tokens", { requests: [i], ids: [[1]] }], [i + 0.9, "Finished", { request: i, call_id, reason: "stop", n_prompt: 1, n_cached: 0, n_generated: 1 }], [i + 0.9, "CallEnded", { stream, call_id, error: "" }]);
  }
  const began = performance.now();
  const track = track_of(told(...rows));
  const took = performance.now() - began;
  assert.equal(rows_of(track, "").length, 400);
  assert.ok(took < 1500, `${took} ms`); // about 60
});

test("scale: pixels, times, and round ticks that are not too close", () => {
  const window = { from: 1e9, to: 3e9 };
  assert.equal(x_of(window, 500, 2e9), 250);
  assert.equal(time_of(window, 500, 250), 2e9);
  const ticks = ticks_of(window, 500, 1e9);
  assert.deepEqual(ticks.map((tick) => tick.text), ["0 s", "0.5 s", "1.0 s", "1.5 s", "2.0 s"]);
  for (const span of [3e4, 7e5, 2.2e7, 9e8, 4e10, 8e12]) {
    const some = ticks_of({ from: 5e9, to: 5e9 + span }, 900, 5e9);
    assert.ok(some.length >= 3 && some.length <= 13, `${span}: ${some.length}`);
    assert.equal(new Set(some.map((tick) => tick.text)).size, some.length, some.map((tick) => tick.text).join());
  }
  assert.deepEqual([5e3, 1.5e6, 2e8, 1.234e9, 65e9].map(span_words), ["5 µs", "1.5 ms", "200 ms", "1.23 s", "65.0 s"]);
});

test("window: all of it until the reader zooms, never outside, and at the end it moves on", () => {
  const window = new Window();
  window.span(0, 1e9);
  assert.ok(window.is_fit && window.now.from < 0 && window.now.to > 1e9);
  window.zoom(4, 0.25e9);
  const { from, to } = window.now;
  assert.ok(Math.abs((0.25e9 - from) / (to - from) - (0.25e9 + 0.015e9) / 1.03e9) < 1e-9, "what was under the pointer stays there");
  window.pan(100);
  assert.ok(Math.abs(window.now.to - 1.015e9) < 1);
  window.span(0, 2e9);
  assert.ok(window.now.to > 1.98e9, "it was at the end");
  window.pan(-0.5);
  const before = window.now;
  window.span(0, 3e9);
  assert.deepEqual(window.now, before, "it was not");
  window.bring_in(0.1e9, 0.2e9);
  assert.ok(window.now.from < 0.2e9 && window.now.to > 0.1e9);
  window.zoom(1e-9, 0);
  assert.ok(window.is_fit);
  window.zoom(1e12, 1e9);
  assert.ok(window.now.to - window.now.from >= 19_999);
});

test("areas: the steps of one pixel become one column, and the highest counts", () => {
  const steps = Array.from({ length: 1000 }, (_, i) => ({ t_ns: i, n: i === 500 ? 9 : 1 }));
  const band = { parts: [["running", "n"]], span: (all, at, last) => ({ from: all[at].t_ns, to: all[at + 1]?.t_ns ?? last }) };
  const columns = columns_of({ window: { from: 0, to: 1000 }, width: 100, last: 1000 }, steps, band);
  assert.ok(columns.length <= 100);
  assert.equal(Math.max(...columns.map((column) => column.values[0])), 9);
  columns.forEach((column, i) => assert.ok(column.x1 > column.x0 && (i === 0 || column.x0 >= columns[i - 1].x1)));
});

test("words: what a bar and a stream are", () => {
  const track = track_of(STORY);
  const words = bar_words(track.bars.get(1), track.lanes.get("s"), 0, 250);
  assert.equal(words.head, "request 1 · v · constraint");
  assert.match(words.text, /3 of 7 prompt tokens cached, 5 generated, 3 of them jumped over/);
  assert.equal(lane_words(track.lanes.get("s"), "story", 0, 250).head, "story · done · 1 call");
});

test("places: keys go from bar to bar, and up and down to what is near in time", () => {
  const rows = rows_of(track_of(events_of("judge")), "");
  let place = first_place(rows);
  assert.equal(row_of(rows, place), 0);
  assert.equal(place.bar, null, "a stream's own line");
  assert.equal(moved(rows, 0, place, "right", 0), null);
  place = moved(rows, 0, place, "down", 0);
  assert.equal(row_of(rows, place), 1);
  const last = moved(rows, 1, place, "last", 0);
  assert.equal(last.bar, rows[1].bars.at(-1));
  assert.equal(moved(rows, 1, last, "right", 0), null);
  assert.equal(moved(rows, 1, last, "first", 0).bar, rows[1].bars[0]);
  assert.equal(moved(rows, 0, first_place(rows), "up", 0), null);
  assert.equal(row_of(rows.slice(5), place), null, "it is not there any more");
});
