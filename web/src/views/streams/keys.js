// Keys of the lanes: one tab stop; arrows, Home and End from lane to lane, left and right to fold and unfold.
//
// Not here: what the keys do in the end (index.js).

import { child_at, parent_at } from "../../parts/outline.js";

/**
 * @param {Element} list  the element around the lanes
 * @param {() => Row[]} rows  those shown, top to bottom
 * @param {object} on  fold(row, folds), focus(row), leave(), cancel(row), move(row)
 */
export function listen(list, rows, on) {
  list.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const all = rows();
    const at = all.findIndex((row) => row.element === event.target.closest("[role=treeitem]"));
    if (at < 0) return;
    const row = all[at];
    const is_on_row = event.target === row.element;
    const outline = all.map((each) => each.row);
    const move = (to) => all[to] !== undefined && on.move(all[to]);
    const keys = {
      ArrowDown: () => move(at + 1),
      ArrowUp: () => move(at - 1),
      Home: () => move(0),
      End: () => move(all.length - 1),
      ArrowLeft: () => (row.is_folded ? move(parent_at(outline, at)) : on.fold(row, true)),
      ArrowRight: () => (row.is_folded ? on.fold(row, false) : move(child_at(outline, at))),
      Enter: () => on.focus(row),
      " ": () => row.chips?.toggle_folds(),
      Escape: () => on.leave(row),
      Delete: () => on.cancel(row),
      PageDown: () => row.page(1),
      PageUp: () => row.page(-1),
    };
    if (!Object.hasOwn(keys, event.key) || (!is_on_row && event.key !== "Escape")) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  });
}
