// Nodes whose text holds what was typed, also where it begins in the nodes above. Texts are kept between searches. Pure.
// Not here: the input (bar.js).

import { text_of } from "../../parts/text.js";

export const MAX_FOUND = 2000;

export class Search {
  #texts = new Map(); // id -> {tokens, n, text}

  /** The ids of the nodes where a match ends, in the order of the tree, at most MAX_FOUND; letters' case does not count. */
  find(view, model, query) {
    const wanted = query.toLowerCase();
    const found = [];
    if (!wanted) return found;
    const stack = [[model.root, ""]];
    while (stack.length && found.length < MAX_FOUND) {
      const [item, above] = stack.pop();
      const text = item.node === null ? "" : this.#text(view, item.node);
      const whole = above + text;
      if (item.node !== null && ends_in(whole, wanted, above.length)) found.push(item.id);
      const tail = wanted.length > 1 ? whole.slice(-(wanted.length - 1)) : "";
      for (let i = item.children.length - 1; i >= 0; i -= 1) stack.push([item.children[i], tail]);
    }
    for (const id of this.#texts.keys()) if (!model.items.has(id)) this.#texts.delete(id);
    return found;
  }

  #text(view, node) {
    const known = this.#texts.get(node.id);
    if (known !== undefined && known.tokens === node.tokens && known.n === node.tokens.length) return known.text;
    const text = text_of(view, node.tokens).toLowerCase();
    this.#texts.set(node.id, { tokens: node.tokens, n: node.tokens.length, text });
    return text;
  }
}

/** `whole` has fewer characters than a match before `from`, so any match ends after it. */
const ends_in = (whole, wanted, from) => from < whole.length && whole.includes(wanted);

/** How many of the found are in each fold: by its key. */
export function found_in_folds(found, model, kept) {
  const counts = new Map();
  for (const id of found) {
    let at = model.items.get(id);
    if (at === undefined || kept.has(id)) continue;
    while (at.parent !== null && at.parent.node !== null && !kept.has(at.parent.id)) at = at.parent;
    const key = `f${at.parent.id}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}
