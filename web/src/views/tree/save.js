// What is shown, as a file: SVG, PNG, JSON or graphviz DOT. The log that it comes from is `%sgl export`'s.
// Not here: the picture itself (shapes.js), graphviz source (dot.js), how a browser saves it (../../parts/files.js).

import { download, png_of, svg_source, with_colours } from "../../parts/files.js";
import { text_of } from "../../parts/text.js";
import { PICTURE } from "./css.js";
import { dot_of } from "./dot.js";
import { hatching } from "./shapes.js";

export const FORMATS = { SVG: "SVG", PNG: "PNG", JSON: "JSON", DOT: "graphviz source" };

/** Of the view (index.js), in the colours that its `element` has. */
export async function save({ element, prefix, store: { view }, picture }, format) {
  const doc = element.ownerDocument;
  const { drawn, draw, under, width, height } = picture;
  const svg = () => {
    const [style, background] = [PICTURE, "var(--nbs-bg)"].map((css) => with_colours(element, css));
    const pictures = [...under.map(([, one]) => one), ...drawn.map(draw)];
    return svg_source({ title: "radix tree", pictures, width, height, style, defs: [hatching(prefix)], background });
  };
  const make = {
    SVG: svg, PNG: () => png_of(doc, svg(), width, height),
    JSON: () => JSON.stringify(json_of(view, drawn), null, 1), DOT: () => dot_of(view, drawn),
  };
  download(doc, await make[format](), `radix-tree-${view.seq}`, format);
}

/** What is drawn as plain values: nodes with their tokens and texts, and what is folded away. */
export function json_of(view, drawn) {
  const nodes = drawn.filter(({ item }) => item !== null).map(({ item: { id, ghost, is_new, n_hits, node: { parent, tokens, locks, tick } } }) => ({
    id, parent, tokens, text: text_of(view, tokens), locks, tick, evicted: ghost, new: is_new, hits: n_hits,
  }));
  const folded = drawn.filter(({ item }) => item === null).map(({ parent, n_nodes, n_tokens }) => ({ parent: parent.id, n_nodes, n_tokens }));
  return { kind: "nbsglang radix tree", seq: view.seq, step: view.step?.step ?? null, nodes, folded };
}
