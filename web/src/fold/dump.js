// A view as plain values, the very same that nbsglang/viz/dump.py gives, and a view from them.
//
// Not here: events (view.js), how dumps travel (../wire.js).

import { CallView, RequestView, StreamView } from "./state.js";
import { Marks } from "./marks.js";
import { graph_key, View } from "./view.js";

const REQUEST = [
  "id", "call_id", "n_prompt", "n_hit", "n_new", "n_cached", "n_computed", "state", "ended", "admitted", "generated", "jumps",
  "over",
];
const CALL = ["id", "kind", "name", "began_ns", "requests", "first_ns", "last_ns", "error", "told", "under", "scores"];
const STREAM = [
  "id", "parent", "branch", "label", "source", "depth", "began_ns", "ended_ns", "ended", "error", "n_cached", "n_computed",
  "n_generated", "first_token_s",
];
const PLAIN = ["seq", "n_lost", "version", "now_ns", "loading", "ready", "step", "errors", "controls"];

/** The whole state of the view. */
export function dump(view) {
  const rows = [];
  const places = new Map();
  const place = (request) => {
    let at = places.get(request);
    if (at === undefined) {
      places.set(request, (at = rows.length));
      rows.push(REQUEST.map((name) => request[name]));
    }
    return at;
  };
  for (const request of view.requests.values()) place(request);
  const streams = [...view.streams.values()].map((stream) => dump_stream(view, stream, place));
  return {
    v: 1,
    sources: [...view.sources].sort(),
    ...Object.fromEntries(PLAIN.map((name) => [name, view[name]])),
    texts: [...view.texts],
    totals: { ...view.totals },
    graphs: [...view.graphs.values()],
    tree: {
      complete: view.tree.complete,
      version: view.tree.version,
      step_is_over: view.tree.step_is_over,
      nodes: [...view.tree.nodes.values()].map(dump_node),
      marks: dump_marks(view.tree.marks),
      watched: Object.fromEntries([...view.tree.watched].map(([name, marks]) => [name, dump_marks(marks)])),
    },
    requests: rows,
    n_kept: view.requests.size,
    streams,
  };
}

const dump_node = ({ id, parent, tokens, locks, tick }) => [id, parent, tokens, locks, tick];

function dump_marks(marks) {
  return {
    new: [...marks.new].sort((a, b) => a - b),
    hits: [...marks.hits],
    evicted: [...marks.evicted.values()].map(dump_node),
  };
}

function dump_stream(view, stream, place) {
  return {
    ...Object.fromEntries(STREAM.map((name) => [name, stream[name]])),
    parts: stream.parts.map(({ kind, name, text, under, scores }) => [kind, name, text, under, scores]),
    calls: [...stream.calls.values()].map((call) => [
      ...CALL.map((name) => (name === "requests" ? call.requests.map(place) : call[name])),
      view.caller(call.id) === stream,
    ]),
  };
}

/** The view that a dump tells of. Takes the dump's arrays for its own. */
export function restore(plain) {
  if (plain.v !== 1) throw new Error(`a dump of version ${plain.v} is not one of this page's`);
  const view = new View(...plain.sources);
  for (const name of PLAIN) view[name] = plain[name];
  view.texts = new Map(plain.texts);
  Object.assign(view.totals, plain.totals);
  for (const graph of plain.graphs) view.graphs.set(graph_key(graph.kind, graph.text), graph);
  restore_tree(view.tree, plain.tree);
  const requests = plain.requests.map((row) => filled(new RequestView(row[0], row[1]), REQUEST, row));
  for (const request of requests.slice(0, plain.n_kept)) view.requests.set(request.id, request);
  for (const row of plain.streams) restore_stream(view._streams, row, requests);
  return view;
}

function restore_tree(tree, plain) {
  tree.complete = plain.complete;
  tree.version = plain.version;
  tree.shape = plain.version;
  tree.step_is_over = plain.step_is_over;
  for (const row of plain.nodes) tree.nodes.set(row[0], restore_node(row));
  tree.marks = restore_marks(plain.marks);
  for (const [name, marks] of Object.entries(plain.watched)) tree.watched.set(name, restore_marks(marks));
}

const restore_node = ([id, parent, tokens, locks, tick]) => ({ id, parent, tokens, locks, tick });

function restore_marks(plain) {
  const marks = new Marks();
  marks.new = new Set(plain.new);
  marks.hits = new Map(plain.hits);
  marks.evicted = new Map(plain.evicted.map((row) => [row[0], restore_node(row)]));
  return marks;
}

function restore_stream(state, plain, requests) {
  const stream = new StreamView(plain.id, plain.source, plain.began_ns);
  for (const name of STREAM) stream[name] = plain[name];
  stream.parts = plain.parts.map(([kind, name, text, under, scores]) => ({ kind, name, text, under, scores }));
  for (const row of plain.calls) {
    const call = filled(new CallView(row[0], row[1], row[2], row[3]), CALL, row);
    call.requests = call.requests.map((at) => requests[at]);
    stream.put_call(call);
    if (row[CALL.length]) state._callers.set(call.id, stream);
  }
  state.streams.set(stream.id, stream);
}

function filled(target, names, row) {
  names.forEach((name, at) => (target[name] = row[at]));
  return target;
}
