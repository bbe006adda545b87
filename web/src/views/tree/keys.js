// Moving through what is drawn with keys, as an ARIA tree has it: left and right go to the parent and to the first
// child, up and down along the siblings (and on to those of the parent at their ends). Pure.
// Not here: unfolding (wish.js): a fold is an item too, so every node can be reached.

import { child_at, parent_at } from "../../parts/outline.js";

/** From `at` on, by steps of `way`, the first part that is no deeper: a sibling, or its parent or what comes after that. */
const beside = (way) => (drawn, at) => {
  let i = at + way;
  while (drawn[i]?.depth > drawn[at].depth) i += way;
  return i;
};

/** Where each key (KeyboardEvent.key) leads to from the place `at`. */
export const MOVES = {
  ArrowLeft: parent_at, ArrowRight: child_at, ArrowUp: beside(-1), ArrowDown: beside(1), Home: () => 0, End: (drawn) => drawn.length - 1,
};

/** The key of the part that `name` leads to from the one with `key`, which stays where nothing is there. */
export function moved(drawn, key, name) {
  const at = drawn.findIndex((part) => part.key === key);
  const to = at < 0 && name !== "End" ? 0 : MOVES[name](drawn, at);
  return drawn[to]?.key ?? key;
}
