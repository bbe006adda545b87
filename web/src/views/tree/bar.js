// The controls above the tree: search, one request, the look, what the marks tell of, zoom, export.
// Not here: what they do (index.js).

import { buttons, h, press, say, toolbar } from "../../parts/dom.js";
import { name_of, request_name, short_name } from "../../parts/names.js";
import { create_search_box } from "../../parts/search_box.js";
import { FORMATS } from "./save.js";
import { MAX_FOUND } from "./search.js";

const MAX_REQUESTS = 200; // in the list

/**
 * @param {object} on  search(text), found(±1), leave(), request(id|null), look(), marks(), zoom(factor|0), save(format)
 */
export function create_bar(doc, on) {
  const { input, destroy } = create_search_box(doc, "Search in the text of the nodes", on);
  const button = buttons(doc);
  const count = h(doc, "span", { class: "count", role: "status" });
  const previous = button("‹", "Previous match (Shift+Enter)", () => on.found(-1));
  const next = button("›", "Next match (Enter)", () => on.found(1));
  const request = h(doc, "select", { "aria-label": "Let the path of one request stand out", title: "Let the path of one request stand out" });
  request.addEventListener("change", () => on.request(request.value === "" ? null : Number(request.value)));
  const look = button("Graph", "Circles and edges, as the paper draws it", () => on.look(), { "aria-pressed": "false" });
  const marks = button("Latest step", "Marks of the latest step instead of the whole run", () => on.marks(), { "aria-pressed": "false" });
  const reset = button("1:1", "Reset zoom (0)", () => on.zoom(0));
  const out = button("−", "Zoom out (-)", () => on.zoom(1 / 1.5));
  const into = button("+", "Zoom in (+)", () => on.zoom(1.5));
  const saves = Object.entries(FORMATS).map(([format, words]) => button(format, `Save what is shown as ${words}`, () => on.save(format)));
  const found = h(doc, "span", { class: "tools" }, previous, next);
  const tools = toolbar(doc, "Tree", look, marks, out, into, reset, h(doc, "span", { class: "word" }, "Save"), ...saves);
  const element = h(doc, "div", { class: "bar" }, h(doc, "span", { class: "tools" }, input, found, count), request, tools);
  let listed = "";

  return {
    element,
    focus_search: () => (input.focus(), input.select()),
    /** What is searched for, what was found, and where in that the reader is (-1: nowhere). */
    show_found({ query, found: { length: n }, found_at: at }) {
      found.hidden = n === 0;
      const many = n >= MAX_FOUND ? `${n}+` : String(n);
      say(count, !query ? "" : n === 0 ? "nothing found" : at < 0 ? `${many} found` : `${at + 1} of ${many}`);
    },
    /** The latest requests of a run (of all for ""), and what is in focus. */
    show_requests(view, source, focus) {
      const stream = focus.request === null ? view.streams.get(focus.stream) : undefined;
      const rows = [["", stream === undefined ? "All requests" : short_name(name_of(stream))]];
      const all = [...view.requests.values()].filter(({ call_id }) => !source || view.caller(call_id)?.source === source);
      for (const { id } of all.slice(-MAX_REQUESTS).reverse()) rows.push([id, request_name(view, id)]);
      if (focus.request !== null && !rows.some(([id]) => id === focus.request)) rows.push([focus.request, `request ${focus.request}`]);
      const key = JSON.stringify(rows);
      if (key !== listed && doc.activeElement !== request) {
        request.replaceChildren(...rows.map(([id, words]) => h(doc, "option", { value: id }, words)));
        listed = key;
      }
      const value = String(focus.request ?? "");
      if (request.value !== value) request.value = value;
    },
    show_state({ is_graph, can_graph, is_step, has_run, zoom }) {
      press(look, is_graph);
      look.disabled = !can_graph && !is_graph;
      look.title = look.disabled ? "Circles and edges: for fewer than 40 nodes" : "Circles and edges, as the paper draws it";
      press(marks, is_step);
      marks.hidden = !has_run;
      say(reset, zoom === 1 ? "1:1" : `${Math.round(zoom * 100)} %`);
      tools.settle();
    },
    destroy,
  };
}
