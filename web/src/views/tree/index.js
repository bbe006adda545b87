// The radix tree view: css, and create(root, store), which gives {update(changes), destroy()}.
// Not here: the pieces, each in its file beside this one.

import { nodes_of } from "../../explain.js";
import { is_cacheless } from "../../parts/cacheless.js";
import { h, prefix_of, say } from "../../parts/dom.js";
import { requests_in_focus } from "../../parts/focus.js";
import { Uses } from "../../parts/hits.js";
import { hold } from "../../parts/hold.js";
import { request_name } from "../../parts/names.js";
import { create_sheet } from "../../parts/sheet.js";
import { create_tip } from "../../parts/tip.js";
import { Acts } from "./acts.js";
import { create_bar } from "./bar.js";
import { create_detail } from "./detail.js";
import { create_legend } from "./legend.js";
import { build, paths } from "./model.js";
import { picture } from "./picture.js";
import { hatching } from "./shapes.js";
import { amount } from "./signs.js";
import { Wish } from "./wish.js";

export { css } from "./css.js";

export const create = (root, store) => new TreeView(root, store);

class TreeView {
  constructor(root, store) {
    this.store = store;
    this.prefix = prefix_of("tree");
    this.uses = new Uses(store);
    this.wish = new Wish();
    this.model = this.shown_focus = null;
    this.built_of = [];
    this._make(root);
    this.update(new Set(["state", "focus"]));
  }

  _make(root) {
    const { store, prefix } = this;
    const doc = root.ownerDocument;
    this.stage = create_sheet(doc, prefix, hatching(prefix), { role: "tree", "aria-label": "Radix tree of the KV cache", "aria-describedby": `${prefix}keys` });
    this.tip = create_tip(doc);
    this.acts = new Acts(this);
    this.bar = create_bar(doc, store, this.acts);
    this.detail = create_detail(doc, this.acts);
    this.summary = h(doc, "span", { class: "count" });
    this.note = h(doc, "span", { class: "count", role: "status" });
    this.legend = create_legend(doc, prefix, this.summary, this.note);
    const stage = h(doc, "div", { class: "stage" }, this.stage.element, this.detail.element);
    this.element = h(doc, "div", { class: "tree" }, this.bar.element, stage, this.legend, this.tip.element);
    root.append(this.element);
    this.let_go = hold(stage, store);
    this.sizes = new ResizeObserver(() => this.stage.measure() && this.draw());
    this.sizes.observe(this.stage.element);
  }

  /** Take changes of the store: a Set of "state", "cursor", "focus", "settings". */
  update(changes) {
    const { focus: { node }, playing } = this.store;
    const is_new = changes.has("focus") && node !== null && node !== this.shown_focus;
    this.shown_focus = node;
    this.draw();
    if (is_new) this.acts.to_node(node);
    else if (changes.has("cursor") && !playing) this.stage.reveal(String([...this.named][0]));
  }

  destroy() {
    this.sizes.disconnect();
    this.bar.destroy();
    this.let_go();
    this.element.remove();
  }

  /** Bring the model up to date: only a change of the tree or of the marks is a reason. */
  _build() {
    const { store, store: { view, settings } } = this;
    const marks = settings.tree_step ? view.marks : store.marks_since_run();
    const built_of = [view, view.tree.version, marks];
    if (built_of.every((value, i) => value === this.built_of[i])) return;
    this.built_of = built_of;
    this.model = build(view, marks, this.model);
    this.wish.follow(view, this.model);
  }

  draw() {
    this._build();
    const { store, stage, model, wish } = this;
    const { view, focus } = store;
    const requests = requests_in_focus(view, focus);
    const selected = model.items.get(focus.node) ?? null;
    const path = paths(model, requests.flatMap((id) => this.uses.of_request(id)));
    this.named = new Set(store.seeking && store.event !== null ? nodes_of(store.event) : []);
    const must = [focus.node, ...this.named, wish.here, Number(wish.active), ...path]; // an item where the keyboard is stays drawn
    this.picture = picture({
      model, view, path, wish, must, named: this.named, prefix: this.prefix, room: stage.room || 700, char: stage.char,
      selected: String(focus.node), graph: Boolean(store.settings.tree_graph), is_run: Boolean(store.source),
    });
    wish.settle(this.picture, model);
    stage.show(this.picture, wish.active, this._why_empty());
    this._tell(selected, requests);
  }

  _tell(selected, requests) {
    const { store, wish, picture } = this;
    const { view } = store;
    const users = selected === null ? [] : this.uses.of_node(selected.id);
    this.detail.show(view, selected, users.map((use) => ({ ...use, name: request_name(view, use.request) })));
    this.bar.show(wish, picture);
    this.element.classList.toggle("graph", picture.is_graph);
    this.bar.element.hidden = this.legend.hidden = is_cacheless(store.live);
    say(this.summary, `${amount(this.model.held)} in the cache`);
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
