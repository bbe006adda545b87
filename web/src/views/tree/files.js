// Saving what is shown: from the format's name to a download. Not here: the formats themselves (save.js).

import { PICTURE } from "./css.js";
import { dot_of, download, json_of, png_of, svg_source } from "./save.js";
import { hatching } from "./shapes.js";

const COLOURS = ["bg", "fg", "new", "hit", "gone", "old", "found"];

/** `shown` has view, marks and picture; `element` is on the page, and has the colours of its theme. */
export async function save(element, prefix, shown, format) {
  const doc = element.ownerDocument;
  const { view, marks, picture } = shown;
  const name = `radix-tree-${view.seq}.${format.toLowerCase()}`;
  if (format === "JSON") return download(doc, text_blob(JSON.stringify(json_of(view, marks, picture.drawn), null, 1), "application/json"), name);
  if (format === "DOT") return download(doc, text_blob(dot_of(view, marks, picture.drawn), "text/vnd.graphviz"), name);
  const { width, height } = picture;
  const colours = colours_of(element);
  const style = Object.entries(colours)
    .reduce((css, [key, value]) => css.replaceAll(`var(--t-${key})`, value), PICTURE)
    .replaceAll("var(--t-mono)", 'Menlo,Consolas,"DejaVu Sans Mono",monospace');
  const pictures = picture.pictures.map(([, one]) => one);
  const source = svg_source({ pictures, width, height, style, defs: [hatching(prefix)], background: colours.bg });
  if (format === "SVG") return download(doc, text_blob(source, "image/svg+xml"), name);
  return download(doc, await png_of(doc, source, width, height), name);
}

const text_blob = (text, type) => new Blob([text], { type });

/** The colours as the page has them now, as plain rgb. */
function colours_of(element) {
  const probe = element.ownerDocument.createElement("span");
  element.append(probe);
  const found = {};
  for (const name of COLOURS) {
    probe.style.color = `var(--t-${name})`;
    found[name] = plain_colour(element.ownerDocument, getComputedStyle(probe).color);
  }
  probe.remove();
  return found;
}

/** Viewers of SVG know rgb(), but not what browsers make of color-mix(): let a canvas say it. */
function plain_colour(doc, colour) {
  const canvas = doc.createElement("canvas");
  canvas.width = canvas.height = 1;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  const [r, g, b] = context.getImageData(0, 0, 1, 1).data;
  return `rgb(${r},${g},${b})`;
}
