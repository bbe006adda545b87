// What a bar, a stream or a moment of a timeline is, in words.
//
// Not here: where they are shown.

import { shown } from "../../parts/text.js";
import { name_of } from "./draw.js";
import { LINES, PHASES } from "./paint.js";
import { span_words } from "./scale.js";
import { times_of } from "./track.js";

/** {head, text} on a request's bar; times count from `zero_ns`, and what goes on lasts until `last_ns`. */
export function bar_words(bar, lane, zero_ns, last_ns) {
  const times = times_of(bar, last_ns);
  const spans = Object.entries(times).map(([phase, ns]) => `${PHASES[phase].word} ${span_words(ns)}`);
  const name = shown(name_of(lane, bar));
  const tokens = [bar.n_hit === null ? `${bar.n_prompt} prompt tokens` : `${bar.n_hit} of ${bar.n_prompt} prompt tokens cached`];
  if (bar.n_generated || bar.n_jumped) tokens.push(`${bar.n_generated} generated`);
  if (bar.n_jumped) tokens.push(`${bar.n_jumped} of them jumped over`);
  const state = bar.end === null ? "goes on" : bar.reason === "prefix" ? "done" : shown(bar.reason);
  return {
    head: [`request ${bar.id}`, name, state].filter(Boolean).join(" · "),
    text: [`from ${span_words(bar.starts[0] - zero_ns)}: ${spans.join(", ") || "no time"}`, tokens.join(", ")].join("\n"),
  };
}

/** {head, text} on a stream's line. */
export function lane_words(lane, label, zero_ns, last_ns) {
  const spans = Object.entries(times_of(lane, last_ns)).map(([phase, ns]) => `${LINES[phase].word.replace("stream: ", "")}: ${span_words(ns)}`);
  const n = lane.calls.filter((call) => call.kind !== "prefix").length;
  return {
    head: `${label} · ${lane.ended === null ? "goes on" : shown(lane.how)} · ${n} call${n === 1 ? "" : "s"}`,
    text: [`from ${span_words(lane.began - zero_ns)}`, ...spans].join("\n"),
  };
}
