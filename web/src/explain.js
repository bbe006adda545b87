// One sentence about an event, for who looks at the moment after it: "node 7 split at token 12: request 3 diverges …".
//
// Not here: what the event does to the state (fold/).

import { n_of, n_short, seconds, shown, text_of } from "./parts/text.js";

const N_SHOWN = 24; // characters of text that is quoted

/** The sentence; `view` is the state after the event. "" for events that say nothing by themselves. */
export function explain(event, view) {
  const tell = SENTENCES[event.kind];
  return tell === undefined ? "" : tell(event.body, view, event);
}

/** The ids of the nodes that the sentence about an event names. */
export function nodes_of({ kind, body }) {
  if (!kind.startsWith("Node") && kind !== "Admitted") return [];
  return [body.node, body.upper, body.parent, ...(body.nodes ?? [])].filter(Boolean);
}

const SENTENCES = {
  Loading: ({ what }) => `loading: ${word(what, 60)}`,
  Ready: ({ model, n_slots }) => `the engine is ready with ${word(model, 40)} and room for ${n_short(n_slots)} tokens`,
  Queued: ({ request, n_prompt, call_id }, view) => `request ${request}${of_stream(view, call_id)} waits, with ${n_of(n_prompt, "token")} of prompt`,
  Admitted: ({ request, n_hit, n_new, node }, view) => {
    if (!n_hit) return `request ${request} begins: nothing of it is in the tree, ${n_of(n_new, "token")} must be computed`;
    const where = view.nodes.has(node) ? ` up to node ${node}` : "";
    return `request ${request} hits ${n_of(n_hit, "token")} in the tree${where}; ${n_short(n_new)} must be computed`;
  },
  Step: ({ step, n_prefill, n_decode, run_s }) => `step ${step}: ${n_of(n_prefill, "prompt token")} and ${n_of(n_decode, "new one")} in ${seconds(run_s)}`,
  Tokens: ({ requests, ids }, view) => (requests.length === 1 ? `request ${requests[0]} gets ${quoted(view, ids[0])}` : `${n_of(requests.length, "request")} get a token each`),
  Jumped: ({ request, ids }, view) => `the constraint forces ${quoted(view, ids)}: request ${request} jumps over ${n_of(ids.length, "token")}`,
  Healed: ({ request, over }) => `the first tokens of request ${request} also spell ${shown_quote(over)}, the end of its prompt`,
  Masked: ({ requests, removed }) =>
    requests.length === 1 ? `the constraint takes away ${Math.round(removed[0] * 100)}% of what request ${requests[0]} would have said` : `constraints restrict ${n_of(requests.length, "request")}`,
  Logprobs: ({ requests }) => `${n_of(requests.length, "request")} asked how likely the next token is`,
  TopLogprobs: ({ requests, allowed }) =>
    requests.length === 1 ? `${allowed[0]?.filter(Boolean).length ?? 0} of the ${allowed[0]?.length ?? 0} likeliest next tokens of request ${requests[0]} may come` : `${n_of(requests.length, "request")} asked which tokens are likely`,
  Preempted: ({ request, n_tokens }) => `memory is short: request ${request} gives ${n_of(n_tokens, "token")} back and waits again`,
  Finished: ({ request, reason, n_generated, n_cached, n_prompt }) =>
    `request ${request} ends (${word(reason, 20)}) with ${n_of(n_generated, "token")}; ${n_short(n_cached)} of ${n_short(n_prompt)} prompt tokens were cached`,
  Constrained: ({ kind, text }) => `the answer must match the ${word(kind, 12)} ${word(text, 40)}`,
  ConstraintGraph: ({ kind, nodes }) => `the automaton of a ${word(kind, 12)}: ${n_of(nodes.length, "state")}`,
  Failed: ({ message }) => `failed: ${word(message, 100)}`,
  Control: ({ what, detail }) => `${word(what, 30)}${detail ? `: ${word(detail, 60)}` : ""}`,
  NodeAdded: ({ node, parent, tokens, request }, view) =>
    `node ${node} is new under ${parent ? `node ${parent}` : "the root"}: ${n_of(tokens.length, "token")}${of_request(request)}, ${quoted(view, tokens)}`,
  NodeExtended: ({ node, tokens, request }, view) => `node ${node} grows by ${n_of(tokens.length, "token")}${of_request(request)}: ${quoted(view, tokens)}`,
  NodeSplit: ({ node, upper, at, request }, view) => {
    const rest = view.nodes.get(node);
    const why = request > 0 ? `request ${request} diverges` : "a request diverges";
    const place = rest === undefined ? "" : ` before ${quoted(view, rest.tokens)}`;
    return `node ${node} split at token ${at}: ${why}${place}; node ${upper} has what they share`;
  },
  NodeTouched: ({ nodes, request }) => (request < 0 ? `${n_of(nodes.length, "node")} used again` : `request ${request} hits ${nodes.length === 1 ? `node ${nodes[0]}` : `a path of ${nodes.length} nodes`}`),
  NodeLocked: ({ node, delta }) => (delta > 0 ? `a request holds the path to node ${node}` : `a request lets go of the path to node ${node}`),
  NodeEvicted: ({ node, n_tokens }, view) => {
    const was = view.marks.evicted.get(node);
    return `node ${node} is evicted, the least recently used leaf: ${n_of(n_tokens, "token")} free again${was === undefined ? "" : `, ${quoted(view, was.tokens)}`}`;
  },
  TokenTexts: ({ ids }) => `the log learns how ${ids.length === 1 ? "a token reads" : `${ids.length} tokens read`}`,
  Snapshot: ({ nodes }) => `a snapshot of the tree: ${n_of(nodes.length, "node")}`,
  StreamBegan: ({ stream, parent, branch, label }) =>
    parent ? `the program forks: branch ${branch}${label ? ` (${word(label, 30)})` : ""}` : `a program begins${label ? `: ${word(label, 40)}` : ""}`,
  StreamEnded: ({ how }, view, event) => `${name_of(view, event.body.stream)} is ${word(how, 20)}`,
  StreamText: ({ stream, text }, view) => `${name_of(view, stream)} appends ${shown_quote(text)}`,
  StreamRole: ({ stream, role }, view) => `${name_of(view, stream)}: the message of ${word(role, 20)} begins`,
  CallBegan: ({ stream, kind, name }, view) => `${name_of(view, stream)} asks for ${CALLS[kind] ?? word(kind, 12)}${name ? ` ${word(name, 30)}` : ""}`,
  CallEnded: ({ error }, view, event) => (error ? `${name_of(view, event.body.stream)}: the call failed, ${word(error, 80)}` : `${name_of(view, event.body.stream)} has its answer`),
  Scored: ({ stream, choices, shares, chosen, n_choices }, view) => {
    const taken = chosen in choices ? `, and takes ${shown_quote(choices[chosen])} ${percent(shares[chosen])}` : "";
    return `${name_of(view, stream)} weighs ${n_of(n_choices, "choice")}${taken}`;
  },
  VariableSet: ({ stream, name, text }, view) => `${name_of(view, stream)}: ${word(name, 30)} = ${shown_quote(text)}`,
};

const CALLS = { gen: "text for", score: "a choice for", prefix: "a shared prefix to be computed" };

function percent(share) {
  return Number.isFinite(share) ? ` with ${(100 * share).toFixed(share > 0.1 ? 0 : 1)}%` : "";
}

function word(text, limit) {
  const chars = Array.from(shown(text.length > 4 * limit ? text.slice(0, 4 * limit) : text));
  return chars.length > limit ? `${chars.slice(0, limit - 1).join("")}…` : chars.join("");
}

function shown_quote(text) {
  return `“${word(text, N_SHOWN)}”`;
}

function quoted(view, tokens) {
  return shown_quote(text_of(view, tokens, 4 * N_SHOWN));
}

function of_request(request) {
  return request > 0 ? ` of request ${request}` : "";
}

function of_stream(view, call_id) {
  const stream = view.caller(call_id);
  return stream === undefined ? "" : ` (${name_of(view, stream.id)})`;
}

function name_of(view, id) {
  const stream = view.streams.get(id);
  if (stream === undefined) return "a stream";
  if (stream.parent === "") return "the program";
  return stream.label ? `branch ${word(stream.label, 24)}` : `branch ${stream.branch}`;
}
