// The figures of a stream in words, and a key of all that a lane shows, so that one that is as before is left alone.
//
// Not here: how they are laid out (row.js).

import { grouped } from "../../parts/grouped.js";
import { name_of } from "../../parts/names.js";
import { count_words, n_of, n_round, seconds } from "../../parts/text.js";

/** The figures of a stream: time to first token, speed, cached of all prompt tokens, generated. */
export function figures_of(stream) {
  const figures = [];
  const n = grouped;
  if (stream.first_token_s !== null) figures.push(`first token ${seconds(stream.first_token_s)}`);
  const speed = stream.tokens_per_s;
  if (speed !== null) figures.push(`${n_round(speed)} tok/s`);
  const n_prompt = stream.n_cached + stream.n_computed;
  if (n_prompt) figures.push(`${n(stream.n_cached)}/${n(n_prompt)} cached`);
  if (stream.n_generated) figures.push(`${n(stream.n_generated)} generated`);
  return figures;
}

/** How many streams there are in each state, in words. */
export function census(streams) {
  const words = count_words(streams.map((stream) => stream.state));
  return `${n_of(streams.length, "stream")}${words && `: ${words}`}`;
}

/** What is worth an interruption: a failure, and that all is over; else "". */
export function news_of(streams) {
  if (streams.length && streams.every((stream) => stream.ended)) return `All over: ${census(streams)}`;
  const failed = streams.findLast((stream) => stream.state === "failed");
  return failed === undefined ? "" : `${name_of(failed)} failed`;
}

/** A text that differs whenever the stream looks different, within one way of seeking through one log. */
export function fingerprint(stream) {
  const call = stream.ended ? null : stream.open_call;
  const live = call === null ? "" : `${call.id} ${call.under} ${call.requests.map((r) => `${r.generated.length}${r.ended}`)}`;
  const counts = [stream.parts.length, stream.calls.size, stream.n_generated, stream.n_cached, stream.n_computed];
  return `${counts} ${stream.state} ${stream.error.length} ${admitted(stream)} ${live}`;
}

/** Of the open calls: what decides whether literals were cached. */
const admitted = ({ open_calls }) => [...open_calls].map((call) => call.requests.map((request) => Number(request.admitted)));
