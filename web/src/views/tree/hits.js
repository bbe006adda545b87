// Who used which node: built once from the events as they come. Nothing is forgotten when the cursor goes back: each
// entry has its seq, and a reader says up to where it looks.
// Not here: what requests are (the view has them).

/** A reducer for a Follower; `source` is the engine's, since numbers of nodes are its own ("" takes any). */
export class Hits {
  #by_node = new Map(); // node -> [{seq, request, how}]
  #by_request = new Map(); // request -> [{seq, node}]

  constructor(source = "") {
    this.source = source;
  }

  apply(event) {
    if (!this.source || event.source === this.source) this.#take(event);
  }

  /** Events are missing: what they would have told is not told. */
  torn() {}

  /** [{request, how, n}] of a node up to `seq`, oldest first; `how` is "hit" or "wrote". */
  of_node(node, seq = Infinity) {
    const found = new Map();
    for (const entry of this.#by_node.get(node) ?? []) {
      if (entry.seq > seq) continue;
      const key = `${entry.how} ${entry.request}`;
      if (!found.has(key)) found.set(key, { request: entry.request, how: entry.how, n: 0 });
      found.get(key).n += 1;
    }
    return [...found.values()];
  }

  /** The nodes that a request hit or wrote up to `seq`. */
  of_request(request, seq = Infinity) {
    return new Set((this.#by_request.get(request) ?? []).filter((entry) => entry.seq <= seq).map((entry) => entry.node));
  }

  #take({ seq, kind, body }) {
    if (kind === "NodeTouched") for (const node of body.nodes) this.#add(seq, node, body.request, "hit");
    else if (kind === "NodeAdded" || kind === "NodeExtended") this.#add(seq, body.node, body.request, "wrote");
    else if (kind === "Admitted" && body.node > 0) this.#link(seq, body.request, body.node);
    else if (kind === "NodeSplit") {
      const own = this.#by_node.get(body.node) ?? [];
      this.#by_node.set(body.upper, [...own]); // true of both from now on
      for (const entry of own) this.#link(entry.seq, entry.request, body.upper);
    } else if (kind === "Ready") {
      this.#by_node.clear();
      this.#by_request.clear();
    }
  }

  #add(seq, node, request, how) {
    if (request < 0) return;
    const own = this.#by_node.get(node) ?? this.#by_node.set(node, []).get(node);
    const last = own[own.length - 1];
    if (last !== undefined && last.request === request && last.how === "wrote" && how === "wrote") return; // it goes on
    own.push({ seq, request, how });
    this.#link(seq, request, node);
  }

  #link(seq, request, node) {
    const own = this.#by_request.get(request) ?? this.#by_request.set(request, []).get(request);
    if (own.length === 0 || own[own.length - 1].node !== node) own.push({ seq, node });
  }
}

/** The ids of these nodes that are in the tree, with all above them. */
export function paths(model, nodes) {
  const on = new Set();
  for (const id of nodes) {
    for (let at = model.items.get(id) ?? null; at !== null && at.node !== null && !on.has(at.id); at = at.parent) on.add(at.id);
  }
  return on;
}
