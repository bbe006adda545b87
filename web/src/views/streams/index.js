// The streams view: css, and create(root, store, options), which gives {update(changes), destroy()}.
//
// Not here: the order of lanes (lanes.js), a lane (row.js), its text (pieces.js, chips.js), times of tokens (pace.js).

import { h, say } from "../../parts/dom.js";
import { focused } from "../../parts/focus.js";
import { Follower } from "../../parts/follow.js";
import { hold } from "../../parts/hold.js";
import { leave } from "../../parts/leave.js";
import { create_bar } from "./bar.js";
import { css as own_css } from "./css.js";
import { census, fingerprint, news_of } from "./figures.js";
import { listen } from "./keys.js";
import { failed_only, limited, rows_of } from "./lanes.js";
import { css as odds_css } from "../../parts/odds.js";
import { Pace } from "./pace.js";
import { Pieces } from "./pieces.js";
import { Row } from "./row.js";

export const css = own_css + odds_css;

const MAX_LANES = 128; // more only when the reader asks for them
const MANY = 12; // above it, branches begin folded
const FIRST = 680, TALL = 50, LOW = 28; // pixels: the height of the list, and what lanes take at least

export function create(root, store) {
  return new StreamsView(root, store);
}

class StreamsView {
  constructor(root, store) {
    this._doc = root.ownerDocument;
    this._store = store;
    this._pace = new Follower(() => new Pace(store.engine));
    this._lanes = new Map(); // by stream: {pieces, list, print}
    this._rows = new Map(); // by key
    this._shown = []; // the rows in their order
    this._folds = new Map(); // what the reader chose, by key of the row
    this._all_folded = null; // what the reader chose for all
    this._cancelled = new Set();
    this._most = MAX_LANES;
    this._stop = null; // the key of the row on which the keyboard rests
    this._own_focus = store.focus;
    this._build(root);
    this.update(new Set(["state", "focus"]));
  }

  update(changes) {
    this._show();
    if (changes.has("focus") || this._marked === undefined) this._show_focus();
  }

  destroy() {
    this._sight.disconnect();
    this._let_go();
    this._element.remove();
  }

  _build(root) {
    const doc = this._doc;
    this._bar = create_bar(doc, this._store, {
      mode: (name) => this._store.set({ streams_by: name }),
      fold: () => this._fold_all(),
    });
    this._list = h(doc, "div", { class: "lanes", role: "tree", "aria-label": "Streams", tabindex: -1 });
    this._left = h(doc, "button", { class: "left", onclick: () => this._show_more() });
    this._empty = h(doc, "div", { class: "empty" });
    this._news = h(doc, "div", { class: "unseen", role: "status" });
    this._element = h(
      doc, "div", { class: "streams" },
      this._bar.element, this._list, this._left, this._empty, this._news,
    );
    root.append(this._element);
    this._let_go = hold(this._list, this._store);
    this._on = {
      focus: (row, request) => this._focus_on(row, request),
      cancel: (id) => this._cancel(id),
      toggle: (row) => this._fold(row, !row.is_folded),
    };
    listen(this._list, () => this._shown, {
      fold: (row, folds) => this._fold(row, folds),
      focus: (row) => this._focus_on(row, row.stream.latest_call?.requests[0]?.id ?? null),
      leave: (row) => this._leave(row),
      cancel: (row) => this._may_cancel(row.stream) && this._cancel(row.stream.id),
      move: (row) => this._move_to(row),
    });
    const row_of = (element) => this._shown.find((row) => row.element === element);
    this._list.addEventListener("focusin", (event) => {
      const row = row_of(event.target.closest("[role=treeitem]"));
      if (row !== undefined) this._rest_on(row.key);
    });
    this._sight = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) row_of(target)?.come_near(isIntersecting);
    }, { root: this._list, rootMargin: "300px 0px" });
  }

  _show() {
    const { view, settings, live } = this._store;
    const mode = settings.streams_by ?? "kind";
    const pace = mode === "kind" ? null : this._pace.catch_up(this._store.events);
    pace?.check(live);
    this._begin_anew_if(view, mode, pace);
    const all = rows_of(view, this._store.source);
    const streams = all.filter((row) => row.is_head).map((row) => row.stream);
    const wanted = settings.streams_failed ? failed_only(all, view.streams) : all;
    const { rows, left } = limited(wanted, this._most, this._store.focus.stream);
    this._n_streams = streams.length;
    const looks = new Set();
    this._show_rows(rows, view, pace, looks);
    this._bar.show({
      mode, looks, words: census(streams), has_logprobs: Boolean(pace?.has_logprobs),
      is_all_folded: this._shown.length > 0 && this._shown.every((row) => row.is_folded),
    });
    this._left.hidden = !left.length;
    if (left.length) say(this._left, `Show more of the ${census(left)}`);
    this._empty.hidden = rows.length > 0;
    if (!rows.length) say(this._empty, streams.length ? "No stream has failed." : this._store.waiting ? "Waiting for the next keyframe…" : this._store.replay ? "The log has no streams." : "No streams yet.");
    say(this._news, this._store.replay ? "" : news_of(streams));
  }

  /** Pieces are built once for one way of colouring, one view and one reading of the log. */
  _begin_anew_if(view, mode, pace) {
    const is_same = this._view === view && this._mode === mode && this._known === pace && this._cursor === this._store.cursor;
    [this._view, this._mode, this._known, this._cursor] = [view, mode, pace, this._store.cursor];
    if (!is_same) this._lanes.clear();
  }

  _show_rows(rows, view, pace, looks) {
    const keep = new Set(rows.map((row) => row.key));
    for (const [key, row] of this._rows) {
      if (keep.has(key)) continue;
      this._sight.unobserve(row.element);
      row.element.remove();
      this._rows.delete(key);
    }
    let before = null;
    let y = 0;
    this._shown = rows.map((row) => {
      const lane = this._lane(row.stream, view, pace);
      for (const piece of lane.list) for (const run of piece.runs) looks.add(run.look);
      let shown = this._rows.get(row.key);
      if (shown === undefined) {
        this._rows.set(row.key, (shown = new Row(this._doc, row.key, this._on)));
        shown.come_near(y < FIRST);
        this._sight.observe(shown.element);
      }
      this._show_row(shown, row, lane);
      y += shown.is_folded ? LOW : TALL;
      const next = before === null ? this._list.firstChild : before.nextSibling;
      if (next !== shown.element) this._list.insertBefore(shown.element, next);
      before = shown.element;
      return shown;
    });
    if (this._shown.length && !this._rows.has(this._stop)) this._rest_on(this._shown[0].key);
  }

  /** The pieces of a stream, built on when it has changed. */
  _lane(stream, view, pace) {
    let lane = this._lanes.get(stream.id);
    if (lane === undefined) this._lanes.set(stream.id, (lane = { pieces: new Pieces(this._mode), list: [], print: "" }));
    const print = fingerprint(stream);
    if (print !== lane.print) {
      lane.list = lane.pieces.update(view, stream, pace);
      lane.print = print;
    }
    return lane;
  }

  _show_row(shown, row, lane) {
    const how = {
      is_folded: this._is_folded(row),
      can_cancel: this._store.can_cancel,
      replay: this._store.replay || this._store.seeking,
      is_cancelled: this._cancelled.has(row.stream.id),
    };
    const print = `${lane.print} ${Object.values(how)} ${row.rails} ${row.from} ${row.to} ${this._store.cursor} ${this._mode}`;
    if (shown.print === print && shown.list === lane.list) return;
    [shown.print, shown.list] = [print, lane.list];
    shown.update(row, lane.list, how);
    if (this._marked !== undefined) this._mark(shown);
  }

  _is_folded(row) {
    return this._folds.get(row.key) ?? this._all_folded ?? (this._n_streams > MANY && row.depth > 0 && row.stream.state !== "failed");
  }

  // --- focus

  _show_focus() {
    const { id, request } = (this._marked = focused(this._store));
    for (const row of this._shown) this._mark(row);
    const row = this._shown.find((each) => each.stream.id === id && (request === null || each.has_request(request))) ?? this._shown.find((each) => each.stream.id === id);
    if (row !== undefined && this._store.focus !== this._own_focus) this._bring_in(row.element);
    this._own_focus = this._store.focus;
  }

  _mark(row) {
    row.mark(row.stream.id === this._marked.id, this._marked.request);
  }

  /** Scroll the list, not the page. */
  _bring_in(element) {
    const [list, lane] = [this._list.getBoundingClientRect(), element.getBoundingClientRect()];
    if (lane.top >= list.top && lane.bottom <= list.bottom) return;
    this._list.scrollTop += lane.top - list.top - 8;
  }

  _focus_on(row, request) {
    this._rest_on(row.key);
    this._set_focus({ stream: row.stream.id, request });
  }

  _set_focus(patch) {
    this._store.set_focus(patch);
    this._own_focus = this._store.focus;
  }

  _leave(row) {
    this._set_focus({ stream: null, request: null });
    row.element.focus();
    leave(row.element);
  }

  _move_to(row) {
    row.come_near(true);
    this._rest_on(row.key);
    row.element.focus({ preventScroll: true });
    this._bring_in(row.element);
  }

  _rest_on(key) {
    this._stop = key;
    for (const row of this._rows.values()) row.set_stop(row.key === key);
  }

  _fold(row, folds) {
    this._folds.set(row.key, folds);
    this._show();
  }

  _fold_all() {
    this._all_folded = !this._shown.every((row) => row.is_folded);
    this._folds.clear();
    this._show();
  }

  _show_more() {
    this._most += MAX_LANES;
    this._show();
  }

  _may_cancel(stream) {
    return !stream.ended && this._store.can_cancel === true && !this._store.replay && !this._store.seeking;
  }

  _cancel(id) {
    this._cancelled.add(id);
    this._store.send({ do: "cancel", stream: id });
    this._show();
  }
}
