// How streams and requests are called, as text that is safe to show.
//
// Not here: which of them are in focus (focus.js).

import { cut, shown } from "./text.js";

const MAX_NAME = 27;

/** A stream's label, or which branch it is, or the id of a program. */
export function name_of({ id, label, parent, branch }, most = 60) {
  const name = shown((label || (parent ? String(branch) : id)).slice(0, most));
  return parent ? `branch ${name}` : name;
}

/** "request 3 · clarity · verdict", as far as the log tells. */
export function request_name(view, id) {
  const request = view.requests.get(id);
  const stream = request === undefined ? undefined : view.caller(request.call_id);
  if (stream === undefined) return `request ${id}`;
  const call = stream.calls.get(request.call_id);
  const what = call === undefined ? "" : call.name || { prefix: "hint", score: "select" }[call.kind] || call.kind;
  return [`request ${id}`, short_name(stream.label || name_of(stream)), short_name(what)].filter(Boolean).join(" · ");
}

export function short_name(text) {
  return cut(shown(text), MAX_NAME);
}
