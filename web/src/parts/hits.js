// Who used which node: built once from the events as they come. Nothing is forgotten when the cursor goes back: each
// entry has its seq, and a reader says up to where it looks.
// Not here: what requests are (the view has them).

import { Follower } from "./follow.js";

/** A reducer for a Follower; `source` is the engine's, since numbers of nodes are its own ("" takes any). */
export class Hits {
  #uses = new Map(); // node -> [{seq, request, how}]

  constructor(source = "") {
    this.source = source;
  }

  apply({ seq, kind, body, source }) {
    if (this.source && source !== this.source) return;
    if (kind === "NodeTouched") for (const node of body.nodes) this.#add(seq, node, body.request, "hit");
    else if (kind === "NodeAdded" || kind === "NodeExtended") this.#add(seq, body.node, body.request, "wrote");
    else if (kind === "NodeSplit") this.#uses.set(body.upper, [...(this.#uses.get(body.node) ?? [])]); // true of both from now on
    else if (kind === "Ready") this.#uses.clear();
  }

  /** Events are missing: what they would have told is not told. */
  torn() {}

  /** [{request, how, n}] of a node up to `seq`, oldest first; `how` is "hit" or "wrote". */
  of_node(node, seq = Infinity) {
    const found = new Map();
    for (const { seq: at, how, request } of this.#uses.get(node) ?? []) {
      if (at > seq) break;
      const key = `${how} ${request}`;
      found.set(key, { request, how, n: (found.get(key)?.n ?? 0) + 1 });
    }
    return [...found.values()];
  }

  /** The nodes that a request hit or wrote up to `seq`. */
  of_request(request, seq = Infinity) {
    const is_its = (use) => use.request === request && use.seq <= seq;
    return [...this.#uses].filter(([, uses]) => uses.some(is_its)).map(([node]) => node);
  }

  #add(seq, node, request, how) {
    if (request < 0) return;
    const own = this.#uses.get(node) ?? this.#uses.set(node, []).get(node);
    const last = own.at(-1);
    if (last?.request !== request || last.how !== "wrote" || how !== "wrote") own.push({ seq, request, how }); // else it goes on
  }
}

/** The same of a store, up to the moment that it shows; the events are not read before somebody asks. */
export class Uses {
  constructor(store) {
    this.store = store;
    this._hits = new Follower(() => new Hits(store.engine));
  }

  of_node(node) {
    const { events, view } = this.store;
    return this._hits.catch_up(events).of_node(node, view.seq);
  }

  of_request(request) {
    const { events, view } = this.store;
    return this._hits.catch_up(events).of_request(request, view.seq);
  }
}
