// A window on a picture of parts: scrolling, labels that stay in sight, the width of a letter. Of a large picture only what
// is in sight is on the page, and some of what is near it.
//
// Not here: the picture (the views), pointer and keyboard (hands.js).

import { h, say } from "./dom.js";
import { Sheet, to_element } from "./svg.js";
import { width_of } from "./text.js";

export const MAX_HEIGHT = 440; // pixels
const SPARE = 240; // pixels around what is in sight that are drawn too
const LINE = 14; // pixels from line to line of a label
const TALL = 60, WIDE = 200; // boxes whose labels follow the scroll, in pixels

export const css = `
.nbs .sheet{flex:1 1 auto;min-width:0;overflow:auto;max-height:${MAX_HEIGHT}px;border:1px solid var(--nbs-line);border-radius:6px;scrollbar-gutter:stable;position:relative;background:var(--nbs-bg)}
.nbs .sheet.drag{cursor:grabbing;user-select:none}.nbs .sheet svg{display:block}
`;

/**
 * `prefix` begins the ids of parts, `defs` is a picture that others refer to, `attributes` are those of the element.
 *
 * A picture has width, height, zoom; drawn: the parts that there are to draw, each with a key; boxes: {x, y, w, h} by key;
 * draw(part): its picture; under: [key, picture] of what is no part; is_graph: it is small, so all of it is drawn, and labels
 * stay where they are.
 */
export function create_sheet(doc, prefix, defs, attributes) {
  const group = to_element(doc, ["g", {}]);
  const probe = to_element(doc, ["g", { class: "node" }, ["text", {}, "M".repeat(40)]]);
  const svg = to_element(doc, ["svg", { role: "none" }, defs]);
  svg.append(group, probe);
  const empty = h(doc, "div", { class: "empty", hidden: true });
  const element = h(doc, "div", { class: "sheet", tabindex: "0", ...attributes }, svg, empty);
  const sheet = new Sheet(group);
  let picture = null;
  let active = null;
  let char = 7;
  let room = null;
  let scroll = { left: 0, top: 0 }; // kept, and not asked for: that would lay out the page in the midst of drawing
  let drawn_at = scroll;
  const moved = new Set(); // keys of boxes whose labels have followed the scroll

  /** Put on the page what is in sight, and near it. */
  function draw(is_new) {
    drawn_at = scroll;
    const [left, top] = [scroll.left - SPARE, scroll.top - SPARE];
    const [right, bottom] = [scroll.left + room + SPARE, scroll.top + MAX_HEIGHT + SPARE];
    const is_near = ({ key }) => {
      const { x, y, w, h: high } = picture.boxes.get(key);
      return picture.is_graph || key === active || (x < right && x + w > left && y < bottom && y + high > top);
    };
    const parts = picture.drawn.filter(is_near).map((part) => [part.key, picture.draw(part)]);
    sheet.show([...picture.under, ...parts], is_new);
    follow();
  }

  /** Labels of boxes that begin out of sight are moved to where they can be read. */
  function follow() {
    if (picture.is_graph) return;
    for (const [key, { x, y, w, h: high }] of picture.boxes) {
      const [is_left, is_above] = [w >= WIDE && scroll.left > x, high >= TALL && scroll.top > y];
      const node = is_left || is_above || moved.has(key) ? sheet.element(key) : null;
      if (node === null) continue;
      moved[is_left || is_above ? "add" : "delete"](key);
      const texts = node.querySelectorAll("text");
      const dy = is_above ? between(scroll.top - y, 0, high - texts.length * LINE - 12) : 0;
      const dx = is_left ? between(scroll.left - x, 0, w - widest(texts) * char - 16) : 0;
      for (const text of texts) {
        const [across, down] = text.parentNode.classList.contains("turned") ? [dy && between(scroll.top - y, 0, high - 40), 0] : [dx, dy];
        if (across || down) text.setAttribute("transform", `translate(${across} ${down})`);
        else text.removeAttribute("transform");
      }
    }
  }

  function scrolled() {
    scroll = { left: element.scrollLeft, top: element.scrollTop };
    if (picture === null) return;
    const is_far = Math.abs(scroll.left - drawn_at.left) > SPARE / 2 || Math.abs(scroll.top - drawn_at.top) > SPARE / 2;
    if (is_far) draw(() => false);
    else follow();
  }
  element.addEventListener("scroll", scrolled, { passive: true });

  function scroll_to(left, top) {
    element.scrollTo(left, top);
    scrolled();
  }

  /** The rectangle of a part within the window of the sheet. */
  function place_in(key) {
    const { x, y, w, h: high } = picture.boxes.get(key);
    const [left, top] = [x * picture.zoom - scroll.left, y * picture.zoom - scroll.top];
    return { left, top, right: left + w * picture.zoom, bottom: top + high * picture.zoom };
  }

  function measure() {
    const before = room;
    room = Math.max(element.clientWidth - 2, 0);
    const width = probe.isConnected ? probe.firstChild.getComputedTextLength() : 0;
    if (width > 0) {
      char = width / 40;
      probe.remove();
    }
    return room !== before;
  }

  return {
    element,
    /** The page has given it another size, or may have: returns whether that changes `room`. */
    measure,
    /** Pixels for the picture's width; 0 while it is not on the screen. */
    get room() {
      if (room === null) measure();
      return room;
    },
    /** The width of a letter in pixels. */
    get char() {
      return char;
    },
    /** Show a picture; `key` is where the keyboard is, `words` say why nothing is there. */
    show(next, key, words) {
      const before = picture?.boxes;
      [picture, active] = [next, key];
      empty.hidden = next.drawn.length > 0;
      say(empty, words);
      svg.style.display = next.drawn.length ? "" : "none";
      const [w, high] = [Math.ceil(next.width), Math.ceil(next.height)];
      const size = { width: Math.ceil(w * next.zoom), height: Math.ceil(high * next.zoom), viewBox: `0 0 ${w} ${high}` };
      for (const [name, value] of Object.entries({ ...size, "aria-activedescendant": key === null ? "" : prefix + key })) {
        const target = name in size ? svg : element;
        if (target.getAttribute(name) !== String(value)) target.setAttribute(name, String(value));
      }
      draw((each) => before !== undefined && !before.has(each));
    },
    get has_focus() {
      return element.getRootNode().activeElement === element;
    },
    /** The rectangle of what can be seen of a part, in the window. */
    seen_of(key) {
      const [inner, outer] = [place_in(key), element.getBoundingClientRect()];
      const x = (at) => between(outer.left + 1 + at, outer.left, outer.right);
      const y = (at) => between(outer.top + 1 + at, outer.top, outer.bottom);
      return { left: x(inner.left), right: x(inner.right), top: y(inner.top), bottom: y(inner.bottom) };
    },
    /** What share of the picture's width is at x of the window (null: at a part, or in the middle), and where that is. */
    place_of(x, key) {
      const wide = element.clientWidth;
      const { left, right } = picture.boxes.has(key) ? place_in(key) : { left: wide, right: 0 };
      const [from, to] = [Math.max(left, 0), Math.min(right, wide)]; // what can be seen of the part
      const at = x !== null ? x - element.getBoundingClientRect().left : from < to ? (from + to) / 2 : wide / 2;
      return { at, share: (scroll.left + at) / Math.max(element.scrollWidth, 1) };
    },
    /** Scroll so that the same share is there again. */
    put({ at, share }) {
      scroll_to(share * element.scrollWidth - at, scroll.top);
    },
    /** Scroll by so many pixels. */
    pan(dx, dy) {
      scroll_to(scroll.left - dx, scroll.top - dy);
    },
    /** Scroll to the left end, to this spot of the picture in the middle. */
    center({ y }) {
      scroll_to(0, y * picture.zoom - element.clientHeight / 2);
    },
    /** Scroll so that a part can be seen. */
    reveal(key) {
      if (!picture.boxes.has(key)) return;
      const { left, top, right, bottom } = place_in(key);
      scroll_to(scroll.left + step(left, right, element.clientWidth), scroll.top + step(top, bottom, element.clientHeight));
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
