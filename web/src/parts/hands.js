// Pointer and keyboard on a picture: from events of the page to acts.
//
// Plain wheels scroll the page; with Ctrl or ⌘ they zoom.
//
// Not here: what the acts do (the views).

const DRAG = 5; // pixels that make a press a drag

/**
 * @param {Element} element  which has the keyboard's focus
 * @param {object} keys  names of acts, or the acts, by KeyboardEvent.key
 * @param {object} on  point(event|null), press(event), pan(dx, dy), zoom(factor, event), act(name), focus(), blur(), and
 *   perhaps sideways(pixels) of a wheel
 */
export function listen(element, keys, on) {
  let last = null; // where the pointer was, while it is down
  let is_drag = false;
  const add = (name, fn, options) => element.addEventListener(name, fn, options);
  const up = () => {
    last = null;
    element.classList.remove("drag");
  };
  add("pointerdown", (event) => {
    is_drag = false;
    const is_scrollbar = event.target === element && event.offsetX >= element.clientWidth;
    if (event.button === 0 && !is_scrollbar) last = event;
  });
  add("pointermove", (event) => {
    if (last === null) return on.point(event);
    const [dx, dy] = [event.clientX - last.clientX, event.clientY - last.clientY];
    if (!is_drag && Math.abs(dx) + Math.abs(dy) < DRAG) return;
    if (!is_drag) {
      element.setPointerCapture(event.pointerId);
      element.classList.add("drag");
      on.point(null);
    }
    is_drag = true;
    last = event;
    if (event.pointerType !== "touch" || on.sideways !== undefined) on.pan(dx, dy); // else the finger scrolls
  });
  add("pointerup", up);
  add("pointercancel", up);
  add("pointerleave", () => on.point(null));
  add("click", (event) => !is_drag && on.press(event)); // screen readers click too
  add("wheel", (event) => {
    if (event.ctrlKey || event.metaKey) on.zoom(Math.exp(-event.deltaY / 300), event);
    else if (on.sideways !== undefined && Math.abs(event.deltaX) > Math.abs(event.deltaY)) on.sideways(event.deltaX);
    else return;
    event.preventDefault();
  }, { passive: false });
  add("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== element || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    event.stopPropagation(); // a notebook has keys of its own
    on.act(keys[event.key]);
  });
  add("focus", () => on.focus());
  add("blur", () => on.blur());
}
