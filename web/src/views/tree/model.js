// The radix tree of a view as items with what is below each: nodes, tokens, marks. Pure.
// Nodes that were evicted in the span of the marks stay in their old places, as ghosts.
// Not here: which items are drawn (choose.js) and where (icicle.js, paper.js).

const NONE = Object.freeze([]);

/** A node, or the root: id 0, without a node. n_nodes, n_tokens and n_marked are of the whole subtree, with itself. */
class Item {
  parent = null;
  below = NONE;
  is_sorted = true;

  constructor(id) {
    this.id = id;
  }

  /** Begin anew as this node {id, parent, tokens, locks, tick}; a ghost was evicted. */
  be(node, ghost, is_marked) {
    this.node = node;
    this.ghost = ghost;
    this.parent = null;
    if (this.below.length) this.below = NONE;
    this.n_nodes = node === null ? 0 : 1;
    this.n_tokens = node === null ? 0 : node.tokens.length;
    this.n_marked = is_marked ? 1 : 0;
    this.first = node === null ? Infinity : node.id; // the smallest id in the subtree
    this.is_linked = false;
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
}

/**
 * All items of a view by id, and the root: {items, root}. Nodes that hang on nothing are left out.
 * `before` is a model that is not needed any more: its items are used again, which halves the time of a large tree.
 */
export function build(view, marks, before = null) {
  const root = before?.root ?? new Item(0);
  const items = before?.items ?? new Map();
  root.be(null, false, false);
  const order = [];
  const take = (node, ghost) => {
    let item = items.get(node.id);
    if (item === undefined) items.set(node.id, (item = new Item(node.id)));
    item.be(node, ghost, ghost || marks.new.has(node.id) || marks.hits.has(node.id));
    order.push(item);
  };
  for (const node of view.nodes.values()) take(node, false);
  for (const node of marks.evicted.values()) if (!view.nodes.has(node.id)) take(node, true);
  if (items.size > order.length) for (const id of items.keys()) if (!view.nodes.has(id) && !marks.evicted.has(id)) items.delete(id);
  for (const item of order) (item.node.parent === 0 ? root : items.get(item.node.parent))?.adopt(item);
  for (let i = order.length - 1; i >= 0; i -= 1) add_up(order[i], order.length);
  return root.n_nodes === items.size ? { root, items } : reachable(root);
}

/** Add an item to what is above it, up to the first that will be added itself: most come after what they hang on. */
function add_up(item, most) {
  const { n_nodes, n_tokens, n_marked, first } = item;
  item.is_linked = true;
  for (let at = item.parent; at !== null; at = at.is_linked ? at.parent : null) {
    at.n_nodes += n_nodes;
    at.n_tokens += n_tokens;
    at.n_marked += n_marked;
    if (first < at.first) at.first = first;
    if ((most -= 1) < 0) at.parent = null; // a circle, which hangs on nothing
  }
}

/** What hangs on the root: each item has one parent, so a circle is never reached. */
function reachable(root) {
  const found = [root];
  for (let i = 0; i < found.length; i += 1) found.push(...found[i].children);
  return { root, items: new Map(found.slice(1).map((item) => [item.id, item])) };
}

/** The items from below the root down to this one. */
export function path_of(item) {
  const path = [];
  for (let at = item; at !== null && at.node !== null; at = at.parent) path.push(at);
  return path.reverse();
}

/** How many nodes and tokens the tree holds, ghosts left out. */
export function totals({ root, items }, marks) {
  let { n_nodes, n_tokens } = root;
  for (const id of marks.evicted.keys()) {
    const item = items.get(id);
    if (item === undefined || !item.ghost) continue;
    n_nodes -= 1;
    n_tokens -= item.node.tokens.length;
  }
  return { n_nodes, n_tokens };
}
