// What pointer, keyboard and controls do to the tree view. Not here: drawing (index.js).

import { say } from "../../parts/dom.js";
import { listen } from "../../parts/hands.js";
import { leave } from "../../parts/leave.js";
import { cut, shown_lines, text_of } from "../../parts/text.js";
import { moved } from "./keys.js";
import { save } from "./save.js";
import { words_of } from "./signs.js";

const TIP_TEXT = 400; // characters
const LEAST_ZOOM = 0.75; // of a graph that nobody has zoomed

/** See the module. `tree` is the view: its store, wish, model, picture, and parts of the page. */
export class Acts {
  constructor(tree) {
    this.tree = tree;
  }

  listen() {
    const key_at = (event) => event.target.closest("[data-key]")?.getAttribute("data-key") ?? null;
    const { stage, tip } = this.tree;
    listen(stage.element, this._keys(), {
      point: (event) => this._point(event === null || event.buttons ? null : key_at(event)),
      press: (event) => this._open(key_at(event)),
      pan: stage.pan,
      zoom: (factor, event) => this.zoom(factor, event.clientX),
      act: (run) => (tip.hide(), run()),
      focus: () => this._focus(),
      blur: tip.hide,
    });
  }

  /** What keys do, by KeyboardEvent.key. */
  _keys() {
    const { tree, tree: { wish } } = this;
    const moves = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"];
    const keys = {
      ...Object.fromEntries(moves.map((key) => [key, () => this.to(moved(tree.picture.drawn, wish.active, key))])),
      Enter: () => this._open(wish.active), Escape: () => this._back(), "/": () => tree.bar.focus_search(),
      n: () => this.found(1), p: () => this.found(-1), "+": () => this.zoom(1.5), "-": () => this.zoom(1 / 1.5), 0: () => this.zoom(0),
      z: () => this.only(wish.active === String(wish.from) ? 0 : (this._part(wish.active)?.item?.id ?? 0)),
      c: () => this.toggle(Number(wish.active)),
    };
    return { ...keys, " ": keys.Enter, N: keys.p, "=": keys["+"] };
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
    tree.shown_focus = id; // the store tells of it a frame later, when the keyboard may be elsewhere
    tree.store.set_focus({ node: id });
    this.to(String(id));
    tree.tip.hide(); // the panel tells more
  }

  /** Let the path of a request stand out; null for none. */
  request(id) {
    this.tree.store.set_focus({ request: id, stream: null });
  }

  /** Marks of the latest step, or of the whole run. */
  marks() {
    const { store } = this.tree;
    store.set({ tree_step: !store.settings.tree_step });
  }

  leave() {
    this.tree.stage.element.focus();
  }

  close() {
    this.tree.store.set_focus({ node: null });
    this.leave();
  }

  /** Draw the subtree of a node alone, or all (0). */
  only(id) {
    const { tree } = this;
    tree.wish.only(id);
    tree.draw();
    if (tree.wish.active !== null) tree.stage.reveal(tree.wish.active);
  }

  /** Fold or unfold what is below a node. */
  toggle(id) {
    const { tree, tree: { store, model } } = this;
    if (!model.items.has(id)) return; // the keyboard is at a fold
    tree.wish.toggle(model.items.get(id), tree.picture.drawn);
    this.to(String(id));
    tree.tip.hide(); // it would hide what has changed
    if (!tree.picture.places.has(String(store.focus.node))) store.set_focus({ node: null });
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

  async save(format) {
    try {
      await save(this.tree, format);
    } catch (error) {
      say(this.tree.note, `Not saved: ${error.message}`);
    }
  }

  search(text) {
    const { tree, tree: { wish } } = this;
    const query = text.trim() && text;
    if (query === wish.query) return;
    wish.look_for(tree.store.view, tree.model, query);
    tree.draw();
  }

  found(n) {
    const { wish, model } = this.tree;
    const id = wish.next_found(n);
    if (id === null) return;
    wish.let_in(model.items.get(id));
    this.to(String(id));
  }

  _part(key) {
    return this.tree.picture.drawn.find((part) => part.key === key) ?? null;
  }

  /** One step back: from a subtree, from what is in focus, from the view. */
  _back() {
    const { wish, store, stage } = this.tree;
    if (wish.from !== 0) this.only(0);
    else if (Object.values(store.focus).some((id) => id !== null)) store.set_focus({ node: null, request: null, stream: null });
    else leave(stage.element);
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
    if (key !== this.tree.tip.key) this._show_tip(key);
  }

  _show_tip(key) {
    const { tip, marks, stage, element, store } = this.tree;
    const part = this._part(key);
    if (part === null) return tip.hide();
    const label = part.item === null ? "Enter or a click unfolds." : shown_lines(text_of(store.view, part.item.node.tokens, TIP_TEXT + 1));
    tip.show(key, words_of(marks, part), cut(label, TIP_TEXT), stage.seen_of(key), element.getBoundingClientRect());
  }
}
