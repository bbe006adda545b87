// Which stream and which requests are in focus, wherever that was chosen.
//
// Not here: how it is shown (the views).

/** {id, request} of a store: the stream in focus, or the one that made the request in focus; each null for none. */
export function focused({ focus, view }) {
  const { request, stream } = focus;
  const call = request === null ? undefined : view.requests.get(request)?.call_id;
  return { id: stream ?? (call === undefined ? null : (view.caller(call)?.id ?? null)), request };
}

/** The ids of the requests in focus: the one, or those of a stream. */
export function requests_in_focus(view, focus) {
  if (focus.request !== null) return [focus.request];
  const stream = focus.stream === null ? undefined : view.streams.get(focus.stream);
  return stream === undefined ? [] : [...stream.calls.values()].flatMap((call) => call.requests.map((request) => request.id));
}
