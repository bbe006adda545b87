// Nodes whose text holds what was typed, also where it begins in the nodes above. Texts are kept between searches. Pure.
// Not here: the input (bar.js).

import { text_of } from "../../parts/text.js";

export const MAX_FOUND = 2000;

export class Search {
  #texts = new WeakMap(); // by the tokens of a node

  /** The ids of the nodes where a match ends, in the order of the tree, at most MAX_FOUND; letters' case does not count. */
  find(view, model, query) {
    const wanted = query.toLowerCase();
    const found = [];
    const stack = wanted ? [[model.root, ""]] : [];
    while (stack.length && found.length < MAX_FOUND) {
      const [{ id, node, children }, above] = stack.pop();
      const { tokens } = node ?? { tokens: [] };
      const text = this.#texts.get(tokens) ?? text_of(view, tokens).toLowerCase();
      this.#texts.set(tokens, text);
      const whole = above + text; // `above` is shorter than a match, so any match ends after it
      if (text && whole.includes(wanted)) found.push(id);
      const tail = wanted.length > 1 ? whole.slice(1 - wanted.length) : "";
      for (let i = children.length - 1; i >= 0; i -= 1) stack.push([children[i], tail]);
    }
    return found;
  }
}
