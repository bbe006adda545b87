// The radix tree of one engine, rebuilt from its changes alone. As nbsglang/viz/tree.py.
//
// Besides what Python has, `shape` counts the changes of nodes, parents and lengths (not of locks and ticks), so that
// a view knows when its layout is old; and `watched` is a Map by name.
//
// Not here: how a tree looks.

import { Marks } from "./marks.js";

export const TREE = new Set([
  "NodeAdded", "NodeExtended", "NodeSplit", "NodeTouched", "NodeLocked", "NodeEvicted", "Snapshot",
]);

class Missing extends Error {}

export class TreeState {
  constructor(totals) {
    this.nodes = new Map();
    this.complete = true;
    this.marks = new Marks();
    this.watched = new Map();
    this.past = new Map(); // what was watched and changes no more
    this.version = 0;
    this.shape = 0;
    this._totals = totals;
    this.step_is_over = false;
    this._children = null; // of shape `_children_of`
    this._children_of = -1;
  }

  /** An engine has begun: its tree is empty. */
  begin_anew() {
    this.nodes = new Map();
    this.complete = true;
    this.marks.clear();
    this.version += 1;
    this.shape += 1;
  }

  /** The marks stay until the next change. */
  step_ended() {
    this.step_is_over = true;
  }

  /** Take an event of one of the kinds in TREE. */
  apply(kind, body) {
    this.version += 1;
    if (kind === "Snapshot") {
      this.nodes = new Map();
      for (const [id, parent, tokens, locks, tick] of body.nodes) this.nodes.set(id, { id, parent, tokens, locks, tick });
      this.complete = true;
      this.shape += 1;
      return;
    }
    if (!this.complete) return;
    if (this.step_is_over) {
      this.step_is_over = false;
      this.marks.clear();
    }
    try {
      this._change(kind, body);
    } catch (error) {
      if (!(error instanceof Missing)) throw error;
      this.complete = false; // a log that does not fit together: wait for a Snapshot
    }
  }

  /** The nodes from below the root down to this one. */
  path(node) {
    const nodes = [];
    let at = this.nodes.get(node);
    while (at !== undefined && nodes.length < this.nodes.size) {
      nodes.push(at);
      at = this.nodes.get(at.parent);
    }
    return nodes.reverse();
  }

  /** The first `n` tokens on the way to a node, as arrays that nodes share; null when the tree is not known. */
  first_tokens(node, n) {
    if (!n) return [];
    const path = this.complete ? this.path(node) : [];
    if (!path.length || path[0].parent !== 0) return null;
    const arrays = [];
    for (const { tokens } of path) {
      if (n > 0) arrays.push(tokens.length > n ? tokens.slice(0, n) : tokens);
      n -= tokens.length;
    }
    return n > 0 ? null : arrays;
  }

  /** The nodes below each node (0 is the root), oldest first; not to be changed. */
  children() {
    if (this._children_of === this.shape) return this._children;
    const below = new Map();
    const ids = Float64Array.from(this.nodes.keys()).sort();
    for (const id of ids) {
      const node = this.nodes.get(id);
      const list = below.get(node.parent);
      if (list === undefined) below.set(node.parent, [node]);
      else list.push(node);
    }
    this._children = below;
    this._children_of = this.shape;
    return below;
  }

  _change(kind, body) {
    switch (kind) {
      case "NodeAdded":
        if (this.nodes.has(body.node) || (body.parent && !this.nodes.has(body.parent))) throw new Missing();
        this.nodes.set(body.node, { id: body.node, parent: body.parent, tokens: body.tokens, locks: 0, tick: body.tick });
        this.shape += 1;
        this._mark_new(body.node);
        break;
      case "NodeExtended": {
        const node = this._node(body.node);
        node.tokens = node.tokens.concat(body.tokens);
        node.tick = body.tick;
        this.shape += 1;
        this._mark_new(body.node);
        break;
      }
      case "NodeSplit":
        this._split(body);
        break;
      case "NodeTouched":
        this._touch(body);
        break;
      case "NodeLocked":
        for (const at of this.path(body.node)) at.locks += body.delta;
        break;
      case "NodeEvicted": {
        const node = this._node(body.node);
        this.nodes.delete(body.node);
        this.shape += 1;
        this._totals.n_evicted += body.n_tokens;
        for (const marks of this._all_marks()) marks.gone(node);
        break;
      }
    }
  }

  _node(id) {
    const node = this.nodes.get(id);
    if (node === undefined) throw new Missing();
    return node;
  }

  _all_marks() {
    return [this.marks, ...this.watched.values()];
  }

  _mark_new(node) {
    for (const marks of this._all_marks()) marks.new.add(node);
  }

  _touch(body) {
    const all = body.request >= 0 ? this._all_marks() : [];
    for (const id of body.nodes) {
      this._node(id).tick = body.tick;
      for (const marks of all) marks.hit(id);
    }
  }

  _split(body) {
    const node = this._node(body.node);
    if (this.nodes.has(body.upper)) throw new Missing();
    const upper = { id: body.upper, parent: node.parent, tokens: node.tokens.slice(0, body.at), locks: node.locks, tick: node.tick };
    this.nodes.set(body.upper, upper);
    node.parent = body.upper;
    node.tokens = node.tokens.slice(body.at);
    this.shape += 1;
    this._totals.n_splits += 1;
    for (const marks of this._all_marks()) marks.split(body.node, body.upper);
  }

  clone(totals) {
    const copy = new TreeState(totals);
    for (const [id, { parent, tokens, locks, tick }] of this.nodes) copy.nodes.set(id, { id, parent, tokens, locks, tick });
    copy.complete = this.complete;
    copy.marks = this.marks.clone();
    for (const [name, marks] of this.watched) copy.watched.set(name, marks.clone());
    copy.past = new Map(this.past);
    copy.version = this.version;
    copy.shape = this.shape;
    copy.step_is_over = this.step_is_over;
    return copy;
  }
}
