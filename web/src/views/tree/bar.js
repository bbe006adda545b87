// The controls above the tree: search, one request, the look, what the marks tell of, zoom, export.
// Not here: what they do (index.js).

import { buttons, h, press, say, toolbar } from "../../parts/dom.js";
import { name_of, request_name, short_name } from "../../parts/names.js";
import { create_search_box } from "../../parts/search_box.js";
import { MAX_DRAWN } from "./paper.js";
import { FORMATS } from "./save.js";
import { MAX_FOUND } from "./search.js";

const MAX_REQUESTS = 200; // in the list
const GRAPH = "Circles and edges, as the paper draws it";

/** @param {object} on  search(text), found(±1), leave(), request(id|null), look(), marks(), zoom(factor|0), only(0), save(format) */
export function create_bar(doc, on) {
  const { input, destroy } = create_search_box(doc, "Search in the text of the nodes", on);
  const button = buttons(doc);
  const count = h(doc, "span", { class: "count", role: "status" });
  const previous = button("‹", "Previous match (Shift+Enter)", () => on.found(-1));
  const next = button("›", "Next match (Enter)", () => on.found(1));
  const title = "Let the path of one request stand out";
  const request = h(doc, "select", { "aria-label": title, title });
  request.addEventListener("change", () => on.request(request.value === "" ? null : Number(request.value)));
  request.addEventListener("focus", () => list(rows_of(shown), request.value)); // many options take long, and few look at them
  const look = button("Graph", GRAPH, () => on.look(), { "aria-pressed": "false" });
  const marks = button("Latest step", "Marks of the latest step instead of the whole run", () => on.marks(), { "aria-pressed": "false" });
  const reset = button("1:1", "Reset zoom (0)", () => on.zoom(0));
  const out = button("−", "Zoom out (-)", () => on.zoom(1 / 1.5));
  const into = button("+", "Zoom in (+)", () => on.zoom(1.5));
  const whole = button("Whole tree", "Back from the subtree (Esc)", () => on.only(0));
  const saves = Object.entries(FORMATS).map(([format, words]) => button(format, `Save what is shown as ${words}`, () => on.save(format)));
  const matches = h(doc, "span", { class: "tools" }, previous, next);
  const tools = toolbar(doc, "Tree", whole, look, marks, out, into, reset, h(doc, "span", { class: "word" }, "Save"), ...saves);
  const element = h(doc, "div", { class: "bar" }, h(doc, "span", { class: "tools" }, input, matches, count), request, tools);
  const list = (rows, value) => {
    request.replaceChildren(...rows.map(([id, words]) => h(doc, "option", { value: id }, words)));
    request.value = value;
  };
  let shown = null; // a store
  let listed = "";

  function show_requests() {
    const [[id, words]] = rows_of(shown, 0).slice(-1);
    if (doc.activeElement === request || listed === `${id} ${words}`) return;
    listed = `${id} ${words}`;
    list([[id, words]], id);
  }

  function show_found({ query, found: { length: n }, found_at: at }) {
    matches.hidden = n === 0;
    const many = n >= MAX_FOUND ? `${n}+` : String(n);
    say(count, !query ? "" : n === 0 ? "nothing found" : at < 0 ? `${many} found` : `${at + 1} of ${many}`);
  }

  return {
    element,
    focus_search: () => (input.focus(), input.select()),
    /** The state of a store, of what is wanted (wish.js), and of the picture. */
    show(store, wish, { is_graph, can_graph }) {
      shown = store;
      show_requests();
      show_found(wish);
      whole.hidden = wish.from === 0;
      press(look, is_graph);
      look.disabled = !can_graph;
      look.title = can_graph ? GRAPH : `${GRAPH}: for fewer than ${MAX_DRAWN} nodes`;
      press(marks, Boolean(store.settings.tree_step));
      marks.hidden = !store.source;
      say(reset, wish.zoom === 1 ? "1:1" : `${Math.round(wish.zoom * 100)} %`);
      tools.settle();
    },
    destroy,
  };
}

/** [id, words] of all requests, of the latest ones of a run, and of the one in focus where it is none of these. */
function rows_of({ view, source, focus }, most = MAX_REQUESTS) {
  const stream = focus.request === null ? view.streams.get(focus.stream) : undefined;
  const all = most ? [...view.requests.values()].filter(({ call_id }) => !source || view.caller(call_id)?.source === source) : [];
  const ids = all.slice(-most).map(({ id }) => id).reverse();
  if (focus.request !== null && !ids.includes(focus.request)) ids.push(focus.request);
  return [["", stream === undefined ? "All requests" : short_name(name_of(stream))], ...ids.map((id) => [id, request_name(view, id)])];
}
