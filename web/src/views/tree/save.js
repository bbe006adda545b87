// What is shown, as a file: SVG, PNG, JSON or graphviz DOT, made in the browser.
// Not here: the picture itself (shapes.js).

import { fold_words } from "./choose.js";
import { mark_of } from "./signs.js";
import { to_text } from "./svg.js";
import { brief, shown, text_of } from "./text.js";

export const FORMATS = [
  ["SVG", "Save what is shown as SVG"],
  ["PNG", "Save what is shown as PNG"],
  ["JSON", "Save what is shown as JSON"],
  ["DOT", "Save what is shown as graphviz source"],
];
const MAX_PIXELS = 8192; // of a canvas, each way
const MAX_LABEL = 60;
const COLOURS = { new: "#009e73", hit: "#0072b2", gone: "#d55e00", old: "#8a8a8a" };

/** SVG source of pictures; `style` is CSS with plain colours. */
export function svg_source({ pictures, width, height, style, defs, background }) {
  const [w, h] = [Math.ceil(width), Math.ceil(height)];
  return to_text(["svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${w} ${h}`, width: w, height: h },
    ["title", {}, "radix tree"], ["style", {}, style], ...defs, ["rect", { width: w, height: h, fill: background }],
    ["g", { class: "nodes" }, ...pictures.map(bare)]]);
}

/** Without what only a page needs; what a screen reader says becomes the title. */
function bare([tag, attributes, ...children]) {
  const title = attributes["aria-label"] ? [["title", {}, attributes["aria-label"]]] : [];
  return [tag, { class: attributes.class, transform: attributes.transform }, ...title, ...children];
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

/** A PNG of SVG source as a Blob, at twice the size where that is not too large. */
export async function png_of(doc, source, width, height) {
  const scale = Math.min(2, MAX_PIXELS / Math.max(width, height, 1));
  const image = doc.createElement("img");
  const url = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source)}`;
  await new Promise((done, failed) => {
    image.onload = done;
    image.onerror = () => failed(new Error("the browser could not draw the picture"));
    image.src = url;
  });
  const canvas = doc.createElement("canvas");
  canvas.width = Math.ceil(width * scale);
  canvas.height = Math.ceil(height * scale);
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

/** Let the browser save a Blob. */
export function download(doc, blob, name) {
  const url = URL.createObjectURL(blob);
  const link = doc.createElement("a");
  link.href = url;
  link.download = name;
  link.style.display = "none";
  doc.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
