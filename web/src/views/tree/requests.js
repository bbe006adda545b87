// Words for requests, and which of them are in focus. Not here: what they used (hits.js).

import { shown } from "./text.js";

const MAX_NAME = 28;

/** "request 3 · branch clarity · verdict", as far as the log tells. */
export function request_name(view, id) {
  const request = view.requests.get(id);
  const stream = request === undefined ? undefined : view.caller(request.call_id);
  if (stream === undefined) return `request ${id}`;
  const call = stream.calls.get(request.call_id);
  const what = call === undefined ? "" : call.name || { prefix: "hint", score: "select" }[call.kind] || call.kind;
  return [`request ${id}`, short(stream.label || stream.id), short(what)].filter(Boolean).join(" · ");
}

/** The latest `most` requests, as [id, words], latest first; those of the run alone if there is one. */
export function requests_of(view, source, most) {
  const rows = [];
  const all = [...view.requests.values()];
  for (let i = all.length - 1; i >= 0 && rows.length < most; i -= 1) {
    const { id, call_id } = all[i];
    if (!source || view.caller(call_id)?.source === source) rows.push([id, request_name(view, id)]);
  }
  return rows;
}

/** The ids of the requests in focus: the one, or those of a stream. */
export function in_focus(view, focus) {
  if (focus.request !== null) return [focus.request];
  const stream = focus.stream === null ? undefined : view.streams.get(focus.stream);
  if (stream === undefined) return [];
  return [...stream.calls.values()].flatMap((call) => call.requests.map((request) => request.id));
}

/** The name of the stream in focus, or null. */
export function stream_name(view, focus) {
  if (focus.request !== null || focus.stream === null) return null;
  const stream = view.streams.get(focus.stream);
  return stream === undefined ? null : short(stream.label || stream.id);
}

function short(text) {
  const safe = shown(text);
  return safe.length > MAX_NAME ? `${safe.slice(0, MAX_NAME - 1)}…` : safe;
}
