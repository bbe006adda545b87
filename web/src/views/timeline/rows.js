// The rows of a timeline: for each stream one row of its own, and below it as many as its requests need side by side.
//
// A row is {lane, label, depth, bars}: `bars` is null in the row of the stream itself, whose phases are the lane's.
// Rows of one lane follow each other; streams come in the order of the streams view, branches below their parent.
//
// Not here: pixels (draw.js).

import { name_of } from "../../parts/names.js";

/** The rows of a run's streams, of all for "". Requests of no stream come last, where all are shown. */
export function rows_of(track, source) {
  const rows = [];
  for (const [lane, depth] of in_order(track, source)) {
    rows.push({ lane, depth, label: name_of(lane, 40), bars: null });
    rows.push(...request_rows(lane, depth));
  }
  const rest = track.lanes.get("");
  if (rest !== undefined && !source) rows.push(...request_rows(rest, 0, "other requests"));
  return rows;
}

function request_rows(lane, depth, label = "") {
  const rows = Array.from({ length: lane.n_rows }, (_, i) => ({ lane, depth, label: i ? "" : label, bars: [] }));
  for (const bar of lane.bars) rows[bar.row].bars.push(bar);
  return rows;
}

function in_order(track, source) {
  const lanes = [...track.lanes.values()].filter((lane) => lane.id !== "" && (!source || lane.source === source));
  const below = new Map(lanes.map((lane) => [lane.id, []]));
  const tops = [];
  for (const lane of lanes) (lane.parent === lane.id ? tops : (below.get(lane.parent) ?? tops)).push(lane);
  const found = [];
  const todo = tops.map((lane) => [lane, 0]).reverse();
  while (todo.length) {
    const [lane, depth] = todo.pop();
    found.push([lane, depth]);
    todo.push(...below.get(lane.id).map((each) => [each, depth + 1]).reverse());
  }
  return found;
}

/** What is at a time in a row: {bar} or {lane, call}, or null. */
export function found_at(row, t_ns, reach_ns) {
  if (row.bars === null) return t_ns >= row.lane.began && t_ns <= (row.lane.ended ?? Infinity) ? { lane: row.lane } : null;
  let best = null;
  let least = reach_ns;
  for (const bar of row.bars) {
    const off = Math.max(bar.starts[0] - t_ns, t_ns - (bar.end ?? Infinity), 0);
    if (off <= least) [best, least] = [bar, off];
    if (bar.starts[0] > t_ns + reach_ns) break;
  }
  return best === null ? null : { bar: best };
}

/** The names of all phases in these rows. */
export function phases_in(rows) {
  return new Set(rows.flatMap((row) => row.bars ?? [row.lane]).flatMap((what) => what.phases));
}

/** {first, last} in ns of what these rows show; it lasts until now while a stream goes on. */
export function span_of(rows, track) {
  const lanes = rows.map((row) => row.lane);
  const first = lanes.reduce((least, lane) => Math.min(least, lane.began), Infinity);
  if (!lanes.length) return { first: track.first_ns ?? 0, last: track.last_ns };
  const is_over = lanes.every((lane) => lane.ended !== null);
  return { first, last: is_over ? lanes.reduce((most, lane) => Math.max(most, lane.ended), first) : track.last_ns };
}
