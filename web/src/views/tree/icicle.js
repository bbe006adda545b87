// The places of an icicle, left to right as a prompt reads: width is tokens, height is leaves, so that area reads as
// KV memory. Every node is at least `least` wide, so that a short answer after a long prompt can be seen and hit. Pure.
// Not here: what is drawn (choose.js), how a box looks (shapes.js).

/**
 * @param {object[]} drawn  of choose.js, each after its parent
 *   width  what there is in pixels;  row  the height of a leaf;  least  the least width of a node;  fold  the width of a fold
 * @returns {{boxes: Map<string, {x, y, w, h}>, width: number, height: number, scale: number}} scale is pixels for each token
 */
export function icicle(drawn, { width, row, least, fold }) {
  const wide_at = (scale) => ({ item, n_tokens }) => (item === null ? fold : Math.max(least, n_tokens * scale));
  const scale = largest((scale) => right_of(drawn, wide_at(scale)) <= width, width);
  const wide = wide_at(scale);
  const rows = rows_of(drawn);
  const boxes = new Map();
  const ends = new Map(); // by an item's id, where what is below it begins: x, and the y of the next one
  for (const part of drawn) {
    const above = ends.get(part.parent.id) ?? ends.set(part.parent.id, { x: 0, y: 0 }).get(part.parent.id);
    const box = { ...above, w: wide(part), h: rows.get(part.key) * row };
    boxes.set(part.key, box);
    if (part.item !== null) ends.set(part.item.id, { x: box.x + box.w, y: box.y });
    above.y += box.h;
  }
  return { boxes, width: right_of(drawn, wide), height: ends.get(drawn[0]?.parent.id)?.y ?? 0, scale };
}

/** How many rows each takes: those of what is drawn below it. */
function rows_of(drawn) {
  const below = new Map(); // by an item's id
  return new Map(drawn.toReversed().map(({ key, item, parent }) => {
    const n = below.get(item?.id) ?? 1;
    below.set(parent.id, (below.get(parent.id) ?? 0) + n);
    return [key, n];
  }));
}

/** The largest value up to `most` that fits; as good as 0 where none does. */
function largest(fits, most) {
  if (fits(most)) return most;
  let [low, high] = [0, most];
  for (let i = 0; i < 40; i += 1) {
    const middle = (low + high) / 2;
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}

function right_of(drawn, wide) {
  const ends = new Map();
  let right = 0;
  for (const part of drawn) {
    const end = (ends.get(part.parent.id) ?? 0) + wide(part);
    if (part.item !== null) ends.set(part.item.id, end);
    if (end > right) right = end;
  }
  return right;
}
