// The controls above a timeline, and its legend.
//
// Not here: what they do (index.js).

import { h, say, toolbar } from "../tree/dom.js";
import { AREAS, create_canvas, LINES, PHASES } from "./paint.js";

const [WIDTH, HEIGHT] = [26, 12];

/** `on`: zoom(factor), fit(), live(), all(). */
export function create_bar(doc, on) {
  const button = (text, label, onclick) => h(doc, "button", { type: "button", title: label, "aria-label": label, onclick }, text);
  const live = button("Back to the end", "Show the latest state instead of an earlier moment", () => on.live());
  const all = button("All runs", "Show the requests of other runs too", () => on.all());
  const fit = button("Fit", "Show all of the time (0)", () => on.fit());
  const tools = toolbar(doc, "Timeline", button("−", "Zoom out (-)", () => on.zoom(1 / 1.6)), button("+", "Zoom in (+)", () => on.zoom(1.6)), fit, all, live);
  const count = h(doc, "span", { class: "count" });
  const legend = h(doc, "div", { class: "legend", "aria-label": "Legend" });
  return {
    element: h(doc, "div", {}, h(doc, "div", { class: "bar" }, tools, count), legend),
    show({ words, is_fit, can_all, is_all, is_seeking }) {
      say(count, words);
      fit.disabled = is_fit;
      all.hidden = !can_all;
      all.setAttribute("aria-pressed", String(is_all));
      live.hidden = !is_seeking;
      tools.settle();
    },
    /** Draw the legend in the colours of now; `seen` are the phases that there are. */
    draw(paint, seen) {
      const named = (looks, draw) => Object.entries(looks).filter(([name]) => seen.has(name)).map(([name, look]) => entry(doc, look.word, (context) => draw(context, name, look)));
      legend.replaceChildren(
        ...named(PHASES, (context, name, { pattern }) => swatch(context, paint, name, pattern)),
        ...named(LINES, (context, name, look) => line(context, paint, name, look)),
        ...named(AREAS, (context, name, { pattern }) => swatch(context, paint, name, pattern)),
      );
    },
  };
}

function entry(doc, word, draw) {
  const canvas = create_canvas(doc, "swatch");
  draw(canvas.begin(WIDTH, HEIGHT));
  return h(doc, "span", { class: "key" }, canvas.element, word);
}

function swatch(context, paint, name, pattern) {
  paint.fill(context, name, pattern, 0, 0, WIDTH, HEIGHT);
  context.fillStyle = paint.colours[name];
  context.fillRect(0, HEIGHT - 2, WIDTH, 2);
}

function line(context, paint, name, { dash, width }) {
  context.strokeStyle = paint.colours[name];
  context.lineWidth = width;
  context.setLineDash(dash);
  context.beginPath();
  context.moveTo(0, HEIGHT / 2);
  context.lineTo(WIDTH, HEIGHT / 2);
  context.stroke();
}
