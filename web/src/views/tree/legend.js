// What the signs mean, and the keys. Not here: the signs (signs.js).

import { h } from "../../parts/dom.js";
import { to_element } from "../../parts/svg.js";
import { SPECIAL } from "../../parts/text.js";
import { hatching, panes } from "./shapes.js";

const LOOKS = [["new", "+", "new"], ["hit", "●×2", "hit by 2 requests"], ["gone", "✕", "evicted"], ["old", "", "locked"], ["fold", "", "folded"], ["named", "", "named below"]];
const KEYS = "Arrows: parent, child, siblings. Home, End. Enter: select or unfold. /: search, n and p: next and previous match. "
  + "+, -, 0: zoom. c: fold or unfold. z: only this subtree. Esc: back.";

/** `head` comes before it. */
export function create_legend(doc, prefix, ...head) {
  const own = `${prefix}l`;
  const swatch = (look) => ["svg", { width: 22, height: 16, "aria-hidden": "true" }, ...(look === "gone" ? [hatching(own)] : []),
    ["g", { class: `node ${look}`, transform: "translate(1 1)" }, ...panes(own, look, { node: { locks: look === "old" ? 1 : 0 } }, 20, 14)]];
  const key = ([look, sign, words]) => h(doc, "span", { class: "key" }, to_element(doc, swatch(look)), h(doc, "b", {}, sign && ` ${sign}`), ` ${words}`);
  return h(doc, "div", { class: "legend" }, ...head, ...LOOKS.map(key), h(doc, "span", {}, `${SPECIAL} special token`),
    h(doc, "span", { class: "areas" }, "width: tokens, height: leaves"),
    h(doc, "details", {}, h(doc, "summary", {}, "Keys"), h(doc, "span", { id: `${prefix}keys` }, KEYS)));
}
