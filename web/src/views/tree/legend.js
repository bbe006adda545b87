// What the signs mean, and the keys. Not here: the signs (signs.js).

import { h } from "../../parts/dom.js";
import { hatching } from "./shapes.js";
import { LEGEND } from "./signs.js";
import { to_element } from "../../parts/svg.js";
import { SPECIAL } from "../../parts/text.js";

export const KEYS = "Arrows: parent, child, siblings. Home, End. Enter: select or unfold. /: search, n and p: next and previous match. "
  + "+, -, 0: zoom. z: only this subtree. c: fold or unfold. Esc: back.";

/** `head` comes before it. */
export function create_legend(doc, prefix, ...head) {
  const swatch = (look, inner = false) => to_element(doc, ["svg", { width: 22, height: 16, "aria-hidden": "true" },
    ...(look === "gone" ? [hatching(`${prefix}l`)] : []),
    ["g", { class: `node ${look}` },
      ["rect", { class: "fill", x: 1, y: 1, width: 20, height: 14, rx: 3, style: look === "gone" ? `fill:url(#${prefix}lhatch)` : undefined }],
      ...(inner ? [["rect", { class: "inner", x: 4, y: 4, width: 14, height: 8, rx: 3 }]] : [])]]);
  const key = (picture, words, sign = null) => h(doc, "span", { class: "key" }, picture, sign ? h(doc, "b", {}, ` ${sign}`) : null, ` ${words}`);
  return h(doc, "div", { class: "legend" }, ...head,
    ...LEGEND.map(([look, sign, words]) => key(swatch(look), words, sign)),
    key(swatch("old", true), "locked"), key(swatch("fold"), "folded"), key(swatch("named"), "named below"), h(doc, "span", {}, `${SPECIAL} special token`),
    h(doc, "span", { class: "areas" }, "width: tokens, height: leaves"),
    h(doc, "details", {}, h(doc, "summary", {}, "Keys"), h(doc, "span", { id: `${prefix}keys` }, KEYS)));
}
