// What has changed in the radix tree since some moment: nodes that are new, hit, or evicted. As nbsglang/viz/marks.py.
//
// Not here: how marks look (../looks.js).

export const MAX_EVICTED = 1000; // nodes that are remembered after they are gone; the oldest go first

/** `new` is a Set of ids, `hits` a Map id -> number of requests, `evicted` a Map id -> Node as it was. */
export class Marks {
  constructor() {
    this.clear();
  }

  /** Begin anew; what was handed out before stays as it was. */
  clear() {
    this.new = new Set();
    this.hits = new Map();
    this.evicted = new Map();
  }

  /** A request found this node. */
  hit(node) {
    this.hits.set(node, (this.hits.get(node) ?? 0) + 1);
  }

  /** `upper` took the first part of `node`, and with it what is true of both. */
  split(node, upper) {
    if (this.new.has(node)) this.new.add(upper);
    if (this.hits.has(node)) this.hits.set(upper, this.hits.get(node));
  }

  /** The node was evicted. */
  gone(node) {
    this.evicted.set(node.id, node);
    this.new.delete(node.id);
    this.hits.delete(node.id);
    if (this.evicted.size > MAX_EVICTED) this.evicted.delete(this.evicted.keys().next().value);
  }

  clone() {
    const copy = new Marks();
    copy.new = new Set(this.new);
    copy.hits = new Map(this.hits);
    copy.evicted = new Map(this.evicted); // nodes that are gone change no more
    return copy;
  }
}
