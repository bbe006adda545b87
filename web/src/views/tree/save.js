// What is shown, as a file: SVG, PNG, JSON or graphviz DOT.
// Not here: the picture itself (shapes.js), how a browser saves it (../../parts/files.js).

import { download, png_of, svg_source, with_colours } from "../../parts/files.js";
import { brief, shown, text_of } from "../../parts/text.js";
import { fold_words } from "./choose.js";
import { PICTURE } from "./css.js";
import { hatching } from "./shapes.js";
import { mark_of } from "./signs.js";

export const FORMATS = { SVG: "SVG", PNG: "PNG", JSON: "JSON", DOT: "graphviz source" };
const MAX_LABEL = 60;
const COLOURS = { new: "#009e73", hit: "#0072b2", gone: "#d55e00", old: "#8a8a8a" };

/** `shown` has view, marks and picture; `element` is on the page, and has the colours of its theme. */
export async function save(element, prefix, { view, marks, picture }, format) {
  const doc = element.ownerDocument;
  const name = `radix-tree-${view.seq}`;
  if (format === "JSON") return download(doc, JSON.stringify(json_of(view, marks, picture.drawn), null, 1), name, format);
  if (format === "DOT") return download(doc, dot_of(view, marks, picture.drawn), name, format);
  const { width, height } = picture;
  const pictures = picture.pictures().map(([, one]) => one);
  const [style, background] = [PICTURE, "var(--nbs-bg)"].map((css) => with_colours(element, css));
  const source = svg_source({ title: "radix tree", pictures, width, height, style, defs: [hatching(prefix)], background });
  download(doc, format === "SVG" ? source : await png_of(doc, source, width, height), name, format);
}

/** What is drawn as plain values: nodes with their tokens and texts, and what is folded away. */
export function json_of(view, marks, drawn) {
  const nodes = drawn.filter((part) => part.item !== null).map(({ item }) => ({
    id: item.id, parent: item.node.parent, tokens: item.node.tokens, text: text_of(view, item.node.tokens),
    locks: item.node.locks, tick: item.node.tick, evicted: item.ghost, new: marks.new.has(item.id), hits: marks.hits.get(item.id) ?? 0,
  }));
  const folded = drawn.filter((part) => part.item === null).map(({ parent, n_nodes, n_tokens }) => ({ parent: parent.id, n_nodes, n_tokens }));
  return { kind: "nbsglang radix tree", seq: view.seq, step: view.step?.step ?? null, nodes, folded };
}

/** Graphviz source of what is drawn: nothing in a text can end or format a label. */
export function dot_of(view, marks, drawn) {
  const font = 'fontname="monospace", fontsize="9"';
  const lines = ["digraph {", `  rankdir="LR"; node [shape="circle", ${font}]; edge [${font}, arrowsize="0.5"];`];
  const top = drawn.length ? drawn[0].parent.id : 0;
  lines.push(`  n${top} [label=${quoted(top === 0 ? "root" : String(top))}];`);
  for (const part of drawn) {
    if (part.item === null) {
      lines.push(`  f${part.parent.id} [label=${quoted(fold_words(part))}, shape="box", style="dotted,rounded"];`);
      lines.push(`  n${part.parent.id} -> f${part.parent.id} [style="dotted"];`);
      continue;
    }
    const mark = mark_of(marks, part.item);
    const label = shown(brief(text_of(view, part.item.node.tokens, MAX_LABEL)));
    const look = `color="${COLOURS[mark.look]}"${part.item.ghost ? ', style="dashed"' : ""}`;
    const rings = part.item.node.locks > 0 ? ', peripheries="2"' : "";
    const text = label.length > MAX_LABEL ? `${label.slice(0, MAX_LABEL)}…` : label;
    lines.push(`  n${part.item.id} [label=${quoted(`${mark.sign} ${part.n_tokens}`.trim())}, ${look}${rings}];`);
    lines.push(`  n${part.parent.id} -> n${part.item.id} [label=${quoted(text)}, ${look}];`);
  }
  return [...lines, "}", ""].join("\n");
}

const quoted = (text) => `"${text.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/&/g, "&amp;")}"`;
