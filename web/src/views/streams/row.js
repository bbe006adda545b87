// One row of the streams view: a stream, or what it goes on with after its branches have come back.
//
// Its text follows its end while it grows, unless the reader has scrolled up or has selected some of it.
//
// Not here: the text (chips.js), which rows there are (lanes.js), keys (keys.js).

import { h, say } from "../tree/dom.js";
import { shown, shown_lines } from "../tree/text.js";
import { Chips } from "./chips.js";
import { figures_of, name_of } from "./figures.js";
import { state_mark } from "./looks.js";

const NEAR = 6; // pixels from the end that count as its end
const TAIL = 160; // characters of a folded lane

export class Row {
  /** `on`: focus(row, request), cancel(stream id), toggle(row). */
  constructor(doc, key, on) {
    this.key = key;
    this._doc = doc;
    this._follows = null; // not decided before there is text
    const part = (tag, name, ...rest) => h(doc, tag, { class: name }, ...rest);
    const button = (name, text, onclick) => h(doc, "button", { type: "button", class: name, tabindex: -1, onclick }, text);
    this._rails = h(doc, "span", { class: "rails", "aria-hidden": "true" });
    this._fold = button("toggle", "▾", () => on.toggle(this));
    this._sign = part("span", "sign");
    this._label = part("b", "label");
    this._state = part("span", "state");
    this._figures = part("span", "figures");
    this._tail = part("span", "tail");
    this._end = button("end", "↓ follow", () => this._go_on());
    this._end.hidden = true;
    this._cancel = button("cancel", "■ cancel", () => on.cancel(this.stream.id));
    this._hint = part("span", "hint", "press ■ to stop");
    this._head = part("div", "head", this._fold, this._sign, this._label, this._state, this._figures, this._tail, this._end, this._cancel, this._hint);
    this._bar = h(doc, "div", { class: "share", "aria-hidden": "true" });
    this._text = h(doc, "div", { class: "text", tabindex: -1 });
    this._error = part("div", "error");
    this._box = part("div", "box", this._head, this._bar, this._text, this._error);
    this.element = h(doc, "div", { class: "lane", role: "treeitem", tabindex: -1 }, this._rails, this._box);
    this.chips = new Chips(this._text, () => (this._follows = false));
    this._text.addEventListener("scroll", () => this._scrolled(), { passive: true });
    this._box.addEventListener("click", (event) => this._clicked(event, on));
  }

  /** Show a row of lanes.js with the pieces of its stream. `how`: is_folded, can_cancel (null: not known), replay. */
  update(row, pieces, how) {
    const { stream } = row;
    this.row = row;
    this.stream = stream;
    this.is_folded = how.is_folded;
    this._show_place(row);
    this._show_head(row, how);
    this._show_share(row, how);
    const mine = pieces.filter((piece) => (piece.at >= row.from && piece.at < row.to) || (piece.at === Infinity && row.to === Infinity));
    this._pieces = mine;
    this._text.hidden = how.is_folded || !mine.length;
    if (how.is_folded) say(this._tail, tail_of(mine));
    else {
      if (this._follows === null && mine.length) this._follows = !stream.ended;
      if (this.chips.update(mine)) this._follow();
    }
    this._tail.hidden = !how.is_folded;
    if (how.is_folded) this._end.hidden = true;
    this._show_error(row, how);
    this.element.setAttribute("aria-label", this._words(row, mine));
  }

  /** Let the row stand out, and in it what a request wrote. */
  mark(is_marked, request) {
    this.element.classList.toggle("marked", is_marked);
    this.chips.mark(request);
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
    this._text.scrollTop += n * this._text.clientHeight * 0.9;
  }

  // ------------------------------------------------------------------------------------------------ showing

  _show_place({ depth, rails, stream, is_head, to }) {
    const ends = is_head && stream.ended === "joined" && to === Infinity;
    const source = `${rails} ${ends}`;
    if (this._placed === source) return;
    this._placed = source;
    this._rails.replaceChildren(...rails.map((goes_on, i) => this._rail(goes_on, is_head && i === rails.length - 1, ends)));
    this.element.setAttribute("aria-level", depth + 1);
  }

  /** A line down past this row, with an arm to it where it begins, and one back where it was joined. */
  _rail(goes_on, is_own, ends) {
    const names = ["rail", goes_on && "on", is_own && "arm", is_own && ends && goes_on && "back"];
    return h(this._doc, "span", { class: names.filter(Boolean).join(" ") });
  }

  _show_head({ stream, depth, is_head, after }, how) {
    const mark = state_mark(stream.state);
    this.element.dataset.state = mark.name;
    this.element.classList.toggle("goes-on", !is_head);
    this.element.setAttribute("aria-expanded", String(!how.is_folded));
    say(this._fold, how.is_folded ? "▸" : "▾");
    this._fold.title = how.is_folded ? "Unfold (→)" : "Fold (←)";
    say(this._sign, is_head ? mark.sign : "⤷");
    say(this._label, name_of(stream));
    say(this._state, is_head ? mark.word : `goes on after ${after} branch${after === 1 ? "" : "es"}`);
    say(this._figures, is_head ? figures_of(stream).join(" · ") : "");
    const runs = is_head && !stream.ended && !how.replay;
    this._cancel.hidden = !runs || how.can_cancel === false;
    this._hint.hidden = !runs || how.can_cancel !== false || depth > 0; // once is enough
    this._cancel.disabled = how.can_cancel === null || how.is_cancelled;
    say(this._cancel, how.is_cancelled ? "cancelling…" : "■ cancel");
    this._cancel.setAttribute("aria-label", `cancel ${name_of(stream)}`);
  }

  /** Cached, prefilled and generated tokens as parts of a line; their numbers stand above it. */
  _show_share({ stream, is_head }, how) {
    const counts = [stream.n_cached, stream.n_computed, stream.n_generated];
    this._bar.hidden = !is_head || how.is_folded || !counts.some(Boolean);
    const source = String(counts);
    if (this._bar.hidden || this._shared === source) return;
    this._shared = source;
    const names = ["cached", "prefilled", "gen"];
    if (!this._bar.children.length) this._bar.append(...names.map((name) => h(this._doc, "span", { class: name })));
    counts.forEach((n, i) => (this._bar.children[i].style.flexGrow = String(n)));
  }

  _show_error({ stream, to }, how) {
    const error = to === Infinity ? stream.error : "";
    this._error.hidden = !error;
    if (!error) return;
    const text = how.is_folded ? shown(error.split("\n", 1)[0].slice(0, 300)) : shown_lines(error.slice(0, 4000));
    say(this._error, `✗ ${text}`);
  }

  _words({ stream, is_head, after }, pieces) {
    const state = is_head ? [state_mark(stream.state).word, ...figures_of(stream)] : [`goes on after ${after} branches`];
    return [name_of(stream), ...state, shown(stream.error.slice(0, 200)), tail_of(pieces)].filter(Boolean).join(", ");
  }

  // ---------------------------------------------------------------------------------------------- following

  _scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this._text;
    if (!clientHeight) return;
    this._follows = scrollHeight - clientHeight - scrollTop <= NEAR;
    this._end.hidden = this._follows || Boolean(this.stream.ended);
  }

  _follow() {
    const reads = this._doc.getSelection();
    const is_read = reads !== null && !reads.isCollapsed && this._text.contains(reads.anchorNode);
    const overflows = this._text.scrollHeight > this._text.clientHeight + NEAR;
    if (this._follows && !is_read && overflows) this._text.scrollTop = this._text.scrollHeight;
    this._end.hidden = !overflows || this._follows !== false || Boolean(this.stream.ended);
  }

  _go_on() {
    this._follows = true;
    this._text.scrollTop = this._text.scrollHeight;
  }

  _clicked(event, on) {
    if (event.target.closest("button") !== null) return;
    const reads = this._doc.getSelection();
    if (reads !== null && !reads.isCollapsed && this.element.contains(reads.anchorNode)) return; // text was selected
    const request = event.target.closest("[data-request]")?.dataset.request;
    on.focus(this, request ? Number(request) : null);
  }
}

/** The end of what was written, in one line. */
function tail_of(pieces) {
  let text = "";
  for (let i = pieces.length - 1; i >= 0 && text.length < TAIL; i--) {
    if (pieces[i].kind === "role" || pieces[i].kind === "value") continue;
    text = pieces[i].runs.map((run) => run.text).join("").slice(-TAIL) + (text && " ") + text;
  }
  return (text.length > TAIL ? "…" : "") + shown(text.slice(-TAIL).trim());
}
