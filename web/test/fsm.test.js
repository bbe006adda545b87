// The constraint view: a text is followed through its automaton, and forced tokens are told from chosen ones.

import assert from "node:assert/strict";
import test from "node:test";

import { answer, choose, constrained, latest_choice } from "../src/views/fsm/model.js";
import { joined, takes, walk, what_follows } from "../src/views/fsm/walk.js";
import { figures, pool } from "../src/views/numbers/figures.js";
import { saved_store } from "./fake_store.js";
import { lines_of } from "./fixtures.js";

const graphs = lines_of("judge").filter((line) => line[3] === "ConstraintGraph").map((line) => line[4]);

test("labels stand for the characters that a regular expression means", () => {
  const yes = [["a", "a"], ["\\d", "7"], ["\\d", "٣"], ["\\w", "_"], ["\\w", "é"], ["\\s", "\n"], ["\\S", "x"], ["[a-cx]", "b"], ["[^\"]", "a"], ["[\\]\\-]", "-"], ["\\n", "\n"], ["\\\\", "\\"], ["[\\x00-\\x1f]", "\x05"], ["any", "😀"], ["\\w but [_]", "a"], ["[😀-😂]", "😁"], ["-", "-"], ["[a-c] and 1,200 more", "b"]];
  const no = [["a", "b"], ["\\d", "x"], ["\\D", "1"], ["[a-cx]", "d"], ["[^\"]", "\""], ["[^a-c]", "b"], ["\\w but [_]", "_"], ["ab", "a"], ["\\S", " "]];
  const unknown = [["[a-c] and 1,200 more", "z"], ["[^a-c…]", "z"]];
  for (const [label, char] of yes) assert.equal(takes(label, char), true, `${label} ${char}`);
  for (const [label, char] of no) assert.equal(takes(label, char), false, `${label} ${char}`);
  for (const [label, char] of unknown) assert.equal(takes(label, char), null, `${label} ${char}`);
});

test("no label takes long, whatever a log says", () => {
  const began = performance.now();
  for (const label of ["[" + "a-".repeat(50_000) + "]", "(a+)+$", "[".repeat(50_000), "\\w but [" + "x".repeat(50_000)]) takes(label, "!");
  assert.ok(performance.now() - began < 2000);
});

test("a date is followed to its end, and at each place something is said of what may follow", () => {
  const [date] = graphs;
  assert.deepEqual(what_follows(date, walk(date, "")), { ways: [{ label: "\\d", forced: false }], may_end: false });
  const half = walk(date, "1969");
  assert.deepEqual(what_follows(date, half), { ways: [{ label: "-", forced: true }], may_end: false });
  assert.deepEqual(joined(half.steps), [{ label: "\\d", text: "1969", forced: false, n: 4 }]);
  const whole = walk(date, "1969-07-20");
  assert.deepEqual([whole.lost, what_follows(date, whole)], [false, { ways: [], may_end: true }]);
  assert.equal(walk(date, "1969-13-01").lost, true);
});

test("inside of a forced text its rest is what follows, also where the log has left out its middle", () => {
  const [, city] = graphs;
  const inside = walk(city, '{"ci');
  assert.deepEqual(what_follows(city, inside), { ways: [{ label: 'ty": "', forced: true }], may_end: false });
  const elided = { start: 0, nodes: [0, 1], edges: [[0, 1, "abc…xyz", 20]], accepting: [1] };
  assert.equal(walk(elided, "abd").lost, true);
  assert.equal(what_follows(elided, walk(elided, "abcde")).ways[0].label, "…xyz");
  assert.equal(what_follows(elided, walk(elided, "abc" + "-".repeat(14) + "xyz")).may_end, true);
});

test("forced tokens are those that were jumped over, and the figures count them", () => {
  const lines = lines_of("judge");
  const runs = [...new Set(lines.filter((line) => line[3] === "StreamBegan").map((line) => line[2]))];
  const store = saved_store("judge", { source: runs.at(-1) });
  const calls = constrained(store);
  assert.deepEqual(calls.map(({ call }) => call.name), ["date", "city"]);
  assert.equal(choose(calls, {}, "").call.name, "city");
  assert.equal(choose(calls, {}, calls[0].call.id).call.name, "date");
  const told = calls.map(({ call }) => answer(store.view, call));
  const numbers = new Set(calls.map(({ call }) => call.requests[0].id));
  const jumped = lines.filter((line) => line[3] === "Jumped" && numbers.has(line[4].request));
  const n_jumped = jumped.reduce((n, line) => n + line[4].ids.length, 0);
  assert.ok(n_jumped > 5);
  assert.equal(told[0].n_forced + told[1].n_forced, n_jumped);
  assert.match(told[1].pieces.filter((piece) => piece.forced).map((piece) => piece.text).join("|"), /^\{"city": "\|.*"population": \|/);
  const n_written = told[0].n_forced + told[0].n_chosen + told[1].n_forced + told[1].n_chosen;
  const values = new Map(figures(store).map(([name, value]) => [name, value]));
  assert.equal(values.get("generated"), String(n_written));
  assert.equal(values.get("jumped"), `${Math.round((100 * n_jumped) / n_written)}%`);
});

test("what the mask took away is told while the answer is written", () => {
  const lines = lines_of("judge");
  const masked = lines.filter((line) => line[3] === "Masked").at(-1);
  const store = saved_store("judge", { source: lines.filter((line) => line[3] === "StreamBegan").at(-1)[2] });
  store.seek(masked[0] + 1);
  const { call } = choose(constrained(store), {}, "");
  const removed = masked[4].removed[masked[4].requests.indexOf(call.requests[0].id)];
  assert.deepEqual(latest_choice(store, call), { removed, tops: null });
  store.seek(null);
  assert.deepEqual(latest_choice(store, choose(constrained(store), {}, "").call), { removed, tops: null }, "of the last token");
});

test("the likeliest tokens are told with the constraint's word on each, at the cursor and of the last token", () => {
  const store = saved_store("grades", { engine: lines_of("grades").find((line) => line[3] === "Ready")[2] });
  const masked = lines_of("grades").filter((line) => line[3] === "Masked");
  const latest = (seq) => {
    store.seek(seq);
    return latest_choice(store, choose(constrained(store), {}, "").call);
  };
  assert.equal(latest(masked[0][0] - 1), null, "no token yet");
  assert.deepEqual(latest(masked[0][0]), { removed: masked[0][4].removed[0], tops: null }, "in the middle of a step");
  const { removed, tops } = latest(masked[1][0] - 1);
  assert.equal(removed, masked[0][4].removed[0]);
  assert.equal(tops.length, 12);
  const allowed = tops.filter((token) => token.is_allowed).map((token) => store.view.text_of([token.id]));
  assert.deepEqual(allowed, ["A", "B"]);
  for (const { share, left, is_allowed } of tops)
    if (is_allowed) assert.ok(Math.abs(left - share / (1 - removed)) < 1e-9);
    else assert.equal(left, null);
  const at_end = latest(null);
  assert.equal(at_end.removed, masked.at(-1)[4].removed[0]);
  assert.deepEqual(latest(masked.at(-1)[0] + 5), at_end);
  const sure = masked.findIndex((line) => line[4].removed[0] > 0.99999);
  assert.ok(sure > 0 && latest(masked[sure + 1][0] - 1).tops.every((token) => token.left === null), "too little is left to be told");
});

test("tokens of a log that does not fit together are told as far as they go", () => {
  const store = saved_store("hostile");
  const told = lines_of("hostile").filter((line) => line[3] === "TopLogprobs")[0];
  store.seek(told[0]);
  const { tops } = latest_choice(store, choose(constrained(store), {}, "").call);
  assert.deepEqual(tops.map((token) => [token.share > 0, token.is_allowed]), [[true, true], [true, false], [false, false]]);
});

test("the pool's parts are those of the latest step", () => {
  const store = saved_store("crowd");
  const { step } = store.view;
  assert.deepEqual(pool(store.view), [["locked", step.n_locked], ["evictable", step.n_evictable], ["free", step.n_free]]);
  assert.equal(pool({ step: null }), null);
  assert.deepEqual(pool({ step: { ...step, n_running: 0 }, complete: true, nodes: new Map() }).map(([, n]) => n), [0, 0, step.n_locked + step.n_evictable + step.n_free]);
});

test("a backend that logs no requests is told of by its calls", () => {
  const lines = lines_of("mock");
  const runs = [...new Set(lines.filter((line) => line[3] === "StreamBegan").map((line) => line[2]))];
  const rows = (run) => figures(saved_store("mock", { source: run })).map(([name, value]) => [name, value]);
  assert.deepEqual(rows(runs[0]), [["streams", "4"], ["calls", "7"]]);
  assert.deepEqual(rows(runs.at(-1)).at(-1)[0], "not answered");
  assert.deepEqual(rows("").map(([name]) => name), ["streams", "calls", "not answered"]);
});

test("the figures of an engine count what requests that still run have so far", () => {
  const store = saved_store("crowd");
  let [most, n_running] = [0, 0];
  for (let seq = store.range[0]; seq <= store.range[1]; seq += 50) {
    store.seek(seq);
    const { requests, totals } = store.view;
    const values = new Map(figures(store));
    const n = [...requests.values()].reduce((sum, request) => sum + request.generated.length, 0);
    const generated = Number(values.get("generated").replace(/\D/g, ""));
    assert.equal(generated, n);
    assert.ok(generated >= totals.n_generated && generated >= most - 20); // a token that ends a text is taken back
    if (generated > totals.n_generated) n_running += 1;
    most = Math.max(most, generated);
  }
  assert.ok(n_running > 3);
});
