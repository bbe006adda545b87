// What a select found about its choices, beside the one that was taken: its share, and the others when asked for.
//
// Not here: where the scores come from (../fold/streams.js).

import { h, say } from "./dom.js";
import { shown } from "./text.js";

const LEAST = -1e9; // stands in the log for a score that is no number

export const css = `
.nbs .odds{white-space:normal}
.nbs .odds>button{font:11px/1.3 var(--nbs-font)!important;padding:0 6px!important;margin-right:4px!important;color:var(--nbs-purple)!important;font-variant-numeric:tabular-nums}
.nbs .odds>div{display:grid;grid-template-columns:minmax(0,max-content) 90px max-content max-content;gap:1px 8px;align-items:center;max-width:560px;margin:3px 0 5px;padding:3px 8px;border-left:2px solid var(--nbs-purple);background:var(--nbs-soft)}
.nbs .odds .of{overflow-wrap:anywhere;unicode-bidi:isolate}.nbs .odds .of.taken{font-weight:700}
.nbs .odds .track{height:8px;border:1px solid var(--nbs-line);border-radius:2px;overflow:hidden}
.nbs .odds .track span{display:block;height:100%;background:var(--nbs-purple)}
.nbs .odds .score{color:var(--nbs-faint);text-align:right}
`;

/**
 * {element, is_open, toggle(opens)} for scores as parts have them: [choice, score, share, is_taken], likeliest first;
 * `on_size()` is called when the reader has opened or closed them.
 */
export function create_odds(doc, scores, on_size) {
  const list = h(doc, "div", { role: "group", "aria-label": "Choices by score" });
  const button = h(doc, "button", { tabindex: -1, title: words_of(scores), onclick: () => clicked() });
  const element = h(doc, "span", { class: "odds" }, button, list);
  const odds = {
    element,
    is_open: false,
    toggle(opens) {
      odds.is_open = opens;
      if (opens && !list.children.length) list.append(...scores.flatMap((row) => cells_of(doc, row)));
      list.hidden = !opens;
      button.setAttribute("aria-expanded", String(opens));
      say(button, `${percent(scores.find(([, , , is_taken]) => is_taken)?.[2])} ${opens ? "▾" : "▸"}`);
    },
  };
  const clicked = () => {
    odds.toggle(!odds.is_open);
    on_size();
  };
  odds.toggle(false);
  return odds;
}

/** The scores in one line, the first of them. */
export function words_of(scores, most = 8) {
  const words = scores.slice(0, most).map(([choice, , share]) => `${shown(choice.slice(0, 40))} ${percent(share)}`);
  if (scores.length > most) words.push(`${scores.length - most} more`);
  return words.join(", ");
}

function cells_of(doc, [choice, score, share, is_taken]) {
  const bar = h(doc, "span");
  bar.style.width = percent(share ?? 0);
  return [
    h(doc, "span", { class: is_taken ? "of taken" : "of" }, `${is_taken ? "◆ " : ""}${shown(choice)}`),
    h(doc, "span", { class: "track", "aria-hidden": "true" }, bar),
    h(doc, "span", { class: "score" }, percent(share)),
    h(doc, "span", { class: "score", title: "score: a natural logarithm" }, logarithm(score)),
  ];
}

function percent(share) {
  return Number.isFinite(share) ? `${(100 * share).toFixed(share >= 0.1 || share === 0 ? 0 : share >= 0.001 ? 1 : 3)}%` : "–";
}

function logarithm(score) {
  return !Number.isFinite(score) ? "–" : score <= LEAST ? "−∞" : score.toFixed(2).replace("-", "−");
}
