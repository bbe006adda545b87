// The figures of a stream in words, and a key of all that a lane shows, so that one that is as before is left alone.
//
// Not here: how they are laid out (row.js).

import { grouped } from "../../grouped.js";

import { shown } from "../tree/text.js";

/** A time in few characters. */
export function seconds(value) {
  if (value < 1) return `${(value * 1000).toFixed(value < 0.01 ? 1 : 0)} ms`;
  return value < 100 ? `${value.toFixed(1)} s` : `${value.toFixed(0)} s`;
}

/** The figures of a stream: time to first token, speed, cached of all prompt tokens, generated. */
export function figures_of(stream) {
  const figures = [];
  const n = grouped;
  if (stream.first_token_s !== null) figures.push(`first token ${seconds(stream.first_token_s)}`);
  const speed = stream.tokens_per_s;
  if (speed !== null) figures.push(`${speed < 100 ? speed.toFixed(1) : speed.toFixed(0)} tok/s`);
  const n_prompt = stream.n_cached + stream.n_computed;
  if (n_prompt) figures.push(`${n(stream.n_cached)}/${n(n_prompt)} cached`);
  if (stream.n_generated) figures.push(`${n(stream.n_generated)} generated`);
  return figures;
}

/** How many streams there are in each state, in words. */
export function census(streams) {
  const counts = new Map();
  for (const { state } of streams) counts.set(state, (counts.get(state) ?? 0) + 1);
  const words = [...counts].map(([state, n]) => `${n} ${state}`).join(", ");
  return `${streams.length} stream${streams.length === 1 ? "" : "s"}${words && `: ${words}`}`;
}

/** What is worth an interruption: a failure, and that all is over; else "". */
export function news_of(streams) {
  if (streams.length && streams.every((stream) => stream.ended)) return `All over: ${census(streams)}`;
  const failed = streams.findLast((stream) => stream.state === "failed");
  return failed === undefined ? "" : `${name_of(failed)} failed`;
}

/** How a stream is called: its label or its id, as text that is safe to show. */
export function name_of(stream) {
  const name = shown((stream.label || stream.id).slice(0, 60));
  return stream.parent ? `branch ${name}` : name;
}

/** A text that differs whenever the stream looks different, within one way of seeking through one log. */
export function fingerprint(stream) {
  const call = stream.ended ? null : stream.open_call;
  const live = call === null ? "" : `${call.id} ${call.under} ${call.requests.map((r) => `${r.generated.length}${r.ended}`)}`;
  const counts = [stream.parts.length, stream.calls.size, stream.n_generated, stream.n_cached, stream.n_computed];
  return `${counts} ${stream.state} ${stream.error.length} ${admitted(stream)} ${live}`;
}

/** Of the newest call: what decides whether its literals were cached. */
function admitted(stream) {
  let n = 0;
  for (const call of stream.open_calls) n += call.requests.filter((request) => request.admitted).length;
  return `${n}/${stream.open_calls.size}`;
}
