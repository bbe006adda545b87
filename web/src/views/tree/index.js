// The radix tree view: css, and create(root, store), which gives {update(changes), destroy()}.
// Not here: the pieces, each in its file beside this one.

import { nodes_of } from "../../explain.js";
import { is_cacheless } from "../../parts/cacheless.js";
import { h, say } from "../../parts/dom.js";
import { requests_in_focus } from "../../parts/focus.js";
import { Follower } from "../../parts/follow.js";
import { Hits } from "../../parts/hits.js";
import { hold } from "../../parts/hold.js";
import { request_name } from "../../parts/names.js";
import { create_sheet } from "../../parts/sheet.js";
import { n_of, n_short } from "../../parts/text.js";
import { create_tip } from "../../parts/tip.js";
import { Acts } from "./acts.js";
import { create_bar } from "./bar.js";
import { create_detail } from "./detail.js";
import { create_legend } from "./legend.js";
import { build, paths, totals } from "./model.js";
import { picture } from "./picture.js";
import { hatching } from "./shapes.js";
import { Wish } from "./wish.js";

export { css } from "./css.js";

export const create = (root, store) => new TreeView(root, store);

class TreeView {
  constructor(root, store) {
    this.store = store;
    this.prefix = `t${Math.random().toString(36).slice(2, 8)}-`; // ids are the page's, and there may be many views
    this.users = new Follower(() => new Hits(store.engine));
    this.acts = new Acts(this);
    this.wish = new Wish();
    this.model = this.shown_focus = null;
    this.built_of = [];
    this._make(root);
    this.update(new Set(["state", "focus"]));
  }

  _make(root) {
    const { acts, store, prefix } = this;
    const doc = root.ownerDocument;
    this.bar = create_bar(doc, acts);
    this.stage = create_sheet(doc, prefix, hatching(prefix), { role: "tree", "aria-label": "Radix tree of the KV cache", "aria-describedby": `${prefix}keys` });
    this.detail = create_detail(doc, acts);
    this.tip = create_tip(doc, `${prefix}tip`);
    this.summary = h(doc, "span", { class: "count" });
    this.note = h(doc, "span", { class: "count", role: "status" });
    this.legend = create_legend(doc, prefix, this.summary, this.note);
    const stage = h(doc, "div", { class: "stage" }, this.stage.element, this.detail.element);
    this.element = h(doc, "div", { class: "tree" }, this.bar.element, stage, this.legend, this.tip.element);
    root.append(this.element);
    this.let_go = hold(stage, store);
    acts.listen();
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
    this.let_go();
    this.element.remove();
  }

  /** Bring the model up to date: only a change of the tree or of the marks is a reason. */
  _build() {
    const { store } = this;
    const { view, settings } = store;
    this.marks = settings.tree_step ? view.marks : store.marks_since_run();
    const built_of = [view, view.tree.version, this.marks];
    if (built_of.every((value, i) => value === this.built_of[i])) return;
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
    const path = paths(model, requests.flatMap((id) => this.hits.of_request(id, view.seq)));
    this.named = new Set(store.seeking && store.event !== null ? nodes_of(store.event) : []);
    const must = [focus.node, ...this.named, wish.found[wish.found_at], Number(wish.active), ...path]; // an item where the keyboard is stays drawn
    this.picture = picture({
      model, view, marks, path, wish, named: this.named, prefix: this.prefix, room: stage.room || 700, char: stage.char,
      must: must.map((id) => model.items.get(id)).filter(Boolean), selected: selected === null ? null : String(selected.id),
      graph: Boolean(store.settings.tree_graph), is_run: Boolean(store.source),
    });
    wish.settle(this.picture, model);
    stage.show(this.picture, wish.active, this._why_empty());
    this._tell(selected, requests);
  }

  _tell(selected, requests) {
    const { store, wish, picture } = this;
    const { view } = store;
    const users = selected === null ? [] : this.hits.of_node(selected.id, view.seq);
    this.detail.show(view, this.marks, selected, users.map((use) => ({ ...use, name: request_name(view, use.request) })));
    this.bar.show(store, wish, picture);
    this.element.classList.toggle("graph", picture.is_graph);
    this.bar.element.hidden = this.legend.hidden = is_cacheless(store.live);
    const { n_nodes, n_tokens } = totals(this.model, this.marks);
    say(this.summary, `${n_of(n_nodes, "node")}, ${n_short(n_tokens)} tokens in the cache`);
    const is_nowhere = requests.length > 0 && !picture.drawn.some(({ key }) => picture.path.has(key));
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
}
