// Escape gives the keyboard back to the notebook: to the cell that a view is in, whose keys are the notebook's own.

/** Take the focus from an element, and give it to its cell, where there is one; else it stays. */
export function leave(element) {
  const cell = element.closest(".jp-Cell");
  if (cell === null) return;
  element.blur();
  cell.focus({ preventScroll: true });
}
