// The streams view without a page: lanes, pieces, times of tokens, and what of a prompt was cached.

import assert from "node:assert/strict";
import test from "node:test";
import { event_of } from "../src/events.js";
import { Feed } from "../src/feed.js";
import { fold, View } from "../src/fold/view.js";
import { cached_parts } from "../src/views/streams/cached.js";
import { title_of } from "../src/views/streams/chips.js";
import { fingerprint } from "../src/views/streams/figures.js";
import { failed_only, limited, rows_of } from "../src/views/streams/lanes.js";
import { latency_look, logprob_look } from "../src/views/streams/looks.js";
import { words_of } from "../src/parts/odds.js";
import { Pace } from "../src/views/streams/pace.js";
import { Pieces } from "../src/views/streams/pieces.js";
import { Follower } from "../src/parts/follow.js";
import { lines_of, NAMES, plain } from "./fixtures.js";

const events_of = (name) => lines_of(name).map(event_of);

/** Events of bodies {kind: {fields}}, a millisecond apart, of an engine "e" and a run "r". */
function told(...bodies) {
  return bodies.map((each, i) => {
    const [kind, body] = Object.entries(each)[0];
    const source = /^(Stream|Call|Scored|Variable)/.test(kind) ? "r" : "e";
    return { seq: i + 1, t_ns: (i + 1) * 1e6, source, kind, body };
  });
}

function pace_of(events, engine = "") {
  const pace = new Pace(engine);
  for (const event of events) pace.apply(event);
  return pace;
}

function pieces_of(events, stream, mode = "kind") {
  const view = fold(events);
  return new Pieces(mode).update(view, view.streams.get(stream), pace_of(events));
}

const began = (stream, parent = "", branch = 0) => ({ StreamBegan: { stream, parent, branch, label: "" } });
const text = (stream, words) => ({ StreamText: { stream, text: words } });
const ended = (stream, how) => ({ StreamEnded: { stream, how } });
const call = (stream, call_id, name, kind = "gen") => ({ CallBegan: { stream, call_id, kind, name } });
const answered = (stream, call_id, error = "") => ({ CallEnded: { stream, call_id, error } });
const set = (stream, name, words) => ({ VariableSet: { stream, name, text: words } });
const queued = (request, call_id, n_prompt = 4) => ({ Queued: { request, call_id, n_prompt } });
const admitted = (request, call_id, n_hit = 0, node = 0) => ({ Admitted: { request, call_id, n_hit, n_new: 4 - n_hit, node } });
const tokens = (...pairs) => ({ Tokens: { requests: pairs.map((pair) => pair[0]), ids: pairs.map((pair) => pair[1]) } });
const finished = (request, call_id, n_generated) => ({ Finished: { request, call_id, reason: "stop", n_prompt: 4, n_cached: 0, n_generated } });
const texts = (...words) => ({ TokenTexts: { ids: words.map((_, i) => i), texts: words } });

test("lanes: a fork, its branches, and what the stream goes on with", () => {
  const events = told(
    began("a"), began("a1", "a", 0), began("a2", "a", 1), // said before the parent's own text
    text("a", "essay"), text("a1", "x"), text("a2", "y"), ended("a1", "joined"), ended("a2", "joined"),
    set("a", "v", "[1, 2]"), text("a", "and?"),
    began("a3", "a", 0), text("a3", "z"), ended("a3", "done"), text("a", "so"), ended("a", "done"), began("b"),
  );
  const rows = rows_of(fold(events), "");
  const seen = rows.map((row) => [row.stream.id, row.depth, row.from, row.to, row.is_head, row.after, String(row.rails)]);
  assert.deepEqual(seen, [
    ["a", 0, 0, 1, true, 0, ""],
    ["a1", 1, 0, Infinity, true, 0, "true"],
    ["a2", 1, 0, Infinity, true, 0, "true"],
    ["a", 0, 1, 3, false, 2, ""],
    ["a3", 1, 0, Infinity, true, 0, "true"],
    ["a", 0, 3, Infinity, false, 1, ""],
    ["b", 0, 0, Infinity, true, 0, ""],
  ]);
  assert.equal(new Set(rows.map((row) => row.key)).size, rows.length);
});

test("lanes: the last branch of a stream that does not go on has no line below it", () => {
  const events = told(began("a"), text("a", "t"), began("a1", "a", 0), text("a1", "x"), began("a2", "a", 1), text("a2", "x"), began("a2a", "a2", 0), text("a2a", "z"));
  const rows = rows_of(fold(events), "");
  assert.deepEqual(rows.map((row) => [row.stream.id, String(row.rails)]), [["a", ""], ["a1", "true"], ["a2", "false"], ["a2a", "false,false"]]);
});

test("lanes: every part of every stream is in one row, at any moment of any log", () => {
  for (const name of NAMES) {
    const events = events_of(name);
    for (const part of [0.3, 0.6, 1]) {
      const some = events.slice(0, Math.ceil(events.length * part));
      const view = fold(some);
      const rows = rows_of(view, "");
      for (const stream of view.streams.values()) {
        const mine = rows.filter((row) => row.stream === stream);
        const shown = stream.parts.map((_, at) => mine.filter((row) => at >= row.from && at < row.to).length);
        assert.deepEqual(shown, stream.parts.map(() => 1), `${name} ${stream.id}`);
        assert.equal(mine.filter((row) => row.is_head).length, 1);
        assert.ok(mine.every((row) => row.depth === stream.depth && row.rails.length === row.depth));
      }
    }
  }
});

test("lanes: streams that are their own parents, or each other's, are no endless lanes", () => {
  const events = told(began("a", "a"), began("b", "c"), began("c", "b"), began("d"), text("d", "x"));
  assert.deepEqual(rows_of(fold(events), "").map((row) => row.stream.id), ["d"]);
});

test("lanes: thousands of forks within each other", () => {
  const events = told(began("s0"), ...Array.from({ length: 5000 }, (_, i) => began(`s${i + 1}`, `s${i}`)));
  const rows = rows_of(fold(events), "");
  assert.equal(rows.at(-1).depth, 5000);
});

test("lanes: of many, those that failed or run stay; failed ones bring those above them", () => {
  const events = told(began("a"), ...[0, 1, 2, 3].map((i) => began(`a${i}`, "a", i)), ended("a0", "done"), ended("a1", "failed"), ended("a2", "done"));
  const view = fold(events);
  const rows = rows_of(view, "");
  const some = limited(rows, 3);
  assert.deepEqual(some.rows.map((row) => row.stream.id), ["a", "a1", "a3"]);
  assert.deepEqual(some.left.map((stream) => stream.id), ["a0", "a2"]);
  assert.deepEqual(limited(rows, 2, "a2").rows.map((row) => row.stream.id), ["a", "a2"]);
  assert.deepEqual(failed_only(rows, view.streams).map((row) => row.stream.id), ["a", "a1"]);
});

for (const mode of ["kind", "latency"]) {
  test(`pieces: built on event by event they are those built from scratch (${mode})`, () => {
    for (const name of NAMES) {
      const events = events_of(name);
      const view = new View();
      const pace = new Pace();
      const kept = new Map();
      events.forEach((event, i) => {
        view.apply(event);
        pace.apply(event);
        if (i % 31 && i < events.length - 1) return;
        for (const stream of view.streams.values()) {
          const lane = kept.get(stream.id) ?? { pieces: new Pieces(mode), list: [], print: "" };
          kept.set(stream.id, lane);
          const now = fingerprint(stream);
          const before = lane.list;
          if (now !== lane.print) [lane.list, lane.print] = [lane.pieces.update(view, stream, pace), now];
          const fresh = new Pieces(mode).update(view, stream, pace);
          assert.deepEqual(plain(lane.list), plain(fresh), `${name} ${stream.id} after ${event.seq}`);
          const shared = before.filter((piece, at) => piece === lane.list[at]).length;
          assert.ok(shared >= before.length - 20, "what is settled is not built again");
        }
      });
    }
  });
}

test("pieces: what was there is not changed in place when tokens are added", () => {
  const events = told(began("a"), text("a", "p"), call("a", "c", "v"), texts("x", "y"), queued(1, "c"), admitted(1, "c"), tokens([1, [0]]), tokens([1, [1]]));
  const [view, pace, pieces] = [new View(), new Pace(), new Pieces()];
  const step = (event) => (view.apply(event), pace.apply(event));
  events.slice(0, 7).forEach(step);
  const first = pieces.update(view, view.streams.get("a"), pace);
  const copy = plain(first);
  step(events[7]);
  const second = pieces.update(view, view.streams.get("a"), pace);
  assert.deepEqual(plain(first), copy);
  assert.equal(second[0], first[0]);
  assert.deepEqual(second[1].runs, [{ look: "gen", text: "xy", n: 2, low: null, high: null }]);
  assert.ok(second[1].live);
});

test("pieces: forced tokens, a constraint, a stop that is cut off, and n texts", () => {
  const begin = [began("a"), call("a", "c", "v"), texts("x", "y", "STOP"), queued(1, "c"), admitted(1, "c")];
  const forced = told(...begin, { Constrained: { call_id: "c", kind: "regex", text: "xy", by: "automaton" } }, tokens([1, [0]]), { Jumped: { request: 1, call_id: "c", ids: [1, 1] } });
  assert.deepEqual(pieces_of(forced, "a")[0].runs.map((run) => [run.look, run.text]), [["constrained", "x"], ["jumped", "yy"]]);
  const stopped = told(...begin, tokens([1, [0]]), tokens([1, [2]]), finished(1, "c", 2), answered("a", "c"), set("a", "v", "xST"));
  assert.deepEqual(pieces_of(stopped, "a")[0].runs.map((run) => [run.look, run.text, run.n]), [["gen", "xST", 2]]);
  const typed = told(...begin, tokens([1, [0]]), finished(1, "c", 1), answered("a", "c"), set("a", "v", "True"));
  assert.deepEqual(pieces_of(typed, "a").map((piece) => [piece.runs[0].text, piece.note]), [["x", "value True"]]);
  const many = told(...begin, queued(2, "c"), admitted(2, "c"), tokens([1, [0]], [2, [1]]), finished(1, "c", 1), finished(2, "c", 1), answered("a", "c"), set("a", "v", "['x', 'y']"));
  assert.deepEqual(pieces_of(many, "a").map((piece) => [piece.of, piece.request, piece.runs[0].text]), [["1/2", 1, "x"], ["2/2", 2, "y"]]);
});

test("pieces: a failed call keeps what it had written, under its own name", () => {
  const events = told(
    began("a"), texts("x", "y"), call("a", "c", "v"), queued(1, "c"), admitted(1, "c"), tokens([1, [0]]), finished(1, "c", 1), answered("a", "c"), set("a", "v", "x"),
    call("a", "d", "v"), queued(2, "d"), admitted(2, "d"), tokens([2, [1]]), answered("a", "d", "BackendError: no"),
  );
  assert.deepEqual(pieces_of(events, "a").map((piece) => [piece.kind, piece.request, piece.runs[0].text]), [["gen", 1, "x"], ["partial", 2, "y"]]);
});

test("pieces: which literals were cached is known when the call that needs them is admitted", () => {
  const tree = { NodeAdded: { node: 1, parent: 0, tokens: [0, 1], tick: 1, request: 0 } };
  const before = [texts("<u>", "Judge its", " depth", "."), tree, began("a"), text("a", "Judge its depth."), call("a", "c", "v"), queued(1, "c")];
  assert.deepEqual(pieces_of(told(...before), "a")[0].runs.map((run) => run.look), ["literal"]);
  const runs = pieces_of(told(...before, admitted(1, "c", 2, 1)), "a")[0].runs;
  assert.deepEqual(runs.map((run) => [run.look, run.text]), [["cached", "Judge its"], ["prefilled", " depth."]]);
  const gone = told(...before, admitted(1, "c", 2, 1), { NodeEvicted: { node: 1, n_tokens: 2 } });
  assert.deepEqual(pieces_of(gone, "a")[0].runs.map((run) => run.look), ["cached", "prefilled"]);
  const unknown = told(...before, admitted(1, "c", 2, 7));
  assert.deepEqual(pieces_of(unknown, "a")[0].runs.map((run) => run.look), ["literal"], "nothing is claimed");
});

test("cached: literals are looked for in order, the last one may be cut", () => {
  assert.deepEqual(cached_parts(["You are", " an essay ", "Judge"], "<s>You are</s>\nan essay</s>Jud"), { counts: [7, 10, 3], end: 30 });
  assert.deepEqual(cached_parts(["yes", "yes"], "<s>yes</s>").counts, [3, 0]);
  assert.deepEqual(cached_parts(["abc"], "").counts, [0]);
});

test("pace: latencies, and none where events were lost", () => {
  const lines = [began("a"), call("a", "c", "v"), queued(1, "c"), admitted(1, "c"), tokens([1, [0]]), tokens([1, [0]]), { Jumped: { request: 1, call_id: "c", ids: [1, 1] } }];
  const events = told(...lines);
  const pace = pace_of(events, "e");
  assert.deepEqual([0, 1, 2, 3, 4].map((i) => pace.latency_ns(1, i)), [2e6, 1e6, 1e6, 0, null]);
  pace.check(fold(events));
  assert.equal(pace.latency_ns(1, 1), 1e6);
  const holed = pace_of(events.filter((event) => event.seq !== 5), "e");
  holed.check(fold(events));
  assert.equal(holed.latency_ns(1, 0), null);
  assert.equal(pace_of(events, "other").latency_ns(1, 0), null);
});

test("pace: log probabilities are there when some event has them", () => {
  const with_logprobs = { Logprobs: { requests: [1], logprobs: [-0.5] } };
  const events = told(began("a"), texts("x"), call("a", "c", "v"), queued(1, "c"), admitted(1, "c"), with_logprobs, tokens([1, [0]]), tokens([1, [0]]));
  assert.ok(pace_of(events).has_logprobs);
  const [piece] = pieces_of(events, "a", "logprob");
  assert.deepEqual(piece.runs.map((run) => [run.look, run.low]), [["l1", -0.5], ["none", null]]);
  assert.match(title_of(piece.runs[0], piece), /probability 60\.7 %/);
  assert.ok(!pace_of(events_of("judge")).has_logprobs);
});

test("pieces: a choice has the scores of all choices, and tells them", () => {
  const scored = { Scored: { stream: "a", call_id: "c", choices: ["yes", "no", "\u202eno"], scores: [-0.2, -1.5, -1e9], shares: [0.77, 0.229, 0], chosen: 1, n_choices: 3 } };
  const events = told(began("a"), call("a", "c", "v", "score"), answered("a", "c"), scored, set("a", "v", "no"), set("a", "v", "no"));
  const [choice, value] = pieces_of(events, "a");
  assert.deepEqual(choice.scores, [["yes", -0.2, 0.77, false], ["no", -1.5, 0.229, true], ["\u202eno", -1e9, 0, false]]);
  assert.match(title_of(choice.runs[0], choice), /^chosen · by score: yes 77%, no 23%, <U\+202E>no 0%$/);
  assert.deepEqual([value.kind, value.scores.length], ["value", 0]);
  assert.equal(words_of([["a", -1, null, true], ["b", -1, 0.00012, false]], 1), "a –, 1 more");
});

test("looks: levels grow with the latency and fall with the probability", () => {
  assert.deepEqual([null, 0, 10e6, 99e6, 1e9].map(latency_look), ["none", "l0", "l1", "l2", "l4"]);
  assert.deepEqual([null, 0, -0.5, -5].map(logprob_look), ["none", "l0", "l1", "l4"]);
});

test("follower: another log begins anew, a longer one goes on", () => {
  const events = events_of("judge");
  const follower = new Follower(() => new Pace());
  const first = follower.catch_up(events.slice(0, 300));
  assert.equal(follower.catch_up(events), first);
  assert.equal(follower.catch_up(events.slice(100)), first, "the oldest were dropped");
  assert.notEqual(follower.catch_up(events.slice(0, 300)), first);
  const moved = events.map((event) => ({ ...event, t_ns: event.t_ns + 5 }));
  const second = follower.reducer;
  assert.notEqual(follower.catch_up(moved), second);
});

test("seeking: at a moment, lanes and pieces are those of a log that ends there", () => {
  for (const name of NAMES) {
    const feed = Feed.of_log(lines_of(name));
    const whole = pace_of(feed.events);
    for (const event of feed.events.filter((_, i) => i % 97 === 50)) {
      const some = feed.events.filter((each) => each.seq <= event.seq);
      const [past, then] = [feed.at(event.seq), fold(some)];
      const then_pace = pace_of(some);
      for (const stream of then.streams.values()) {
        const here = new Pieces().update(past, past.streams.get(stream.id), whole);
        assert.deepEqual(plain(here), plain(new Pieces().update(then, stream, then_pace)), `${name} at ${event.seq}`);
      }
    }
  }
});
