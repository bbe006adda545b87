// What one output shows of a feed: the state now, or at a moment of the past; what is in focus; playing.
//
// All views of an output read it and are told of changes at most once a frame.
//
// Not here: events and state (feed.js, fold/), which moments are worth a stop (moments.js), the views.

import { Marks } from "./fold/marks.js";
import { is_of_interest, later } from "./moments.js";

const NO_FOCUS = { request: null, node: null, stream: null };

export class Store {
  /** `source` is a run's ("" for all of an engine), `replay` says that nothing more will come. */
  constructor(feed, { source = "", engine = "", replay = false, title = "", can_cancel = null } = {}) {
    this.source = source;
    this.engine = engine;
    this.title = title;
    this.replay = replay;
    this.can_cancel = replay ? false : can_cancel;
    this.cursor = null;
    this.playing = false;
    this.focus = { ...NO_FOCUS };
    this.settings = { speed: 1 };
    this._past = null; // the view at the cursor
    this._listeners = new Set();
    this._changes = new Set();
    this._frame = null;
    this._player = null;
    this._take_feed(feed);
  }

  // ------------------------------------------------------------------------------------------------- state

  get live() {
    return this.feed.live;
  }

  /** The state to show: now, or after event `cursor`. */
  get view() {
    if (this.cursor === null) return this.feed.live;
    if (this._past === null || this._past.seq !== this.cursor) this._past = this.feed.at(this.cursor, this._past);
    return this._past;
  }

  get events() {
    return this.feed.events;
  }

  get samples() {
    return this.feed.samples;
  }

  get waiting() {
    return this.feed.waiting;
  }

  get seeking() {
    return this.cursor !== null;
  }

  /** [first, last] seq that a slider spans: those of the run, or of all that is known. */
  get range() {
    const [first, last] = this.feed.range;
    for (let i = this._run_first === null ? this.feed.place_after(this._searched) : Infinity; i < this.events.length; i++) {
      const { source, seq } = this.events[i];
      this._searched = seq;
      if (source !== this.source) continue;
      this._run_first = seq - 1;
      break;
    }
    return [Math.max(first, this._run_first ?? first), last];
  }

  /** The event whose effect the view shows last, or null. */
  get event() {
    return this.events[this.feed.place_after(this.cursor ?? this.live.seq) - 1] ?? null;
  }

  /** The streams of this output's run (of all runs where it shows an engine), parents first. */
  streams() {
    return this.view.streams_of(this.source);
  }

  /** What the run did to the tree up to the cursor; without a run, what the latest step did. */
  marks_since_run() {
    if (!this.source) return this.view.marks;
    return this.view.marks_of(this.source) ?? NO_MARKS;
  }

  // ------------------------------------------------------------------------------------------------ changes

  /** fn(changes) once a frame at most; changes are a Set of "state", "cursor", "focus", "settings". */
  on(fn) {
    this._listeners.add(fn);
    return () => this._listeners.delete(fn);
  }

  set_focus(patch) {
    const next = { ...this.focus, ...patch };
    if (Object.keys(NO_FOCUS).every((name) => next[name] === this.focus[name])) return;
    this.focus = next;
    this._note("focus");
  }

  /** Change settings: a plain object of a view's own choice of names. */
  set(patch) {
    this.settings = { ...this.settings, ...patch };
    this._note("settings");
  }

  set_can_cancel(value) {
    if (this.replay || value === this.can_cancel) return;
    this.can_cancel = value;
    this._note("settings");
  }

  /** A message to the kernel; nothing in a replay. */
  send(message) {
    if (!this.replay) this.feed.send(message);
  }

  /** Go on with another feed, such as the saved one of a run that is over. */
  replace(feed, { replay = this.replay } = {}) {
    this._off();
    this.pause();
    this.replay = replay;
    if (replay) this.can_cancel = false;
    this.cursor = null;
    this._past = null;
    this._take_feed(feed);
    for (const what of ["state", "cursor", "settings"]) this._note(what);
  }

  destroy() {
    this.pause();
    this._off();
    this._listeners.clear();
    this._changes.clear();
  }

  // ---------------------------------------------------------------------------------------------- the past

  /** Show the state after event `seq` (within `range`), or null: what is now. */
  seek(seq) {
    if (seq !== null) {
      const [first, last] = this.range;
      seq = Math.min(Math.max(Math.round(seq), first), last);
    }
    if (seq === this.cursor) return;
    this.cursor = seq;
    if (seq === null) this._past = null;
    this._note("cursor");
  }

  /** Go n events of interest on, or back; `wanted(event)` says what is of interest. At the end it shows what is now. */
  step(n, wanted = is_of_interest) {
    this.pause();
    const [first, last] = this.range;
    const way = Math.sign(n);
    let at = this.feed.place_after(this.cursor ?? last) - 1;
    if (way < 0 && this.cursor === null) at += 1;
    for (let left = Math.abs(n); left > 0; left--) {
      at += way;
      while (at >= 0 && at < this.events.length && !wanted(this.events[at])) at += way;
    }
    if (at >= this.events.length) this.seek(null);
    else this.seek(at < 0 ? first : Math.max(this.events[at].seq, first));
  }

  /** Play from the cursor, or from the beginning; at `settings.speed` times the speed of life. */
  play() {
    if (this.playing) return;
    const [first] = this.range;
    if (this.cursor === null) this.seek(first);
    this.playing = true;
    this._note("cursor");
    let before = now_ms();
    let left = 0;
    const tick = () => {
      const at = now_ms();
      left += (at - before) * (this.settings.speed || 1);
      before = at;
      const next = later(this.feed, this.cursor, left);
      left = next.left_ms;
      if (next.is_end) this.pause();
      this.seek(next.is_end ? null : next.seq);
      if (this.playing) this._player = setTimeout(tick, 33);
    };
    this._player = setTimeout(tick, 33);
  }

  pause() {
    if (!this.playing) return;
    clearTimeout(this._player);
    this._player = null;
    this.playing = false;
    this._note("cursor");
  }

  // ------------------------------------------------------------------------------------------------ inside

  _take_feed(feed) {
    this.feed = feed;
    this._run_first = this.source ? null : 0; // seq before the run's first event, once it is found
    this._searched = 0; // seq up to which it was looked for
    this._off = feed.on(() => {
      const [first] = feed.range;
      if (this.cursor !== null && this.cursor < first) this.seek(first);
      this._note("state");
    });
  }

  _note(what) {
    this._changes.add(what);
    if (this._frame !== null) return;
    this._frame = next_frame(() => {
      this._frame = null;
      const changes = this._changes;
      this._changes = new Set();
      if (changes.size) for (const fn of [...this._listeners]) fn(changes);
    });
  }
}

const NO_MARKS = Object.freeze(new Marks());

function now_ms() {
  return performance.now();
}

function next_frame(fn) {
  return typeof requestAnimationFrame === "function" ? requestAnimationFrame(fn) : setTimeout(fn, 16);
}
