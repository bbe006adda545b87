// The radix tree view: css, and create(root, store), which gives {update(changes), destroy()}.
// Not here: the pieces, each in its file beside this one.

import { explain, nodes_of } from "../../explain.js";
import { is_cacheless } from "../../parts/cacheless.js";
import { h, say } from "../../parts/dom.js";
import { requests_in_focus } from "../../parts/focus.js";
import { Follower } from "../../parts/follow.js";
import { hold } from "../../parts/hold.js";
import { request_name } from "../../parts/names.js";
import { create_sheet } from "../../parts/sheet.js";
import { create_slider } from "../../parts/slider.js";
import { n_of, n_short } from "../../parts/text.js";
import { create_tip } from "../../parts/tip.js";
import { Acts } from "./acts.js";
import { create_bar } from "./bar.js";
import { create_crumbs } from "./crumbs.js";
import { create_detail } from "./detail.js";
import { Hits, paths } from "./hits.js";
import { create_legend } from "./legend.js";
import { build, totals } from "./model.js";
import { picture } from "./picture.js";
import { save } from "./save.js";
import { hatching } from "./shapes.js";
import { Wish } from "./wish.js";

export { css } from "./css.js";

export function create(root, store) {
  return new TreeView(root, store);
}

class TreeView {
  constructor(root, store) {
    this.store = store;
    this.prefix = `t${Math.random().toString(36).slice(2, 8)}-`; // ids are the page's, and there may be many views
    this.users = new Follower(() => new Hits(store.engine));
    this.acts = new Acts(this);
    this.wish = new Wish();
    this.model = null;
    this.built_of = [];
    this.shown_focus = null;
    this._make(root);
    this._listen();
    this.update(new Set(["state", "focus"]));
  }

  _make(root) {
    const { store, prefix } = this;
    const doc = root.ownerDocument;
    this.bar = create_bar(doc, {
      search: (text) => this.acts.look_for(text),
      found: (n) => this.acts.go_found(n),
      leave: () => this.stage.element.focus(),
      request: (id) => store.set_focus({ request: id, stream: null }),
      look: () => this.acts.look(),
      marks: () => store.set({ tree_step: !store.settings.tree_step }),
      zoom: (factor) => this.acts.zoom(factor),
      save: (format) => this._save(format),
    });
    this.stage = create_sheet(doc, prefix, hatching(prefix), { role: "tree", "aria-label": "Radix tree of the KV cache", "aria-describedby": `${prefix}keys` });
    this.detail = create_detail(doc, {
      close: () => this.acts.close(),
      select: (id) => this.acts.select(id),
      request: (id) => store.set_focus({ request: id, stream: null }),
      only: (id) => this.acts.only(id),
      fold: (id) => this.acts.toggle(id),
    });
    this.tip = create_tip(doc, `${prefix}tip`);
    this.slider = create_slider(doc, store, explain);
    this.crumbs = create_crumbs(doc, (id) => this.acts.only(id));
    this.summary = h(doc, "span", { class: "count" });
    this.note = h(doc, "span", { class: "count", role: "status" });
    this.legend = create_legend(doc, prefix, this.summary, this.note);
    const stage = h(doc, "div", { class: "stage" }, this.stage.element, this.detail.element);
    const above = h(doc, "div", {}, this.bar.element, this.crumbs.element, stage, this.legend);
    this.element = h(doc, "div", { class: "tree" }, above, this.slider.element, this.tip.element);
    root.append(this.element);
    this.holds = [stage, above].map((each) => hold(each, store));
  }

  _listen() {
    this.acts.listen();
    if (typeof ResizeObserver !== "function") return;
    this.sizes = new ResizeObserver(() => this.stage.measure() && this.draw());
    this.sizes.observe(this.stage.element);
  }

  /** Take changes of the store: a Set of "state", "cursor", "focus", "settings". */
  update(changes) {
    const node = this.store.focus.node;
    const is_new = changes.has("focus") && node !== null && node !== this.shown_focus;
    this.shown_focus = node;
    if (is_new) {
      this._build();
      if (this.model.items.has(node)) this.wish.let_in(this.model.items.get(node));
    }
    this.draw();
    if (is_new && this.picture.places.has(String(node))) this.acts.to(String(node));
    else if (changes.has("cursor") && !this.store.playing) this.stage.reveal(String([...this.named][0]));
  }

  destroy() {
    this.sizes?.disconnect();
    this.bar.destroy();
    for (const end of this.holds) end();
    this.element.remove();
  }

  // ------------------------------------------------------------------------------------------------ drawing

  /** Bring the model up to date: only a change of the tree or of the marks is a reason. */
  _build() {
    const { store } = this;
    const { view } = store;
    this.marks = store.settings.tree_step ? view.marks : store.marks_since_run();
    const built_of = [view, view.tree.version, this.marks];
    if (this.model !== null && built_of.every((value, i) => value === this.built_of[i])) return;
    this.built_of = built_of;
    this.model = build(view, this.marks, this.model);
    this.wish.follow(view, this.model);
  }

  /** Draw what has changed. */
  draw() {
    this._build();
    const { store, stage, model, marks, wish } = this;
    const { view, focus } = store;
    const requests = requests_in_focus(view, focus);
    const selected = model.items.get(focus.node) ?? null;
    if (requests.length || selected !== null) this.hits = this.users.catch_up(store.events);
    const path = paths(model, requests.flatMap((id) => [...this.hits.of_request(id, view.seq)]));
    const found_at = wish.found[wish.found_at] ?? null;
    this.named = new Set(store.seeking && store.event !== null ? nodes_of(store.event) : []);
    const asked = [focus.node, ...this.named, found_at, this._active_id(), ...path];
    this.picture = picture({
      model, view, marks, path, found_at,
      from: model.items.get(wish.from) ?? model.root,
      must: asked.map((id) => model.items.get(id)).filter(Boolean),
      opened: wish.opened, closed: wish.closed, before: wish.before,
      room: stage.room || 700, char: stage.char, zoom: wish.zoom,
      graph: Boolean(store.settings.tree_graph), is_run: Boolean(store.source),
      selected: selected === null ? null : String(selected.id), active: wish.active,
      found: new Set(wish.found), named: this.named, query: wish.query, prefix: this.prefix,
    });
    wish.settle(this.picture, model);
    stage.show(this.picture, wish.active, this._why_empty());
    this._tell(selected, requests);
  }

  /** An item where the keyboard is stays drawn. */
  _active_id() {
    const { active } = this.wish;
    return active === null || active.startsWith("f") ? null : Number(active);
  }

  _tell(selected, requests) {
    const { store, wish, picture: { is_graph, can_graph, drawn } } = this;
    const { view, focus, settings } = store;
    const users = selected === null ? [] : this.hits.of_node(selected.id, view.seq);
    this.detail.show(view, this.marks, selected, users, (id) => request_name(view, id));
    this.bar.show_requests(view, store.source, focus);
    this.bar.show_found(wish);
    this.bar.show_state({ is_graph, can_graph, is_step: Boolean(settings.tree_step), has_run: Boolean(store.source), zoom: wish.zoom });
    this.slider.show();
    this.element.classList.toggle("graph", is_graph);
    this.bar.element.hidden = this.legend.hidden = is_cacheless(store.live);
    this.crumbs.show(this.model.items.get(wish.from) ?? null);
    const { n_nodes, n_tokens } = totals(this.model, this.marks);
    say(this.summary, `${n_of(n_nodes, "node")}, ${n_short(n_tokens)} tokens in the cache`);
    const is_nowhere = requests.length > 0 && !drawn.some((part) => this.picture.on.has(part.item?.id));
    say(this.note, this._missing() || (is_nowhere ? "the request has nothing in the tree" : ""));
  }

  _missing() {
    const { waiting, view, replay } = this.store;
    if (!waiting && view.complete) return "";
    return `Events are missing here: ${replay ? "the tree may be another one" : "waiting for the next keyframe"}.`;
  }

  _why_empty() {
    const { live, replay } = this.store;
    if (is_cacheless(live)) return "This backend has no cache that could be shown.";
    return this._missing() || (live.seq ? "The cache is empty." : replay ? "The log has no events." : "No events yet.");
  }

  async _save(format) {
    try {
      await save(this.element, this.prefix, { view: this.store.view, marks: this.marks, picture: this.picture }, format);
    } catch (error) {
      say(this.note, `Not saved: ${error.message}`);
    }
  }
}
