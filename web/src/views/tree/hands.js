// Pointer and keyboard on the tree: from events of the page to acts. Not here: what the acts do (index.js).

const ACTS = {
  Enter: "enter", " ": "enter", Escape: "escape",
  "/": "search", n: "next", p: "previous", N: "previous",
  "+": "zoom_in", "=": "zoom_in", "-": "zoom_out", 0: "zoom_reset",
  z: "only", c: "fold",
};

/**
 * @param {object} stage  of stage.js
 * @param {object} on  move(name of a key) says whether it moved; point(key|null), open(key), act(name), zoom(factor, x),
 *   focus(), blur()
 */
export function listen(stage, on) {
  const { element } = stage;
  const key_at = (event) => event.target.closest?.("[data-key]")?.getAttribute("data-key") ?? null;
  element.addEventListener("pointermove", (event) => on.point(event.buttons ? null : key_at(event)));
  element.addEventListener("pointerleave", () => on.point(null));
  element.addEventListener("click", (event) => {
    const key = key_at(event);
    if (!stage.was_drag && key !== null) on.open(key);
  });
  element.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return; // plain wheels scroll
    event.preventDefault();
    on.zoom(Math.exp(-event.deltaY / 300), event.clientX);
  }, { passive: false });
  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = ACTS[event.key];
    if (act !== undefined) on.act(act);
    else if (!on.move(event.key)) return;
    event.preventDefault();
    event.stopPropagation(); // a notebook has keys of its own
  });
  element.addEventListener("focus", () => on.focus());
  element.addEventListener("blur", () => on.blur());
}
