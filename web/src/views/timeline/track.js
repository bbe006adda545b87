// What a timeline needs and the fold does not keep: from when to when each request was queued, prefilled, decoded, what
// its stream did meanwhile, and how full the engine was after each step.
//
// It always holds all events that there are. A view that shows an earlier moment draws a line at it; `phase_at` and
// `counts_at` say what was then, from what was known then alone.
//
// A bar is {id, call_id, stream, n_prompt, n_hit, n_generated, n_jumped, reason, starts, phases, end, jumps, row}: it
// is in phases[i] from starts[i] (ns) to starts[i + 1] or `end` (null while it goes on); jumps are [ns, n tokens].
// A lane is {id, parent, source, label, began, ended, how, n_open, n_below, starts, phases, calls, bars, n_rows}.
//
// Not here: rows and pixels (rows.js, scale.js), who feeds it (follow.js).

const MAX_BARS = 20_000; // and lanes, before the older half of those that are over is dropped
const KINDS = new Set([
  "Queued", "Admitted", "Tokens", "Jumped", "Preempted", "Finished", "Step",
  "StreamBegan", "StreamEnded", "CallBegan", "CallEnded",
]);

/** A reducer for a Follower. `engine` is the source whose requests and steps count; "" takes those of any. */
export class Track {
  constructor(engine = "") {
    this._engine = engine;
    this.bars = new Map(); // by request
    this.lanes = new Map(); // by stream, "" for requests of no stream that is known
    this.steps = []; // {t_ns, took_ns, n_running, n_waiting, n_prefill, n_decode, n_free, n_evictable, n_locked}
    this.first_ns = null;
    this.last_ns = 0;
    this._callers = new Map(); // the lane of each open call
  }

  apply({ kind, body, t_ns, source }) {
    if (!KINDS.has(kind)) return;
    const is_engine = !STREAM_KINDS.has(kind);
    if (is_engine && this._engine && source !== this._engine) return;
    this.first_ns ??= t_ns;
    this.last_ns = t_ns;
    this[kind](body, t_ns, source);
  }

  /** Events are missing: what they would have ended goes on until something else is heard of it. */
  torn() {}

  // ---------------------------------------------------------------------------------------- the engine's events

  Queued(body, t_ns) {
    const lane = this._callers.get(body.call_id) ?? this._lane("", "", t_ns);
    const bar = {
      id: body.request, call_id: body.call_id, stream: lane.id, n_prompt: body.n_prompt, n_hit: null, n_generated: 0,
      n_jumped: 0, reason: "", starts: [t_ns], phases: ["queued"], end: null, jumps: [], row: 0,
    };
    bar.row = free_row(lane);
    lane.bars.push(bar);
    lane.n_rows = Math.max(lane.n_rows, bar.row + 1);
    this.bars.set(bar.id, bar);
    if (this.bars.size > 2 * MAX_BARS) this._forget_bars();
  }

  Admitted(body, t_ns) {
    const bar = this._open_bar(body.request);
    if (bar === undefined) return;
    bar.n_hit ??= body.n_hit;
    enter(bar, "prefill", t_ns);
  }

  Tokens(body, t_ns) {
    body.requests.forEach((request, i) => {
      const bar = this._open_bar(request);
      if (bar === undefined) return;
      bar.n_generated += body.ids[i].length;
      enter(bar, "decode", t_ns);
    });
  }

  /** Forced tokens come for nothing, but the step after them has to read them. */
  Jumped(body, t_ns) {
    const bar = this.bars.get(body.request); // it may be over: the last tokens are told after its end
    if (bar === undefined) return;
    bar.jumps.push([t_ns, body.ids.length]);
    bar.n_jumped += body.ids.length;
    if (bar.end === null && ["decode", "jump"].includes(bar.phases.at(-1))) enter(bar, "jump", t_ns);
  }

  Preempted(body, t_ns) {
    const bar = this._open_bar(body.request);
    if (bar !== undefined) enter(bar, "preempted", t_ns);
  }

  Finished(body, t_ns) {
    const bar = this._open_bar(body.request);
    if (bar === undefined) return;
    [bar.end, bar.reason, bar.n_generated, bar.n_prompt] = [t_ns, body.reason, body.n_generated, body.n_prompt];
    bar.n_hit = body.n_cached;
  }

  Step(body, t_ns) {
    const { n_running, n_waiting, n_prefill, n_decode, n_free, n_evictable, n_locked } = body;
    const took_ns = 1e9 * (body.plan_s + body.pack_s + body.run_s + body.commit_s);
    this.steps.push({ t_ns, took_ns, n_running, n_waiting, n_prefill, n_decode, n_free, n_evictable, n_locked });
    if (this.steps.length > 10 * MAX_BARS) this.steps.splice(0, 5 * MAX_BARS);
  }

  // --------------------------------------------------------------------------------------- the programs' events

  StreamBegan(body, t_ns, source) {
    const lane = this._lane(body.stream, source, t_ns);
    [lane.parent, lane.branch, lane.label] = [body.parent, body.branch, body.label];
    const parent = this.lanes.get(body.parent);
    if (parent === undefined || parent === lane) return;
    parent.n_below += 1;
    settle(parent, t_ns);
  }

  StreamEnded(body, t_ns, source) {
    const lane = this._lane(body.stream, source, t_ns);
    if (lane.ended !== null) return;
    [lane.ended, lane.how] = [t_ns, body.how];
    const parent = this.lanes.get(lane.parent);
    if (parent === undefined || parent === lane) return;
    parent.n_below = Math.max(0, parent.n_below - 1);
    settle(parent, t_ns);
  }

  CallBegan(body, t_ns, source) {
    const lane = this._lane(body.stream, source, t_ns);
    this._callers.set(body.call_id, lane);
    lane.calls.push({ id: body.call_id, kind: body.kind, name: body.name, began: t_ns, ended: null, error: "" });
    if (body.kind !== "prefix") lane.n_open += 1; // a hint is nothing that the program waits for
    settle(lane, t_ns);
  }

  CallEnded(body, t_ns, source) {
    const lane = this._lane(body.stream, source, t_ns);
    this._callers.delete(body.call_id);
    const call = lane.calls.findLast((each) => each.id === body.call_id && each.ended === null);
    if (call === undefined) return;
    [call.ended, call.error] = [t_ns, body.error];
    if (call.kind !== "prefix") lane.n_open -= 1;
    settle(lane, t_ns);
  }

  // -------------------------------------------------------------------------------------------------------

  _open_bar(request) {
    const bar = this.bars.get(request);
    return bar === undefined || bar.end !== null ? undefined : bar;
  }

  _lane(id, source, t_ns) {
    let lane = this.lanes.get(id);
    if (lane !== undefined) return lane;
    lane = {
      id, source, parent: "", branch: 0, label: "", began: t_ns, ended: null, how: "", n_open: 0, n_below: 0,
      starts: [t_ns], phases: ["program"], calls: [], bars: [], n_rows: 0,
    };
    this.lanes.set(id, lane);
    if (this.lanes.size > 2 * MAX_BARS) drop(this.lanes, (each) => each.ended !== null);
    return lane;
  }

  _forget_bars() {
    const gone = new Set(drop(this.bars, (bar) => bar.end !== null));
    for (const lane of this.lanes.values()) lane.bars = lane.bars.filter((bar) => !gone.has(bar));
  }
}

const STREAM_KINDS = new Set(["StreamBegan", "StreamEnded", "CallBegan", "CallEnded"]);

/** The phase that a bar or a lane is in at a time, or null before it begins and after it ends. */
export function phase_at(what, t_ns) {
  const end = what.end ?? what.ended ?? null;
  if (t_ns < what.starts[0] || (end !== null && t_ns >= end)) return null;
  let i = what.starts.length - 1;
  while (what.starts[i] > t_ns) i -= 1;
  return what.phases[i];
}

/** How long a bar or a lane was in each phase until a time: {phase: ns}. They sum up to all of its time. */
export function times_of(what, until_ns) {
  const end = Math.min(what.end ?? what.ended ?? until_ns, until_ns);
  const times = {};
  what.starts.forEach((start, i) => {
    const ns = Math.min(what.starts[i + 1] ?? end, end) - start;
    if (ns > 0) times[what.phases[i]] = (times[what.phases[i]] ?? 0) + ns;
  });
  return times;
}

/** How many requests are in each phase at a time: {phase: n}. */
export function counts_at(track, t_ns) {
  const counts = {};
  for (const bar of track.bars.values()) {
    const phase = phase_at(bar, t_ns);
    if (phase !== null) counts[phase] = (counts[phase] ?? 0) + 1;
  }
  return counts;
}

/** What a stream does: it is answered, waits for its branches, or for the program. */
function settle(lane, t_ns) {
  enter(lane, lane.n_open > 0 ? "call" : lane.n_below > 0 ? "join-wait" : "program", t_ns);
}

function enter(what, phase, t_ns) {
  if (what.phases.at(-1) === phase) return;
  if (what.starts.at(-1) === t_ns && what.phases.length > 1) { // it was in the other one for no time at all
    what.starts.pop();
    what.phases.pop();
    return enter(what, phase, t_ns);
  }
  what.starts.push(t_ns);
  what.phases.push(phase);
}

/** The first row of a lane that no request occupies which still runs. */
function free_row(lane) {
  const taken = new Set();
  for (let i = lane.bars.length - 1; i >= 0 && lane.bars.length - i < 500; i--) if (lane.bars[i].end === null) taken.add(lane.bars[i].row);
  let row = 0;
  while (taken.has(row)) row += 1;
  return row;
}

/** Drop the older half of those that are over; returns them. */
function drop(kept, is_over) {
  const gone = [];
  for (const [key, value] of kept) {
    if (kept.size <= MAX_BARS) break;
    if (!is_over(value)) continue;
    kept.delete(key);
    gone.push(value);
  }
  return gone;
}
