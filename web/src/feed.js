// The state of one engine and of the runs on it, as events come in, and enough of the past to go back to any of them.
//
// The past is a bounded array of events and copies of the state in between, fewer the longer it gets; so to show the
// state at an event is to copy one and to fold some thousand events.
//
// Not here: how messages are read (wire.js), what one output shows (store.js).

import { event_of, n_until } from "./events.js";
import { restore } from "./fold/dump.js";
import { View } from "./fold/view.js";

const MAX_EVENTS = 200_000;
const MAX_COPIES = 32;
const MAX_WEIGHT = 400_000; // of all copies, see weight_of: some hundred bytes each
const EVERY = 1000; // events between two copies, or more where the state is large
const MAX_SAMPLES = 1200;

/** See the module. `on(fn)`: fn is called after each change; `send` takes a message to the kernel. */
export class Feed {
  constructor({ send = () => {}, max_events = MAX_EVENTS } = {}) {
    this.live = new View();
    this.events = [];
    this.waiting = false; // for a keyframe, since events are missing
    this.samples = []; // {seq, t_ns, step} of some steps, for curves
    this.send = send;
    this._max_events = max_events;
    this._copies = [{ seq: 0, view: new View(), weight: 0 }];
    this._since_copy = 0;
    this._later = null;
    this._lost_to = 0; // the last event that was lost, until the next one comes
    this._every_sample = 1;
    this._n_steps = 0;
    this._listeners = new Set();
  }

  /** A feed that has all it will ever get: `base` is a dump of the state before `lines`, or null. */
  static of_log(lines, base = null) {
    const feed = new Feed({ max_events: Infinity });
    if (base !== null) feed._begin_at(restore(base));
    if (lines.length && base === null) feed._begin_at(Object.assign(new View(), { seq: lines[0][0] - 1 }));
    for (const line of lines) {
      feed._take(event_of(line));
      if (feed._is_copy_due) feed._note_copy();
    }
    feed._note_copy();
    return feed;
  }

  on(fn) {
    this._listeners.add(fn);
    return () => this._listeners.delete(fn);
  }

  /** The seq of the first state that can be shown, and of the last. */
  get range() {
    return [this._copies[0].seq, this.live.seq];
  }

  /** Take lines of the log: all that concern us from seq `from` to `to`, the others left out. */
  take_delta(lines, from, to) {
    if (to <= this.live.seq) return;
    this._copy_now();
    if (from > this.live.seq + 1) {
      this.waiting = true;
      this.live.lose_to(from - 1);
      this._lost_to = from - 1;
    }
    for (const line of lines) {
      if (line[0] <= this.live.seq) continue;
      this.live.skip_to(line[0] - 1);
      this._take(event_of(line));
    }
    this.live.skip_to(to);
    this._changed();
    if (this._is_copy_due) this._copy_later();
  }

  /** Whether a keyframe of this seq tells anything new. */
  wants_key(to) {
    return this.waiting || to > this.live.seq;
  }

  /** Take a keyframe: the state is what it says. */
  take_key(plain) {
    const before = this.live;
    this.live = restore(plain);
    this.live.keep(before);
    for (const [name, marks] of [...before.tree.past, ...before.tree.watched])
      if (!this.live.tree.watched.has(name)) this.live.tree.past.set(name, marks);
    for (const name of [...this.live.tree.watched.keys()]) if (is_over(this.live, name)) this.live.unwatch(name);
    this.waiting = false;
    while (this.events.length && this.events.at(-1).seq > this.live.seq) this.events.pop();
    this._copies = this._copies.filter((copy) => copy.seq < this.live.seq);
    if (!this.events.length) this._copies = [];
    if (this._copies.length) this._copy_later();
    else this._note_copy();
    this._changed();
  }

  /** The state after event `seq`; `near` is a view that this function gave before, and that it may move on. */
  at(seq, near = null) {
    this._copy_now();
    let low = this._copies[0];
    for (const copy of this._copies) if (copy.seq <= seq) low = copy;
    const view = near !== null && near.seq <= seq && near.seq >= low.seq ? near : low.view.clone();
    for (let i = this.place_after(view.seq); i < this.events.length && this.events[i].seq <= seq; i++) {
      this._redo(view, this.events[i]);
    }
    view.skip_to(seq);
    return view;
  }

  /** Where in `events` the first one after `seq` is. */
  place_after(seq) {
    return n_until(this.events, seq);
  }

  /** A feed of its own with what happened after event `first`, up to `last`. */
  excerpt(first, last) {
    const feed = new Feed({ max_events: Infinity });
    feed._begin_at(this.at(first));
    for (let i = this.place_after(first); i < this.events.length && this.events[i].seq <= last; i++) {
      this._redo(feed.live, this.events[i], (event) => feed._take(event));
    }
    feed.live.skip_to(last);
    feed._note_copy();
    return feed;
  }

  _begin_at(view) {
    this.live = view;
    this._copies = [];
    this._note_copy();
  }

  _take(event) {
    if (event.seq > this.live.seq + 1) this._lost_to = event.seq - 1;
    if (this._lost_to) event.lost_to = this._lost_to; // what came before it is missing
    this._lost_to = 0;
    advance(this.live, event);
    this.events.push(event);
    this._since_copy += 1;
    if (event.kind === "Step") this._sample(event);
    if (this.events.length > this._max_events) this._forget_oldest();
  }

  /** Apply an event of the past again. */
  _redo(view, event, take = (again) => advance(view, again)) {
    if (event.lost_to) view.lose_to(event.lost_to);
    view.skip_to(event.seq - 1);
    take(event);
  }

  get _is_copy_due() {
    return this._since_copy >= Math.max(EVERY, weight_of(this.live) / 4);
  }

  /** A copy of a large state takes longer than an update may. */
  _copy_later() {
    this._later ??= setTimeout(() => this._copy_now(), 0);
    this._later.unref?.();
  }

  /** Make the copy that is due; the state has not changed since. */
  _copy_now() {
    if (this._later === null) return;
    clearTimeout(this._later);
    this._later = null;
    this._note_copy();
  }

  _note_copy() {
    this._since_copy = 0;
    if (this._copies.length && this._copies.at(-1).seq === this.live.seq) return;
    this._copies.push({ seq: this.live.seq, view: this.live.clone(), weight: weight_of(this.live) });
    const weight = this._copies.reduce((sum, copy) => sum + copy.weight, 0);
    if (this._copies.length > MAX_COPIES || (weight > MAX_WEIGHT && this._copies.length > 8))
      this._copies = this._copies.filter((_, n) => n % 2 === 0);
  }

  _forget_oldest() {
    if (this._copies.length < 2) this._note_copy();
    this._copies.shift();
    this.events.splice(0, this.place_after(this._copies[0].seq));
  }

  _sample(event) {
    if (this._n_steps++ % this._every_sample) return;
    const { n_cached, n_prompt } = this.live.totals;
    this.samples.push({ seq: event.seq, t_ns: event.t_ns, step: event.body, n_cached, n_prompt });
    if (this.samples.length <= MAX_SAMPLES) return;
    this.samples = this.samples.filter((_, n) => n % 2 === 0);
    this._every_sample *= 2;
  }

  _changed() {
    for (const fn of this._listeners) fn();
  }
}

/** How much there is to copy: nodes, requests, streams with their calls, and tokens at a discount. */
function weight_of(view) {
  return view.nodes.size + view.requests.size + 8 * view.streams.size + view.totals.n_generated / 64;
}

/** Apply an event, and watch what each run does to the tree from its beginning to its end. */
function advance(view, event) {
  const { kind, source, body } = event;
  if (kind === "StreamBegan" && body.parent === "") view.watch(source);
  view.apply(event);
  if (kind === "StreamEnded" && view.streams.get(body.stream)?.parent === "" && is_over(view, source)) view.unwatch(source);
}

/** Whether a run has begun and none of its own streams goes on. */
function is_over(view, source) {
  let has_begun = false;
  for (const stream of view.streams.values()) {
    if (stream.source !== source || stream.parent !== "") continue;
    if (!stream.ended) return false;
    has_begun = true;
  }
  return has_begun;
}
