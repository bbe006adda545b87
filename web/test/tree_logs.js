// Made-up logs of a radix tree of any size, for tests and for measuring: lines as EventLog.save writes them.

/** Numbers in [0, 1) that are the same each time. */
export function chance(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const WORDS = ["You", " are", " a", " terse", " critic", ".", " The", " essay", " says", " that", " rivers", " find", " the", " sea", " and", " so", " do", " we", "\n", "<|im_start|>", " score", ":", " 4", " yes"];

/** A log whose tree has `n_nodes` nodes at its end; some were split, hit, locked, evicted. */
export function grown(n_nodes, { seed = 1, source = "engine", shared = 40, longest = 24, evicted = 3 } = {}) {
  const random = chance(seed);
  const int = (n) => Math.floor(random() * n);
  const lines = [];
  const emit = (kind, body) => lines.push([lines.length + 1, lines.length * 1_000_000, source, kind, body]);
  emit("Ready", { name: source, model: "made-up", device: "cpu", dtype: "float32", n_slots: 1_000_000 });
  emit("TokenTexts", { ids: WORDS.map((_, i) => i), texts: WORDS });
  const tokens = (n) => Array.from({ length: n }, () => int(WORDS.length));
  const nodes = []; // [id, length]
  let [next, request] = [1, 0];
  const add = (parent, n) => {
    emit("NodeAdded", { node: next, parent, tokens: tokens(n), tick: next, request });
    nodes.push([next, n]);
    return next++;
  };
  const top = add(0, shared);
  while (nodes.length < n_nodes) {
    request += 1;
    const [parent, length] = nodes[int(10) < 6 ? 0 : int(nodes.length)];
    emit("NodeTouched", { nodes: [parent], tick: next, request });
    if (random() < 0.1 && length > 3 && parent !== top && nodes.length < n_nodes - 1) {
      const at = nodes.findIndex(([id]) => id === parent);
      emit("NodeSplit", { node: parent, upper: next, at: 2, request });
      nodes[at] = [parent, length - 2];
      nodes.push([next++, 2]);
    }
    add(parent, 1 + int(longest));
    if (random() < 0.05) emit("NodeLocked", { node: nodes.at(-1)[0], delta: 1 });
    if (random() < 0.1) emit("Step", { step: request, n_prefill: 5, n_decode: 2, n_running: 1, n_waiting: 0, n_free: 1, n_evictable: 1, n_locked: 1, plan_s: 0.001, pack_s: 0.001, run_s: 0.01, commit_s: 0.001 });
  }
  for (let i = 0; i < evicted; i += 1) {
    const node = add(top, 5 + i);
    nodes.pop();
    emit("NodeEvicted", { node, n_tokens: 5 + i });
  }
  return lines;
}
