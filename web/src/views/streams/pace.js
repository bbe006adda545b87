// What lanes need and the fold does not keep: when each token came, how likely it was, which tokens of a prompt were
// in the cache, and where in a stream its branches were forked.
//
// Not here: what is made of it (pieces.js, lanes.js), who feeds it (../timeline/follow.js).

import { Totals } from "../../fold/state.js";
import { TreeState } from "../../fold/tree.js";

const MAX_KEPT = 8000; // requests, streams and calls that are remembered, as many again before the oldest go
const CHANGES = new Set(["NodeAdded", "NodeExtended", "NodeSplit", "NodeEvicted", "Snapshot"]);
const KINDS = new Set([
  "Queued", "Admitted", "Logprobs", "Tokens", "Jumped", "Finished", "Ready",
  "StreamBegan", "StreamText", "StreamRole", "VariableSet", "CallBegan",
]);

/** A reducer for a Follower. `engine` is the source whose requests count; "" takes those of any. */
export class Pace {
  constructor(engine = "") {
    this._engine = engine;
    this._tree = new TreeState(new Totals());
    this._requests = new Map();
    this._streams = new Map();
    this._calls = new Map(); // how many parts their streams had when they began
    this.has_logprobs = false;
  }

  apply(event) {
    const { kind, body, t_ns } = event;
    if (KINDS.has(kind)) this[kind](body, t_ns, event.source);
    else if (CHANGES.has(kind) && this._is_mine(event.source)) this._tree.apply(kind, body);
  }

  /** Events are missing: the tokens of running requests cannot be counted any more, nor the parts of streams. */
  torn() {
    for (const request of this._requests.values()) request.is_torn = true;
    for (const stream of this._streams.values()) stream.is_torn = true;
    this._tree.complete = false;
  }

  /** Compare with the state after the same events: what does not agree has lost some, and is not counted on. */
  check(live) {
    for (const [id, request] of this._requests) {
      const there = live.requests.get(id);
      if (there !== undefined && there.generated.length !== request.times.length) request.is_torn = true;
    }
    for (const [id, stream] of this._streams) {
      const there = live.streams.get(id);
      if (there !== undefined && there.parts.length !== stream.n_parts) stream.is_torn = true;
    }
  }

  // ----------------------------------------------------------------------------------------------- reading

  /** Nanoseconds from the token before (from the beginning of the request for the first) to token `i`, or null. */
  latency_ns(request, i) {
    const known = this._requests.get(request);
    if (known === undefined || known.is_torn || i >= known.times.length) return null;
    return known.times[i] - (i ? known.times[i - 1] : known.began_ns);
  }

  /** The log probability of token `i` (natural), or null where the log has none. */
  logprob(request, i) {
    const known = this._requests.get(request);
    return known === undefined || known.is_torn ? null : (known.logprobs[i] ?? null);
  }

  /** The prompt tokens of a request that were in the tree when it was admitted; null when that is not known. */
  hit_tokens(request) {
    return this._requests.get(request)?.hit ?? null;
  }

  /** How many parts its stream had when the call began, or null. */
  parts_before(call_id) {
    return this._calls.get(call_id) ?? null;
  }

  /** How many parts the parent had when this branch took its text over, or null while that is not known. */
  forked_at(stream) {
    return this._streams.get(stream)?.forked_at ?? null;
  }

  // ---------------------------------------------------------------------------------- the kinds of events

  Queued(body, t_ns, source) {
    if (!this._is_mine(source)) return;
    this._requests.set(body.request, { began_ns: t_ns, times: [], logprobs: [], hit: null, is_torn: false });
    forget(this._requests);
  }

  Admitted(body, t_ns, source) {
    const request = this._request(body.request, source);
    if (request !== undefined && request.hit === null) request.hit = this._first_tokens(body.node, body.n_hit);
  }

  Logprobs(body, t_ns, source) {
    body.requests.forEach((id, at) => {
      const request = this._request(id, source);
      if (request === undefined) return;
      this.has_logprobs = true;
      request.logprobs[request.times.length] = body.logprobs[at]; // of the token that comes next
    });
  }

  Tokens(body, t_ns, source) {
    body.requests.forEach((id, at) => {
      const request = this._request(id, source);
      if (request !== undefined) for (let i = 0; i < body.ids[at].length; i++) request.times.push(t_ns);
    });
  }

  Jumped(body, t_ns, source) {
    const request = this._request(body.request, source);
    if (request !== undefined) for (let i = 0; i < body.ids.length; i++) request.times.push(t_ns);
  }

  Finished(body, t_ns, source) {
    const request = this._request(body.request, source);
    if (request !== undefined && request.times.length > body.n_generated) request.times.length = body.n_generated;
  }

  Ready(body, t_ns, source) {
    if (this._is_mine(source)) this._tree.begin_anew();
  }

  StreamBegan(body) {
    this._streams.set(body.stream, { parent: body.parent, n_parts: 0, forked_at: null, is_torn: false });
    forget(this._streams);
  }

  StreamText(body) {
    this._grow(body.stream, 1);
  }

  StreamRole(body) {
    this._grow(body.stream, 1);
  }

  VariableSet(body) {
    this._grow(body.stream, 1);
  }

  CallBegan(body) {
    const stream = this._grow(body.stream, 0);
    if (stream === undefined || stream.is_torn) return;
    this._calls.set(body.call_id, stream.n_parts);
    forget(this._calls);
  }

  // -------------------------------------------------------------------------------------------------------

  _is_mine(source) {
    return !this._engine || source === this._engine;
  }

  _request(id, source) {
    return this._is_mine(source) ? this._requests.get(id) : undefined;
  }

  /** A branch says that it begins before its parent's text is there, but does nothing before it is. */
  _grow(id, n_parts) {
    const stream = this._streams.get(id);
    if (stream === undefined) return undefined;
    stream.n_parts += n_parts;
    const parent = this._streams.get(stream.parent);
    if (stream.forked_at === null && parent !== undefined && !parent.is_torn) stream.forked_at = parent.n_parts;
    return stream;
  }

  /** The first `n` tokens on the way to a node, as arrays that the tree shares; null when the tree is not known. */
  _first_tokens(node, n) {
    if (!n) return [];
    if (!this._tree.complete) return null;
    const path = this._tree.path(node);
    if (!path.length || path[0].parent !== 0) return null;
    const arrays = [];
    for (const { tokens } of path) {
      if (n > 0) arrays.push(tokens.length > n ? tokens.slice(0, n) : tokens);
      n -= tokens.length;
    }
    return n > 0 ? null : arrays;
  }
}

/** Drop the older half once there are many. */
function forget(kept) {
  if (kept.size <= 2 * MAX_KEPT) return;
  for (const key of kept.keys()) {
    if (kept.size <= MAX_KEPT) return;
    kept.delete(key);
  }
}
