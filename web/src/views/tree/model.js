// The radix tree of a view as items with what is below each: nodes, tokens, marks. Pure.
// Nodes that were evicted in the span of the marks stay in their old places, as ghosts.
// Not here: which items are drawn (choose.js) and where (icicle.js, paper.js).

const NONE = Object.freeze([]);

/** A node, or the root: id 0, without a node. n_nodes, n_tokens and n_marked are of the whole subtree, with itself. */
class Item {
  constructor(id) {
    this.id = id;
  }

  /** Begin anew as this node {id, parent, tokens, locks, tick}; a ghost was evicted, n_hits requests have found it. */
  be(node, ghost, is_new, n_hits) {
    this.node = node;
    this.ghost = ghost;
    this.parent = null;
    this.below = NONE;
    this.is_sorted = true;
    this.n_nodes = node === null ? 0 : 1;
    this.n_tokens = node?.tokens.length ?? 0;
    this.is_new = is_new;
    this.n_hits = n_hits;
    this.n_marked = ghost || is_new || n_hits > 0 ? 1 : 0;
    this.first = node?.id ?? Infinity; // the smallest id in the subtree
  }

  /** The items below, in an order that a split or a growing tree does not change. */
  get children() {
    if (!this.is_sorted) this.below.sort((a, b) => a.first - b.first);
    this.is_sorted = true;
    return this.below;
  }

  adopt(item) {
    item.parent = this;
    if (this.below.length) this.below.push(item);
    else this.below = [item];
    this.is_sorted = false;
  }

  /** All below it has been added to it: add it to its parent. */
  add_up() {
    const { parent } = this;
    parent.n_nodes += this.n_nodes;
    parent.n_tokens += this.n_tokens;
    parent.n_marked += this.n_marked;
    if (this.first < parent.first) parent.first = this.first;
  }
}

/**
 * All items of a view by id, the root, and how much they are without ghosts: {items, root, held}. Nodes that hang on nothing are left out.
 * `before` is a model that is not needed any more: its items are used again, which halves the time of a large tree.
 */
export function build(view, marks, before = null) {
  const { root, items } = before ?? { root: new Item(0), items: new Map() };
  root.be(null, false, false, 0);
  let n = 0;
  const take = (node, ghost) => {
    n += 1;
    let item = items.get(node.id);
    if (item === undefined) items.set(node.id, (item = new Item(node.id)));
    item.be(node, ghost, marks.new.has(node.id), marks.hits.get(node.id) ?? 0);
  };
  for (const node of view.nodes.values()) take(node, false);
  for (const node of marks.evicted.values()) if (!view.nodes.has(node.id)) take(node, true);
  if (items.size > n) for (const id of items.keys()) if (!view.nodes.has(id) && !marks.evicted.has(id)) items.delete(id);
  for (const item of items.values()) (item.node.parent === 0 ? root : items.get(item.node.parent))?.adopt(item);
  const found = [root]; // each before what is below it; each has one parent, so a circle is never reached
  for (let i = 0; i < found.length; i += 1) for (const item of found[i].below) found.push(item);
  const held = { n_nodes: 0, n_tokens: 0 }; // while an item counts itself alone
  for (const { ghost, n_nodes, n_tokens } of found) {
    if (ghost) continue;
    held.n_nodes += n_nodes;
    held.n_tokens += n_tokens;
  }
  for (let i = found.length - 1; i > 0; i -= 1) found[i].add_up();
  return { root, held, items: found.length > items.size ? items : new Map(found.slice(1).map((item) => [item.id, item])) };
}

/** The items from below the root down to this one. */
export function path_of(item) {
  const path = [];
  for (let at = item; at?.node; at = at.parent) path.push(at);
  return path.reverse();
}

/** The ids of these nodes that are in the tree, with all above them. */
export function paths({ items }, nodes) {
  return new Set(nodes.flatMap((id) => path_of(items.get(id))).map((item) => item.id));
}
