// Pictures and texts as files that the browser saves.
//
// Not here: what is in them (the views).

import { to_text } from "./svg.js";

const MAX_PIXELS = 8192; // of a canvas, each way
const TYPES = { SVG: "image/svg+xml", JSON: "application/json", DOT: "text/vnd.graphviz" };

/** SVG source of pictures (svg.js); `style` is CSS with plain colours, `defs` are pictures that others refer to. */
export function svg_source({ title, pictures, width, height, style, defs, background }) {
  const [w, h] = [Math.ceil(width), Math.ceil(height)];
  return to_text(["svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${w} ${h}`, width: w, height: h },
    ["title", {}, title], ["style", {}, style], ...defs, ["rect", { width: w, height: h, fill: background }],
    ["g", { class: "nodes" }, ...pictures.map(bare)]]);
}

/** Without what only a page needs; what a screen reader says becomes the title. */
function bare([tag, attributes, ...children]) {
  const title = attributes["aria-label"] ? [["title", {}, attributes["aria-label"]]] : [];
  return [tag, { class: attributes.class, transform: attributes.transform }, ...title, ...children];
}

/** CSS with its variables --nbs-* as plain colours, those of an element of a page. */
export function with_colours(element, css) {
  const doc = element.ownerDocument;
  const probe = doc.createElement("span");
  element.append(probe);
  const plain = css.replaceAll("var(--nbs-mono)", 'Menlo,Consolas,"DejaVu Sans Mono",monospace').replace(/var\(--nbs-[a-z]+\)/g, (name) => {
    probe.style.color = name;
    return plain_colour(doc, doc.defaultView.getComputedStyle(probe).color);
  });
  probe.remove();
  return plain;
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

/** Let the browser save a text of this format, or a Blob. */
export function download(doc, what, name, format) {
  const url = URL.createObjectURL(typeof what === "string" ? new Blob([what], { type: TYPES[format] }) : what);
  const link = doc.createElement("a");
  link.href = url;
  link.download = `${name}.${format.toLowerCase()}`;
  link.style.display = "none";
  doc.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
