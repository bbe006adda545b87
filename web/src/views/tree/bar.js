// The controls above the tree: search, one request, the look, what the marks tell of, zoom, export.
// Not here: what they do (index.js).

import { h, say, toolbar } from "./dom.js";

const DELAY_MS = 120; // from the last letter to the search

/**
 * @param {object} on  search(text), found(±1), leave(), request(id|null), look(), marks(), zoom(factor|0), save(format)
 */
export function create_bar(doc, on, formats) {
  let timer = null;
  const input = h(doc, "input", {
    type: "search", placeholder: "Search text  ( / )", "aria-label": "Search in the text of the nodes", spellcheck: "false", autocomplete: "off",
  });
  const search = () => {
    clearTimeout(timer);
    on.search(input.value);
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, DELAY_MS);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      search();
      on.found(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      input.value = "";
      search();
      on.leave();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  const button = (text, label, onclick, attributes = {}) =>
    h(doc, "button", { type: "button", title: label, "aria-label": label, onclick, ...attributes }, text);
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
  const saves = formats.map(([format, label]) => button(format, label, () => on.save(format)));
  const found = h(doc, "span", { class: "tools" }, previous, next);
  const tools = toolbar(doc, "Tree", look, marks, out, into, reset, h(doc, "span", { class: "word" }, "Save"), ...saves);
  const element = h(doc, "div", { class: "bar" }, h(doc, "span", { class: "tools" }, input, found, count), request, tools);
  let listed = "";

  return {
    element,
    focus_search: () => (input.focus(), input.select()),
    /** `n` matches, the `at`th of them looked at (-1: none); `typed` is what is searched for. */
    show_found({ typed, n, at, most }) {
      found.hidden = n === 0;
      const many = n >= most ? `${n}+` : String(n);
      say(count, !typed ? "" : n === 0 ? "nothing found" : at < 0 ? `${many} found` : `${at + 1} of ${many}`);
    },
    /** Requests as [id, words], in their order, the one that stands out, and words for a stream that does. */
    show_requests(requests, chosen, stream) {
      const other = chosen === null || requests.some(([id]) => id === chosen) ? [] : [[chosen, `request ${chosen}`]];
      const rows = [["", stream === null ? "All requests" : `Branch ${stream}`], ...requests, ...other];
      const source = JSON.stringify(rows);
      if (source !== listed && doc.activeElement !== request) {
        request.replaceChildren(...rows.map(([id, words]) => h(doc, "option", { value: id }, words)));
        listed = source;
      }
      const value = chosen === null ? "" : String(chosen);
      if (request.value !== value) request.value = value;
    },
    show_state({ is_graph, can_graph, is_step, has_run, zoom }) {
      look.setAttribute("aria-pressed", String(is_graph));
      look.disabled = !can_graph && !is_graph;
      look.title = look.disabled ? "Circles and edges: for fewer than 40 nodes" : "Circles and edges, as the paper draws it";
      marks.setAttribute("aria-pressed", String(is_step));
      marks.hidden = !has_run;
      say(reset, zoom === 1 ? "1:1" : `${Math.round(zoom * 100)} %`);
      tools.settle();
    },
    destroy: () => clearTimeout(timer),
  };
}
