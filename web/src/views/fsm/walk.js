// How far a text has come in a compressed automaton: the edges that it took, and what may follow.
//
// Edges are those of a ConstraintGraph event: [source, target, label, n_forced]. A label is one character, a class as a
// regular expression writes it, or (n_forced > 0) a text that must follow. Labels come out of logs: they are read here,
// never run as an expression.
//
// Not here: how it is drawn (index.js).

const CATEGORIES = { d: /^\p{Nd}$/u, w: /^[\p{L}\p{N}_]$/u, s: /^\s$/u };
const ESCAPES = { n: "\n", t: "\t", r: "\r" };

/** Whether a label stands for a character: true, false, or null where the label has left something out. */
export function takes(label, char) {
  if (label === "any") return true;
  const but = /^\\([dws]) but (\[.*\])$/su.exec(label);
  if (but !== null) {
    const is_out = in_class(but[2], char);
    return CATEGORIES[but[1]].test(char) && (is_out === null ? null : !is_out);
  }
  const more = /^(\[.*\]) and [\d,]+ more$/su.exec(label);
  if (more !== null) return in_class(more[1], char) || null;
  if (label.startsWith("[") && label.endsWith("]") && label.length > 2) return in_class(label, char);
  const parts = parts_of(label);
  return parts.length === 1 && has(parts[0], char);
}

function in_class(label, char) {
  const is_negated = label[1] === "^" && label.length > 3;
  const inner = label.slice(is_negated ? 2 : 1, -1);
  if (parts_of(inner).some((part) => has(part, char))) return !is_negated;
  return inner.includes("…") ? null : is_negated;
}

function has({ category, first, last }, char) {
  if (category) {
    const is_in = CATEGORIES[category.toLowerCase()].test(char);
    return category === category.toLowerCase() ? is_in : !is_in;
  }
  const point = char.codePointAt(0);
  return first <= point && point <= last;
}

/** The characters, ranges and categories that a class lists. */
function parts_of(text) {
  const parts = [];
  const units = [...text.matchAll(/\\U[0-9a-f]{8}|\\u[0-9a-f]{4}|\\x[0-9a-f]{2}|\\.|./gsu)].map(([unit]) => unit);
  for (let i = 0; i < units.length; i++) {
    const category = /^\\([dwsDWS])$/.exec(units[i]);
    if (category !== null) {
      parts.push({ category: category[1] });
      continue;
    }
    const first = point_of(units[i]);
    const is_range = units[i + 1] === "-" && i + 2 < units.length;
    parts.push({ first, last: is_range ? point_of(units[i + 2]) : first });
    if (is_range) i += 2;
  }
  return parts;
}

function point_of(unit) {
  if (unit.length > 2 && /^\\[Uux]/.test(unit)) return parseInt(unit.slice(2), 16);
  if (unit[0] === "\\" && unit.length === 2) return (ESCAPES[unit[1]] ?? unit[1]).codePointAt(0);
  return unit.codePointAt(0);
}

/**
 * {steps, node, rest, lost}: the edges taken, each {label, text, forced}; the state reached (inside of a forced text the
 * one before it, with its `rest`); `lost` where the text cannot be followed.
 */
export function walk(graph, text) {
  const ways = new Map();
  for (const edge of graph.edges) {
    const list = ways.get(edge[0]);
    if (list === undefined) ways.set(edge[0], [edge]);
    else list.push(edge);
  }
  const chars = Array.from(text);
  const steps = [];
  let node = graph.start;
  let at = 0;
  while (at < chars.length) {
    const step = step_from(ways.get(node) ?? [], chars, at);
    if (step === null) return { steps, node, rest: "", lost: true };
    steps.push({ label: step.edge[2], text: chars.slice(at, step.end).join(""), forced: step.edge[3] > 0 });
    if (step.rest) return { steps, node, rest: step.rest, lost: false };
    at = step.end;
    node = step.edge[1];
  }
  return { steps, node, rest: "", lost: false };
}

function step_from(edges, chars, at) {
  for (const edge of edges) {
    if (edge[3] > 0) {
      const step = forced_step(edge, chars, at);
      if (step !== null) return step;
    } else if (takes(edge[2], chars[at]) === true) return { edge, end: at + 1, rest: "" };
  }
  return null;
}

/** Along a forced text, which may have lost its middle to "…": then its length tells where it ends. */
function forced_step(edge, chars, at) {
  const wanted = Array.from(edge[2]);
  const n_known = edge[3] === wanted.length ? wanted.length : Math.max(wanted.indexOf("…"), 0);
  const n = Math.min(edge[3], chars.length - at);
  for (let i = 0; i < Math.min(n, n_known); i++) if (chars[at + i] !== wanted[i]) return null;
  return { edge, end: at + n, rest: n < edge[3] ? wanted.slice(Math.min(n, n_known)).join("") : "" };
}

/** What may follow at the place that `walk` found: [{label, forced}], and whether the text may end there. */
export function what_follows(graph, { node, rest, lost }) {
  if (lost) return { ways: [], may_end: false };
  if (rest) return { ways: [{ label: rest, forced: true }], may_end: false };
  const ways = graph.edges.filter((edge) => edge[0] === node).map((edge) => ({ label: edge[2], forced: edge[3] > 0 }));
  return { ways, may_end: graph.accepting.includes(node) };
}

/** Steps of one class after each other as one: {label, text, forced, n}. */
export function joined(steps) {
  const out = [];
  for (const step of steps) {
    const before = out.at(-1);
    if (before !== undefined && !step.forced && !before.forced && before.label === step.label) {
      before.text += step.text;
      before.n += 1;
    } else out.push({ ...step, n: 1 });
  }
  return out;
}
