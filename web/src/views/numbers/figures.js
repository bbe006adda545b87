// The figures of a run, and of an engine: as nbsglang/viz/numbers.py, and some more that only a moving picture needs.
//
// Not here: how they are laid out (index.js).

import { grouped as count } from "../../parts/grouped.js";
import { is_cacheless } from "../../parts/cacheless.js";
import { n_round, seconds } from "../../parts/text.js";

/** [name, value, long] rows: what the store's run (without one: its engine) has cost at the cursor. */
export function figures(store) {
  const { view, live, source } = store;
  if (source) return run_figures(view, store.streams());
  return is_cacheless(live) ? call_figures(store.streams()) : engine_figures(view);
}

function run_figures(view, streams) {
  const sum = (name) => streams.reduce((n, stream) => n + stream[name], 0);
  const [cached, computed, generated] = [sum("n_cached"), sum("n_computed"), sum("n_generated")];
  if (view.ready === null && !(cached + computed + generated)) return call_figures(streams);
  const rows = [
    ["cached", count(cached), "prompt tokens that were in the tree: they were not computed again"],
    ["prefilled", count(computed), "prompt tokens that had to be computed"],
    ["generated", count(generated), "tokens that were written"],
    ["hit rate", cached + computed ? percent(cached / (cached + computed)) : "–", "share of the prompt tokens that were cached"],
  ];
  const jumped = n_jumped(streams);
  if (jumped) rows.push(["jumped", percent(jumped / Math.max(generated, 1)), `${count(jumped)} of the written tokens were forced by a constraint`]);
  const first = first_token_s(streams);
  if (first !== null) rows.push(["first token", seconds(first), "from the beginning of the run"]);
  const speed = tokens_per_s(streams, generated);
  if (speed !== null) rows.push(["speed", `${n_round(speed)} tok/s`, "of all streams together"]);
  return [...rows, ...step_figures(view)];
}

/** Of a backend whose requests are not logged: what the program itself tells. */
function call_figures(streams) {
  const calls = streams.flatMap((stream) => [...stream.calls.values()]).filter((call) => call.kind !== "prefix");
  const rows = [["streams", count(streams.length), "the program and its branches"], ["calls", count(calls.length), "this backend tells no counts of tokens"]];
  const n_failed = calls.filter((call) => call.error).length;
  return n_failed ? [...rows, ["not answered", count(n_failed), "calls that failed or were cancelled"]] : rows;
}

function engine_figures(view) {
  const { totals } = view;
  const { n_prompt, n_cached, n_generated } = so_far(view);
  const rows = [
    ["hit rate", n_prompt ? percent(n_cached / n_prompt) : "–", "share of the prompt tokens that were cached, of all requests"],
    ["prompt tokens", count(n_prompt), "of all requests that have begun"],
    ["saved", count(n_cached), "prompt tokens that were cached, and so not computed again"],
    ["generated", count(n_generated), "tokens that were written"],
  ];
  if (totals.n_jumped) rows.push(["jumped", percent(totals.n_jumped / Math.max(n_generated, totals.n_jumped)), `${count(totals.n_jumped)} of the written tokens were forced by a constraint`]);
  if (totals.n_evicted) rows.push(["evicted", count(totals.n_evicted), "tokens that left the cache for others"]);
  if (totals.n_preempted) rows.push(["preempted", count(totals.n_preempted), "times that a request gave its memory back"]);
  return [...rows, ...step_figures(view)];
}

/** Tokens of the requests that have ended, and those so far of the others. */
function so_far({ totals, requests }) {
  let { n_prompt, n_cached, n_generated } = totals;
  for (const request of requests.values()) {
    if (request.ended) continue;
    n_prompt += request.n_cached + request.n_computed;
    n_cached += request.n_cached;
    n_generated += request.generated.length;
  }
  return { n_prompt, n_cached, n_generated };
}

function step_figures({ step }) {
  if (step === null) return [];
  return [
    ["batch", count(step.n_running), "requests in the latest step"],
    ["queue", count(step.n_waiting), "requests that wait"],
  ];
}

/** The parts of the KV pool after the latest step: [name, tokens], or null before any. */
export function pool({ step, nodes, complete }) {
  if (step === null) return null;
  const all = step.n_locked + step.n_evictable + step.n_free;
  if (complete && !nodes.size && !step.n_running) return [["locked", 0], ["evictable", 0], ["free", all]]; // emptied after the step
  return [["locked", step.n_locked], ["evictable", step.n_evictable], ["free", step.n_free]];
}

function n_jumped(streams) {
  let n = 0;
  for (const stream of streams)
    for (const call of stream.calls.values())
      for (const request of call.requests)
        for (const [start, length] of request.jumps) n += Math.max(Math.min(length, request.generated.length - start), 0);
  return n;
}

function first_token_s(streams) {
  let first = Infinity;
  let began = Infinity;
  for (const stream of streams) {
    began = Math.min(began, stream.began_ns);
    for (const call of stream.calls.values()) if (call.first_ns !== null) first = Math.min(first, call.first_ns);
  }
  return first < Infinity ? (first - began) / 1e9 : null;
}

function tokens_per_s(streams, generated) {
  let first = Infinity;
  let last = -Infinity;
  for (const stream of streams)
    for (const call of stream.calls.values()) {
      if (call.first_ns === null || call.last_ns === null) continue;
      first = Math.min(first, call.first_ns);
      last = Math.max(last, call.last_ns);
    }
  return last > first && generated > 1 ? (generated - 1) / ((last - first) / 1e9) : null;
}

function percent(share) {
  return `${Math.round(share * 100)}%`;
}
