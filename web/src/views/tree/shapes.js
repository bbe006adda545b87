// How a node looks, as a picture for svg.js: a box of the icicle, or a circle with its edge as the paper draws it.
// Not here: places (icicle.js, paper.js), colours (css.js).

import { amount, label_of, mark_of, spoken } from "./signs.js";
import { highlighted } from "../../parts/highlight.js";
import { fit, width_of, wrap } from "../../parts/text.js";

const LINE = 14; // pixels from line to line
export const RADIUS = 15;
const PAD = 6;
const COLUMNS = 18, ROWS = 2; // the most of a text on an edge
const NARROW = 7, TALL = 70; // letters and pixels: where a text is turned

/**
 * What pictures are made with.
 * @typedef {object} Scene
 *   view, query;  char  the width of a letter in pixels;  prefix  of the ids of elements
 *   selected, active, here  keys, the last of where the search stands
 *   path, named, found  Maps from a key to how many nodes stand out, are in the sentence below, are what the search has
 *     found: more than one in a fold, which looks like what is in it
 */

/** One box of the icicle. It is drawn at the origin and moved, so that one that only moves is not drawn again. */
export function box(scene, part, { x, y, w, h }) {
  const { item } = part;
  const { look, sign } = mark_of(item);
  const [wide, high] = [Math.max(w - 2, 1), h - 2];
  const stripe = "new hit gone".includes(look) ? [["rect", { class: "stripe", width: Math.min(4, wide), height: r1(high) }]] : [];
  const lines = item === null ? fold_text(scene, part, w) : box_text(scene, part, sign, w, h);
  return group(scene, part, look, [...panes(scene.prefix, look, item, wide, high), ...stripe, ...lines], x + 0.5, y + 1);
}

/** The layers of a rectangle. */
export function panes(prefix, look, item, wide, high) {
  const inset = (by) => ({ x: by, y: by, width: r1(Math.max(wide - 2 * by, 0)), height: r1(Math.max(high - 2 * by, 0)), rx: 3 });
  return layers(prefix, look, item, "rect", inset(0), inset(3));
}

/** Paper, colour, and a second line of what is locked. */
function layers(prefix, look, item, tag, size, inner) {
  const style = look === "gone" ? `fill:url(#${prefix}hatch)` : undefined;
  const ring = item?.node.locks > 0 ? [[tag, { class: "inner", ...inner }]] : [];
  return [[tag, { class: "paper", ...size }], [tag, { class: "fill", ...size, style }], ...ring];
}

function box_text(scene, { key, item }, mark, w, h) {
  const whole = scene.named.has(key) ? `#${key} ${mark}`.trimEnd() : mark;
  const cells_in = (pixels) => Math.floor((pixels - 2 * PAD) / scene.char);
  const is_turned = cells_in(w - 2) < NARROW && h >= TALL; // in a narrow and tall box the text runs down
  const room = cells_in(is_turned ? h - 4 : w - 2);
  const sign = room >= width_of(whole) ? whole : whole.slice(0, 1);
  const taken = sign ? width_of(sign) + 1 : 0;
  const n_lines = is_turned ? 1 : Math.max(1, Math.min(12, Math.floor((h - 12) / LINE)));
  const lines = room - taken >= 2 ? wrap(label_of(scene.view, item, room * n_lines + 8), room, n_lines, taken) : [];
  if (!is_turned) return texts(scene, sign, lines, PAD + 1, h < 2 * LINE + 12 ? h / 2 + 3 : LINE + 3);
  const middle = [r1(w / 2 - 5), PAD + 1];
  return [["g", { class: "turned", transform: `rotate(90 ${middle.join(" ")})` }, ...texts(scene, sign, lines, ...middle)]];
}

function fold_text(scene, part, w) {
  const room = Math.floor((w - PAD - 4) / scene.char);
  const words = folded(scene, part);
  return [["text", { x: PAD, y: 16 }, fit(words.length <= room ? words : folded(scene, part, `+${part.n_nodes}`), Math.max(room, 2))]];
}

/** What is folded away, and how much of it the search has found. */
function folded({ found }, part, words = `+${amount(part)}`) {
  return words + (found.has(part.key) ? `, ${found.get(part.key)} found` : "");
}

/** The sign, bold, and the lines of a text; what was searched for is underlined. */
function texts(scene, sign, lines, x, y) {
  const first = sign ? [["tspan", { class: "sign" }, sign], ...(lines.length ? [" "] : [])] : [];
  const rows = sign && !lines.length ? [""] : lines;
  return rows.map((line, i) => ["text", { x: r1(x), y: r1(y + i * LINE) }, ...(i ? [] : first), ...highlighted(line, scene.query)]);
}

/** The lines on the edge to a part, and the room they take. */
export function edge_text(scene, part) {
  const { item } = part;
  if (item === null) return { w: folded(scene, part).length * scene.char + 12, h: 4, lines: [] };
  const lines = wrap(label_of(scene.view, item, COLUMNS * ROWS + 8), COLUMNS, ROWS);
  return { w: Math.max(...lines.map(width_of), 2) * scene.char + 6, h: lines.length * LINE + 4, lines };
}

/** A circle and the edge to it; the middle of the circle is the origin. */
export function circle(scene, part, { x, y, w, lines, ...spot }) {
  const { key, item, n_tokens } = part;
  const [x0, y0, left] = [r1(spot.x0 - x), r1(spot.y0 - y), r1(spot.left - x)];
  const { look, sign } = mark_of(item);
  const shape = (...sizes) => layers(scene.prefix, look, item, ...sizes);
  const edge = ["path", { class: "edge", d: `M${x0} ${y0}C${r1(x0 + 14)} ${y0} ${r1(left - 14)} 0 ${left} 0H${item === null ? left : -RADIUS}` }];
  const rest = item === null
    ? [...shape("rect", { x: left, y: -11, width: r1(w), height: 22, rx: 8 }), ["text", { x: r1(left + 6), y: 4 }, folded(scene, part)]]
    : [...shape("circle", { r: RADIUS }, { r: RADIUS - 3 }), ...(sign ? [centred(sign, -1, "sign small")] : []),
      centred(fit(scene.named.has(key) ? `#${key}` : String(n_tokens), 5), sign ? 10 : 4),
      ...texts(scene, "", lines, left + 2, -6 - (lines.length - 1) * LINE)];
  return group(scene, part, look, [edge, ...rest], x, y);
}

export function root_circle({ x, y }) {
  return ["g", { class: "node old", transform: `translate(${r1(x)} ${r1(y)})`, "aria-hidden": "true" }, ["circle", { class: "fill", r: RADIUS }], centred("root", 4)];
}

const centred = (text, y, look = "small") => ["text", { y, "text-anchor": "middle", class: look }, text];

function group({ view, prefix, selected, active, named, found, here, path }, part, look, children, x, y) {
  const { key, depth, family, below } = part;
  const classes = {
    [look]: true, selected: key === selected, active: key === active, named: named.has(key), found: found.has(key), here: key === here,
    on: path.has(key), off: path.size && !path.has(key),
  };
  return ["g", {
    class: ["node", ...Object.keys(classes).filter((name) => classes[name])].join(" "), transform: `translate(${r1(x)} ${r1(y)})`,
    "data-key": key, id: prefix + key, role: "treeitem", "aria-level": depth + 1, "aria-posinset": family.indexOf(part) + 1, "aria-setsize": family.length,
    "aria-expanded": below.length ? below.some(({ item }) => item !== null) : undefined, // false where all below is folded away
    "aria-selected": key === selected, "aria-label": spoken(view, part),
  }, ...children];
}

/** The hatching of nodes that are gone. */
export function hatching(prefix) {
  const lines = ["path", { class: "hatch", d: "M-1 7L7 -1M-1 1L1 -1M5 7L7 5" }];
  return ["defs", {}, ["pattern", { id: `${prefix}hatch`, width: 6, height: 6, patternUnits: "userSpaceOnUse" }, lines]];
}

const r1 = (number) => Math.round(number * 10) / 10;
