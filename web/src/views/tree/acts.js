// What pointer, keyboard and controls do to the tree view. Not here: which key does what (hands.js), drawing (index.js).

import { words_of } from "./signs.js";
import { shown_lines, text_of } from "./text.js";

const TIP_TEXT = 400; // characters
const LEAST_ZOOM = 0.75; // of a graph that nobody has zoomed

/** See the module. `tree` is the view: its store, wish, model, picture, and parts of the page. */
export class Acts {
  constructor(tree) {
    this.tree = tree;
  }

  /** The keyboard is at this key: show it. */
  to(key) {
    this.tree.wish.active = key;
    this.tree.draw();
    this.tree.stage.reveal(this.tree.wish.active);
    if (this.tree.stage.has_focus) this._show_tip(this.tree.wish.active);
  }

  move(name) {
    const has_moved = this.tree.wish.move(this.tree.picture.drawn, name);
    if (has_moved) this.to(this.tree.wish.active);
    return has_moved;
  }

  focus() {
    if (this.tree.wish.active === null && this.tree.picture.drawn.length) this.tree.wish.active = this.tree.picture.drawn[0].key;
    if (this.tree.wish.active !== null && this.tree.stage.is_by_keyboard) this.to(this.tree.wish.active);
  }

  _part(key) {
    return this.tree.picture.drawn.find((part) => part.key === key) ?? null;
  }

  /** Select an item, or unfold a fold. */
  open(key) {
    const part = this._part(key);
    if (part === null) return;
    this.tree.tip.hide();
    if (part.item !== null) return this.select(part.item.id);
    this.tree.wish.unfold(part);
    this.to(this.tree.wish.active);
  }

  select(id) {
    const item = this.tree.model.items.get(id);
    if (item === undefined) return;
    this.tree.wish.let_in(item);
    this.tree.wish.active = String(id);
    this.tree.store.set_focus({ node: id });
    this.tree.draw();
    this.tree.stage.reveal(String(id));
  }

  close() {
    this.tree.store.set_focus({ node: null });
    this.tree.stage.element.focus();
  }

  act(name) {
    const { wish, stage } = this.tree;
    const item = this._part(wish.active)?.item ?? null;
    const acts = {
      enter: () => wish.active !== null && this.open(wish.active),
      search: () => this.tree.bar.focus_search(),
      next: () => this.go_found(1),
      previous: () => this.go_found(-1),
      zoom_in: () => this.zoom(1.5),
      zoom_out: () => this.zoom(1 / 1.5),
      zoom_reset: () => this.zoom(0),
      only: () => this.only(item === null || item.id === wish.from ? 0 : item.id),
      fold: () => item !== null && this.toggle(item.id),
      escape: () => this._back(),
    };
    if (name !== "escape") this.tree.tip.hide();
    acts[name]();
    if (name !== "search" && !stage.has_focus) stage.element.focus();
  }

  /** One step back: from the tooltip, from a subtree, from what is in focus. */
  _back() {
    const { tip, wish, store } = this.tree;
    if (tip.key !== null) tip.hide();
    else if (wish.from !== 0) this.only(0);
    else store.set_focus({ node: null, request: null, stream: null });
  }

  /** Fold or unfold what is below a node. */
  toggle(id) {
    this.tree.wish.toggle(this.tree.model.items.get(id), this.tree.picture.drawn);
    const focus = this.tree.model.items.get(this.tree.store.focus.node);
    if (focus !== undefined && focus.id !== id) this.tree.store.set_focus({ node: null });
    this.to(String(id));
  }

  only(id) {
    this.tree.wish.only(id);
    this.tree.draw();
    if (this.tree.wish.active !== null) this.tree.stage.reveal(this.tree.wish.active);
  }

  /** Zoom around x of the window, or around the node where the keyboard is, or the middle. */
  zoom(factor, x = null) {
    const before = this.tree.stage.place_of(x ?? this.tree.stage.middle_of(this.tree.wish.active));
    this.tree.wish.zoom_by(factor, this.tree.picture.is_graph ? "graph" : "icicle");
    this.tree.draw();
    this.tree.stage.put(before);
  }

  /** The other look: the graph begins at its root, and smaller if that brings more of it into sight. */
  look() {
    const { tree } = this;
    tree.wish.zoom = 1;
    tree.store.set({ tree_graph: !tree.store.settings.tree_graph });
    tree.draw();
    if (!tree.picture.is_graph) return;
    tree.wish.zoom = Math.min(1, Math.max(LEAST_ZOOM, tree.stage.room / tree.picture.width));
    tree.draw();
    tree.stage.center(tree.picture.root);
  }

  look_for(text) {
    const query = text.trim() === "" ? "" : text;
    if (query === this.tree.wish.query) return;
    this.tree.wish.look_for(this.tree.store.view, this.tree.model, query);
    this.tree.draw();
  }

  go_found(n) {
    const id = this.tree.wish.next_found(n);
    if (id === null) return;
    this.tree.wish.let_in(this.tree.model.items.get(id));
    this.to(String(id));
  }

  point(key) {
    if (key === this.tree.tip.key) return;
    if (key === null) this.tree.tip.hide();
    else this._show_tip(key);
  }

  _show_tip(key) {
    const part = this._part(key);
    const node = this.tree.stage.element_of(key);
    if (part === null || node === null) return this.tree.tip.hide();
    const { tip, marks, stage, element } = this.tree;
    const { view } = this.tree.store;
    const label = part.item === null ? "Enter or a click unfolds." : shown_lines(text_of(view, part.item.node.tokens, TIP_TEXT + 1));
    const short = label.length > TIP_TEXT ? `${label.slice(0, TIP_TEXT)}…` : label;
    tip.show(key, words_of(marks, part), short, stage.seen_of(key), element.getBoundingClientRect());
  }
}
