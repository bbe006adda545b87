// The timeline view: css, and create(root, store, options), which gives {update(changes), destroy()}.
//
// Not here: what was when (track.js), rows (rows.js), how it is painted (stage.js, draw.js, areas.js).

import { h, prefix_of, say } from "../../parts/dom.js";
import { listen } from "../../parts/hands.js";
import { create_tip } from "../../parts/tip.js";
import { create_bar } from "./bar.js";
import { css } from "./css.js";
import { Follower, seq_at, time_at } from "../../parts/follow.js";
import { Uses } from "../../parts/hits.js";
import { leave } from "../../parts/leave.js";
import { AREAS } from "./paint.js";
import { begin_of, end_of, first_place, moved, place_of, row_of } from "./places.js";
import { phases_in, rows_of, span_of } from "./rows.js";
import { span_words, x_of } from "./scale.js";
import { Stage } from "./stage.js";
import { Track } from "./track.js";
import { watch_looks } from "../../parts/watch.js";
import { zoom_keys } from "../../parts/zoom.js";
import { Window } from "./window.js";
import { bar_words, lane_words } from "./words.js";

export { css };

const KEYS = {
  ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down", Home: "first", End: "last", Enter: "enter",
  " ": "seek", Escape: "leave", 0: "fit",
};
const LABEL = "Requests over time. Arrows go from bar to bar, Enter focuses, Space shows that moment, plus and minus zoom.";

export function create(root, store) {
  return new TimelineView(root, store);
}

class TimelineView {
  constructor(root, store) {
    this._doc = root.ownerDocument;
    this._store = store;
    this._track = new Follower(() => new Track(store.engine));
    this._uses = new Uses(store);
    this._window = new Window();
    this._place = null; // {lane, bar} that the keyboard is at
    this._hover_ns = null;
    this._has_keys = false;
    this._own_focus = store.focus;
    this._build(root);
    this.update(new Set(["state"]));
  }

  update(changes) {
    const track = this._track.catch_up(this._store.events);
    if (track !== this._known || track.last_ns !== this._last_ns || changes.has("settings")) this._lay_out(track);
    if (changes.has("focus") && this._store.focus !== this._own_focus) this._bring_focus_in();
    this._draw();
  }

  destroy() {
    this._unwatch();
    this._element.remove();
  }

  // ----------------------------------------------------------------------------------------------- building

  _build(root) {
    const doc = this._doc;
    this._bar = create_bar(doc, this._store, {
      zoom: (factor) => this._zoom(factor, this._window.middle),
      fit: () => (this._window.fit(), this._draw()), live: () => this._store.seek(null),
    });
    this._stage = new Stage(doc, prefix_of("timeline"));
    this._stage.element.setAttribute("aria-label", LABEL);
    this._tip = create_tip(doc);
    this._empty = h(doc, "div", { class: "empty" });
    this._element = h(
      doc, "div", { class: "timeline" },
      this._bar.element, this._stage.element, this._empty, this._tip.element,
    );
    root.append(this._element);
    this._stage.scroll.addEventListener("scroll", () => this._draw(), { passive: true });
    const pan = (pixels) => (this._window.pan(-pixels / this._stage.width), this._draw());
    const keys = { ...KEYS, ...zoom_keys((factor) => this._zoom(factor, this._middle)) };
    listen(this._stage.element, keys, {
      point: (event) => this._point(event),
      press: (event) => this._press(event),
      pan,
      sideways: (pixels) => pan(-pixels),
      zoom: (factor, event) => this._zoom(factor, this._stage.at(event, this._window.now).t_ns),
      act: (act) => this._act(act),
      focus: () => this._take_keys(), blur: () => this._leave_keys(),
    });
    this._unwatch = watch_looks(this._stage.element, () => this._draw());
  }

  // ------------------------------------------------------------------------------------------------ showing

  _lay_out(track) {
    const { source, settings } = this._store;
    [this._known, this._last_ns] = [track, track.last_ns];
    this._shown = rows_of(track, settings.timeline_all ? "" : source);
    this._stage.set_rows(this._shown);
    const { first, last } = span_of(this._shown, track);
    this._zero = first;
    this._window.span(first, last);
    this._seen = new Set([...phases_in(this._shown), ...(track.steps.length ? Object.keys(AREAS) : [])]);
    this._n_bars = this._shown.reduce((sum, row) => sum + (row.bars?.length ?? 0), 0);
  }

  _draw() {
    const is_empty = !this._shown.length;
    this._stage.element.hidden = is_empty;
    this._empty.hidden = !is_empty;
    say(this._empty, this._store.waiting ? "Waiting for the next keyframe…" : this._store.replay ? "The log has no streams and no requests." : "Nothing has happened yet.");
    this._show_bar();
    if (is_empty || !this._stage.element.clientWidth) return;
    const frame = this._frame();
    const { request, stream } = this._store.focus;
    const marks = { bar: request, lane: stream, users: this._users(), active: this._has_keys ? (this._place?.bar ?? this._place?.lane) : null };
    this._stage.draw(frame, this._known.steps, marks, this._hover_ns ?? frame.cursor ?? this._known.last_ns);
  }

  /** The requests that used the node in focus. */
  _users() {
    const { node } = this._store.focus;
    return new Set(node === null ? [] : this._uses.of_node(node).map((use) => use.request));
  }

  _frame() {
    const { cursor, events } = this._store;
    return {
      window: this._window.now, left: this._stage.left, width: this._stage.width, zero: this._zero, last: this._known.last_ns,
      cursor: cursor === null ? null : (time_at(events, cursor) ?? this._known.first_ns),
    };
  }

  _show_bar() {
    const { from, to } = this._window.now;
    const words = this._shown.length ? `${this._n_bars} request${this._n_bars === 1 ? "" : "s"} · ${span_words(to - from)} shown` : "";
    this._bar.show({ words, seen: this._seen, is_fit: this._window.is_fit });
  }

  // ------------------------------------------------------------------------------------------------ pointer

  _point(event) {
    const found = event === null ? {} : this._stage.at(event, this._window.now);
    this._hover_ns = found.x >= 0 ? found.t_ns : null;
    this._stage.element.classList.toggle("over", found.bar !== undefined || found.lane !== undefined);
    if (found.bar === undefined && found.lane === undefined) this._tip.hide();
    else this._show_tip(this._shown[found.row], found.bar, { left: event.clientX, right: event.clientX, top: event.clientY - 8, bottom: event.clientY + 10 });
    this._draw();
  }

  /** A bar takes the focus; elsewhere the moment is shown. */
  _press(event) {
    const found = this._stage.at(event, this._window.now);
    this._stage.element.focus({ preventScroll: true });
    if (event.shiftKey || (found.bar === undefined && found.lane === undefined)) {
      if (found.x >= 0) this._seek(found.t_ns);
      return;
    }
    this._place = { lane: this._shown[found.row].lane, bar: found.bar ?? null };
    this._focus_on(this._place);
    this._say_place();
    this._draw();
  }

  _seek(t_ns) {
    const { events } = this._store;
    this._store.seek(!events.length || t_ns >= events.at(-1).t_ns ? null : seq_at(events, t_ns));
  }

  _focus_on({ lane, bar }) {
    this._store.set_focus({ stream: lane.id || null, request: bar?.id ?? null });
    this._own_focus = this._store.focus;
  }

  _zoom(factor, around_ns) {
    this._window.zoom(factor, around_ns);
    this._draw();
  }

  _show_tip(row, bar, at) {
    const { head, text } = this._words(row, bar);
    this._tip.show(bar ?? row.lane, head, text, at);
  }

  _words(row, bar) {
    const { lane } = row;
    if (bar) return bar_words(bar, lane, this._zero, this._known.last_ns);
    return lane_words(lane, row.label || "requests of no stream", this._zero, this._known.last_ns);
  }

  // ----------------------------------------------------------------------------------------------- keyboard

  _take_keys() {
    this._has_keys = this._stage.element.matches(":focus-visible");
    if (this._at() === null) this._go_to(first_place(this._shown));
    else this._say_place();
    this._draw();
  }

  _leave_keys() {
    this._has_keys = false;
    this._tip.hide();
    this._draw();
  }

  /** The time that the keyboard is at. */
  get _middle() {
    return this._place.bar?.starts[0] ?? this._window.middle;
  }

  /** A name of KEYS, or what to do. */
  _act(act) {
    this._has_keys = true;
    const at = this._at();
    if (at === null) return;
    const acts = {
      enter: () => this._focus_on(this._place),
      seek: () => this._seek(begin_of(this._place)),
      leave: () => this._leave(),
      fit: () => this._window.fit(),
    };
    if (typeof act === "function") act();
    else if (Object.hasOwn(acts, act)) acts[act]();
    else this._go_to(moved(this._shown, at, this._place, act, this._middle));
    this._draw();
  }

  _at() {
    return row_of(this._shown, this._place);
  }

  _go_to(place) {
    if (place === null) return;
    this._place = place;
    this._window.bring_in(begin_of(place), end_of(place) ?? this._known.last_ns);
    this._stage.bring_in(this._at());
    this._say_place();
  }

  /** One hidden option says where the keyboard is; a tip shows it. */
  _say_place() {
    const at = this._at();
    if (at === null) return;
    const { bar } = this._place;
    const { head, text } = this._words(this._shown[at], bar);
    say(this._stage.option, `${head}, ${text.replaceAll("\n", ", ")}`);
    if (!this._has_keys) return;
    const { now } = this._window;
    const x = (t_ns) => x_of(now, this._stage.width, t_ns);
    const end = end_of(this._place) ?? this._known.last_ns;
    this._show_tip(this._shown[at], bar, this._stage.rectangle(at, x(begin_of(this._place)), x(end)));
  }

  _leave() {
    this._store.set_focus({ stream: null, request: null });
    this._own_focus = this._store.focus;
    leave(this._stage.element);
  }

  _bring_focus_in() {
    const place = place_of(this._known, this._store.focus);
    if (row_of(this._shown, place) !== null) this._go_to(place);
  }
}
