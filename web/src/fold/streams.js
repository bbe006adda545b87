// The programs of a log: their streams with text, calls and tokens, and the requests behind the calls.
// As nbsglang/viz/streams.py.
//
// Not here: the radix tree (tree.js), how a stream looks.

import { CallView, NO_SCORES, RequestView, StreamView } from "./state.js";

export const MAX_KEPT = 2000; // finished requests and ended streams that are remembered

export const REQUESTS = new Set(["Queued", "Admitted", "Healed", "Tokens", "Jumped", "Preempted", "Finished", "Constrained"]);
export const STREAMS = new Set([
  "StreamBegan", "StreamEnded", "StreamText", "StreamRole", "CallBegan", "CallEnded", "Scored", "VariableSet",
]);

const GROWS = new Set(["StreamText", "StreamRole", "VariableSet", "CallBegan"]);

export class StreamsState {
  constructor(totals, text_of) {
    this.requests = new Map();
    this.streams = new Map();
    this._totals = totals;
    this._text_of = text_of;
    this.is_torn = false; // events are missing
    this._callers = new Map(); // by call id
  }

  /** What the stream's open call has written so far (of n texts the first). */
  live_text(stream) {
    const call = stream.open_call;
    if (call === null || !call.requests.length) return "";
    const [request] = call.requests;
    const text = this._text_of(request.generated);
    return request.over ? Array.from(text).slice(Array.from(request.over).length).join("") : text;
  }

  /** The stream that made a call, or undefined. */
  caller(call_id) {
    return this._callers.get(call_id);
  }

  // ---------------------------------------------------------------------------------------------- requests

  apply_request(kind, body, t_ns) {
    switch (kind) {
      case "Queued":
        this._request(body.request, body.call_id).n_prompt = body.n_prompt;
        break;
      case "Admitted":
        this._admit(this._request(body.request, body.call_id), body);
        break;
      case "Tokens":
        for (let i = 0; i < body.requests.length && i < body.ids.length; i++)
          this._write(this._request(body.requests[i], ""), body.ids[i], t_ns);
        break;
      case "Jumped": {
        const request = this._request(body.request, body.call_id);
        request.jumps.push([request.generated.length, body.ids.length]);
        this._totals.n_jumped += body.ids.length;
        this._write(request, body.ids, t_ns);
        break;
      }
      case "Healed":
        this._request(body.request, body.call_id).over = body.over;
        break;
      case "Preempted":
        this._request(body.request, body.call_id).state = "preempted";
        this._totals.n_preempted += 1;
        break;
      case "Finished":
        this._finish(this._request(body.request, body.call_id), body);
        break;
      case "Constrained": {
        const stream = this._callers.get(body.call_id);
        if (stream !== undefined) stream.calls.get(body.call_id).under = `${body.kind} ${body.text}`;
        break;
      }
    }
  }

  _request(number, call_id) {
    let request = this.requests.get(number);
    if (request === undefined) {
      request = new RequestView(number, call_id);
      this.requests.set(number, request);
      const stream = this._callers.get(call_id);
      if (stream !== undefined) stream.calls.get(call_id).requests.push(request);
    }
    return request;
  }

  _admit(request, body) {
    request.state = "running";
    request.n_hit = body.n_hit;
    request.n_new = body.n_new;
    if (request.admitted) return;
    request.admitted = true;
    this._count_prompt(request, body.n_hit, request.n_prompt ? request.n_prompt - body.n_hit : body.n_new);
  }

  _count_prompt(request, n_cached, n_computed) {
    const stream = this._callers.get(request.call_id);
    if (stream !== undefined) {
      stream.n_cached += n_cached - request.n_cached;
      stream.n_computed += n_computed - request.n_computed;
    }
    request.n_cached = n_cached;
    request.n_computed = n_computed;
  }

  _write(request, ids, t_ns) {
    for (const id of ids) request.generated.push(id);
    const stream = this._callers.get(request.call_id);
    if (stream === undefined) return;
    stream.n_generated += ids.length;
    const call = stream.calls.get(request.call_id);
    if (call.first_ns === null) {
      call.first_ns = t_ns;
      if (stream.first_token_s === null && call.kind !== "prefix") stream.first_token_s = (t_ns - call.began_ns) / 1e9;
    }
    call.last_ns = t_ns;
  }

  _finish(request, body) {
    request.state = body.reason;
    request.ended = true;
    request.n_prompt = body.n_prompt;
    this._count_prompt(request, body.n_cached, body.n_prompt - body.n_cached);
    const n_over = request.generated.length - body.n_generated; // a token that ends the text is no part of it
    if (n_over > 0) {
      request.generated.splice(body.n_generated);
      const stream = this._callers.get(request.call_id);
      if (stream !== undefined) stream.n_generated -= n_over;
    }
    this._totals.n_requests += 1;
    this._totals.n_prompt += body.n_prompt;
    this._totals.n_cached += body.n_cached;
    this._totals.n_generated += body.n_generated;
    forget(this.requests, (old) => old.ended);
  }

  // ----------------------------------------------------------------------------------------------- streams

  apply_stream(kind, body, t_ns, source) {
    let stream = this.streams.get(body.stream);
    if (stream === undefined) {
      stream = new StreamView(body.stream, source, t_ns);
      this.streams.set(body.stream, stream);
    }
    this._note_fork(stream, kind);
    switch (kind) {
      case "StreamBegan": {
        stream.parent = body.parent;
        stream.branch = body.branch;
        stream.label = body.label;
        const parent = this.streams.get(body.parent);
        stream.depth = parent !== undefined ? parent.depth + 1 : body.parent ? 1 : 0;
        break;
      }
      case "StreamEnded":
        stream.ended = body.how;
        stream.ended_ns = t_ns;
        for (const gone of forget(this.streams, (old) => old.ended !== ""))
          for (const call_id of gone.calls.keys()) this._callers.delete(call_id);
        break;
      case "StreamText":
        stream.parts.push(part("literal", "", body.text));
        break;
      case "StreamRole":
        stream.parts.push(part("role", body.role, ""));
        break;
      case "CallBegan":
        stream.put_call(Object.assign(new CallView(body.call_id, body.kind, body.name, t_ns), { n_before: this.is_torn ? null : stream.parts.length }));
        this._callers.set(body.call_id, stream);
        break;
      case "CallEnded":
        this._end_call(stream, body, t_ns);
        break;
      case "Scored": {
        const call = stream.calls.get(body.call_id);
        if (call !== undefined) call.scores = weighed(body);
        break;
      }
      case "VariableSet":
        stream.parts.push(part_of_variable(stream, body.name, body.text));
        break;
    }
  }

  /** A branch says that it begins before its parent's text is there, but does nothing before it is. */
  _note_fork(stream, kind) {
    if (!GROWS.has(kind) || stream.parts.length || stream.calls.size || this.is_torn) return;
    stream.forked_at = this.streams.get(stream.parent)?.parts.length ?? null;
  }

  /** Take over from the state before a keyframe what dumps do not tell. */
  keep(before) {
    for (const [id, { call_id, hit }] of before.requests) {
      const request = this.requests.get(id);
      if (request?.call_id === call_id) request.hit = hit;
    }
    for (const [id, { calls, forked_at }] of before.streams) {
      const stream = this.streams.get(id);
      if (stream === undefined) continue;
      stream.forked_at = forked_at;
      for (const call of stream.calls.values()) call.n_before = calls.get(call.id)?.n_before ?? null;
    }
  }

  _end_call(stream, body, t_ns) {
    let call = stream.calls.get(body.call_id);
    if (call === undefined) {
      call = new CallView(body.call_id, "gen", "", t_ns);
      stream.put_call(call);
    }
    if (body.error && call.kind !== "prefix") {
      const text = this.live_text(stream);
      if (text) stream.parts.push(part("partial", call.name, text, call.under));
      stream.error = stream.error || body.error;
    }
    call.error = body.error;
  }

  clone(totals, text_of) {
    const copy = new StreamsState(totals, text_of);
    copy.is_torn = this.is_torn;
    const copies = new Map();
    const copied = (request) => {
      let mine = copies.get(request);
      if (mine === undefined) copies.set(request, (mine = request.clone()));
      return mine;
    };
    for (const [id, request] of this.requests) copy.requests.set(id, copied(request));
    for (const [id, stream] of this.streams) {
      const mine = Object.assign(new StreamView(id, stream.source, stream.began_ns), stream);
      mine.parts = stream.parts.slice();
      mine.calls = new Map();
      mine._open = mine._latest = null;
      for (const [call_id, call] of stream.calls) {
        const twin = Object.assign(new CallView(call_id, call.kind, call.name, call.began_ns), call);
        twin.requests = call.requests.map(copied);
        mine.calls.set(call_id, twin);
      }
      copy.streams.set(id, mine);
    }
    for (const [call_id, stream] of this._callers) copy._callers.set(call_id, copy.streams.get(stream.id));
    return copy;
  }
}

export function part(kind, name, text, under = "", scores = NO_SCORES) {
  return { kind, name, text, under, scores };
}

function weighed({ choices, scores, shares, chosen }) {
  const n = Math.min(choices.length, scores.length, shares.length);
  return choices.slice(0, n).map((choice, i) => [choice, scores[i], shares[i], i === chosen]);
}

/** A variable is what the latest call wrote if it bears that call's name; else the program has set it. */
function part_of_variable(stream, name, text) {
  const call = stream.latest_call;
  if (call === null || call.name !== name || call.error !== "" || call.told) return part("value", name, text);
  call.told = true;
  return part(call.kind === "score" ? "choice" : "gen", name, text, call.under, call.scores);
}

/** Drop the oldest that are over, once there are many; returns them. */
function forget(kept, is_over) {
  if (kept.size <= 2 * MAX_KEPT) return [];
  const over = [];
  for (const [key, value] of kept) if (is_over(value)) over.push(key);
  return over.slice(0, kept.size - MAX_KEPT).map((key) => {
    const value = kept.get(key);
    kept.delete(key);
    return value;
  });
}
