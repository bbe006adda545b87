// The places of an icicle, left to right as a prompt reads: width is tokens, height is leaves, so that area reads as
// KV memory. Every node is at least `least` wide, so that a short answer after a long prompt can be seen and hit. Pure.
// Not here: what is drawn (choose.js), how a box looks (shapes.js).

/** @typedef {{x: number, y: number, w: number, h: number}} Box */

/**
 * @param {import("./choose.js").Drawn[]} drawn each after its parent
 *   width  what there is in pixels;  row  the height of a leaf;  least  the least width of a node;  fold  the width of a fold
 * @returns {{boxes: Map<string, Box>, width: number, height: number, scale: number}} scale is pixels for each token
 */
export function icicle(drawn, { width, row, least, fold }) {
  const scale = scale_for(drawn, width, least, fold);
  const rows = rows_of(drawn);
  const boxes = new Map();
  const ends = new Map(); // where the children of an item begin: x, and the row of the next one
  let right = 0;
  for (const part of drawn) {
    const above = ends.get(part.parent.id) ?? ends.set(part.parent.id, { x: 0, row: 0 }).get(part.parent.id);
    const w = part.item === null ? fold : Math.max(least, part.n_tokens * scale);
    const n_rows = rows.get(part.key);
    boxes.set(part.key, { x: above.x, y: above.row * row, w, h: n_rows * row });
    if (part.item !== null) ends.set(part.item.id, { x: above.x + w, row: above.row });
    above.row += n_rows;
    right = Math.max(right, above.x + w);
  }
  const n_rows = drawn.length ? ends.get(drawn[0].parent.id).row : 0;
  return { boxes, width: right, height: n_rows * row, scale };
}

/** How many rows each takes: those of what is drawn below it. */
function rows_of(drawn) {
  const below = new Map(); // rows below an item's id
  const rows = new Map();
  for (let i = drawn.length - 1; i >= 0; i -= 1) {
    const { key, item, parent } = drawn[i];
    const n = item === null ? 1 : below.get(item.id) || 1;
    rows.set(key, n);
    below.set(parent.id, (below.get(parent.id) ?? 0) + n);
  }
  return rows;
}

/** The largest scale at which all of it fits in the width; as good as 0 where the least widths alone do not. */
function scale_for(drawn, width, least, fold) {
  let [low, high] = [0, width];
  if (right_at(drawn, high, least, fold) <= width) return high;
  for (let i = 0; i < 40; i += 1) {
    const scale = (low + high) / 2;
    if (right_at(drawn, scale, least, fold) <= width) low = scale;
    else high = scale;
  }
  return low;
}

function right_at(drawn, scale, least, fold) {
  const ends = new Map();
  let right = 0;
  for (const { item, parent, n_tokens } of drawn) {
    const end = (ends.get(parent.id) ?? 0) + (item === null ? fold : Math.max(least, n_tokens * scale));
    if (item !== null) ends.set(item.id, end);
    if (end > right) right = end;
  }
  return right;
}
