// What lanes need and the fold does not keep: when each token came, and how likely it was.
//
// Not here: what is made of it (pieces.js), who feeds it (../../parts/follow.js).

const MAX_KEPT = 8000; // requests that are remembered, as many again before the oldest go
const KINDS = new Set(["Queued", "Logprobs", "Tokens", "Jumped", "Finished"]);

/** A reducer for a Follower. `engine` is the source whose requests count; "" takes those of any. */
export class Pace {
  constructor(engine = "") {
    this._engine = engine;
    this._requests = new Map();
    this.has_logprobs = false;
  }

  apply(event) {
    if (KINDS.has(event.kind)) this[event.kind](event.body, event.t_ns, event.source);
  }

  /** Events are missing: the tokens of running requests cannot be counted any more. */
  torn() {
    for (const request of this._requests.values()) request.is_torn = true;
  }

  /** Compare with the state after the same events: what does not agree has lost some, and is not counted on. */
  check(live) {
    for (const [id, request] of this._requests) {
      const there = live.requests.get(id);
      if (there !== undefined && there.generated.length !== request.times.length) request.is_torn = true;
    }
  }

  // --- reading

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

  // --- the kinds of events

  Queued(body, t_ns, source) {
    if (!this._is_mine(source)) return;
    this._requests.set(body.request, { began_ns: t_ns, times: [], logprobs: [], is_torn: false });
    forget(this._requests);
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

  // ---

  _is_mine(source) {
    return !this._engine || source === this._engine;
  }

  _request(id, source) {
    return this._is_mine(source) ? this._requests.get(id) : undefined;
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
