// Which items of a large tree are drawn: what is asked for, what is marked, then what holds more tokens; the rest is
// folded away under its parent. What was drawn before stays where it can, so that a growing tree does not flicker. Pure.
// Not here: where they are drawn.

import { Heap } from "../../parts/heap.js";
import { n_of, n_short } from "../../parts/text.js";

const MARKED = 2e12, BEFORE = 1e12; // above any count of tokens

/**
 * @typedef {object} Drawn
 * @property {string} key        of the item ("7"), or of what is folded away under it ("f7")
 * @property {object|null} item  null for a fold
 * @property {object} parent     the item above
 * @property {number} depth
 * @property {object[]} hidden   of a fold: the children of `parent` that are folded away, with all that is below them
 * @property {number} n_nodes    1, or how many are folded away; n_tokens alike
 */

/**
 * What is drawn, each after its parent.
 *   limit   about how many at most; what is asked for comes on top of it
 *   calm    if the tree has more nodes than this, those with no mark in or below them are not drawn (null: they are)
 *   from    the item whose subtree is drawn
 *   must    items that have to be drawn
 *   opened  Map from an id to a Set of ids of children that have to be drawn, beyond the limit
 *   closed  Set of ids below which nothing is drawn
 *   before  Set of ids that were drawn last time
 * @returns {{drawn: Drawn[], kept: Set<number>}}
 */
export function choose(model, { limit, calm = null, from = model.root, must = [], opened = new Map(), closed = new Set(), before = new Set() }) {
  const { asked, n_opened } = asked_for(model, from, must, opened);
  const kept = new Set(asked);
  const is_small = from.n_nodes <= (calm === null ? limit : Math.min(calm, limit));
  take(from, kept, {
    limit: is_small ? Infinity : limit + n_opened,
    is_in: (item) => (is_small || calm === null || item.n_marked > 0) && !(closed.has(item.parent.id) && !asked.has(item.id)),
    score: (item) => (item.n_marked ? MARKED : 0) + (before.has(item.id) ? BEFORE : 0) + item.n_tokens,
  });
  if (from.node !== null) kept.add(from.id);
  return { drawn: in_place(from, kept, closed), kept };
}

/** What is folded away: "+37 nodes, 1.2k tokens". */
export function fold_words(drawn) {
  return `+${n_of(drawn.n_nodes, "node")}, ${n_short(drawn.n_tokens)} token${drawn.n_tokens === 1 ? "" : "s"}`;
}

/** The ids of `must` and of what is opened, with all that is above them; and how many the latter are. */
function asked_for(model, from, must, opened) {
  const asked = new Set();
  const add = (item) => {
    for (let at = item; at !== null && at.node !== null && at !== from && !asked.has(at.id); at = at.parent) asked.add(at.id);
  };
  for (const [id, children] of opened) {
    const item = id === 0 ? model.root : model.items.get(id);
    if (item !== undefined && is_below(item, from)) item.children.filter((child) => children.has(child.id)).forEach(add);
  }
  const n_opened = asked.size;
  for (const item of must) if (is_below(item, from)) add(item);
  return { asked, n_opened };
}

function is_below(item, from) {
  for (let at = item; at !== null; at = at.parent) if (at === from) return true;
  return false;
}

/** Keep items from the top down, those of the highest score first, while they and the folds fit in `limit`. */
function take(from, kept, { limit, is_in, score }) {
  const hidden = new Map(); // how many children of an item are not kept
  const heap = new Heap();
  let n = kept.size + 1; // with the fold at the top
  const offer = (top) => {
    const stack = [top]; // with what is kept below it already
    while (stack.length) {
      const item = stack.pop();
      let n_hidden = 0;
      for (const child of item.children) {
        if (kept.has(child.id)) stack.push(child);
        else {
          n_hidden += 1;
          if (is_in(child)) heap.push(score(child), child);
        }
      }
      hidden.set(item, n_hidden);
    }
    return hidden.get(top) > 0 ? 1 : 0;
  };
  offer(from);
  for (let item = heap.pop(); item !== null; item = heap.pop()) {
    const is_last = hidden.get(item.parent) === 1;
    if (n + 1 - (is_last ? 1 : 0) + (item.children.length ? 1 : 0) > limit) return;
    kept.add(item.id);
    hidden.set(item.parent, hidden.get(item.parent) - 1);
    n += 1 - (is_last ? 1 : 0) + offer(item);
  }
}

function in_place(from, kept, closed) {
  const drawn = [];
  const stack = from.node === null ? at(from, 0, kept, closed) : [one(from, 0)];
  while (stack.length) {
    const next = stack.pop();
    drawn.push(next);
    if (next.item !== null) stack.push(...at(next.item, next.depth + 1, kept, closed));
  }
  return drawn;
}

/** What is drawn right below an item, last first: what is folded, then the items. */
function at(item, depth, kept, closed) {
  const hidden = item.children.filter((child) => !kept.has(child.id));
  if (hidden.length === 1 && hidden[0].n_nodes === 1 && !closed.has(item.id)) kept.add(hidden.pop().id); // takes no more room
  const rows = item.children.filter((child) => kept.has(child.id)).map((child) => one(child, depth));
  if (hidden.length) rows.push(fold(item, hidden, depth));
  return rows.reverse();
}

function one(item, depth) {
  return { key: String(item.id), item, parent: item.parent, depth, hidden: [], n_nodes: 1, n_tokens: item.node.tokens.length };
}

function fold(parent, hidden, depth) {
  const sum = (name) => hidden.reduce((n, item) => n + item[name], 0);
  return { key: `f${parent.id}`, item: null, parent, depth, hidden, n_nodes: sum("n_nodes"), n_tokens: sum("n_tokens") };
}
