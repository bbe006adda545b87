// Which span of time a timeline shows: all of it, growing, until the reader zooms.
//
// Not here: pixels (scale.js), who asks (index.js).

const LEAST_NS = 20_000; // a window is no narrower
const PAD = 0.015; // of the span, on both sides of all

export class Window {
  constructor() {
    this._full = { from: 0, to: 1 };
    this._chosen = null;
  }

  /** {from, to} in ns. */
  get now() {
    return this._chosen ?? this._full;
  }

  get middle() {
    return (this.now.from + this.now.to) / 2;
  }

  get is_fit() {
    return this._chosen === null;
  }

  /** All that there is lies between these times; a window at the old end moves on with it. */
  span(first_ns, last_ns) {
    const pad = Math.max((last_ns - first_ns) * PAD, LEAST_NS / 2);
    const full = { from: first_ns - pad, to: last_ns + pad };
    const moved = full.to - this._full.to;
    const is_at_end = this._chosen !== null && this._full.to - this._chosen.to < (full.to - full.from) * 1e-6; // but for rounding
    this._full = full;
    if (is_at_end && moved > 0) this._set(this._chosen.from + moved, this._chosen.to + moved);
  }

  fit() {
    this._chosen = null;
  }

  /** Zoom by a factor (above 1: closer) around a time. */
  zoom(factor, around_ns) {
    const { from, to } = this.now;
    this._set(around_ns - (around_ns - from) / factor, around_ns + (to - around_ns) / factor);
  }

  /** Move by a part of what is shown, to later times where it is above 0. */
  pan(share) {
    const { from, to } = this.now;
    this._set(from + (to - from) * share, to + (to - from) * share);
  }

  /** Move as little as makes the span visible. */
  bring_in(from_ns, to_ns) {
    const { from, to } = this.now;
    if (from_ns < to && to_ns > from) return;
    const middle = (from_ns + Math.min(to_ns, from_ns + (to - from))) / 2;
    this._set(middle - (to - from) / 2, middle + (to - from) / 2);
  }

  _set(from, to) {
    const all = this._full.to - this._full.from;
    const size = Math.min(Math.max(to - from, LEAST_NS), all);
    if (size >= all) {
      this._chosen = null;
      return;
    }
    const grown = (size - (to - from)) / 2; // a limit keeps the middle where it was
    const start = Math.min(Math.max(from - grown, this._full.from), this._full.to - size);
    this._chosen = { from: start, to: start + size };
  }
}
