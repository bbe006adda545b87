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
 *   opened  Set of ids that have to be drawn, beyond the limit
 *   closed  Set of ids below which nothing is drawn, whatever else is wanted
 *   before  Set of ids that were drawn last time
 * @returns {{drawn: Drawn[], kept: Set<number>}}
 */
export function choose(model, { limit, calm = null, from = model.root, must = [], opened = new Set(), closed = new Set(), before = new Set() }) {
  const { kept, n_opened } = asked_for(model, from, must, opened, closed);
  const is_small = from.n_nodes <= Math.min(calm ?? limit, limit);
  take(from, kept, {
    limit: is_small ? Infinity : limit + n_opened,
    is_in: (item) => (is_small || calm === null || item.n_marked > 0) && !closed.has(item.parent.id),
    score: (item) => (item.n_marked ? MARKED : 0) + (before.has(item.id) ? BEFORE : 0) + item.n_tokens,
  });
  if (from.node !== null) kept.add(from.id);
  return { drawn: in_place(from, kept, closed), kept };
}

/** What is folded away: "+37 nodes, 1.2k tokens". */
export function fold_words(drawn) {
  return `+${n_of(drawn.n_nodes, "node")}, ${n_short(drawn.n_tokens)} token${drawn.n_tokens === 1 ? "" : "s"}`;
}

/** The key of a node, or of the fold that it is folded away in. */
export function key_of(id, { items }, kept) {
  let key = String(id);
  for (let at = items.get(id); at?.node && !kept.has(at.id); at = at.parent) key = `f${at.parent.id}`;
  return key;
}

/** The ids of `must` and of what is opened, with all that is above them below `from`; and how many the latter are. */
function asked_for(model, from, must, opened, closed) {
  const kept = new Set();
  const add = (item) => {
    let path = [];
    for (let at = item; at !== from; at = at.parent) {
      if (at === null) return; // it is not below `from`
      if (closed.has(at.id)) path = [];
      path.push(at.id);
    }
    if (!closed.has(from.id)) for (const id of path) kept.add(id);
  };
  for (const id of opened) if (model.items.has(id)) add(model.items.get(id));
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
    const is_last = hidden.get(item.parent) === 1;
    if (n + 1 - (is_last ? 1 : 0) + (item.children.length ? 1 : 0) > limit) return;
    kept.add(item.id);
    hidden.set(item.parent, hidden.get(item.parent) - 1);
    n += 1 - (is_last ? 1 : 0) + offer(item);
  }
}

function in_place(from, kept, closed) {
  const drawn = [];
  const stack = from.node === null ? below(from, 0, kept, closed) : [one(from, 0)];
  while (stack.length) {
    const next = stack.pop();
    drawn.push(next);
    if (next.item !== null) stack.push(...below(next.item, next.depth + 1, kept, closed));
  }
  return drawn;
}

/** What is drawn right below an item, last first: what is folded, then the items. */
function below(parent, depth, kept, closed) {
  const hidden = parent.children.filter(({ id }) => !kept.has(id));
  if (hidden.length === 1 && hidden[0].n_nodes === 1 && !closed.has(parent.id)) kept.add(hidden.pop().id); // takes no more room
  const rows = parent.children.filter(({ id }) => kept.has(id)).map((child) => one(child, depth));
  const sum = (name) => hidden.reduce((n, item) => n + item[name], 0);
  const fold = { key: `f${parent.id}`, item: null, parent, depth, hidden, n_nodes: sum("n_nodes"), n_tokens: sum("n_tokens") };
  return (hidden.length ? [...rows, fold] : rows).reverse();
}

const one = (item, depth) => ({ key: String(item.id), item, parent: item.parent, depth, n_nodes: 1, n_tokens: item.node.tokens.length });
