// The places of an icicle, left to right as a prompt reads: width is tokens, height is leaves, so that area reads as
// KV memory. Every node is at least `least` wide, so that a short answer after a long prompt can be seen and hit. Pure.
// Not here: what is drawn (choose.js), how a box looks (shapes.js).

import { largest } from "../../parts/largest.js";

/**
 * @param {object[]} drawn  of choose.js, each after its parent
 *   width  what there is in pixels;  row  the height of a leaf;  least  the least width of a node;  fold  the width of a fold
 * @returns {{boxes: Map<string, {x, y, w, h}>, width: number, height: number, scale: number}} scale is pixels for each token
 */
export function icicle(drawn, { width, row, least, fold }) {
  /** Where each part begins (x, where its parent ends) and how wide it is (w); and where the last of them ends. */
  const columns = (scale) => {
    const ends = [0]; // by depth
    let right = 0;
    const spans = drawn.map(({ item, depth, n_tokens }) => {
      const [x, w] = [ends[depth], item === null ? fold : Math.max(least, n_tokens * scale)];
      ends[depth + 1] = x + w;
      right = Math.max(right, x + w);
      return { x, w };
    });
    return { spans, right };
  };
  const scale = largest((scale) => columns(scale).right <= width, width, 1e-9);
  const { spans, right } = columns(scale);
  const rows = new Map(); // how many each takes: those of what is drawn below it
  for (const part of drawn.toReversed()) rows.set(part, part.below.reduce((n, each) => n + rows.get(each), 0) || 1);
  const boxes = new Map();
  let y = 0;
  drawn.forEach((part, i) => {
    boxes.set(part.key, { ...spans[i], y, h: rows.get(part) * row });
    if (!part.below.length) y += row;
  });
  return { boxes, width: right, height: y, scale };
}
