// Which items of a large tree are drawn: what is asked for, what is marked, then what holds more tokens; the rest is
// folded away under its parent. What was drawn before stays where it can, so that a growing tree does not flicker. Pure.
// Not here: where they are drawn.

import { Heap } from "../../parts/heap.js";

const SMALL = 40; // nodes: below a run, of a larger tree only what the run has touched is drawn
const MARKED = 2e12, BEFORE = 1e12; // above any count of tokens

/**
 * @typedef {object} Drawn
 * @property {string} key        of the item ("7"), or of what is folded away under it ("f7")
 * @property {object|null} item  null for a fold
 * @property {object} parent     the item above
 * @property {number} depth
 * @property {Drawn[]} family    all that is drawn right below `parent`
 * @property {Drawn[]} below     what is drawn right below it
 * @property {object[]} hidden   of a fold: the children of `parent` that are folded away, with all that is below them
 * @property {number} n_nodes    1, or how many are folded away; n_tokens alike
 */

/**
 * What is drawn, each after its parent.
 *   limit   about how many at most; what is asked for comes on top of it
 *   is_run  those with no mark in or below them are not drawn, unless the tree is small
 *   from    the id of the item whose subtree is drawn; of the whole tree, if there is none
 *   must    ids of what has to be drawn, if it is there
 *   opened  Set of ids that have to be drawn, beyond the limit
 *   closed  Set of ids below which nothing is drawn, whatever else is wanted
 *   before  Set of ids that were drawn last time
 * @returns {{drawn: Drawn[], kept: Set<number>}}
 */
export function choose({ items, root }, { limit, is_run = false, from: top, must = [], opened, closed, before }) {
  const from = items.get(top) ?? root;
  const { kept, n_opened } = asked_for(items, from, must, opened, closed);
  const is_small = from.n_nodes <= (is_run ? SMALL : limit);
  take(from, kept, {
    limit: is_small ? Infinity : limit + n_opened,
    is_in: (item) => (is_small || !is_run || item.n_marked > 0) && !closed.has(item.parent.id),
    score: (item) => (item.n_marked ? MARKED : 0) + (before.has(item.id) ? BEFORE : 0) + item.n_tokens,
  });
  if (from.node !== null) kept.add(from.id);
  return { drawn: in_place(from, kept, closed), kept };
}

/** The key of a node, or of the fold that it is folded away in. */
export function key_of(id, { items }, kept) {
  let key = String(id);
  for (let at = items.get(id); at?.node && !kept.has(at.id); at = at.parent) key = `f${at.parent.id}`;
  return key;
}

/** The ids of `must` and of what is opened, with all that is above them below `from`; and how many the latter are. */
function asked_for(items, from, must, opened, closed) {
  const kept = new Set();
  const add = (id) => {
    let path = [];
    for (let at = items.get(id); at !== from; at = at.parent) {
      if (!at) return; // it is not below `from`
      path.push(at.id);
      if (closed.has(at.parent?.id)) path = [];
    }
    for (const id of path) kept.add(id);
  };
  opened.forEach(add);
  const n_opened = kept.size;
  must.forEach(add);
  return { kept, n_opened };
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
    const n_hidden = hidden.get(item.parent);
    const n_more = n_hidden === 1 ? 0 : 1; // the last one takes the place of the fold
    if (n + n_more + (item.children.length ? 1 : 0) > limit) return;
    kept.add(item.id);
    hidden.set(item.parent, n_hidden - 1);
    n += n_more + offer(item);
  }
}

function in_place(from, kept, closed) {
  const below = (parent, depth) => {
    const hidden = parent.children.filter(({ id }) => !kept.has(id));
    if (hidden.length === 1 && hidden[0].n_nodes === 1 && !closed.has(parent.id)) kept.add(hidden.pop().id); // takes no more room
    return family_of(parent, depth, parent.children.filter(({ id }) => kept.has(id)), hidden);
  };
  const drawn = [];
  const stack = (from.node === null ? below(from, 0) : family_of(from.parent, 0, [from], [])).toReversed();
  while (stack.length) {
    const part = stack.pop();
    drawn.push(part);
    if (part.item !== null) part.below = below(part.item, part.depth + 1);
    stack.push(...part.below.toReversed());
  }
  return drawn;
}

/** What is drawn right below an item: these, then a fold for those that are hidden. */
function family_of(parent, depth, items, hidden) {
  const family = [];
  const add = (part) => family.push({ parent, depth, family, below: [], ...part });
  for (const item of items) add({ key: String(item.id), item, n_nodes: 1, n_tokens: item.node.tokens.length });
  const sum = (name) => hidden.reduce((n, item) => n + item[name], 0);
  if (hidden.length) add({ key: `f${parent.id}`, item: null, hidden, n_nodes: sum("n_nodes"), n_tokens: sum("n_tokens") });
  return family;
}
