// The frame of one output: a head with state and cancel, and a section for each view. A view that throws is switched off.
//
// Not here: what views show (views/), state (store.js), colours (theme.js).

import { grouped } from "./parts/grouped.js";
import { css as theme } from "./theme.js";
import { h, say } from "./parts/dom.js";
import { hold } from "./parts/hold.js";
import { count_words, seconds, shown } from "./parts/text.js";
import { VIEWS } from "./views/index.js";

const STYLE_ID = "nbsglang-style";
const LEFT_ALONE = "tex2jax_ignore mathjax_ignore"; // by the typesetter of a host; its keys keep out too
const BARE = new Set(["numbers", "time"]); // need no heading

/** Draw a store in an element. `show` names views; `is_page` that they have a page of their own. Returns {destroy(), is_beginning}. */
export function mount(el, store, { show, title = "", is_page = false } = {}) {
  const shell = new Shell(el, store, { show, title, is_page });
  return {
    destroy: () => shell.destroy(),
    /** Whether some views are still to come. */
    get is_beginning() {
      return shell.left.length > 0;
    },
  };
}

class Shell {
  constructor(el, store, { show, title, is_page }) {
    const doc = el.ownerDocument;
    add_style(doc, el.getRootNode());
    this.doc = doc;
    this.store = store;
    this.root = h(doc, "div", { class: `nbs${is_page ? " page" : ""} ${LEFT_ALONE}`, role: "group", "data-lm-suppress-shortcuts": "true", "aria-label": `nbsglang: ${title || "run"}` });
    this.head = new Head(doc, store, title);
    this.sections = names_of(show).map((name) => new Section(doc, store, name));
    this.root.append(this.head.element, ...this.sections.map((section) => section.element));
    el.replaceChildren(this.root);
    this.is_seen = true;
    this.missed = new Set();
    this.off = store.on((changes) => this.update(changes));
    this._watch_visibility();
    this.head.update();
    this.left = [...this.sections]; // those that have not begun
    this._begin();
  }

  /** Make the views that are in sight; those below them come after a frame was painted. */
  _begin() {
    let section;
    do (section = this.left.shift())?.begin();
    while (section?.name === "numbers" || this.left[0]?.is_in_sight); // these are low, and to look is to lay out the page
    if (this.left.length) requestAnimationFrame(() => setTimeout(() => this._end_beginning(), 0));
  }

  _end_beginning() {
    while (this.left.length) this.left.shift().begin();
  }

  update(changes) {
    if (!this.is_seen) {
      for (const change of changes) this.missed.add(change);
      return;
    }
    this.head.update();
    for (const section of this.sections) section.update(changes);
  }

  destroy() {
    this.off();
    this.left = [];
    this.observer?.disconnect();
    for (const section of this.sections) section.destroy();
    this.root.remove();
  }

  /** An output that nobody sees is not drawn; when it comes into sight it makes up for it. */
  _watch_visibility() {
    const Observer = this.doc.defaultView?.IntersectionObserver;
    if (Observer === undefined) return;
    this.observer = new Observer((entries) => {
      this.is_seen = entries.at(-1).isIntersecting;
      if (!this.is_seen || !this.missed.size) return;
      const changes = this.missed;
      this.missed = new Set();
      this.update(changes);
    }, { rootMargin: "200px" });
    this.observer.observe(this.root);
  }
}

class Head {
  constructor(doc, store, title) {
    this.store = store;
    this.asked = false;
    this.given = title;
    this.title = h(doc, "span", { class: "nbs-title" });
    this.state = h(doc, "span", { class: "nbs-state", role: "status" });
    this.note = h(doc, "span", { class: "nbs-note", role: "status" });
    this.cancel = h(doc, "button", { onclick: () => this._cancel() }, "■ cancel");
    this.fail = h(doc, "div", { class: "nbs-fail", hidden: true });
    const line = h(doc, "div", { class: "nbs-head" }, this.title, this.state, this.note, h(doc, "span", { class: "nbs-grow" }), this.cancel);
    this.element = h(doc, "div", {}, line, this.fail);
  }

  update() {
    const { store } = this;
    const streams = store.live.streams_of(store.source);
    const goes_on = streams.some((stream) => !stream.ended);
    const label = store.source ? streams.find((stream) => stream.parent === "")?.label : store.live.ready?.name;
    say(this.title, shown(this.given || label || "run"));
    say(this.state, state_of(store, streams));
    say(this.note, note_of(store));
    const is_runnable = !store.replay && store.source !== "" && goes_on;
    this.cancel.hidden = !is_runnable;
    this.cancel.disabled = store.can_cancel === false || this.asked;
    say(this.cancel, store.can_cancel === false ? "press ■ to stop" : this.asked ? "cancelling…" : "■ cancel");
    const error = streams.find((stream) => stream.parent === "" && stream.error)?.error ?? "";
    this.fail.hidden = error === "";
    say(this.fail, error ? `✗ ${shown(error.slice(0, 600))}` : "");
  }

  _cancel() {
    this.asked = true;
    this.store.send({ do: "cancel", source: this.store.source });
    this.update();
  }
}

class Section {
  constructor(doc, store, name) {
    this.store = store;
    this.name = name;
    this.view = null;
    this.is_broken = false;
    this.body = h(doc, "div", { class: "nbs-view" });
    this.is_open = true;
    this.element = h(doc, "section", { class: "nbs-section", "aria-label": VIEWS[name].title }, this._heading(doc), this.body);
    this.let_go = hold(this.body, store);
  }

  _heading(doc) {
    if (BARE.has(this.name)) return null;
    this.button = h(doc, "button", { "aria-expanded": "true", onclick: () => this._toggle() }, h(doc, "i", { "aria-hidden": "true" }), VIEWS[this.name].title);
    return h(doc, "h3", {}, this.button);
  }

  _toggle() {
    this.is_open = !this.is_open;
    this.button.setAttribute("aria-expanded", String(this.is_open));
    this.body.hidden = !this.is_open;
    if (this.is_open) this.update(new Set(["state", "cursor", "focus", "settings"]));
  }

  /** Whether the view would be seen where it is; false where that cannot be told. */
  get is_in_sight() {
    const { top, width } = this.body.getBoundingClientRect();
    return width > 0 && Math.abs(top) < this.body.ownerDocument.defaultView.innerHeight;
  }

  begin() {
    this._guarded(() => (this.view = VIEWS[this.name].create(this.body, this.store, {})));
    if (this.view?.is_empty) this.element.hidden = true;
  }

  update(changes) {
    if (this.is_broken) return;
    if (this.view !== null && (this.is_open || this.element.hidden)) this._guarded(() => this.view.update(changes));
    const is_kept = this.store.seeking && !this.element.hidden; // or the page would get lower
    if (!this.is_broken) this.element.hidden = Boolean(this.view?.is_empty) && !is_kept;
  }

  destroy() {
    this.let_go();
    if (!this.is_broken) this._guarded(() => this.view?.destroy());
  }

  /** A view never takes the others with it: what throws is switched off with one line. */
  _guarded(act) {
    try {
      act();
    } catch (error) {
      this.is_broken = true;
      this.view = null;
      this.element.hidden = false;
      console.warn(`nbsglang: the view ${this.name} was switched off:`, error);
      this.body.replaceChildren(h(this.body.ownerDocument, "div", { class: "nbs-off" }, `This view was switched off: ${shown(String(error?.message ?? error).slice(0, 200))}`));
    }
  }
}

function names_of(show) {
  const names = Object.keys(VIEWS).filter((name) => show.includes(name === "time" ? "tree" : name));
  return names.length ? names : Object.keys(VIEWS);
}

/** Such as "3 running, 1 waiting", or how it ended. */
function state_of(store, streams) {
  const roots = streams.filter((stream) => stream.parent === "");
  if (!streams.length) return store.replay ? "" : store.live.loading ? "loading" : store.source ? "begins" : "";
  if (roots.length && roots.every((stream) => stream.ended)) {
    const words = count_words(roots.map((stream) => stream.state));
    const times = roots.map((stream) => [stream.began_ns, stream.ended_ns]);
    const s = (Math.max(...times.map((t) => t[1])) - Math.min(...times.map((t) => t[0]))) / 1e9;
    return `${store.settings.outcome || (roots.length === 1 ? roots[0].state : words)} in ${seconds(s)}${store.replay ? " · replay" : ""}`;
  }
  return count_words(streams.filter((stream) => !stream.ended).map((stream) => stream.state));
}

function note_of(store) {
  if (store.waiting) return "some events were lost: waiting for the next whole picture";
  return store.view.n_lost ? `${grouped(store.view.n_lost)} events were lost` : "";
}

function add_style(doc, root) {
  const head = root === doc || !root.getElementById ? doc.head : root;
  if (root.querySelector?.(`#${STYLE_ID}`) || doc.getElementById(STYLE_ID)) return;
  const views = Object.values(VIEWS).map((view) => view.css);
  head.append(h(doc, "style", { id: STYLE_ID }, [theme, ...views].join("\n")));
}
