// The constraint of an answer while it is written: where its automaton stands, what may follow, what was forced.
//
// Not here: walking the automaton (walk.js), choosing the call (model.js).

import { create_choice } from "../../parts/choice.js";
import { h } from "../../parts/dom.js";
import { shown } from "../../parts/text.js";
import { answer, choose, constrained, latest_choice } from "./model.js";
import { joined, walk, what_follows } from "./walk.js";

const MAX_STEPS = 12; // the latest of the way
const MAX_WAYS = 12;
const MAX_CHARS = 2000; // of an answer
const MAX_CALLS = 60; // to pick from
const MAX_TOKENS = 12; // of the likeliest

export const css = `
.nbs .fsm{padding:2px 0 4px}.nbs .fsm select{max-width:320px;text-overflow:ellipsis}
.nbs .fsm .line{display:flex;flex-wrap:wrap;gap:4px 8px;align-items:baseline;margin:4px 0}
.nbs .fsm .word{color:var(--nbs-faint);min-width:92px}.nbs .fsm .under{min-width:0}
.nbs .fsm .strip{display:flex;flex-wrap:wrap;align-items:center;gap:6px 2px;min-width:0;flex:1 1 300px}
.nbs .fsm .at{width:11px;height:11px;border:1.5px solid var(--nbs-fg);border-radius:50%;flex:none}
.nbs .fsm .at.end{box-shadow:0 0 0 2px var(--nbs-bg),0 0 0 3.5px var(--nbs-fg);margin:0 4px}.nbs .fsm .at.here{background:var(--nbs-fg)}
.nbs .fsm .way{padding:0 6px;border-bottom:1.5px solid var(--nbs-line)}
.nbs .fsm .way.forced{color:var(--nbs-blue);border-bottom:4px double var(--nbs-blue);font-weight:600}
.nbs .fsm .option{border:1px solid var(--nbs-line);border-radius:4px;padding:0 6px}
.nbs .fsm .option b{font-weight:600}.nbs .fsm .option.banned{border-style:dashed;color:var(--nbs-faint)}
.nbs .fsm .option.forced{border:3px double var(--nbs-blue);color:var(--nbs-blue);font-weight:600}
.nbs .fsm .text{min-width:0;flex:1 1 300px}
.nbs .fsm .text .forced{color:var(--nbs-blue);font-weight:600;text-decoration:underline double 1px;text-underline-offset:3px}
.nbs .fsm .share{width:120px;height:10px;border:1px solid var(--nbs-fg);border-radius:3px;overflow:hidden;align-self:center}
.nbs .fsm .gone{display:block;height:100%;background:repeating-linear-gradient(45deg,var(--nbs-red) 0 2px,transparent 2px 5px)}
.nbs .fsm .got{color:var(--nbs-faint)}.nbs .fsm .strip .got{margin-left:6px}.nbs .fsm .key{color:var(--nbs-faint);font-size:12px}
`;

export function create(root, store) {
  return new FsmView(root, store);
}

class FsmView {
  constructor(root, store) {
    this.store = store;
    this.doc = root.ownerDocument;
    this.picked = "";
    this.is_empty = true;
    this.choice = create_choice(this.doc, { "aria-label": "Which answer" }, (id) => this._pick(id));
    this.body = h(this.doc, "div");
    this.element = h(this.doc, "div", { class: "fsm" }, this.body);
    root.append(this.element);
    this.update();
  }

  update() {
    const calls = constrained(this.store);
    const chosen = choose(calls, this.store.focus, this.picked);
    this.is_empty = chosen === null;
    if (chosen === null) {
      this.body.replaceChildren();
      return;
    }
    this.choice.show(calls.slice(-MAX_CALLS).map(({ stream, call }) => [call.id, label_of(stream, call)]), chosen.call.id);
    const { view } = this.store;
    const told = answer(view, chosen.call);
    const latest = latest_choice(this.store, chosen.call);
    const graph = view.graphs.get(chosen.call.under);
    this.body.replaceChildren(
      this._line("answer", this.choice.element, this._state(chosen)),
      this._line("must match", h(this.doc, "span", { class: "verbatim under" }, shown(chosen.call.under))),
      this._line("written", this._written(told), h(this.doc, "span", { class: "got" }, counts(told))),
      ...(latest === null ? [] : [this._mask(latest.removed), this._likeliest(latest.tops)]),
      ...(graph === undefined ? [this._hint()] : this._way(graph, told.text, chosen.call)),
    );
  }

  destroy() {
    this.element.remove();
  }

  _pick(id) {
    this.picked = id;
    this.update();
  }

  _line(name, ...children) {
    return h(this.doc, "div", { class: "line" }, h(this.doc, "span", { class: "word" }, name), ...children);
  }

  _state({ call }) {
    return h(this.doc, "span", { class: "got" }, call.state);
  }

  _written({ pieces }) {
    const text = h(this.doc, "span", { class: "verbatim text" });
    let left = MAX_CHARS;
    for (const piece of pieces) {
      if (left <= 0) break;
      const said = shown(piece.text.slice(0, left));
      left -= piece.text.length;
      text.append(h(this.doc, "span", piece.forced ? { class: "forced", title: `forced: ${piece.n} tokens` } : {}, said));
    }
    if (!pieces.length) text.append("–");
    return text;
  }

  /** How much the mask took away, as a bar and in words. */
  _mask(share) {
    const gone = h(this.doc, "span", { class: "gone" });
    gone.style.width = `${100 * share}%`;
    const words = h(this.doc, "span", { class: "got" }, `took away ${percent(share)} of what the model would have said, at the latest token`);
    return this._line("the mask", h(this.doc, "span", { class: "share", "aria-hidden": "true" }, gone), words);
  }

  /** What was likely there, and what of it was allowed, if the log has it; else how to get it. */
  _likeliest(tops) {
    if (tops === null) {
      const words = "How likely single tokens were: gen(…, top_logprobs_num=8) puts the likeliest into the log; engine.allowed(…) tells of all that may come.";
      return h(this.doc, "div", { class: "key" }, words);
    }
    const strip = h(this.doc, "span", { class: "strip" });
    for (const { id, share, left, is_allowed } of tops.slice(0, MAX_TOKENS)) {
      const title = `${is_allowed ? "allowed" : "not allowed"}: the model gave it ${percent(share)}${left === null ? "" : `, ${percent(left)} of what the mask left`}`;
      const text = spaces(this.store.view.text_of([id]));
      const said = is_allowed ? h(this.doc, "b", {}, text) : `✗ ${text}`;
      const odds = left === null ? percent(share) : `${percent(share)} → ${percent(left)}`;
      strip.append(h(this.doc, "span", { class: `verbatim option ${is_allowed ? "" : "banned"}`, title }, said, h(this.doc, "span", { class: "got" }, ` ${odds}`)));
    }
    const n = tops.filter((token) => token.is_allowed).length;
    strip.append(h(this.doc, "span", { class: "got" }, n ? "✗ not allowed · → of what the mask left" : "none of these was allowed"));
    return this._line("likeliest", strip);
  }

  /** The way through the automaton up to now, and what may follow. */
  _way(graph, text, call) {
    const found = walk(graph, text);
    const { ways, may_end } = what_follows(graph, found);
    const steps = joined(found.steps);
    const strip = h(this.doc, "span", { class: "strip" });
    if (steps.length > MAX_STEPS) strip.append(h(this.doc, "span", { class: "got" }, `… ${steps.length - MAX_STEPS} before`));
    else strip.append(this._circle(steps.length === 0, may_end && steps.length === 0));
    const latest = steps.slice(-MAX_STEPS);
    latest.forEach((step, n) => {
      const said = step.forced ? step.text : `${step.label}${step.n > 1 ? `{${step.n}}` : ""}`;
      strip.append(h(this.doc, "span", { class: `verbatim way ${step.forced ? "forced" : ""}`, title: shown(step.text) }, spaces(said)));
      strip.append(this._circle(n === latest.length - 1, may_end && n === latest.length - 1));
    });
    if (found.lost) strip.append(h(this.doc, "span", { class: "got" }, "the text cannot be followed further"));
    const options = ways.slice(0, MAX_WAYS).map((way) => h(this.doc, "span", { class: `verbatim option ${way.forced ? "forced" : ""}` }, spaces(way.label)));
    if (ways.length > MAX_WAYS) options.push(h(this.doc, "span", { class: "got" }, `and ${ways.length - MAX_WAYS} more ways`));
    if (may_end) options.push(h(this.doc, "span", { class: "got" }, ways.length ? "or the end" : "the end"));
    const rows = [this._line("the way", strip)];
    if (call.error === null && options.length) rows.push(this._line("may follow", h(this.doc, "span", { class: "strip" }, ...options)));
    rows.push(h(this.doc, "div", { class: "key" }, "double line, blue: forced, without a choice of the model · filled circle: here · double circle: the text may end"));
    return rows;
  }

  _circle(is_here, may_end) {
    return h(this.doc, "span", { class: `at${is_here ? " here" : ""}${may_end ? " end" : ""}` });
  }

  _hint() {
    return h(this.doc, "div", { class: "key" }, "%sgl fsm draws the automaton; once it has, the way through it is shown here.");
  }
}

function label_of(stream, call) {
  const where = stream.label || (stream.parent ? `branch ${stream.branch}` : "");
  return shown([call.name || call.kind, where].filter(Boolean).join(" · ")).slice(0, 60);
}

function percent(share) {
  if (share > 0.9999) return "over 99.99%"; // a 32-bit number near 1 does not tell more
  return `${(100 * share).toFixed(share >= 0.1 ? 0 : share >= 0.001 || share === 0 ? 1 : 3)}%`;
}

function counts({ n_forced, n_chosen }) {
  return `${n_chosen} chosen, ${n_forced} jumped over`;
}

/** Spaces at the ends are to be seen. */
function spaces(text) {
  return shown(text).replace(/^ +| +$/g, (run) => "␣".repeat(run.length));
}
