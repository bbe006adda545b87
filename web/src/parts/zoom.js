// Zooming by buttons and by keys, in steps of one size. `zoom(factor)` zooms in above 1.
//
// Not here: what is zoomed (the views), wheels (hands.js).

const STEP = 1.5;

/** Two buttons, made by `button` (dom.js). */
export function zoom_buttons(button, zoom) {
  return [button("−", "Zoom out (-)", () => zoom(1 / STEP)), button("+", "Zoom in (+)", () => zoom(STEP))];
}

/** What keys do, by KeyboardEvent.key; 0 is for the view. */
export function zoom_keys(zoom) {
  return { "+": () => zoom(STEP), "=": () => zoom(STEP), "-": () => zoom(1 / STEP) };
}
