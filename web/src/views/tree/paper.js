// The places of the look that the paper has: circles, and the text on the edges between them, left to right. Pure.
// Not here: what is drawn (choose.js), how it looks (shapes.js).

import { hierarchy, tree } from "d3-hierarchy";

export const MAX_DRAWN = 40; // more than that, and the texts leave no room for the picture
const BEND = 26; // the curved part of an edge, before the text on it

/**
 * @param {import("./choose.js").Drawn[]} drawn each after its parent
 * @param {(part: object) => {w: number, h: number}} size of the text on the edge to a part
 *   radius  of the circles;  gap  between two rows
 * @returns {{spots: Map<string, object>, root: {x: number, y: number}, width: number, height: number}}
 *   a spot has the middle of the circle (x, y), where its edge begins (x0, y0), and where the text on it does (left)
 */
export function paper(drawn, size, { radius, gap }) {
  const sizes = new Map(drawn.map((part) => [part.key, size(part)]));
  const below = new Map();
  for (const part of drawn) below.set(part.parent.id, [...(below.get(part.parent.id) ?? []), part]);
  const above = drawn.length ? drawn[0].parent.id : 0;
  const data = { key: "root", below: above };
  const layout = tree()
    .nodeSize([1, 1])
    .separation((a, b) => radius + Math.max(above_of(a, sizes, radius), above_of(b, sizes, radius)) + gap);
  const top = layout(hierarchy(data, (at) => (below.get(at.below) ?? []).map(child_of)));
  const columns = columns_of(top, sizes, radius);
  return places(top, columns, sizes, radius, gap);
}

const child_of = (part) => ({ key: part.key, part, below: part.item === null ? "nothing" : part.item.id });

/** How far a circle with its text reaches up from its middle: the text stands on the edge. */
const above_of = (at, sizes, radius) => Math.max(radius, sizes.get(at.data.key)?.h ?? 0);

/** The x of the circles at each depth: as wide as the widest text before them. */
function columns_of(top, sizes, radius) {
  const wide = [];
  top.each((at) => (wide[at.depth] = Math.max(wide[at.depth] ?? 0, sizes.get(at.data.key)?.w ?? 0)));
  let x = radius + 4;
  return wide.map((w, depth) => (depth === 0 ? x : (x += BEND + w + 2 * radius + 8)));
}

function places(top, columns, sizes, radius, gap) {
  let [least, most] = [Infinity, -Infinity];
  top.each((at) => {
    least = Math.min(least, at.x - above_of(at, sizes, radius));
    most = Math.max(most, at.x + radius);
  });
  const y_of = (at) => at.x - least + gap;
  const spots = new Map();
  top.each((at) => {
    if (at.parent === null) return;
    const [x0, y0] = [columns[at.depth - 1] + radius, y_of(at.parent)];
    spots.set(at.data.key, { x: columns[at.depth], y: y_of(at), x0, y0, left: x0 + BEND, ...sizes.get(at.data.key) });
  });
  const right = Math.max(...[...spots.values()].map((spot) => spot.x + radius), radius * 2);
  return { spots, root: { x: columns[0], y: y_of(top) }, width: right + 6, height: most - least + 2 * gap };
}
