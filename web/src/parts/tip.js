// The text beside the pointer, or beside the node that the keyboard is at. Not here: what it says.

import { h, say } from "./dom.js";

export function create_tip(doc) {
  const head = h(doc, "b", {});
  const text = h(doc, "div", { class: "text" });
  const element = h(doc, "div", { class: "tip", role: "tooltip", hidden: true }, head, text);
  let key = null;
  return {
    element,
    get key() {
      return key;
    },
    /** Show it under the rectangle `at` (of the window), inside the element that it is in. */
    show(of, words, label, at) {
      const frame = element.parentElement.getBoundingClientRect();
      key = of;
      say(head, words);
      say(text, label);
      text.hidden = label === "";
      element.hidden = false;
      const [w, high] = [element.offsetWidth, element.offsetHeight];
      const x = Math.min(Math.max(at.left - frame.left, 4), Math.max(frame.width - w - 4, 4));
      const below = at.bottom - frame.top + 6;
      const y = below + high > frame.height && at.top - frame.top - high - 6 > 0 ? at.top - frame.top - high - 6 : below;
      element.style.left = `${Math.round(x)}px`;
      element.style.top = `${Math.round(y)}px`;
    },
    hide() {
      key = null;
      element.hidden = true;
    },
  };
}
