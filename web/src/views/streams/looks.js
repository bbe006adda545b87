// How pieces of text are told apart: a look has a sign, a word, and a class whose colour comes with an underline.
// The colours and signs of kinds are those of nbsglang/viz/paint.py.
//
// Not here: the style sheet (css.js), which look a piece has (pieces.js).

const look = (sign, word) => ({ sign, word });

/** By kind. */
export const KINDS = {
  literal: look("", "text of the program"),
  cached: look("●", "was in the cache"),
  prefilled: look("○", "prefilled"),
  gen: look("▸", "generated"),
  constrained: look("⊂", "generated under a constraint"),
  jumped: look("»", "jumped over: forced by the constraint"),
  choice: look("◆", "chosen"),
  partial: look("▹", "unfinished"),
  value: look("=", "value"),
};

const LATENCY_MS = [10, 30, 100, 300];
const LOGPROB = [Math.log(0.9), Math.log(0.5), Math.log(0.2), Math.log(0.05)];

/** Five levels of a scale, the calm one first. */
export const SCALES = {
  latency: ["under 10 ms", "10 to 30 ms", "30 to 100 ms", "100 to 300 ms", "above 300 ms"],
  logprob: ["above 90 %", "50 to 90 %", "20 to 50 %", "5 to 20 %", "under 5 %"],
};

/** The level of a latency in ns, or "none" when it is not known. */
export function latency_look(ns) {
  if (ns === null) return "none";
  return `l${LATENCY_MS.filter((edge) => ns / 1e6 >= edge).length}`;
}

/** The level of a log probability, or "none" when it is not known. */
export function logprob_look(value) {
  return value === null ? "none" : `l${LOGPROB.filter((edge) => value < edge).length}`;
}

const STATES = { running: "▶", waiting: "…", done: "✓", joined: "⤴", failed: "✗", cancelled: "■" };

/** The mark {name, sign} of a stream's state, whatever a log calls it; the name is safe as a part of a class. */
export function state_mark(state) {
  return Object.hasOwn(STATES, state) ? { name: state, sign: STATES[state] } : { name: "ended", sign: "·" };
}
