// The controls above a timeline, and its legend.
//
// Not here: what they do (index.js).

import { buttons, h, say, toolbar } from "../../parts/dom.js";
import { create_toggle } from "../../parts/toggle.js";
import { zoom_buttons } from "../../parts/zoom.js";
import { AREAS, LINES, PHASES } from "./paint.js";

/** `on`: zoom(factor), fit(), live(). */
export function create_bar(doc, store, on) {
  const button = buttons(doc);
  const live = button("Back to the end", "Show the latest state instead of an earlier moment", () => on.live());
  const all = create_toggle(doc, store, "timeline_all", "All runs", "Show the requests of other runs too");
  const fit = button("Fit", "Show all of the time (0)", () => on.fit());
  const tools = toolbar(doc, "Timeline", ...zoom_buttons(button, on.zoom), fit, all.element, live);
  const count = h(doc, "span", { class: "count" });
  const keys = Object.entries({ ...PHASES, ...LINES, ...AREAS }).map(([name, { word, pattern = "line" }]) => {
    const swatch = h(doc, "i", { class: `swatch ${pattern} ${name}`, style: `--l-c:var(--l-${name})` });
    return [name, h(doc, "span", { class: "key", hidden: true }, swatch, word)];
  });
  const legend = h(doc, "div", { class: "legend", "aria-label": "Legend" }, ...keys.map(([, key]) => key));
  return {
    element: h(doc, "div", {}, h(doc, "div", { class: "bar" }, tools, count), legend),
    /** `seen` are the phases that there are. */
    show({ words, seen, is_fit }) {
      say(count, words);
      fit.disabled = is_fit;
      all.element.hidden = store.source === "";
      all.show();
      live.hidden = !store.seeking;
      tools.settle();
      for (const [name, key] of keys) key.hidden = !seen.has(name);
    },
  };
}
