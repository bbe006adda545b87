// How nodes are told apart: a class that has a colour, and always a sign and a word that say the same without it.
// The signs are those of nbsglang/viz/paint.py. Not here: the colours (css.js).

import { fold_words } from "./choose.js";
import { brief, cut, n_of, shown, text_of } from "../../parts/text.js";

/** {look, sign, word} of an item; the sign of a hit has the number of requests, and + where the node is new as well. */
export function mark_of(marks, item) {
  if (item.ghost) return { look: "gone", sign: "✕", word: "evicted" };
  const is_new = marks.new.has(item.id);
  const n = marks.hits.get(item.id) ?? 0;
  if (n > 0) return { look: "hit", sign: `●${n > 1 ? `×${n}` : ""}${is_new ? "+" : ""}`, word: `hit ${n_of(n, "time")}${is_new ? ", new" : ""}` };
  return is_new ? { look: "new", sign: "+", word: "new" } : { look: "old", sign: "", word: "" };
}

/** The text of an item for a label, safe and brief: all of it, or more than `limit` characters. */
export function label_of(view, item, limit) {
  return shown(brief(text_of(view, item.node.tokens, 3 * limit + 40))).trimStart(); // special tokens become shorter
}

/** What a screen reader says, and the head of a tooltip: "node 7, 12 tokens, hit 3 times". */
export function words_of(marks, part) {
  if (part.item === null) return `${fold_words(part)}, folded under ${part.parent.node === null ? "the root" : `node ${part.parent.id}`}`;
  const { item } = part;
  const words = [`node ${item.id}`, n_of(part.n_tokens, "token"), mark_of(marks, item).word];
  if (item.node.locks > 0) words.push("locked");
  return words.filter(Boolean).join(", ");
}

/** The same with the beginning of the text. */
export function spoken(view, marks, part) {
  const words = words_of(marks, part);
  if (part.item === null) return `${words}; Enter unfolds`;
  return `${words}: '${cut(label_of(view, part.item, 80), 80)}'`;
}
