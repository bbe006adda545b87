// Which part of each literal was in the cache when the call that needed it was admitted.
//
// The log says how many tokens were, and the tree which. Their text is the beginning of the prompt, in which the
// literals of the stream are looked for, one after the other; a chat template may stand between them, or trim them.
//
// Not here: how that looks (pieces.js).

/** How many characters of each literal stand within `known`, looked for from `from` on; and where the last one ends. */
export function cached_parts(literals, known, from = 0) {
  let at = from;
  const counts = literals.map((literal) => {
    const core = literal.trim();
    if (!core) return at < known.length ? literal.length : 0;
    const start = known.indexOf(core, at);
    if (start >= 0) {
      at = start + core.length;
      return literal.length;
    }
    const n = overlap(known, core, at);
    at = known.length;
    return n ? literal.indexOf(core) + n : 0;
  });
  return { counts, end: at };
}

/** The longest beginning of `literal` with which `known` ends, at `from` or later. */
function overlap(known, literal, from) {
  const longest = Math.min(literal.length, known.length - from);
  for (let start = known.length - longest; start < known.length; start++) {
    if (known[start] === literal[0] && literal.startsWith(known.slice(start))) return known.length - start;
  }
  return 0;
}
