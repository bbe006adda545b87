// Moving through what is drawn with keys, as an ARIA tree has it: left and right go to the parent and to the first
// child, up and down along the siblings (and on to those of the parent at their ends). Pure.
// Not here: unfolding (wish.js): a fold is an item too, so every node can be reached.

/** The parts below each item, by its id, in their order. */
export function families_of(drawn) {
  const families = new Map();
  for (const part of drawn) (families.get(part.parent.id) ?? families.set(part.parent.id, []).get(part.parent.id)).push(part);
  return families;
}

/** The place of each part among its siblings: key -> {level, index, count, expanded}; false where all below is folded away. */
export function places(drawn) {
  const families = families_of(drawn);
  const expanded = (item) => item !== null && (families.get(item.id)?.some((child) => child.item !== null) ?? null); // null: nothing is below
  const place = ({ key, depth, item }, i, family) => [key, { level: depth + 1, index: i + 1, count: family.length, expanded: expanded(item) }];
  return new Map([...families.values()].flatMap((family) => family.map(place)));
}

/** The key that `name` (a KeyboardEvent's key) leads to from `key`, or null where the key is for something else. */
export function moved(drawn, key, name) {
  const at = drawn.findIndex((part) => part.key === key);
  const is_first = name === "Home" || (at < 0 && MOVES.has(name));
  return drawn[is_first ? 0 : name === "End" ? drawn.length - 1 : (MOVES.get(name)?.(drawn, at) ?? -1)]?.key ?? null;
}

/** From `at` on, by steps of `way`, the first part that is no deeper: a sibling, or its parent or what comes after that. */
const beside = (way) => (drawn, at) => {
  let i = at + way;
  while (drawn[i]?.depth > drawn[at].depth) i += way;
  return drawn[i] === undefined ? at : i;
};

const parent_of = (drawn, at) => {
  const i = drawn.findIndex(({ item }) => item !== null && item === drawn[at].parent);
  return i < 0 ? at : i;
};

const first_child = (drawn, at) => (drawn[at + 1]?.depth > drawn[at].depth ? at + 1 : at);

const MOVES = new Map([["ArrowLeft", parent_of], ["ArrowRight", first_child], ["ArrowUp", beside(-1)], ["ArrowDown", beside(1)]]);
