// Which constrained call is shown, and its answer so far as pieces that were chosen or forced.
//
// Not here: the automaton (walk.js), how it is drawn (index.js).

/** The constrained calls of a store's run, oldest first: [{stream, call}]. */
export function constrained(store) {
  const calls = [];
  for (const stream of store.streams())
    for (const call of stream.calls.values()) if (call.under) calls.push({ stream, call });
  return calls.sort((a, b) => a.call.began_ns - b.call.began_ns);
}

/** The call to show: the one that was picked, one of the stream in focus, one that is being answered, the latest. */
export function choose(calls, focus, picked) {
  const of_id = (id) => calls.findLast(({ call }) => call.id === id);
  const of_stream = (id) => calls.findLast(({ stream }) => stream.id === id);
  const open = calls.findLast(({ call }) => call.error === null);
  return of_id(picked) ?? of_stream(focus.stream) ?? open ?? calls.at(-1) ?? null;
}

/**
 * The tokens of a call's answer: [{text, forced, n}] of the same kind joined, and how many were forced; `text` is all of
 * it without the end of the prompt that the first tokens may spell anew.
 */
export function answer(view, call) {
  const request = call.requests[0];
  if (request === undefined) return { pieces: [], text: "", n_forced: 0, n_chosen: 0 };
  const n = request.generated.length;
  const pieces = [];
  let at = 0;
  let n_forced = 0;
  const add = (until, forced) => {
    if (until > at) pieces.push({ text: view.text_of(request.generated.slice(at, until)), forced, n: until - at });
    at = Math.max(at, until);
  };
  for (const [start, length] of request.jumps) {
    add(Math.min(start, n), false);
    const before = at;
    add(Math.min(start + length, n), true);
    n_forced += at - before;
  }
  add(n, false);
  const whole = pieces.map((piece) => piece.text).join("");
  const text = request.over ? Array.from(whole).slice(Array.from(request.over).length).join("") : whole;
  return { pieces, text, n_forced, n_chosen: n - n_forced };
}

const N_BACK = 400; // events in which the latest mask of a call is looked for

/** The share of the model's own distribution that the mask took away from the call's latest token; null if unknown. */
export function taken_away(store, call) {
  const request = call.requests[0]?.id;
  if (request === undefined || call.error !== null) return null;
  const { events } = store;
  const end = store.feed.place_after(store.view.seq);
  for (let i = end - 1; i >= Math.max(end - N_BACK, 0); i--) {
    const { kind, body, source } = events[i];
    if (kind !== "Masked" || (store.engine && source !== store.engine)) continue;
    const at = body.requests.indexOf(request);
    if (at >= 0) return body.removed[at];
  }
  return null;
}
