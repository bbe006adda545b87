// A list to pick one from. Its options are made anew only when they are other ones.
//
// Not here: what can be picked (the views).

import { h } from "./dom.js";

/** {element, show(rows, value)}: rows are [value, words]; `on(value)` is called when the reader has picked one. */
export function create_choice(doc, attributes, on) {
  const element = h(doc, "select", { ...attributes, onchange: () => on(element.value) });
  let listed = "";
  return {
    element,
    show(rows, value) {
      const source = JSON.stringify(rows);
      if (source !== listed) element.replaceChildren(...rows.map(([id, words]) => h(doc, "option", { value: id }, words)));
      listed = source;
      element.value = value;
    },
  };
}
