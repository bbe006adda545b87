// What is shown, as a file: SVG, PNG, JSON or graphviz DOT. The log that it comes from is `%sgl export`'s.
// Not here: the picture itself (shapes.js), graphviz source (dot.js), how a browser saves it (../../parts/files.js).

import { download, png_of, svg_source, with_colours } from "../../parts/files.js";
import { text_of } from "../../parts/text.js";
import { PICTURE } from "./css.js";
import { dot_of } from "./dot.js";
import { hatching } from "./shapes.js";

export const FORMATS = { SVG: "SVG", PNG: "PNG", JSON: "JSON", DOT: "graphviz source" };

/** Of the view (index.js): its `element` is on the page, and has the colours of its theme. */
export async function save({ element, prefix, store: { view }, marks, picture }, format) {
  const doc = element.ownerDocument;
  const { drawn, pictures, width, height } = picture;
  const svg = () => {
    const [style, background] = [PICTURE, "var(--nbs-bg)"].map((css) => with_colours(element, css));
    return svg_source({ title: "radix tree", pictures: pictures().map(([, one]) => one), width, height, style, defs: [hatching(prefix)], background });
  };
  const make = {
    SVG: svg, PNG: () => png_of(doc, svg(), width, height),
    JSON: () => JSON.stringify(json_of(view, marks, drawn), null, 1), DOT: () => dot_of(view, marks, drawn),
  };
  download(doc, await make[format](), `radix-tree-${view.seq}`, format);
}

/** What is drawn as plain values: nodes with their tokens and texts, and what is folded away. */
export function json_of(view, marks, drawn) {
  const nodes = drawn.filter(({ item }) => item !== null).map(({ item: { id, ghost, node: { parent, tokens, locks, tick } } }) => ({
    id, parent, tokens, text: text_of(view, tokens), locks, tick, evicted: ghost, new: marks.new.has(id), hits: marks.hits.get(id) ?? 0,
  }));
  const folded = drawn.filter(({ item }) => item === null).map(({ parent, n_nodes, n_tokens }) => ({ parent: parent.id, n_nodes, n_tokens }));
  return { kind: "nbsglang radix tree", seq: view.seq, step: view.step?.step ?? null, nodes, folded };
}
