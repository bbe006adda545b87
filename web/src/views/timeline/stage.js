// The canvases of a timeline and what is where on them: an axis, rows that scroll, and areas below.
//
// Not here: what is shown (index.js), how it is painted (draw.js, areas.js).

import { h } from "../../parts/dom.js";
import { AREAS_HEIGHT, draw_areas } from "./areas.js";
import { AXIS, DENSE, draw_axis, draw_rows, tops_of, WIDE } from "./draw.js";
import { create_canvas, Paint } from "./paint.js";
import { found_at } from "./rows.js";
import { time_of } from "./scale.js";

const MANY = 24; // rows, above which they are low
const MOST = 360; // pixels of rows before they scroll
const REACH = 4; // pixels beside a bar that still count as on it

export class Stage {
  constructor(doc, prefix) {
    this._axis = create_canvas(doc, "axis");
    this._rows = create_canvas(doc, "rows");
    this._areas = create_canvas(doc, "areas");
    this._space = h(doc, "div", { class: "space" }, this._rows.element);
    this.scroll = h(doc, "div", { class: "scroll", tabindex: -1 }, this._space);
    this.option = h(doc, "div", { class: "unseen", role: "option", id: `${prefix}option`, "aria-selected": "true" });
    const listbox = { class: "stage", role: "listbox", tabindex: 0, "aria-label": "Requests over time", "aria-activedescendant": `${prefix}option` };
    this.element = h(doc, "div", listbox, this._axis.element, this.scroll, this._areas.element, this.option);
    this.rows = [];
  }

  /** Pixels for labels, and for bars. */
  get left() {
    return this.element.clientWidth < 820 ? 104 : 148;
  }

  get width() {
    return Math.max(this.element.clientWidth - this.left - 12, 1);
  }

  /** Lay these rows out. */
  set_rows(rows) {
    this.rows = rows;
    this.size = rows.length > MANY ? DENSE : WIDE;
    const { tops, height } = tops_of(rows, this.size);
    [this._tops, this._height] = [tops, height];
    this._space.style.height = `${height}px`;
    this._areas.element.style.marginTop = "0";
  }

  /** Draw all of it. `frame` is that of draw.js; `marks` too; the numbers of the areas are those at `at_ns`. */
  draw(frame, steps, marks, at_ns) {
    this._paint ??= new Paint(this.element.parentElement);
    this._paint.refresh();
    const wide = this.element.clientWidth;
    draw_axis(this._axis.begin(wide, AXIS), this._paint, frame);
    const seen = Math.min(this._height, MOST);
    draw_rows(this._rows.begin(wide, seen), this._paint, frame, this.rows, this._tops, this.size, this.scroll.scrollTop, seen, marks);
    this._areas.element.hidden = !steps.length;
    if (steps.length) draw_areas(this._areas.begin(wide, AREAS_HEIGHT), this._paint, frame, steps, at_ns);
  }

  /** What is under the pointer: {t_ns, row, bar, lane}; bar and lane are undefined where there is none. */
  at(event, window) {
    const box = this.element.getBoundingClientRect();
    const x = event.clientX - box.left - this.element.clientLeft - this.left;
    const t_ns = time_of(window, this.width, x);
    const rows = this.scroll.getBoundingClientRect();
    const y = event.clientY - rows.top - this.scroll.clientTop + this.scroll.scrollTop;
    if (event.clientY < rows.top || event.clientY > rows.bottom) return { x, t_ns };
    const i = this.rows.findIndex((row, at) => y >= this._tops[at] - 2 && y < this._tops[at] + this._tall(row));
    if (i < 0) return { x, t_ns };
    if (x < 0) return { x, t_ns, row: i, lane: this.rows[i].lane };
    const reach = ((window.to - window.from) / this.width) * REACH;
    return { x, t_ns, row: i, ...found_at(this.rows[i], t_ns, reach) };
  }

  /** The rectangle of a row in the page, for a tip. */
  rectangle(i, x0, x1) {
    const box = this.scroll.getBoundingClientRect();
    const top = box.top + this._tops[i] - this.scroll.scrollTop;
    const left = box.left + this.left;
    return { left: left + Math.max(x0, 0), right: left + Math.min(x1, this.width), top, bottom: top + this._tall(this.rows[i]) };
  }

  /** Scroll the rows, not the page, so that one can be seen. */
  bring_in(i) {
    const [top, bottom] = [this._tops[i], this._tops[i] + this._tall(this.rows[i])];
    const { scrollTop, clientHeight } = this.scroll;
    if (top < scrollTop) this.scroll.scrollTop = top - 8;
    else if (bottom > scrollTop + clientHeight) this.scroll.scrollTop = bottom - clientHeight + 8;
  }

  _tall(row) {
    return row.bars === null ? this.size.lane : this.size.bar;
  }
}
