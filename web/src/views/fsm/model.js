// Which constrained call is shown, and its answer so far as pieces that were chosen or forced.
//
// Not here: the automaton (walk.js), how it is drawn (index.js).

import { runs_of, text_of_runs } from "../../parts/runs.js";

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
  const runs = runs_of(view, request, 0, (i, is_forced) => (is_forced ? "forced" : "chosen"));
  const pieces = runs.map(({ look, text, n }) => ({ text, forced: look === "forced", n }));
  const whole = text_of_runs(runs);
  const text = request.over ? Array.from(whole).slice(Array.from(request.over).length).join("") : whole;
  const n_forced = pieces.reduce((n, piece) => n + (piece.forced ? piece.n : 0), 0);
  return { pieces, text, n_forced, n_chosen: request.generated.length - n_forced };
}

const N_BACK = 400; // events in which the latest mask of a call is looked for
const LEAST_KEPT = 1e-5; // of what the mask left; the rest of a 32-bit number near 1 is too coarse below

/**
 * What the log has of the call's latest token, by the model's own distribution: `removed`, the share that the mask took
 * away, and `tops`, the likeliest tokens [{id, share, left, is_allowed}], null where the log has none; `left` is the share
 * of what the mask left, null where that is too little to be told. null where nothing is known.
 */
export function latest_choice(store, call) {
  const request = call.requests[0]?.id;
  if (request === undefined) return null;
  const { events } = store;
  const end = end_of(store, call);
  let tops = null;
  for (let i = end - 1; i >= Math.max(end - N_BACK, 0); i--) {
    const { kind, body, source } = events[i];
    if ((kind !== "Masked" && kind !== "TopLogprobs") || (store.engine && source !== store.engine)) continue;
    const at = body.requests.indexOf(request);
    if (at < 0) continue;
    if (kind === "Masked") return { removed: body.removed[at], tops: tops && tokens_of(...tops, body.removed[at]) };
    tops ??= [body.ids[at], body.logprobs[at], body.allowed[at]]; // of the same step as the mask before it
  }
  return null;
}

/** Where in the log the call's latest token is over: at the cursor, or where its last token came if that is earlier. */
function end_of(store, call) {
  const end = store.feed.place_after(store.view.seq);
  if (call.error === null || call.last_ns === null) return end;
  let [low, high] = [0, end];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (store.events[middle].t_ns <= call.last_ns) low = middle + 1;
    else high = middle;
  }
  return low;
}

function tokens_of(ids = [], logprobs = [], allowed = [], removed) {
  return ids.map((id, i) => {
    const share = Math.exp(logprobs[i] ?? -Infinity);
    const left = allowed[i] && 1 - removed > LEAST_KEPT ? Math.min(share / (1 - removed), 1) : null;
    return { id, share, left, is_allowed: Boolean(allowed[i]) };
  });
}
