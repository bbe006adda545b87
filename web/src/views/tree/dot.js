// What is drawn as graphviz source, with the text on the edges as the paper has it. Nothing in a text can end or format a
// label. Pure.
// Not here: how a browser saves it (save.js).

import { cut } from "../../parts/text.js";
import { amount, label_of, mark_of } from "./signs.js";

const MAX_LABEL = 60; // characters
const COLOURS = { new: "#009e73", hit: "#0072b2", gone: "#d55e00", old: "#8a8a8a" };
const FONT = 'fontname="monospace", fontsize="9"';
const HEAD = ["digraph {", `  rankdir="LR"; node [shape="circle", ${FONT}]; edge [${FONT}, arrowsize="0.5"];`];

export function dot_of(view, drawn) {
  const top = drawn[0]?.parent.id ?? 0;
  const parts = drawn.flatMap((part) => {
    const from = `  n${part.parent.id} -> `;
    if (part.item === null) return [`  ${part.key} [label=${quoted(`+${amount(part)}`)}, shape="box", style="dotted,rounded"];`, `${from}${part.key} [style="dotted"];`];
    const { item, item: { id, ghost, node } } = part;
    const { look, sign } = mark_of(item);
    const line = `color="${COLOURS[look]}"${ghost ? ', style="dashed"' : ""}`;
    return [`  n${id} [label=${quoted(`${sign} ${part.n_tokens}`.trim())}, ${line}${node.locks > 0 ? ', peripheries="2"' : ""}];`,
      `${from}n${id} [label=${quoted(cut(label_of(view, item, MAX_LABEL), MAX_LABEL))}, ${line}];`];
  });
  return [...HEAD, `  n${top} [label=${quoted(top ? String(top) : "root")}];`, ...parts, "}", ""].join("\n");
}

const quoted = (text) => `"${text.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/&/g, "&amp;")}"`;
