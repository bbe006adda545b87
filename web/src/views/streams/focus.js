// Which stream and which request are in focus, wherever that was chosen.
//
// Not here: how it is shown (index.js).

/** {id, request} of a store: the stream in focus, or the one that made the request in focus; each null for none. */
export function focused({ focus, view }) {
  const { request, stream } = focus;
  const call = request === null ? undefined : view.requests.get(request)?.call_id;
  return { id: stream ?? (call === undefined ? null : (view.caller(call)?.id ?? null)), request };
}

/** The first request of the newest call of a stream, or null. */
export function newest_request(stream) {
  return stream.latest_call?.requests[0]?.id ?? null;
}
