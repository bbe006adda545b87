// A small curve of how many requests ran in each step, from the beginning of the run to the cursor.

import { h, say } from "../../parts/dom.js";
import { to_element } from "../../parts/svg.js";

const WIDTH = 160;
const HEIGHT = 26;
const MAX_POINTS = 300;

/** {element, show(samples, first, last)}; samples are those of a feed, first and last say which seqs count. */
export function create_curve(doc) {
  const path = (name, d) => ["path", { class: name, d }];
  const svg = to_element(doc, ["svg", { width: WIDTH, height: HEIGHT + 2, role: "img" }, path("base", `M0,${HEIGHT + 0.5}H${WIDTH}`), path("area"), path("line")]);
  const [, area, line] = svg.children;
  const words = h(doc, "div");
  const element = h(doc, "div", { class: "curve" }, svg, words);

  function show(samples, first, last) {
    const points = samples.filter(({ seq }) => first <= seq && seq <= last).slice(-MAX_POINTS);
    element.hidden = points.length < 2;
    if (element.hidden) return;
    const { line: d, most } = curve_of(points.map((point) => point.step.n_running));
    line.setAttribute("d", d);
    area.setAttribute("d", `${d}V${HEIGHT}H0Z`);
    const text = `batch over ${points.length} steps, at most ${most}`;
    say(words, text);
    svg.setAttribute("aria-label", text);
  }

  return { element, show };
}

/** The path of some counts in WIDTH × HEIGHT, as steps, and the largest of them. */
export function curve_of(counts) {
  const most = Math.max(...counts, 1);
  const x = (n) => ((n * WIDTH) / Math.max(counts.length, 1)).toFixed(1);
  const y = (count) => (HEIGHT - (count / most) * (HEIGHT - 2)).toFixed(1);
  const line = counts.map((count, n) => `${n ? "L" : "M"}${x(n)},${y(count)}H${x(n + 1)}`).join("");
  return { line, most };
}
