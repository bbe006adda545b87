// The places of the look that the paper has: circles, and the text on the edges between them, left to right. Pure.
// Not here: what is drawn (choose.js), how it looks (shapes.js).

import { hierarchy, tree } from "d3-hierarchy";

export const MAX_DRAWN = 40; // more than that, and the texts leave no room for the picture
const BEND = 26; // the curved part of an edge, before the text on it

/**
 * @param {object[]} drawn  of choose.js, each after its parent
 * @param {Map<string, {w: number, h: number}>} sizes  of the text on the edge to each part, by key
 *   radius  of the circles;  gap  between two rows
 * @returns {{spots: Map<string, object>, boxes: Map<string, {x, y, w, h}>, root: {x: number, y: number}, width: number, height: number}}
 *   a spot has the middle of the circle (x, y), where its edge begins (x0, y0), and where the text on it does (left);
 *   its box has the circle and the text
 */
export function paper(drawn, sizes, { radius, gap }) {
  const size_of = ({ data }) => sizes.get(data.key) ?? { w: 0, h: 0 }; // the root has no edge
  // How far a circle with its text reaches up from its middle: the text stands on the edge.
  const above = (at) => Math.max(radius, size_of(at).h);
  const layout = tree().nodeSize([1, 1]).separation((a, b) => radius + Math.max(above(a), above(b)) + gap);
  const all = [...layout(hierarchy({ below: drawn.filter(({ depth }) => depth === 0) }, ({ below }) => below))];
  const least = Math.min(...all.map((at) => at.x - above(at)));
  const y_of = (at) => at.x - least + gap;
  const columns = columns_of(all, size_of, radius);
  const [spots, boxes] = [new Map(), new Map()];
  for (const at of all.slice(1)) {
    const { data: { key }, depth, parent } = at;
    const [x, y, x0] = [columns[depth], y_of(at), columns[depth - 1] + radius];
    const left = x0 + BEND;
    spots.set(key, { x, y, x0, y0: y_of(parent), left, ...size_of(at) });
    boxes.set(key, { x: left, y: y - above(at), w: x + radius - left, h: above(at) + radius });
  }
  const height = Math.max(...all.map(y_of)) + radius + gap;
  return { spots, boxes, root: { x: columns[0], y: y_of(all[0]) }, width: columns.at(-1) + radius + 6, height };
}

/** The x of the circles at each depth: as wide as the widest text before them. */
function columns_of(all, size_of, radius) {
  const wide = [];
  for (const at of all) wide[at.depth] = Math.max(wide[at.depth] ?? 0, size_of(at).w);
  let x = radius + 4;
  return wide.map((w, depth) => (depth === 0 ? x : (x += BEND + w + 2 * radius + 8)));
}
