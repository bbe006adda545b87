// One row of the streams view: a stream, or what it goes on with after its branches have come back.
//
// Not here: the text (chips.js), which rows there are (lanes.js), keys (keys.js).

import { h, say } from "../../parts/dom.js";
import { End } from "../../parts/end.js";
import { name_of } from "../../parts/names.js";
import { text_of_runs } from "../../parts/runs.js";
import { create_share } from "../../parts/share.js";
import { shown, shown_lines } from "../../parts/text.js";
import { Chips } from "./chips.js";
import { figures_of } from "./figures.js";
import { state_mark } from "./looks.js";

const TAIL = 160; // characters of a folded lane

export class Row {
  /** `on`: focus(row, request), cancel(stream id), toggle(row). */
  constructor(doc, key, on) {
    this.key = key;
    this.is_near = false; // in sight, or nearly
    this._doc = doc;
    this._on = on;
    this._marked = [false, null];
    this._is_old = false; // something has changed that is not shown yet
    this.element = h(doc, "div", { class: "lane", role: "treeitem", tabindex: -1 });
  }

  /** Show a row of lanes.js with the pieces of its stream. `how`: is_folded, can_cancel (null: not known), replay. */
  update(row, pieces, how) {
    this.row = row;
    this.stream = row.stream;
    this.is_folded = how.is_folded;
    this._how = how;
    this._pieces = pieces.filter((piece) => (piece.at >= row.from && piece.at < row.to) || (piece.at === Infinity && row.to === Infinity));
    this._is_old = true;
    this.element.setAttribute("aria-level", row.depth + 1);
    this.element.setAttribute("aria-expanded", String(!how.is_folded));
    if (this._box === undefined) this.element.setAttribute("aria-label", name_of(row.stream));
    this.come_near(this.is_near);
  }

  /** A row is drawn only where it is, or soon may be, in sight. */
  come_near(is_near) {
    this.is_near = is_near;
    if (!is_near || !this._is_old) return;
    this._is_old = false;
    if (this._box === undefined) this._make();
    this._draw(this.row, this._how);
  }

  /** Let the row stand out, and in it what a request wrote. */
  mark(is_marked, request) {
    this._marked = [is_marked, request];
    this.element.classList.toggle("marked", is_marked);
    this.chips?.mark(request);
  }

  /** Whether something that the request wrote is shown here. */
  has_request(request) {
    return this._pieces.some((piece) => piece.request === request);
  }

  /** Whether the keyboard's focus rests on it. */
  set_stop(is_stop) {
    this.element.tabIndex = is_stop ? 0 : -1;
  }

  /** Scroll the text by pages. */
  page(n) {
    if (this.chips !== undefined) this._text.scrollTop += n * this._text.clientHeight * 0.9;
  }

  _make() {
    const { _doc: doc, _on: on } = this;
    const part = (name, ...rest) => h(doc, "div", { class: name }, ...rest);
    const button = (name, text, onclick = null) => h(doc, "button", { class: name, tabindex: -1, onclick }, text);
    for (const name of ["sign", "label", "state", "figures", "tail", "hint"]) this[`_${name}`] = h(doc, name === "label" ? "b" : "span", { class: name });
    this._rails = h(doc, "span", { class: "rails", "aria-hidden": "true" });
    this._fold = button("toggle", "▾", () => on.toggle(this));
    this._cancel = button("cancel", "■ cancel", () => on.cancel(this.stream.id));
    this._hint.append("press ■ to stop");
    this._last = h(doc, "bdi", { dir: "ltr" }); // the end is seen, and where it begins an ellipsis: so the line is from right to left
    this._tail.append(this._last);
    const head = part("head", this._fold, this._sign, this._label, this._state, this._figures, this._tail, this._cancel, this._hint);
    this._error = part("error");
    this._box = part("box", head, this._error);
    this.element.append(this._rails, this._box);
    this._box.addEventListener("click", (event) => this._clicked(event, on));
  }

  /** What only a lane that is unfolded needs. */
  _make_text() {
    const { _doc: doc } = this;
    const follow = h(doc, "button", { class: "end", tabindex: -1 }, "↓ follow");
    this._tail.after(follow);
    this._share = create_share(doc, ["cached", "prefilled", "gen"], { class: "share", "aria-hidden": "true" });
    this._text = h(doc, "div", { class: "text", tabindex: -1 });
    this._error.before(this._share.element, this._text);
    this._end = new End(this._text, follow);
    this.chips = new Chips(this._text, () => this._end.leave());
  }

  _draw(row, how) {
    const figures = figures_of(row.stream);
    this._show_place(row);
    this._show_head(row, how, figures);
    const tail = tail_of(this._pieces);
    if (how.is_folded) say(this._last, tail);
    this._tail.hidden = !how.is_folded;
    if (this.chips === undefined && !how.is_folded) this._make_text();
    if (this.chips !== undefined) this._show_text(row, how);
    this._show_error(row, how);
    this.element.setAttribute("aria-label", this._words(row, figures, tail));
    this.mark(...this._marked);
  }

  _show_place({ rails, stream, is_head, to }) {
    const ends = is_head && stream.ended === "joined" && to === Infinity;
    const source = `${rails} ${ends}`;
    if (this._placed === source) return;
    this._placed = source;
    this._rails.replaceChildren(...rails.map((goes_on, i) => this._rail(goes_on, is_head && i === rails.length - 1, ends)));
  }

  /** A line down past this row, with an arm to it where it begins, and one back where it was joined. */
  _rail(goes_on, is_own, ends) {
    const names = ["rail", goes_on && "on", is_own && "arm", is_own && ends && goes_on && "back"];
    return h(this._doc, "span", { class: names.filter(Boolean).join(" ") });
  }

  _show_head({ stream, depth, is_head, after }, how, figures) {
    const mark = state_mark(stream.state);
    this.element.dataset.state = mark.name;
    this.element.classList.toggle("goes-on", !is_head);
    say(this._fold, how.is_folded ? "▸" : "▾");
    this._fold.title = how.is_folded ? "Unfold (→)" : "Fold (←)";
    say(this._sign, is_head ? mark.sign : "↳");
    say(this._label, name_of(stream));
    say(this._state, is_head ? mark.name : after_words(after));
    say(this._figures, is_head ? figures.join(" · ") : "");
    const runs = is_head && !stream.ended && !how.replay;
    this._cancel.hidden = !runs || how.can_cancel === false;
    this._hint.hidden = !runs || how.can_cancel !== false || depth > 0; // once is enough
    this._cancel.disabled = how.can_cancel === null || how.is_cancelled;
    say(this._cancel, how.is_cancelled ? "cancelling…" : "■ cancel");
    this._cancel.setAttribute("aria-label", `cancel ${name_of(stream)}`);
  }

  _show_text(row, how) {
    this._show_share(row, how);
    this._text.hidden = how.is_folded || !this._pieces.length;
    if (how.is_folded) this._end.hide();
    else if (this.chips.update(this._pieces)) this._end.grew(!this.stream.ended);
  }

  /** Cached, prefilled and generated tokens as parts of a line; their numbers stand above it. */
  _show_share({ stream, is_head }, how) {
    const counts = [stream.n_cached, stream.n_computed, stream.n_generated];
    this._share.element.hidden = !is_head || how.is_folded || !counts.some(Boolean);
    this._share.show(counts);
  }

  _show_error({ stream, to }, how) {
    const error = to === Infinity ? stream.error : "";
    this._error.hidden = !error;
    if (!error) return;
    const text = how.is_folded ? shown(error.split("\n", 1)[0].slice(0, 300)) : shown_lines(error.slice(0, 4000));
    say(this._error, `✗ ${text}`);
  }

  _words({ stream, is_head, after }, figures, tail) {
    const state = is_head ? [state_mark(stream.state).name, ...figures] : [after_words(after)];
    return [name_of(stream), ...state, shown(stream.error.slice(0, 200)), tail].filter(Boolean).join(", ");
  }

  _clicked(event, on) {
    if (event.target.closest("button") !== null) return;
    const reads = this._doc.getSelection();
    if (reads !== null && !reads.isCollapsed && this.element.contains(reads.anchorNode)) return; // text was selected
    const request = event.target.closest("[data-request]")?.dataset.request;
    on.focus(this, request ? Number(request) : null);
  }
}

const after_words = (n) => `goes on after ${n} branch${n === 1 ? "" : "es"}`;

/** The end of what was written, in one line. */
function tail_of(pieces) {
  let text = "";
  for (let i = pieces.length - 1; i >= 0 && text.length < TAIL; i--) {
    if (pieces[i].kind === "role" || pieces[i].kind === "value") continue;
    text = text_of_runs(pieces[i].runs).slice(-TAIL) + (text && " ") + text;
  }
  return (text.length > TAIL ? "…" : "") + shown(text.slice(-TAIL).trim());
}
