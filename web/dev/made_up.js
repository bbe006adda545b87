// A large log that nobody ran: a radix tree of many nodes, and streams that write side by side. Always the same.

const ENGINE = "engine";
const RUN = "run";
const N_TEXTS = 500;

/** {lines, run, engine, ...}: the log, and what `grown` needs to go on. */
export function made_up({ n_nodes, n_streams }) {
  const log = { lines: [], run: RUN, engine: ENGINE, n_nodes: 0, n_streams, tick: 0, t_ns: 1e9, random: random(11) };
  const say = (source, kind, body) => log.lines.push(line_of(log, source, kind, body));
  const texts = Array.from({ length: N_TEXTS }, (_, n) => ` ${"abcdefghij"[n % 10].repeat(1 + (n % 6))}`);
  say(ENGINE, "Ready", { name: "e", model: "made up", device: "cpu", dtype: "float32", n_slots: 1_000_000 });
  say(ENGINE, "TokenTexts", { ids: texts.map((_, n) => n), texts });
  say(RUN, "StreamBegan", { stream: RUN, parent: "", branch: 0, label: "bench" });
  say(RUN, "StreamText", { stream: RUN, text: "Some instructions that all share. ".repeat(10) });
  while (log.n_nodes < n_nodes) add_node(log, say);
  for (let n = 1; n <= n_streams; n++) begin_stream(log, say, n);
  say(ENGINE, "Step", step(log, 0));
  return log;
}

/** The next lines: each stream gets two tokens, some nodes are new, hit or evicted, and there are two steps. */
export function grown(log, n) {
  const lines = [];
  const say = (source, kind, body) => lines.push(line_of(log, source, kind, body));
  const requests = Array.from({ length: log.n_streams }, (_, at) => at + 1);
  for (let twice = 0; twice < 2; twice++) {
    say(ENGINE, "Tokens", { requests, ids: requests.map(() => [Math.floor(log.random() * N_TEXTS)]) });
    say(ENGINE, "Step", step(log, n));
  }
  for (let new_ones = 0; new_ones < 5; new_ones++) add_node(log, say);
  const hit = 1 + Math.floor(log.random() * (log.n_nodes >> 1));
  say(ENGINE, "NodeTouched", { nodes: [hit], tick: ++log.tick, request: 1 + (n % log.n_streams) });
  say(ENGINE, "NodeEvicted", { node: log.n_nodes, n_tokens: 3 }); // the newest, which is a leaf
  return lines;
}

function line_of(log, source, kind, body) {
  log.seq = (log.seq ?? 0) + 1;
  log.t_ns += 50_000;
  return [log.seq, log.t_ns, source, kind, body];
}

/** Under a node that is a bit random, so that there are long paths and wide ones. */
function add_node(log, say) {
  const node = (log.n_nodes += 1);
  const parent = node < 4 ? node - 1 : Math.floor(node / (2.5 + 8 * log.random()));
  const tokens = Array.from({ length: 1 + Math.floor(log.random() * 12) }, () => Math.floor(log.random() * N_TEXTS));
  say(ENGINE, "NodeAdded", { node, parent, tokens, tick: ++log.tick, request: 1 + (node % log.n_streams) });
}

function begin_stream(log, say, n) {
  const stream = `${RUN}.${n}`;
  const call_id = `${stream}.1`;
  say(RUN, "StreamBegan", { stream, parent: RUN, branch: n - 1, label: `branch ${n}` });
  say(RUN, "StreamText", { stream, text: `Question ${n}: what is to be said about it?` });
  say(RUN, "CallBegan", { stream, call_id, kind: "gen", name: "answer" });
  say(ENGINE, "Queued", { request: n, call_id, n_prompt: 400 });
  say(ENGINE, "Admitted", { request: n, call_id, n_hit: 380, n_new: 20, node: 1 + (n % 100) });
  const ids = Array.from({ length: 100 }, () => Math.floor(log.random() * N_TEXTS));
  for (const id of ids) say(ENGINE, "Tokens", { requests: [n], ids: [[id]] });
}

function step(log, n) {
  const counts = { n_prefill: 0, n_decode: log.n_streams, n_running: log.n_streams, n_waiting: 0 };
  return { step: n, ...counts, n_free: 900_000, n_evictable: 60_000, n_locked: 40_000, plan_s: 0.001, pack_s: 0.001, run_s: 0.04, commit_s: 0.001 };
}

function random(seed) {
  let state = seed;
  return () => (state = (state * 48271) % 2147483647) / 2147483647;
}
