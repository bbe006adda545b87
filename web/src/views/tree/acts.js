// What pointer, keyboard and controls do to the tree view. Not here: drawing (index.js).

import { listen } from "../../parts/hands.js";
import { leave } from "../../parts/leave.js";
import { shown_lines, text_of } from "../../parts/text.js";
import { words_of } from "./signs.js";

const TIP_TEXT = 400; // characters
const LEAST_ZOOM = 0.75; // of a graph that nobody has zoomed
const MOVES = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"];
const KEYS = {
  Enter: "enter", " ": "enter", Escape: "escape",
  "/": "search", n: "next", p: "previous", N: "previous",
  "+": "zoom_in", "=": "zoom_in", "-": "zoom_out", 0: "zoom_reset",
  z: "only", c: "fold", ...Object.fromEntries(MOVES.map((key) => [key, key])),
};

/** See the module. `tree` is the view: its store, wish, model, picture, and parts of the page. */
export class Acts {
  constructor(tree) {
    this.tree = tree;
  }

  listen() {
    const key_at = (event) => event.target.closest("[data-key]")?.getAttribute("data-key") ?? null;
    const { stage, tip } = this.tree;
    listen(stage.element, KEYS, {
      point: (event) => this._point(event === null || event.buttons ? null : key_at(event)),
      press: (event) => this._open(key_at(event)),
      pan: (dx, dy) => stage.pan(dx, dy),
      zoom: (factor, event) => this.zoom(factor, event.clientX),
      act: (name) => this._act(name),
      focus: () => this._focus(),
      blur: () => tip.hide(),
    });
  }

  /** The keyboard is at this key: show it. */
  to(key) {
    const { tree } = this;
    tree.wish.active = key;
    tree.draw();
    tree.stage.reveal(tree.wish.active);
    if (tree.stage.has_focus) this._show_tip(tree.wish.active);
  }

  select(id) {
    const { tree } = this;
    const item = tree.model.items.get(id);
    if (item === undefined) return;
    tree.wish.let_in(item);
    tree.wish.active = String(id);
    tree.store.set_focus({ node: id });
    tree.draw();
    tree.stage.reveal(String(id));
  }

  close() {
    this.tree.store.set_focus({ node: null });
    this.tree.stage.element.focus();
  }

  /** Fold or unfold what is below a node. */
  toggle(id) {
    const { wish, model, picture, store } = this.tree;
    wish.toggle(model.items.get(id), picture.drawn);
    if (model.items.has(store.focus.node) && store.focus.node !== id) store.set_focus({ node: null });
    this.to(String(id));
  }

  only(id) {
    const { tree } = this;
    tree.wish.only(id);
    tree.draw();
    if (tree.wish.active !== null) tree.stage.reveal(tree.wish.active);
  }

  /** Zoom around x of the window, or around the node where the keyboard is, or the middle. */
  zoom(factor, x = null) {
    const { tree } = this;
    const before = tree.stage.place_of(x, tree.wish.active);
    tree.wish.zoom_by(factor, tree.picture.is_graph ? "graph" : "icicle");
    tree.draw();
    tree.stage.put(before);
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
    const { tree } = this;
    const query = text.trim() === "" ? "" : text;
    if (query === tree.wish.query) return;
    tree.wish.look_for(tree.store.view, tree.model, query);
    tree.draw();
  }

  go_found(n) {
    const id = this.tree.wish.next_found(n);
    if (id === null) return;
    this.tree.wish.let_in(this.tree.model.items.get(id));
    this.to(String(id));
  }

  // ------------------------------------------------------------------------------------ pointer and keyboard

  _part(key) {
    return this.tree.picture.drawn.find((part) => part.key === key) ?? null;
  }

  _act(name) {
    const { wish, bar, tip, picture } = this.tree;
    const item = this._part(wish.active)?.item ?? null;
    const acts = {
      enter: () => this._open(wish.active),
      search: () => bar.focus_search(),
      next: () => this.go_found(1),
      previous: () => this.go_found(-1),
      zoom_in: () => this.zoom(1.5),
      zoom_out: () => this.zoom(1 / 1.5),
      zoom_reset: () => this.zoom(0),
      only: () => this.only(item === null || item.id === wish.from ? 0 : item.id),
      fold: () => item !== null && this.toggle(item.id),
      escape: () => this._back(),
    };
    if (MOVES.includes(name)) return wish.move(picture.drawn, name) && this.to(wish.active);
    if (name !== "escape") tip.hide();
    acts[name]();
  }

  /** One step back: from a subtree, from what is in focus, from the view. */
  _back() {
    const { tip, wish, store } = this.tree;
    tip.hide();
    if (wish.from !== 0) this.only(0);
    else if (Object.values(store.focus).some((id) => id !== null)) store.set_focus({ node: null, request: null, stream: null });
    else leave(this.tree.stage.element);
  }

  _focus() {
    const { wish, picture, stage } = this.tree;
    wish.active ??= picture.drawn[0]?.key ?? null;
    if (wish.active !== null && stage.element.matches(":focus-visible")) this.to(wish.active);
  }

  /** Select an item, or unfold a fold. */
  _open(key) {
    const part = this._part(key);
    if (part === null) return;
    this.tree.tip.hide();
    if (part.item !== null) return this.select(part.item.id);
    this.tree.wish.unfold(part);
    this.to(this.tree.wish.active);
  }

  _point(key) {
    if (key === this.tree.tip.key) return;
    if (key === null) this.tree.tip.hide();
    else this._show_tip(key);
  }

  _show_tip(key) {
    const { tip, marks, stage, element, store } = this.tree;
    const part = this._part(key);
    if (part === null) return tip.hide();
    const label = part.item === null ? "Enter or a click unfolds." : shown_lines(text_of(store.view, part.item.node.tokens, TIP_TEXT + 1));
    const short = label.length > TIP_TEXT ? `${label.slice(0, TIP_TEXT)}…` : label;
    tip.show(key, words_of(marks, part), short, stage.seen_of(key), element.getBoundingClientRect());
  }
}
