// A field that searches while one types. Enter goes on, Escape empties it.
//
// Not here: what is searched (the views).

import { h } from "./dom.js";

const DELAY_MS = 120; // from the last letter to the search

/** `on`: search(text), found(±1), leave(). Returns {input, destroy()}. */
export function create_search_box(doc, label, on) {
  let timer = null;
  const input = h(doc, "input", { type: "search", placeholder: "Search text  ( / )", "aria-label": label, spellcheck: "false", autocomplete: "off" });
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
  return { input, destroy: () => clearTimeout(timer) };
}
