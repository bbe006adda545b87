// The nouns that views show: requests, calls, streams, totals. As nbsglang/viz/state.py, with the same names.
//
// Nodes of the tree are plain objects {id, parent, tokens, locks, tick}; the array of tokens is never changed in
// place. Parts are plain objects {kind, name, text, under, scores} that never change.
//
// Not here: how they change (tree.js, streams.js).

export const NO_SCORES = Object.freeze([]);

/** One request; see RequestView in Python. */
export class RequestView {
  constructor(id, call_id) {
    this.id = id;
    this.call_id = call_id;
    this.n_prompt = 0;
    this.n_hit = 0;
    this.n_new = 0;
    this.n_cached = 0;
    this.n_computed = 0;
    this.state = "queued";
    this.ended = false;
    this.admitted = false;
    this.generated = []; // token ids
    this.jumps = []; // [start, n] of those that a constraint forced
    this.over = ""; // the end of the prompt that the first of them spell anew
    this.hit = null; // the prompt tokens that were in the tree, as arrays of its nodes; null: not known. In no dump
  }

  clone() {
    const copy = Object.assign(new RequestView(this.id, this.call_id), this);
    copy.generated = this.generated.slice();
    copy.jumps = this.jumps.slice();
    return copy;
  }
}

/** One call of a stream; `error` is null while it runs, "" when it went well. */
export class CallView {
  constructor(id, kind, name, began_ns) {
    this.id = id;
    this.kind = kind;
    this.name = name;
    this.began_ns = began_ns;
    this.requests = [];
    this.first_ns = null;
    this.last_ns = null;
    this.error = null;
    this.told = false;
    this.under = "";
    this.n_before = null; // the parts that its stream had when it began; null: not known. In no dump
    this.scores = NO_SCORES; // [choice, score, share, is_chosen] of choices, the likeliest first; never changed in place
  }

  /** running, waiting, done, failed or cancelled. */
  get state() {
    if (this.error === null) {
      const waits = this.requests.length > 0 && this.requests.every((r) => r.state === "queued" || r.state === "preempted");
      return waits ? "waiting" : "running";
    }
    return this.error === "" ? "done" : this.error.startsWith("Cancelled") ? "cancelled" : "failed";
  }
}

/** One stream of a program. `calls` is a Map by id, in the order in which they began. */
export class StreamView {
  constructor(id, source, began_ns) {
    this.id = id;
    this.parent = "";
    this.branch = 0;
    this.label = "";
    this.source = source;
    this.depth = 0;
    this.began_ns = began_ns;
    this.ended_ns = null;
    this.ended = "";
    this.error = "";
    this.parts = [];
    this.calls = new Map();
    this.n_cached = 0;
    this.n_computed = 0;
    this.n_generated = 0;
    this.first_token_s = null;
    this.forked_at = null; // the parts of its parent that are its beginning; null: not known. In no dump
    this._open = null; // a Set of calls that may be open, so that a long stream need not be searched
    this._latest = null; // the newest call that is no prefix hint
  }

  /** Add a call; one with the same id loses its place to it. */
  put_call(call) {
    const again = this.calls.has(call.id);
    this.calls.set(call.id, call);
    if (again || this._open === null) this._index();
    else {
      if (call.error === null) this._open.add(call);
      if (call.kind !== "prefix") this._latest = call;
    }
  }

  _index() {
    this._open = new Set();
    this._latest = null;
    for (const call of this.calls.values()) {
      if (call.error === null) this._open.add(call);
      if (call.kind !== "prefix") this._latest = call;
    }
  }

  /** The calls that have not ended, in their order. */
  get open_calls() {
    if (this._open === null) this._index();
    for (const call of this._open) if (call.error !== null) this._open.delete(call);
    return this._open;
  }

  /** The newest call that is no prefix hint, or null. */
  get latest_call() {
    if (this._open === null) this._index();
    return this._latest;
  }

  /** All text so far: literals, and what calls wrote. */
  get text() {
    let text = "";
    for (const part of this.parts) if (part.kind !== "value") text += part.text;
    return text;
  }

  /** running, waiting, done, joined, failed or cancelled. */
  get state() {
    if (this.ended) return this.ended;
    if (this.error) return this.error.startsWith("Cancelled") ? "cancelled" : "failed";
    for (const call of this.open_calls) if (call.state === "running") return "running";
    return "waiting";
  }

  /** The gen or select that is being answered, or null; hints do not count. */
  get open_call() {
    for (const call of this.open_calls) if (call.kind !== "prefix") return call;
    return null;
  }

  /** Generated tokens per second of writing; null before there are two. */
  get tokens_per_s() {
    let seconds = 0;
    let n = this.n_generated;
    for (const call of this.calls.values()) {
      if (call.first_ns === null || call.last_ns === null) continue;
      seconds += (call.last_ns - call.first_ns) / 1e9;
      n -= call.requests.length;
    }
    return n > 0 && seconds > 0 ? n / seconds : null;
  }
}

/** Counts of tokens over all finished requests, and of changes of the tree. */
export class Totals {
  constructor() {
    this.n_requests = 0;
    this.n_prompt = 0;
    this.n_cached = 0;
    this.n_generated = 0;
    this.n_jumped = 0;
    this.n_evicted = 0;
    this.n_splits = 0;
    this.n_preempted = 0;
  }

  get hit_rate() {
    return this.n_prompt ? this.n_cached / this.n_prompt : 0;
  }
}
