// Brings a reducer of a view's own up to date with the events that a store keeps, each event once.
//
// The fold keeps no times of tokens or phases, so the streams and the timeline reduce the same events again for what
// they need. Such a reducer always has all events that the store has: it does not move when the store seeks.
//
// A reducer has `apply(event)`, and `torn()`, which is called when events were lost before the next one.
//
// Not here: the reducers (../views/timeline/track.js, ../views/streams/pace.js).

import { n_until } from "../events.js";

export class Follower {
  /** `make()` gives a new reducer. */
  constructor(make) {
    this._make = make;
    this._begin();
  }

  /** The reducer with all of `events` taken in, which is a new one when they are those of another log. */
  catch_up(events) {
    if (!this._goes_on(events)) this._begin();
    let i = n_until(events, this._seq);
    if (this._seq && i < events.length && events[i - 1]?.seq !== this._seq) this.reducer.torn();
    for (; i < events.length; i++) this.reducer.apply(events[i]);
    const last = events.at(-1);
    if (last !== undefined) {
      this._seq = last.seq;
      this._t_ns = last.t_ns;
    }
    return this.reducer;
  }

  _begin() {
    this.reducer = this._make();
    this._seq = 0;
    this._t_ns = 0;
  }

  /** Whether what was taken in is, as far as one can see, the beginning of these events. */
  _goes_on(events) {
    const last = events.at(-1);
    if (last === undefined || last.seq < this._seq) return this._seq === 0;
    const same = events[n_until(events, this._seq) - 1];
    return same === undefined || same.seq !== this._seq || same.t_ns === this._t_ns;
  }
}

/** The seq of the last event that is not later than `t_ns`; that of the first event when all are. null without any. */
export function seq_at(events, t_ns) {
  return events.length ? events[Math.max(0, n_until(events, t_ns, "t_ns") - 1)].seq : null;
}

/** The time of the event at `seq`, or of the last one before it; null when the events begin later. */
export function time_at(events, seq) {
  const i = n_until(events, seq) - 1;
  return i < 0 ? null : events[i].t_ns;
}
