// Text of models and users made safe to show in one line or several, and cut to the room that there is.
// The same signs as nbsglang/viz/text.py. Not here: the DOM; escaping for exported files (svg.js, dot.js).

export const SPECIAL = "◇"; // stands for a special token such as <|im_start|>
const SPECIAL_TOKEN = /<\|[^<>|\s]{1,40}\|>/g;
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/u; // can move a cursor, reorder text or hide itself
const WIDE = /[ᄀ-ᅟ⺀-꓏가-힣豈-﫿︰-﹏＀-｠￠-￦\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const MARK = /\p{M}/u;
const JOINER = "\u200d"; // between the parts of one emoji

/** The text in one line: control characters as pictures (␛, ⏎), other invisible ones as <U+202E>. */
export function shown(text) {
  if (!HIDDEN.test(text)) return text;
  let out = "";
  for (const char of text) out += visible(char);
  return out;
}

/** The same with its line ends kept, and tabs as spaces. */
export function shown_lines(text) {
  return text.replace(/\r\n/g, "\n").replace(/\t/g, "    ").split("\n").map(shown).join("\n");
}

/** The text with one sign for each special token: they would fill the labels. */
export function brief(text) {
  return text.replace(SPECIAL_TOKEN, SPECIAL);
}

/** The text, its end cut to "…" where it is longer than `n` characters. */
export function cut(text, n) {
  return text.length > n ? `${text.slice(0, n)}…` : text;
}

/** A count in few characters: 950, 1.2k, 34k, 5.6M. */
export function n_short(n) {
  for (const [unit, name] of [[1e6, "M"], [1000, "k"]]) {
    if (n >= unit) return (n < 10 * unit ? (n / unit).toFixed(1) : Math.floor(n / unit)) + name;
  }
  return String(n);
}

/** A time in few characters. */
export function seconds(value) {
  if (value < 0.001) return `${(value * 1e6).toFixed(0)} µs`;
  if (value < 1) return `${(value * 1000).toFixed(value < 0.01 ? 1 : 0)} ms`;
  return `${n_round(value)} s`;
}

/** A number of few digits: 12.3, 345. */
export function n_round(n) {
  return n.toFixed(n < 100 ? 1 : 0);
}

/** How many there are of each: a Map. */
export function counts_of(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

/** The same in words: "3 running, 1 waiting". */
export function count_words(states) {
  return [...counts_of(states)].map(([state, n]) => `${n} ${shown(state)}`).join(", ");
}

/** "1 node", "2 nodes". */
export function n_of(n, noun) {
  return `${n} ${noun}${n === 1 ? "" : "s"}`;
}

/** The text of token ids, at most about `limit` characters of it. */
export function text_of(view, tokens, limit = Infinity) {
  let text = "";
  for (const token of tokens) {
    text += view.texts.get(token) ?? `<${token}>`;
    if (text.length > limit) break;
  }
  return text;
}

/** How many cells of a monospaced font a character takes. */
export function cells(char) {
  if (char < "\u0300") return 1;
  if (MARK.test(char)) return 0;
  return WIDE.test(char) ? 2 : 1;
}

/** How many cells a text takes. */
export function width_of(text) {
  let n = 0;
  for (const char of text) n += cells(char);
  return n;
}

/** The text in at most `n` cells, its end cut to "…"; "" where there is no room. */
export function fit(text, n) {
  return wrap(text, n, 1, 0)[0] ?? "";
}

/** At most `n_lines` lines of `n` cells, broken after words where that works; the last ends in "…" if more follows.
 *  `first` cells of the first line are taken already. */
export function wrap(text, n, n_lines, first = 0) {
  const lines = [];
  const chars = Array.from(text.length > 4 * n * n_lines + 16 ? text.slice(0, 4 * n * n_lines + 16) : text);
  let at = 0;
  while (at < chars.length && lines.length < n_lines) {
    const room = lines.length ? n : n - first;
    let [end, seam, used] = [at, at, 0];
    while (end < chars.length && used + cells(chars[end]) <= room) {
      used += cells(chars[end]);
      end += 1;
      if (BREAKS.has(chars[end - 1])) seam = end;
    }
    const is_last = lines.length === n_lines - 1;
    if (end < chars.length && is_last) {
      while (end > at && used + 1 > room) used -= cells(chars[(end -= 1)]);
      if (room >= 2) lines.push(chars.slice(at, end).join("").trimEnd() + "…");
      return lines;
    }
    if (end < chars.length && !lines.length && first > 0 && seam === at) end = at; // rather a whole word in the next line
    if (end < chars.length && seam > at && seam - at > (end - at) / 3) end = seam;
    if (end === at) { // not even one character has room here
      if (lines.length) return lines;
      lines.push("");
      if (n < 2) return [];
      continue;
    }
    lines.push(chars.slice(at, end).join(""));
    at = end;
  }
  return lines;
}

const BREAKS = new Set([" ", "⏎", SPECIAL]);

function visible(char) {
  if (char === "\n") return "⏎";
  if (char < " ") return String.fromCodePoint(0x2400 + char.codePointAt(0));
  if (char === "\x7f") return "␡";
  if (char === JOINER || !HIDDEN.test(char)) return char;
  return `<U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}>`;
}
