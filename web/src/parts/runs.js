// Text as runs of one look: {look, text, n, low, high}, where n counts tokens (0 for text that is none), and low and high
// are the least and the greatest of their values, or null.
//
// Not here: which look a text has (the views).

export function run(look, text, n = 0, value = null) {
  return { look, text, n, low: value, high: value };
}

/**
 * The tokens of a request from `first` on. `look_of(i, is_forced)` gives the look of token i, and `value_of(i)` its value;
 * forced is what a constraint jumped over. Without values, all tokens that are forced look alike, and all others.
 */
export function runs_of(view, request, first, look_of, value_of = null) {
  const { generated, jumps } = request;
  const runs = [];
  let jump = 0;
  for (let i = first, end = first; i < generated.length; i = end) {
    while (jump < jumps.length && i >= jumps[jump][0] + jumps[jump][1]) jump += 1;
    const [start, n] = jumps[jump] ?? [Infinity, 0];
    const is_forced = i >= start;
    end = value_of === null ? Math.min(is_forced ? start + n : start, generated.length) : i + 1;
    const next = run(look_of(i, is_forced), view.text_of(generated.slice(i, end)), end - i, value_of === null ? null : value_of(i));
    if (runs.at(-1)?.look === next.look) add(runs.at(-1), next);
    else runs.push(next);
  }
  return runs;
}

/** Runs and more of them, in new objects where they meet. */
export function joined(runs, more) {
  if (!runs.length || !more.length || runs.at(-1).look !== more[0].look) return [...runs, ...more];
  const seam = { ...runs.at(-1) };
  add(seam, more[0]);
  return [...runs.slice(0, -1), seam, ...more.slice(1)];
}

/** The characters [from, to) of runs. */
export function slices(runs, from, to) {
  const found = [];
  let at = 0;
  for (const each of runs) {
    const text = each.text.slice(Math.max(0, from - at), Math.max(0, to - at));
    if (text) found.push({ ...each, text });
    at += each.text.length;
  }
  return found;
}

export function text_of_runs(runs) {
  return runs.map((each) => each.text).join("");
}

function add(into, next) {
  into.text += next.text;
  into.n += next.n;
  if (next.low !== null) into.low = into.low === null ? next.low : Math.min(into.low, next.low);
  if (next.high !== null) into.high = into.high === null ? next.high : Math.max(into.high, next.high);
}
