// Pointer and keyboard on a timeline: from events of the page to acts.
//
// Plain wheels scroll the page; with Ctrl or ⌘ they zoom, and sideways they pan.
//
// Not here: what the acts do (index.js).

const DRAG = 4; // pixels that make a press a drag
const KEYS = {
  ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down", Home: "first", End: "last", Enter: "enter",
  " ": "seek", Escape: "leave", "+": "zoom_in", "=": "zoom_in", "-": "zoom_out", 0: "fit",
};

/**
 * @param {Element} element  the stage, which has the keyboard's focus
 * @param {object} on  point(event|null), press(event), pan(pixels), zoom(factor, event), act(name), focus(), blur()
 */
export function listen(element, on) {
  let start = null;
  let is_drag = false;
  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.target.closest("button") !== null) return;
    start = event.clientX;
    is_drag = false;
  });
  element.addEventListener("pointermove", (event) => {
    if (start === null) return on.point(event);
    if (!is_drag && Math.abs(event.clientX - start) < DRAG) return;
    if (!is_drag) element.setPointerCapture(event.pointerId);
    is_drag = true;
    element.classList.add("drag");
    on.point(null);
    on.pan(event.clientX - start);
    start = event.clientX;
  });
  const over = (event) => {
    if (start !== null && !is_drag && event.type === "pointerup") on.press(event);
    start = null;
    element.classList.remove("drag");
  };
  element.addEventListener("pointerup", over);
  element.addEventListener("pointercancel", over);
  element.addEventListener("pointerleave", () => on.point(null));
  element.addEventListener("wheel", (event) => {
    const is_zoom = event.ctrlKey || event.metaKey;
    if (!is_zoom && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
    event.preventDefault();
    if (is_zoom) on.zoom(Math.exp(-event.deltaY / 300), event);
    else on.pan(-event.deltaX);
  }, { passive: false });
  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== element || !Object.hasOwn(KEYS, event.key)) return;
    event.preventDefault();
    event.stopPropagation(); // a notebook has keys of its own
    on.act(KEYS[event.key]);
  });
  element.addEventListener("focus", () => on.focus());
  element.addEventListener("blur", () => on.blur());
}
