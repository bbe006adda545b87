// How nodes are told apart: a class that has a colour, and always a sign and a word that say the same without it.
// The signs are those of nbsglang/viz/paint.py. Not here: the colours (css.js).

import { brief, cut, n_of, n_short, shown, shown_lines, text_of } from "../../parts/text.js";

/** {look, sign, word} of an item, or of a fold (null); the sign of a hit has the number of requests, and + where the node is new as well. */
export function mark_of(item) {
  if (item === null) return { look: "fold", sign: "", word: "" };
  if (item.ghost) return { look: "gone", sign: "✕", word: "evicted" };
  const { is_new, n_hits: n } = item;
  if (n > 0) return { look: "hit", sign: `●${n > 1 ? `×${n}` : ""}${is_new ? "+" : ""}`, word: `hit ${n_of(n, "time")}${is_new ? ", new" : ""}` };
  return is_new ? { look: "new", sign: "+", word: "new" } : { look: "old", sign: "", word: "" };
}

/** "37 nodes, 1.2k tokens" */
export function amount({ n_nodes, n_tokens }) {
  return `${n_of(n_nodes, "node")}, ${n_short(n_tokens)} token${n_tokens === 1 ? "" : "s"}`;
}

/** The text of an item for a label, safe and brief: all of it, or more than `limit` characters. */
export function label_of(view, item, limit) {
  return shown(brief(text_of(view, item.node.tokens, 3 * limit + 40))).trimStart(); // special tokens become shorter
}

/** The text of an item with its lines as they are, at most `most` characters. */
export function lines_of(view, item, most) {
  return cut(shown_lines(text_of(view, item.node.tokens, most + 1)), most);
}

/** What a screen reader says, and the head of a tooltip: "node 7, 12 tokens, hit 3 times". */
export function words_of(part) {
  const { item, parent } = part;
  if (item === null) return `+${amount(part)}, folded under ${parent.node === null ? "the root" : `node ${parent.id}`}`;
  const words = [`node ${item.id}`, n_of(part.n_tokens, "token"), mark_of(item).word, item.node.locks > 0 && "locked"];
  return words.filter(Boolean).join(", ");
}

/** The same with the beginning of the text. */
export function spoken(view, part) {
  const more = part.item === null ? "; Enter unfolds" : `: '${cut(label_of(view, part.item, 80), 80)}'`;
  return words_of(part) + more;
}
