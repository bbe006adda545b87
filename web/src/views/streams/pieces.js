// The text of a stream as pieces, each with runs of one look: what is drawn as chips.
//
// A piece is {at, kind, name, under, call, request, of, note, live, scores, runs}; `at` is the index of its part, or Infinity
// for what an open call writes; `of` is "2/3" for the second of three texts. The values of runs
// are those of the mode: ms, or natural logarithms.
//
// Pieces are built once and then kept: a piece that is the same object as before need not be drawn again.
//
// Not here: looks (looks.js), the DOM (chips.js).

import { NO_SCORES } from "../../fold/state.js";
import { joined, run, runs_of, slices, text_of_runs } from "../../parts/runs.js";
import { cached_parts } from "./cached.js";
import { latency_look, logprob_look } from "./looks.js";

const WRITTEN = new Set(["gen", "choice", "partial"]);

/** The pieces of one stream. Begin anew with another `mode` ("kind", "latency" or "logprob"), and after a seek. */
export class Pieces {
  constructor(mode = "kind") {
    this._mode = mode;
    this._settled = []; // pieces that stay as they are
    this._n_settled = 0; // the parts that they show
    this._n_calls = 0; // the calls, hints left out, that have been given a part
    this._prompt_at = 0; // where in the prompt's text the last literal of them ends
    this._live = []; // of the requests that are being answered
  }

  /** The pieces of the stream as it is now. */
  update(view, stream, pace) {
    const calls = [...stream.calls.values()];
    const written = calls.filter((call) => call.kind !== "prefix");
    const tail = [];
    let settles = true;
    let at = this._n_settled;
    let n_calls = this._n_calls;
    while (at < stream.parts.length) {
      const n = this._block(stream, calls, at);
      const made = [];
      let decided = true;
      if (n) {
        const block = this._literals(view, stream, calls, at, n);
        decided = block.decided;
        made.push(...block.pieces);
        if (settles && decided) this._prompt_at = block.end;
      } else {
        const part = stream.parts[at];
        const found = WRITTEN.has(part.kind) ? written.findIndex((call, i) => i >= n_calls && wrote(call, part)) : -1;
        if (found >= 0) n_calls = found + 1;
        made.push(...this._written(view, pace, part, at, found < 0 ? null : written[found]));
      }
      at += n || 1;
      settles &&= decided;
      if (settles) {
        this._settled.push(...made);
        [this._n_settled, this._n_calls] = [at, n_calls];
      } else tail.push(...made);
    }
    return [...this._settled, ...tail, ...this._written_now(view, stream, pace)];
  }

  // --- literals

  /** How many literals from part `at` on belong to the prompt of one call, blank parts between them included. */
  _block(stream, calls, at) {
    if (stream.parts[at].kind !== "literal") return 0;
    const call = decider(calls, at);
    let n = 1;
    while (at + n < stream.parts.length && !WRITTEN.has(stream.parts[at + n].kind)) {
      if (decider(calls, at + n) !== call) break;
      n += 1;
    }
    return n;
  }

  _literals(view, stream, calls, at, n) {
    const parts = stream.parts.slice(at, at + n);
    const call = decider(calls, at);
    const request = call?.requests[0];
    const hit = request?.admitted && this._mode === "kind" ? request.hit : null;
    const decided = this._mode !== "kind" || (call !== undefined && (Boolean(request?.admitted) || call.error !== null));
    const literals = parts.filter((part) => part.kind === "literal").map((part) => part.text);
    const known = hit === null ? "" : hit.map((tokens) => view.text_of(tokens)).join("");
    const { counts, end } = cached_parts(literals, known, this._prompt_at);
    let k = 0;
    const pieces = parts.map((part, i) => {
      const runs = part.kind === "literal" ? literal_runs(part.text, hit === null ? null : counts[k++]) : [run(part.kind, part.text)];
      return piece(part.kind, part.name, at + i, { runs });
    });
    return { pieces, decided, end: hit === null ? this._prompt_at : end };
  }

  // --- what calls have written

  _written(view, pace, part, at, call) {
    const common = { under: part.under, call: call?.id ?? null, scores: part.scores };
    const requests = call?.requests ?? [];
    if (!WRITTEN.has(part.kind) || part.kind === "choice" || !requests.length) {
      const request = part.kind === "choice" ? (requests[0]?.id ?? null) : null;
      const look = part.kind === "gen" && part.under ? "constrained" : part.kind;
      return [piece(part.kind, part.name, at, { ...common, request, runs: [run(look, part.text)] })];
    }
    const many = requests.length > 1 && part.kind === "gen";
    return (many ? requests : requests.slice(0, 1)).map((request, i) => {
      const all = this._runs(view, pace, request, 0, part.kind, part.under);
      const { runs, note } = many ? { runs: all, note: "" } : told(all, part, this._mode);
      const of = many ? `${i + 1}/${requests.length}` : "";
      return piece(part.kind, part.name, at, { ...common, request: request.id, of, runs, note });
    });
  }

  /** What the open call has written; runs grow in new objects, so that the pieces of before stay as they are. */
  _written_now(view, stream, pace) {
    const call = stream.ended ? null : stream.open_call;
    if (call === null) {
      this._live = [];
      return [];
    }
    const kind = call.kind === "score" ? "choice" : "gen";
    const requests = kind === "gen" && call.requests.length ? call.requests : [null];
    this._live = requests.map((request, i) => {
      const of = requests.length > 1 ? `${i + 1}/${requests.length}` : "";
      const before = this._live[i];
      const same = before?.request === (request?.id ?? null) && before.call === call.id && before.under === call.under;
      const n = same ? before.runs.reduce((sum, { n }) => sum + n, 0) : 0;
      const n_now = request?.generated.length ?? 0;
      const is_live = request === null || !request.ended;
      if (same && n === n_now && before.live === is_live) return before;
      const more = request === null ? [] : this._runs(view, pace, request, n_now < n ? 0 : n, kind, call.under);
      const runs = same && n_now >= n ? joined(before.runs, more) : more;
      const where = { under: call.under, call: call.id, request: request?.id ?? null, of, live: is_live };
      return piece(kind, call.name, Infinity, { ...where, runs, note: kind === "choice" ? "weighing the choices" : "" });
    });
    return this._live;
  }

  /** The tokens of a request from `first` on as runs. */
  _runs(view, pace, request, first, kind, under) {
    const plain = kind === "partial" ? "partial" : under ? "constrained" : "gen";
    if (this._mode === "kind") return runs_of(view, request, first, (i, is_forced) => (is_forced ? "jumped" : plain));
    const is_latency = this._mode === "latency";
    const value = (i) => (is_latency ? pace.latency_ns(request.id, i) : pace.logprob(request.id, i));
    const look = (i) => (is_latency ? latency_look : logprob_look)(value(i));
    const shown = (i) => (value(i) === null || !is_latency ? value(i) : value(i) / 1e6);
    return runs_of(view, request, first, (i, is_forced) => (is_forced ? "jumped" : look(i)), shown);
  }
}

/** The call whose prompt was the first to hold part `at`, or undefined. */
function decider(calls, at) {
  return calls.find((call) => (call.n_before ?? -1) > at);
}

/** Whether this part may be what the call wrote. */
function wrote(call, part) {
  return call.name === part.name && (part.kind === "partial" ? Boolean(call.error) : call.told);
}

/** The runs of a text that was told at the end: a stop string is cut off, and a value may read otherwise. */
function told(runs, part, mode) {
  const text = text_of_runs(runs);
  if (text === part.text) return { runs, note: "" };
  if (text.startsWith(part.text)) return { runs: slices(runs, 0, part.text.length), note: "" };
  if (!text || text.includes("\ufffd") || text.includes(part.text)) {
    const look = mode !== "kind" ? "none" : part.kind === "gen" && part.under ? "constrained" : part.kind;
    return { runs: [run(look, part.text)], note: "" };
  }
  return { runs, note: `value ${part.text}` };
}

function literal_runs(text, n_cached) {
  if (n_cached === null) return [run("literal", text)];
  const runs = [run("cached", text.slice(0, n_cached)), run("prefilled", text.slice(n_cached))];
  return runs.filter((each) => each.text);
}

function piece(kind, name, at, rest) {
  return { at, kind, name, under: "", call: null, request: null, of: "", note: "", live: false, scores: NO_SCORES, ...rest };
}
