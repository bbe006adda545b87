// From events to the state that views show. As nbsglang/viz/fold.py, with the same names; tests hold the two equal.
//
// An event is {seq, t_ns, source, kind, body}, its body with the fields of nbsglang/events/ by name.
//
// Not here: the two halves (tree.js, streams.js), state as JSON (dump.js), where events come from (../feed.js).

import { Marks } from "./marks.js";
import { Totals } from "./state.js";
import { REQUESTS, STREAMS, StreamsState } from "./streams.js";
import { TREE, TreeState } from "./tree.js";

const MAX_GRAPHS = 32; // automata that are remembered
const MAX_PAST = 64; // spans whose marks are remembered
const MAX_LINES = 100; // of errors and of controls

/** The state after some events. Without `sources` it takes those of all (of one engine, then). */
export class View {
  constructor(...sources) {
    this.sources = new Set(sources);
    this.seq = 0;
    this.n_lost = 0;
    this.version = 0;
    this.now_ns = 0;
    this.texts = new Map();
    this.loading = null;
    this.ready = null;
    this.step = null;
    this.totals = new Totals();
    this.errors = [];
    this.controls = [];
    this.graphs = new Map(); // by graph_key(kind, text)
    this.tree = new TreeState(this.totals);
    this._streams = new StreamsState(this.totals, (tokens) => this.text_of(tokens));
  }

  /** Take the next event. Events must come in order; a gap makes the tree wait for a Snapshot. */
  apply(event) {
    if (event.seq <= this.seq) return;
    if (event.seq !== this.seq + 1) {
      this.n_lost += event.seq - this.seq - 1;
      this._tear();
    }
    this.seq = event.seq;
    if (this.sources.size && !this.sources.has(event.source)) return;
    this.version += 1;
    this.now_ns = event.t_ns;
    const { kind, body } = event;
    if (TREE.has(kind)) this.tree.apply(kind, body);
    else if (REQUESTS.has(kind)) {
      this._streams.apply_request(kind, body, event.t_ns);
      if (kind === "Admitted") this.requests.get(body.request).hit ??= this.tree.first_tokens(body.node, body.n_hit);
    }
    else if (STREAMS.has(kind)) this._streams.apply_stream(kind, body, event.t_ns, event.source);
    else this._apply_to_engine(kind, body);
  }

  /** Events up to `seq` were none of ours: the next one is not a gap. */
  skip_to(seq) {
    if (seq > this.seq) this.seq = seq;
  }

  /** Events up to `seq` are missing. */
  lose_to(seq) {
    if (seq <= this.seq) return;
    this.n_lost += seq - this.seq;
    this._tear();
    this.seq = seq;
  }

  _tear() {
    this.tree.complete = false;
    this._streams.is_torn = true;
  }

  /** Take over from the view before a keyframe what dumps do not tell. */
  keep(before) {
    this._streams.keep(before._streams);
  }

  // ----------------------------------------------------------------------------------------------- reading

  get complete() {
    return this.tree.complete;
  }

  get nodes() {
    return this.tree.nodes;
  }

  get marks() {
    return this.tree.marks;
  }

  get requests() {
    return this._streams.requests;
  }

  get streams() {
    return this._streams.streams;
  }

  /** The streams of one run, each after its parent, branches in their order. "" takes all runs. */
  streams_of(source) {
    const below = new Map();
    for (const stream of this.streams.values()) {
      if (source && stream.source !== source) continue;
      const parent = this.streams.get(stream.parent);
      const key = parent !== undefined && (!source || parent.source === source) ? parent.id : "";
      const list = below.get(key);
      if (list === undefined) below.set(key, [stream]);
      else list.push(stream);
    }
    const order = [];
    const stack = (below.get("") ?? []).slice().reverse();
    while (stack.length) {
      const stream = stack.pop();
      order.push(stream);
      const list = below.get(stream.id);
      if (list !== undefined) for (let i = list.length - 1; i >= 0; i--) stack.push(list[i]);
    }
    return order;
  }

  live_text(stream) {
    return this._streams.live_text(stream);
  }

  /** The stream that made a call, or undefined. */
  caller(call_id) {
    return this._streams.caller(call_id);
  }

  /** A Map from each node's id (0 is the root) to the nodes below it, oldest first; not to be changed. */
  children() {
    return this.tree.children();
  }

  /** The texts of token ids; an id that the log has not named is shown by its number. */
  text_of(tokens) {
    let text = "";
    for (const token of tokens) text += this.texts.get(token) ?? `<${token}>`;
    return text;
  }

  path(node) {
    return this.tree.path(node);
  }

  /** Marks of what changes in the tree from now on, under a name, until `unwatch`; called again, they go on. */
  watch(name) {
    let marks = this.tree.watched.get(name);
    if (marks === undefined) {
      marks = this.tree.past.get(name) ?? new Marks();
      this.tree.past.delete(name);
      this.tree.watched.set(name, marks);
    }
    return marks;
  }

  /** Let these marks be as they are; `marks_of` still has them. */
  unwatch(name) {
    const marks = this.tree.watched.get(name);
    if (marks === undefined) return;
    this.tree.watched.delete(name);
    this.tree.past.set(name, marks);
    if (this.tree.past.size > MAX_PAST) this.tree.past.delete(this.tree.past.keys().next().value);
  }

  /** The marks that were watched under a name, or undefined. */
  marks_of(name) {
    return this.tree.watched.get(name) ?? this.tree.past.get(name);
  }

  clone() {
    const copy = new View(...this.sources);
    copy.seq = this.seq;
    copy.n_lost = this.n_lost;
    copy.version = this.version;
    copy.now_ns = this.now_ns;
    copy.texts = this.texts; // only ever added to: an id keeps its text
    copy.loading = this.loading;
    copy.ready = this.ready;
    copy.step = this.step;
    Object.assign(copy.totals, this.totals);
    copy.errors = this.errors;
    copy.controls = this.controls;
    copy.graphs = new Map(this.graphs);
    copy.tree = this.tree.clone(copy.totals);
    copy._streams = this._streams.clone(copy.totals, (tokens) => copy.text_of(tokens));
    return copy;
  }

  // ---------------------------------------------------------------------------------------------- the rest

  _apply_to_engine(kind, body) {
    switch (kind) {
      case "Loading":
        this.loading = body;
        break;
      case "Ready":
        this.ready = body;
        this.loading = null;
        this.tree.begin_anew();
        break;
      case "Step":
        this.step = body;
        this.tree.step_ended();
        break;
      case "TokenTexts":
        for (let i = 0; i < body.ids.length && i < body.texts.length; i++) this.texts.set(body.ids[i], body.texts[i]);
        break;
      case "Failed":
        this.errors = [...this.errors.slice(1 - MAX_LINES), body.message];
        break;
      case "ConstraintGraph": {
        const key = graph_key(body.kind, body.text);
        this.graphs.delete(key);
        this.graphs.set(key, body);
        while (this.graphs.size > MAX_GRAPHS) this.graphs.delete(this.graphs.keys().next().value);
        break;
      }
      case "Control":
        this.controls = [...this.controls.slice(1 - MAX_LINES), body.detail ? `${body.what}: ${body.detail}` : body.what];
        break;
    }
  }
}

/** What a graph is found by in `view.graphs`; `call.under` is this too. */
export function graph_key(kind, text) {
  return `${kind} ${text}`;
}

/** The state after these events. */
export function fold(events, ...sources) {
  const view = new View(...sources);
  for (const event of events) view.apply(event);
  return view;
}
