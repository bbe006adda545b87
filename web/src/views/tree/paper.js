// The places of the look that the paper has: circles, and the text on the edges between them, left to right. Pure.
// Not here: what is drawn (choose.js), how it looks (shapes.js).

import { hierarchy, tree } from "d3-hierarchy";
import { families_of } from "./keys.js";

export const MAX_DRAWN = 40; // more than that, and the texts leave no room for the picture
const BEND = 26; // the curved part of an edge, before the text on it

/**
 * @param {object[]} drawn  of choose.js, each after its parent
 * @param {(part: object) => {w: number, h: number}} size of the text on the edge to a part
 *   radius  of the circles;  gap  between two rows
 * @returns {{spots: Map<string, object>, root: {x: number, y: number}, width: number, height: number}}
 *   a spot has the middle of the circle (x, y), where its edge begins (x0, y0), and where the text on it does (left)
 */
export function paper(drawn, size, { radius, gap }) {
  const sizes = new Map(drawn.map((part) => [part.key, size(part)]));
  const families = families_of(drawn);
  const children = ({ id }) => families.get(id)?.map(({ key, item }) => ({ key, id: item?.id }));
  // How far a circle with its text reaches up from its middle: the text stands on the edge.
  const above = ({ data }) => Math.max(radius, sizes.get(data.key)?.h ?? 0);
  const layout = tree().nodeSize([1, 1]).separation((a, b) => radius + Math.max(above(a), above(b)) + gap);
  const all = [...layout(hierarchy({ id: drawn[0]?.parent.id }, children))];
  const least = Math.min(...all.map((at) => at.x - above(at)));
  const y_of = (at) => at.x - least + gap;
  const columns = columns_of(all, sizes, radius);
  const spots = new Map();
  for (const at of all.slice(1)) {
    const [x0, y0] = [columns[at.depth - 1] + radius, y_of(at.parent)];
    spots.set(at.data.key, { x: columns[at.depth], y: y_of(at), x0, y0, left: x0 + BEND, ...sizes.get(at.data.key) });
  }
  const [width, height] = [columns.at(-1) + radius + 6, Math.max(...all.map(y_of)) + radius + gap];
  return { spots, root: { x: columns[0], y: y_of(all[0]) }, width, height };
}

/** The x of the circles at each depth: as wide as the widest text before them. */
function columns_of(all, sizes, radius) {
  const wide = [];
  for (const { depth, data } of all) wide[depth] = Math.max(wide[depth] ?? 0, sizes.get(data.key)?.w ?? 0);
  let x = radius + 4;
  return wide.map((w, depth) => (depth === 0 ? x : (x += BEND + w + 2 * radius + 8)));
}
