// The controls above the lanes: what colours tell, the failed ones only, all lanes folded; and the legend.
//
// Not here: what they do (index.js).

import { h, press, say, toolbar } from "../../parts/dom.js";
import { create_toggle } from "../../parts/toggle.js";
import { KINDS, SCALES } from "./looks.js";

const MODES = { kind: "By kind", latency: "By latency", logprob: "By probability" };

/** `on`: mode(name), fold(). */
export function create_bar(doc, store, on) {
  const button = (text, title, onclick) => h(doc, "button", { "aria-pressed": "false", title, onclick }, text);
  const modes = Object.entries(MODES).map(([name, text]) => [name, button(text, "What the colour of a token tells", () => on.mode(name))]);
  const failed = create_toggle(doc, store, "streams_failed", "Failed only", "Show the streams that failed, and those above them");
  const fold = h(doc, "button", { title: "Fold or unfold all lanes", onclick: () => on.fold() }, "Fold all");
  const count = h(doc, "span", { class: "count" });
  const legend = h(doc, "div", { class: "legend", "aria-label": "Legend" });
  const tools = toolbar(doc, "Streams", ...modes.map(([, each]) => each), failed.element, fold);
  let shown = "";

  return {
    element: h(doc, "div", { class: "top" }, h(doc, "div", { class: "bar" }, tools, count), legend),
    /** What is chosen, what there is to choose from, and words on the streams. */
    show({ mode, is_all_folded, has_logprobs, words, looks }) {
      for (const [name, each] of modes) press(each, name === mode);
      failed.show();
      say(fold, is_all_folded ? "Unfold all" : "Fold all");
      say(count, words);
      const source = `${mode} ${has_logprobs} ${[...looks]}`;
      if (source !== shown) legend.replaceChildren(...entries(doc, mode, has_logprobs, looks));
      shown = source;
    },
  };
}

function entries(doc, mode, has_logprobs, looks) {
  if (mode === "logprob" && !has_logprobs) return ["This log has no log probabilities of tokens."];
  const key = (look, text) => h(doc, "span", { class: "key" }, h(doc, "span", { class: `run ${look}` }, "abc"), ` ${text}`);
  const kinds = Object.keys(KINDS).filter((look) => looks.has(look) && (mode === "kind" || look === "jumped"));
  const named = kinds.map((look) => key(look, [KINDS[look].sign, KINDS[look].word].filter(Boolean).join(" ")));
  if (mode === "kind") return named;
  return [...SCALES[mode].map((words, i) => key(`l${i}`, words)), ...named];
}
