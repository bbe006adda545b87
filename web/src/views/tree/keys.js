// Moving through what is drawn with keys, as an ARIA tree has it: left and right go to the parent and to the first
// child, up and down along the siblings (and on to those of the parent at their ends). Pure.
// Not here: unfolding (index.js): a fold is an item too, so every node can be reached.

/** The place of each part among its siblings: key -> {level, index, count, expanded, row}. */
export function places(drawn) {
  const families = new Map();
  for (const part of drawn) families.set(part.parent.id, [...(families.get(part.parent.id) ?? []), part]);
  const found = new Map();
  drawn.forEach((part, row) => {
    const family = families.get(part.parent.id);
    found.set(part.key, { level: part.depth + 1, index: 0, count: family.length, expanded: expanded(part, families), row });
  });
  for (const family of families.values()) family.forEach((part, i) => (found.get(part.key).index = i + 1));
  return found;
}

/** null: nothing is below it; false: all that is there is folded away. */
function expanded(part, families) {
  if (part.item === null) return false;
  const family = families.get(part.item.id);
  return family === undefined ? null : family.some((child) => child.item !== null);
}

/** The key that `name` (a KeyboardEvent's key) leads to from `key`, or null where the key is for something else. */
export function moved(drawn, key, name) {
  if (!drawn.length) return null;
  const at = drawn.findIndex((part) => part.key === key);
  if (name === "Home" || (at < 0 && MOVES.has(name))) return drawn[0].key;
  if (name === "End") return drawn[drawn.length - 1].key;
  const move = MOVES.get(name);
  return move === undefined ? null : drawn[move(drawn, at)].key;
}

const parent_of = (drawn, at) => {
  const i = drawn.findIndex((part) => part.item !== null && part.item === drawn[at].parent);
  return i < 0 ? at : i;
};

/** The next part that is no deeper: the next sibling, or the one after the parent. */
const after = (drawn, at) => {
  for (let i = at + 1; i < drawn.length; i += 1) if (drawn[i].depth <= drawn[at].depth) return i;
  return at;
};

/** The sibling before, or the parent. */
const before = (drawn, at) => {
  for (let i = at - 1; i >= 0; i -= 1) if (drawn[i].depth <= drawn[at].depth) return i;
  return at;
};

const first_child = (drawn, at) => (at + 1 < drawn.length && drawn[at + 1].depth > drawn[at].depth ? at + 1 : at);

const MOVES = new Map([["ArrowLeft", parent_of], ["ArrowRight", first_child], ["ArrowUp", before], ["ArrowDown", after]]);
