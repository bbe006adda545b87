// Escape gives the keyboard back to the notebook: to the cell that a view is in, whose keys are the notebook's own.

/** Take the focus from an element, and give it to its cell, where there is one. */
export function leave(element) {
  element.blur();
  element.closest(".jp-Cell")?.focus({ preventScroll: true });
}
