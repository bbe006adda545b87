// Times to pixels and back, ticks, and times in words.
//
// A window is {from, to} in ns. Not here: who moves it (hands.js).

const STEPS = [1, 2, 5];

/** Pixels of a time within `width`. */
export function x_of(window, width, t_ns) {
  return ((t_ns - window.from) / (window.to - window.from)) * width;
}

export function time_of(window, width, x) {
  return window.from + (x / width) * (window.to - window.from);
}

/** Round times in the window, at least `gap` pixels from each other: [{t_ns, text}], counted from `zero_ns`. */
export function ticks_of(window, width, zero_ns, gap = 80) {
  const wanted = ((window.to - window.from) / Math.max(width, 1)) * gap;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = Math.max(1, STEPS.map((n) => n * power).find((size) => size >= wanted) ?? 10 * power);
  const ticks = [];
  for (let n = Math.ceil((window.from - zero_ns) / step); n * step <= window.to - zero_ns; n++) {
    ticks.push({ t_ns: zero_ns + n * step, text: tick_words(n * step, step) });
  }
  return ticks;
}

/** A span of time in few characters. */
export function span_words(ns) {
  const ms = ns / 1e6;
  if (ms < 1) return `${(ns / 1000).toFixed(0)} µs`;
  if (ms < 1000) return `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
  return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
}

function tick_words(ns, step) {
  const [unit, name] = step >= 1e8 || ns === 0 ? [1e9, "s"] : step >= 1e5 ? [1e6, "ms"] : [1e3, "µs"];
  const digits = Math.max(0, Math.ceil(Math.log10(unit / step) - 1e-9));
  return `${(ns / unit).toFixed(ns === 0 ? 0 : digits)} ${name}`;
}
