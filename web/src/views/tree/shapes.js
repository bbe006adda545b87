// How a node looks, as a picture for svg.js: a box of the icicle, or a circle with its edge as the paper draws it.
// Not here: places (icicle.js, paper.js), colours (css.js).

import { fold_words } from "./choose.js";
import { label_of, mark_of, spoken } from "./signs.js";
import { highlighted } from "../../parts/highlight.js";
import { fit, width_of, wrap } from "../../parts/text.js";

export const LINE = 14; // pixels from line to line
export const RADIUS = 15;
const PAD = 6;
const COLUMNS = 18, ROWS = 2; // the most of a text on an edge
const NARROW = 7, TALL = 70; // letters and pixels: where a text is turned

/**
 * What pictures are made with.
 * @typedef {object} Scene
 * @property {object} view  @property {object} marks  @property {number} char  the width of a character in pixels
 * @property {string} prefix  of the ids of elements
 * @property {string|null} selected  @property {string|null} active  keys
 * @property {Set<number>} path  ids of the request that stands out; empty: none does
 * @property {Set<number>} found  @property {number|null} found_at  what the search has found, and where it stands
 * @property {string} query
 * @property {Set<number>} named  ids in the sentence below
 * @property {Map<string, number>} n_found  in folds, by key
 * @property {Map<string, object>} places  in the tree: {level, index, count, expanded}
 */

/** One box of the icicle. It is drawn at the origin and moved, so that one that only moves is not drawn again. */
export function box(scene, part, { x, y, w, h }) {
  const mark = part.item === null ? null : signed(scene, part.item);
  const [wide, high] = [Math.max(w - 2, 1), h - 2];
  const rect = (inset, cls) => {
    if (wide <= 2 * inset || high <= 2 * inset) return ["path", { d: "M0 0" }];
    const style = cls === "fill" ? hatched(scene, mark) : undefined;
    return ["rect", { class: cls, x: inset, y: inset, width: r1(wide - 2 * inset), height: r1(high - 2 * inset), rx: 3, style }];
  };
  const children = [rect(0, "paper"), rect(0, "fill")];
  if (part.item !== null && part.item.node.locks > 0) children.push(rect(3, "inner"));
  if (mark !== null && mark.look !== "old") children.push(["rect", { class: "stripe", width: Math.min(4, wide), height: r1(high) }]);
  children.push(...(part.item === null ? fold_text(scene, part, w) : box_text(scene, part, mark, w, h)));
  return group(scene, part, mark, children, `translate(${r1(x + 0.5)} ${r1(y + 1)})`);
}

function box_text(scene, part, mark, w, h) {
  const room = Math.floor((w - 2 * PAD - 2) / scene.char);
  if (room < NARROW && h >= TALL) return turned(scene, part, mark, w, h);
  const sign = room >= width_of(mark.sign) ? mark.sign : mark.sign.slice(0, 1);
  const taken = sign ? width_of(sign) + 1 : 0;
  const n_lines = Math.max(1, Math.min(12, Math.floor((h - 12) / LINE)));
  const label = label_of(scene.view, part.item, room * n_lines + 8);
  const lines = room - taken >= 2 ? wrap(label, room, n_lines, taken) : [];
  return texts(scene, sign, lines, PAD + 1, h < 2 * LINE + 12 ? h / 2 + 3 : LINE + 3);
}

/** The mark of an item; one that is named has its id before the sign. */
function signed(scene, item) {
  const mark = mark_of(scene.marks, item);
  return scene.named.has(item.id) ? { ...mark, sign: `#${item.id} ${mark.sign}`.trimEnd() } : mark;
}

/** In a narrow and tall box the text runs down. */
function turned(scene, part, mark, w, h) {
  const room = Math.floor((h - 2 * PAD - 4) / scene.char);
  const taken = mark.sign ? width_of(mark.sign) + 1 : 0;
  const lines = wrap(label_of(scene.view, part.item, room + 8), room, 1, taken);
  const middle = [r1(w / 2 - 5), PAD + 1];
  return [["g", { class: "turned", transform: `rotate(90 ${middle.join(" ")})` }, ...texts(scene, mark.sign, lines, ...middle)]];
}

function fold_text(scene, part, w) {
  const n = scene.n_found.get(part.key) ?? 0;
  const words = fold_words(part) + (n ? ` · ${n} found` : "");
  const room = Math.floor((w - PAD - 4) / scene.char);
  const short = words.length <= room ? words : `+${part.n_nodes}${n ? ` ⌕${n}` : ""}`;
  return [["text", { x: PAD, y: 16 }, fit(short, Math.max(room, 2))]];
}

/** The sign, bold, and the lines of a text; what was searched for is underlined. */
function texts(scene, sign, lines, x, y, anchor = undefined) {
  const made = [];
  const n = Math.max(lines.length, sign ? 1 : 0);
  for (let i = 0; i < n; i += 1) {
    const spans = i === 0 && sign ? [["tspan", { class: "sign" }, sign], ...(lines.length ? [" "] : [])] : [];
    made.push(["text", { x: r1(x), y: r1(y + i * LINE), "text-anchor": anchor }, ...spans, ...highlighted(lines[i] ?? "", scene.query)]);
  }
  return made;
}

/** The lines on the edge to a part, and the room they take. */
export function edge_text(scene, part) {
  const label = part.item === null ? "" : label_of(scene.view, part.item, COLUMNS * ROWS + 8);
  const lines = part.item === null ? [] : wrap(label, COLUMNS, ROWS);
  const w = part.item === null ? fold_words(part).length * scene.char + 12 : Math.max(...lines.map(width_of), 2) * scene.char + 6;
  return { w, h: lines.length * LINE + 4, lines };
}

/** A circle and the edge to it; the middle of the circle is the origin. */
export function circle(scene, part, spot) {
  const [x0, y0, left] = [spot.x0 - spot.x, spot.y0 - spot.y, spot.left - spot.x];
  const at = `translate(${r1(spot.x)} ${r1(spot.y)})`;
  const edge = (to) => ["path", { class: "edge", d: `M${r1(x0)} ${r1(y0)}C${r1(x0 + 14)} ${r1(y0)} ${r1(left - 14)} 0 ${r1(left)} 0H${r1(to)}` }];
  if (part.item === null) {
    const rect = (cls) => ["rect", { class: cls, x: r1(left), y: -11, width: r1(spot.w), height: 22, rx: 8 }];
    return group(scene, part, null, [edge(left), rect("paper"), rect("fill"), ["text", { x: r1(left + 6), y: 4 }, fold_words(part)]], at);
  }
  const mark = mark_of(scene.marks, part.item);
  const ring = (cls, r) => ["circle", { class: cls, r, style: cls === "fill" ? hatched(scene, mark) : undefined }];
  const rings = [ring("paper", RADIUS), ring("fill", RADIUS), ...(part.item.node.locks > 0 ? [ring("inner", RADIUS - 3)] : [])];
  const words = scene.named.has(part.item.id) ? `#${part.item.id}` : String(part.n_tokens);
  const count = ["text", { y: mark.sign ? 10 : 4, "text-anchor": "middle", class: "small" }, fit(words, 5)];
  const sign = mark.sign ? [["text", { y: -1, "text-anchor": "middle", class: "sign small" }, mark.sign]] : [];
  const lines = texts(scene, "", spot.lines, left + 2, -6 - (spot.lines.length - 1) * LINE);
  return group(scene, part, mark, [edge(-RADIUS), ...rings, ...sign, count, ...lines], at);
}

/** The circle of the root. */
export function root_circle({ x, y }) {
  return ["g", { class: "node old", "aria-hidden": "true" }, ["circle", { class: "fill", cx: r1(x), cy: r1(y), r: RADIUS }],
    ["text", { x: r1(x), y: r1(y + 4), "text-anchor": "middle", class: "small" }, "root"]];
}

function group(scene, part, mark, children, transform) {
  const id = part.item === null ? null : part.item.id;
  const is_found = part.item === null ? scene.n_found.has(part.key) : scene.found.has(id);
  const classes = ["node", mark === null ? "fold" : mark.look];
  if (part.key === scene.selected) classes.push("selected");
  if (part.key === scene.active) classes.push("active");
  if (scene.named.has(id)) classes.push("named");
  if (is_found) classes.push(id !== null && id === scene.found_at ? "found here" : "found");
  if (scene.path.size) classes.push(scene.path.has(id) ? "on" : "off");
  const { level, index, count, expanded } = scene.places.get(part.key);
  return ["g", {
    class: classes.join(" "), transform, "data-key": part.key, id: scene.prefix + part.key, role: "treeitem",
    "aria-level": level, "aria-posinset": index, "aria-setsize": count,
    "aria-expanded": expanded === null ? undefined : String(expanded),
    "aria-selected": String(part.key === scene.selected), "aria-label": spoken(scene.view, scene.marks, part),
  }, ...children];
}

/** The hatching that boxes of nodes that are gone are filled with. */
export function hatching(prefix) {
  const lines = ["path", { class: "hatch", d: "M-1 7L7 -1M-1 1L1 -1M5 7L7 5" }];
  return ["defs", {}, ["pattern", { id: `${prefix}hatch`, width: 6, height: 6, patternUnits: "userSpaceOnUse" }, lines]];
}

const hatched = (scene, mark) => (mark !== null && mark.look === "gone" ? `fill:url(#${scene.prefix}hatch)` : undefined);

const r1 = (number) => Math.round(number * 10) / 10;
