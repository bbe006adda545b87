// The controls above a timeline, and its legend.
//
// Not here: what they do (index.js).

import { buttons, h, press, say, toolbar } from "../../parts/dom.js";
import { AREAS, LINES, PHASES } from "./paint.js";

/** `on`: zoom(factor), fit(), live(), all(). */
export function create_bar(doc, on) {
  const button = buttons(doc);
  const live = button("Back to the end", "Show the latest state instead of an earlier moment", () => on.live());
  const all = button("All runs", "Show the requests of other runs too", () => on.all());
  const fit = button("Fit", "Show all of the time (0)", () => on.fit());
  const tools = toolbar(doc, "Timeline", button("−", "Zoom out (-)", () => on.zoom(1 / 1.6)), button("+", "Zoom in (+)", () => on.zoom(1.6)), fit, all, live);
  const count = h(doc, "span", { class: "count" });
  const keys = Object.entries({ ...PHASES, ...LINES, ...AREAS }).map(([name, { word, pattern = "line" }]) => {
    const swatch = h(doc, "i", { class: `swatch ${pattern} ${name}`, style: `--l-c:var(--l-${name})` });
    return [name, h(doc, "span", { class: "key", hidden: true }, swatch, word)];
  });
  const legend = h(doc, "div", { class: "legend", "aria-label": "Legend" }, ...keys.map(([, key]) => key));
  return {
    element: h(doc, "div", {}, h(doc, "div", { class: "bar" }, tools, count), legend),
    /** `seen` are the phases that there are. */
    show({ words, seen, is_fit, can_all, is_all, is_seeking }) {
      say(count, words);
      fit.disabled = is_fit;
      all.hidden = !can_all;
      press(all, is_all);
      live.hidden = !is_seeking;
      tools.settle();
      for (const [name, key] of keys) key.hidden = !seen.has(name);
    },
  };
}
