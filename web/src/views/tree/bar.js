// The controls above the tree: search, one request, the look, what the marks tell of, zoom, export.
// Not here: what they do (acts.js).

import { create_choice } from "../../parts/choice.js";
import { buttons, h, press, say, toolbar } from "../../parts/dom.js";
import { name_of, request_name, short_name } from "../../parts/names.js";
import { create_search_box } from "../../parts/search_box.js";
import { create_toggle } from "../../parts/toggle.js";
import { zoom_buttons } from "../../parts/zoom.js";
import { MAX_DRAWN } from "./paper.js";
import { FORMATS } from "./save.js";
import { MAX_FOUND } from "./search.js";

const MAX_REQUESTS = 200; // in the list
const GRAPH = "Circles and edges, as the paper draws it";

/** @param {object} on  search(text), found(±1), leave(), request(id|null), look(), zoom(factor|0), only(0), save(format) */
export function create_bar(doc, store, on) {
  const { input, destroy } = create_search_box(doc, "Search in the text of the nodes", on);
  const button = buttons(doc);
  const count = h(doc, "span", { class: "count", role: "status" });
  const matches = h(doc, "span", { class: "tools" },
    button("‹", "Previous match (Shift+Enter)", () => on.found(-1)), button("›", "Next match (Enter)", () => on.found(1)));
  const title = "Let the path of one request stand out";
  const requests = create_choice(doc, { "aria-label": title, title }, (id) => on.request(id === "" ? null : Number(id)));
  const select = requests.element;
  select.addEventListener("focus", () => requests.show(rows_of(store), select.value)); // many options take long, and few look at them
  const look = button("Graph", GRAPH, () => on.look(), { "aria-pressed": "false" });
  const marks = create_toggle(doc, store, "tree_step", "Latest step", "Marks of the latest step instead of the whole run");
  const reset = button("1:1", "Reset zoom (0)", () => on.zoom(0));
  const whole = button("Whole tree", "Back from the subtree (Esc)", () => on.only(0));
  const saves = Object.entries(FORMATS).map(([format, words]) => button(format, `Save what is shown as ${words}`, () => on.save(format)));
  const tools = toolbar(doc, "Tree", whole, look, marks.element, ...zoom_buttons(button, (factor) => on.zoom(factor)), reset, h(doc, "span", { class: "word" }, "Save"), ...saves);
  const element = h(doc, "div", { class: "bar" }, h(doc, "span", { class: "tools" }, input, matches, count), select, tools);

  function show_request() {
    const row = chosen(store);
    if (doc.activeElement !== select) requests.show([row], row[0]);
  }

  function show_found({ query, found, here }) {
    const [n, at] = [found.length, found.indexOf(here)];
    matches.hidden = n === 0;
    const many = n >= MAX_FOUND ? `${n}+` : String(n);
    say(count, !query ? "" : n === 0 ? "nothing found" : at < 0 ? `${many} found` : `${at + 1} of ${many}`);
  }

  return {
    element,
    focus_search: () => (input.focus(), input.select()),
    /** The state of the store, of what is wanted (wish.js), and of the picture. */
    show(wish, { is_graph, can_graph }) {
      show_request();
      show_found(wish);
      whole.hidden = wish.from === 0;
      press(look, is_graph);
      look.disabled = !can_graph;
      look.title = can_graph ? GRAPH : `${GRAPH}: for fewer than ${MAX_DRAWN} nodes`;
      marks.show();
      marks.element.hidden = !store.source;
      say(reset, wish.zoom === 1 ? "1:1" : `${Math.round(wish.zoom * 100)} %`);
      tools.settle();
    },
    destroy,
  };
}

/** [id, words] of the request in focus; without one, of all, or of the stream in focus. */
function chosen({ view, focus: { request, stream } }) {
  if (request !== null) return [request, request_name(view, request)];
  return ["", view.streams.has(stream) ? short_name(name_of(view.streams.get(stream))) : "All requests"];
}

/** What can be chosen: all, the latest requests of a run, and what is chosen now. */
function rows_of(store) {
  const { view, source } = store;
  const requests = [...view.requests.values()].filter(({ call_id }) => !source || view.caller(call_id)?.source === source);
  const latest = requests.slice(-MAX_REQUESTS).reverse();
  return [...new Map([["", "All requests"], ...latest.map(({ id }) => [id, request_name(view, id)]), chosen(store)])];
}
