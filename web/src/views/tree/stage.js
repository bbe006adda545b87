// The part of the page in which the tree is drawn: scrolling, dragging, labels that stay in sight, the width of a letter.
// Not here: what is drawn (picture.js).

import { h } from "./dom.js";
import { hatching, LINE } from "./shapes.js";
import { Sheet, to_element } from "./svg.js";
import { width_of } from "./text.js";

const TALL = 60, WIDE = 200; // boxes whose labels follow the scroll, in pixels
const SLACK = 5; // pixels that a click may move

export function create_stage(doc, prefix, label) {
  const group = to_element(doc, ["g", {}]);
  const svg = to_element(doc, ["svg", { role: "none" }, hatching(prefix)]);
  svg.append(group);
  const empty = h(doc, "div", { class: "empty", hidden: true });
  const roles = { role: "tree", tabindex: "0", "aria-label": label, "aria-describedby": `${prefix}keys` };
  const element = h(doc, "div", { class: "sheet", ...roles }, svg, empty);
  const sheet = new Sheet(group);
  let picture = null;
  let char = null;
  let [down, is_drag] = [null, false];
  let scroll = { left: 0, top: 0 }; // kept, and not asked for: that would lay out the page in the midst of drawing
  let room = null;

  /** Labels of boxes that begin out of sight are moved to where they can be read. */
  function follow() {
    if (picture === null || picture.boxes === null) return;
    for (const [key, { x, y, w, h: high }] of picture.boxes) {
      if (high < TALL && w < WIDE) continue;
      const texts = sheet.element(key)?.querySelectorAll("text") ?? [];
      const dy = high < TALL ? 0 : between(scroll.top - y, 0, high - texts.length * LINE - 12);
      const dx = w < WIDE ? 0 : between(scroll.left - x, 0, w - widest(texts) * (char ?? LINE) - 16);
      for (const text of texts) {
        if (text.parentNode.classList.contains("turned")) {
          if (dy) text.setAttribute("transform", `translate(${between(scroll.top - y, 0, high - 40)} 0)`);
          else text.removeAttribute("transform");
        } else if (dx || dy) text.setAttribute("transform", `translate(${dx} ${dy})`);
        else if (text.hasAttribute("transform")) text.removeAttribute("transform");
      }
    }
  }

  element.addEventListener("scroll", () => {
    scroll = { left: element.scrollLeft, top: element.scrollTop };
    follow();
  }, { passive: true });
  element.addEventListener("pointerdown", (event) => {
    is_drag = false;
    if (event.button !== 0 || event.pointerType === "touch") return;
    down = { x: event.clientX, y: event.clientY, left: element.scrollLeft, top: element.scrollTop };
  });
  element.addEventListener("pointermove", (event) => {
    if (down === null) return;
    const [dx, dy] = [event.clientX - down.x, event.clientY - down.y];
    if (!is_drag && Math.abs(dx) + Math.abs(dy) > SLACK && event.clientX - element.getBoundingClientRect().left < element.clientWidth) {
      is_drag = true;
      element.setPointerCapture(event.pointerId);
      element.classList.add("drag");
    }
    if (is_drag) element.scrollTo(down.left - dx, down.top - dy);
  });
  const up = () => {
    down = null;
    element.classList.remove("drag");
  };
  element.addEventListener("pointerup", up);
  element.addEventListener("pointercancel", up);

  return {
    element,
    /** Whether the pointer has just dragged, so that its click means nothing. */
    get was_drag() {
      return is_drag;
    },
    /** Pixels for the picture's width; 0 while it is not on the screen. */
    get room() {
      return (room ??= Math.max(element.clientWidth - 2, 0));
    },
    /** The page has given it another size, or may have: returns whether that changes `room`. */
    measure() {
      const before = room;
      room = Math.max(element.clientWidth - 2, 0);
      return room !== before;
    },
    /** The width of a letter in pixels. */
    get char() {
      if (char !== null) return char;
      const probe = to_element(doc, ["g", { class: "node" }, ["text", {}, "M".repeat(40)]]);
      svg.append(probe);
      const width = probe.firstChild.getComputedTextLength?.() ?? 0;
      probe.remove();
      if (width > 0) char = width / 40;
      return char ?? 7;
    },
    /** Show a picture; `active` is the key where the keyboard is, `words` say why nothing is there. */
    show(next, active, words) {
      picture = next;
      empty.hidden = next.drawn.length > 0;
      empty.textContent = words;
      svg.style.display = next.drawn.length ? "" : "none";
      const [w, high] = [Math.ceil(next.width), Math.ceil(next.height)];
      for (const [name, value] of [["width", Math.ceil(w * next.zoom)], ["height", Math.ceil(high * next.zoom)], ["viewBox", `0 0 ${w} ${high}`]]) {
        if (svg.getAttribute(name) !== String(value)) svg.setAttribute(name, String(value));
      }
      const n_made = sheet.show(next.pictures);
      const descendant = active === null ? "" : prefix + active;
      if (element.getAttribute("aria-activedescendant") !== descendant) element.setAttribute("aria-activedescendant", descendant);
      follow();
      return n_made;
    },
    element_of: (key) => sheet.element(key),
    get has_focus() {
      return element.getRootNode().activeElement === element;
    },
    get is_by_keyboard() {
      return element.matches(":focus-visible");
    },
    /** The rectangle of what can be seen of a part, in the window. */
    seen_of(key) {
      const [inner, outer] = [sheet.element(key).getBoundingClientRect(), element.getBoundingClientRect()];
      const [left, right] = [Math.max(inner.left, outer.left), Math.min(inner.right, outer.right)];
      return { left, right, top: Math.max(inner.top, outer.top), bottom: Math.min(inner.bottom, outer.bottom) };
    },
    /** The x of the middle of what can be seen of a part, in the window; null where that is nothing. */
    middle_of(key) {
      if (sheet.element(key) === null) return null;
      const { left, right, top, bottom } = this.seen_of(key);
      return left < right && top < bottom ? (left + right) / 2 : null;
    },
    /** What share of the picture's width is at x of the window (null: in the middle), and where that is. */
    place_of(x) {
      const at = x === null ? element.clientWidth / 2 : x - element.getBoundingClientRect().left;
      return { at, share: (element.scrollLeft + at) / Math.max(element.scrollWidth, 1) };
    },
    /** Scroll to the left end, to this spot of the picture in the middle. */
    center({ y }) {
      element.scrollLeft = 0;
      element.scrollTop = y * picture.zoom - element.clientHeight / 2;
    },
    /** Scroll so that the same share is there again. */
    put({ at, share }) {
      element.scrollLeft = share * element.scrollWidth - at;
    },
    /** Scroll so that a part can be seen. */
    reveal(key) {
      const node = sheet.element(key);
      if (node === null) return;
      const [inner, outer] = [node.getBoundingClientRect(), element.getBoundingClientRect()];
      element.scrollTop += step(inner.top - outer.top, inner.bottom - outer.top, element.clientHeight);
      element.scrollLeft += step(inner.left - outer.left, inner.right - outer.left, element.clientWidth);
    },
  };
}

/** How far to scroll for a span to be seen; its beginning, if it is larger than the window. */
function step(low, high, room) {
  if (low >= 0 && high <= room) return 0;
  if (high - low > room) return low > room - 40 || high < 40 ? low : 0;
  return low < 0 ? low - 8 : high - room + 8;
}

/** The cells of the longest of these texts. */
const widest = (texts) => Math.max(0, ...Array.from(texts, (text) => width_of(text.textContent)));

const between = (value, low, high) => Math.max(low, Math.min(value, Math.max(high, low)));
