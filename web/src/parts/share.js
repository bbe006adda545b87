// Counts as the parts of one bar.
//
// Not here: their colours (the views), and their numbers in words.

import { h } from "./dom.js";

/** {element, show(counts)}: each part has a class by its name; `attributes` are those of the bar. */
export function create_share(doc, names, attributes) {
  const parts = names.map((name) => h(doc, "span", { class: name }));
  return {
    element: h(doc, "div", attributes, ...parts),
    show: (counts) => counts.forEach((n, i) => (parts[i].style.flexGrow = String(Math.max(n, 0)))),
  };
}
