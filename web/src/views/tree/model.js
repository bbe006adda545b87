// The radix tree of a view as items with what is below each: nodes, tokens, leaves, marks. Pure.
// Nodes that were evicted in the span of the marks stay in their old places, as ghosts.
// Not here: which items are drawn (choose.js) and where (icicle.js, paper.js).

/**
 * @typedef {object} Item
 * @property {number} id         0 is the root, which has no node
 * @property {object|null} node  {id, parent, tokens, locks, tick}
 * @property {Item|null} parent
 * @property {Item[]} children   in an order that a split or a growing tree does not change
 * @property {boolean} ghost     evicted
 * @property {number} n_nodes    of the whole subtree, with itself; so are n_tokens, n_leaves and n_marked
 * @property {number} first      the smallest id in the subtree
 */

/**
 * All items of a view by id, and the root: {items, root}. Nodes that hang on nothing are left out.
 * `before` is a model that is not needed any more: its items are used again, which halves the time of a large tree.
 */
export function build(view, marks, before = null) {
  const root = before?.root ?? item_of(0);
  const items = before?.items ?? new Map();
  reset(root, null, false, false);
  let n = 0;
  const take = (node, ghost) => {
    let item = items.get(node.id);
    if (item === undefined) items.set(node.id, (item = item_of(node.id)));
    reset(item, node, ghost, ghost || marks.new.has(node.id) || marks.hits.has(node.id));
    n += 1;
  };
  for (const node of view.nodes.values()) take(node, false);
  for (const node of marks.evicted.values()) if (!view.nodes.has(node.id)) take(node, true);
  const has = (id) => view.nodes.has(id) || marks.evicted.has(id);
  if (items.size > n) for (const id of items.keys()) if (!has(id)) items.delete(id);
  return link(root, items);
}

function link(root, items) {
  for (const item of items.values()) {
    const above = item.node.parent === 0 ? root : items.get(item.node.parent);
    if (above === undefined || above === item) continue;
    item.parent = above;
    above.children.push(item);
  }
  const order = reachable(root);
  for (let i = order.length - 1; i > 0; i -= 1) add_up(order[i]);
  for (const item of order) in_order(item.children);
  if (order.length - 1 < items.size) return { root, items: new Map(order.slice(1).map((item) => [item.id, item])) };
  return { root, items };
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

function item_of(id) {
  return { id, node: null, parent: null, children: [], ghost: false, first: 0, n_nodes: 0, n_tokens: 0, n_leaves: 0, n_marked: 0 };
}

function reset(item, node, ghost, is_marked) {
  item.node = node;
  item.parent = null;
  item.children.length = 0;
  item.ghost = ghost;
  item.first = node === null ? Infinity : node.id;
  item.n_nodes = node === null ? 0 : 1;
  item.n_tokens = node === null ? 0 : node.tokens.length;
  item.n_leaves = 0;
  item.n_marked = is_marked ? 1 : 0;
}

function reachable(root) {
  const order = [root];
  for (let i = 0; i < order.length; i += 1) for (const child of order[i].children) order.push(child);
  return order; // each has one parent, so a circle is never reached
}

function add_up(item) {
  const above = item.parent;
  item.n_leaves ||= 1;
  above.n_nodes += item.n_nodes;
  above.n_tokens += item.n_tokens;
  above.n_leaves += item.n_leaves;
  above.n_marked += item.n_marked;
  if (item.first < above.first) above.first = item.first;
}

function in_order(children) {
  for (let i = 1; i < children.length; i += 1) {
    if (children[i - 1].first > children[i].first) {
      children.sort((a, b) => a.first - b.first);
      return;
    }
  }
}
