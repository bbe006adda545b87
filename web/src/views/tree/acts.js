// What pointer, keyboard and controls do to the tree view. Not here: drawing (index.js).

import { say } from "../../parts/dom.js";
import { listen } from "../../parts/hands.js";
import { leave } from "../../parts/leave.js";
import { zoom_keys } from "../../parts/zoom.js";
import { MOVES, moved } from "./keys.js";
import { save } from "./save.js";
import { lines_of, words_of } from "./signs.js";

const TIP_TEXT = 400; // characters
const LEAST_ZOOM = 0.75; // of a graph that nobody has zoomed

/** `tree` is the view: its store, wish, model, picture, and parts of the page. */
export class Acts {
  constructor(tree) {
    const { store, wish, stage, tip } = tree;
    Object.assign(this, { tree, store, wish, stage, tip });
    const key_at = (event) => event.target.closest("[data-key]")?.dataset.key ?? null;
    listen(stage.element, this._keys(), {
      point: (event) => this._show_tip(event === null || event.buttons ? null : key_at(event)),
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
    const { tree, wish } = this;
    const at = () => Number(wish.active) || 0; // the id of the node where the keyboard is
    const keys = {
      ...Object.fromEntries(Object.keys(MOVES).map((key) => [key, () => this.to(moved(tree.picture.drawn, wish.active, key))])),
      Enter: () => this._open(wish.active), Escape: () => this._back(), "/": () => tree.bar.focus_search(),
      n: () => this.found(1), p: () => this.found(-1), ...zoom_keys((factor) => this.zoom(factor)), 0: () => this.zoom(0),
      z: () => this.only(at() === wish.from ? 0 : at()), c: () => this.toggle(at()),
    };
    return { ...keys, " ": keys.Enter, N: keys.p };
  }

  /** The keyboard is at this key: show it. */
  to(key) {
    const { stage, wish } = this;
    wish.active = key;
    this.tree.draw();
    stage.reveal(wish.active);
    if (stage.has_focus) this._show_tip(wish.active);
  }

  /** The keyboard is at this node, if it is in the tree, whatever hides it. */
  to_node(id) {
    const item = this.tree.model.items.get(id);
    if (item === undefined) return;
    this.wish.let_in(item);
    this.to(String(id));
  }

  select(id) {
    this.tree.shown_focus = id; // the store tells of it a frame later, when the keyboard may be elsewhere
    this.store.set_focus({ node: id });
    this.to_node(id);
    this.tip.hide(); // the panel tells more
  }

  /** Let the path of a request stand out; null for none. */
  request(id) {
    this.store.set_focus({ request: id, stream: null });
  }

  leave() {
    this.stage.element.focus();
  }

  close() {
    this.store.set_focus({ node: null });
    this.leave();
  }

  only(id) {
    this.wish.only(id);
    this.tree.draw();
    this.stage.reveal(this.wish.active);
  }

  toggle(id) {
    const { store, tree } = this;
    const part = this._part(String(id));
    if (part === null) return; // the keyboard is at a fold
    this.wish.toggle(part);
    this.to(part.key);
    this.tip.hide(); // it would hide what has changed
    if (!tree.picture.boxes.has(String(store.focus.node))) store.set_focus({ node: null });
  }

  /** Zoom around x of the window, or around the node where the keyboard is, or the middle. */
  zoom(factor, x = null) {
    const { tree, stage, wish } = this;
    const before = stage.place_of(x, wish.active);
    wish.zoom_by(factor, tree.picture.is_graph);
    tree.draw();
    stage.put(before);
  }

  /** The other look: the graph begins at its root, and smaller if that brings more of it into sight. */
  look() {
    const { store, tree, stage, wish } = this;
    wish.zoom = 1;
    store.set({ tree_graph: !store.settings.tree_graph });
    tree.draw();
    if (!tree.picture.is_graph) return;
    wish.zoom = Math.min(1, Math.max(LEAST_ZOOM, stage.room / tree.picture.width));
    tree.draw();
    stage.center(tree.picture.root);
  }

  async save(format) {
    try {
      await save(this.tree, format);
    } catch (error) {
      say(this.tree.note, `Not saved: ${error.message}`);
    }
  }

  search(text) {
    const { tree, wish } = this;
    const query = text.trim() && text;
    if (query === wish.query) return;
    wish.look_for(this.store.view, tree.model, query);
    tree.draw();
  }

  found(n) {
    this.to_node(this.wish.next_found(n));
  }

  _part(key) {
    return this.tree.picture.drawn.find((part) => part.key === key) ?? null;
  }

  /** One step back: from a subtree, from what is in focus, from the view. */
  _back() {
    const { store } = this;
    if (this.wish.from !== 0) this.only(0);
    else if (Object.values(store.focus).some((id) => id !== null)) store.set_focus({ node: null, request: null, stream: null });
    else leave(this.stage.element);
  }

  _focus() {
    const { wish } = this;
    wish.active ??= this.tree.picture.drawn[0]?.key ?? null;
    if (wish.active !== null && this.stage.element.matches(":focus-visible")) this.to(wish.active);
  }

  _open(key) {
    const part = this._part(key);
    if (part === null) return;
    this.tip.hide();
    if (part.item !== null) return this.select(part.item.id);
    this.wish.unfold(part);
    this.to(this.wish.active);
  }

  _show_tip(key) {
    const { tip, stage } = this;
    if (key === tip.key) return;
    const part = this._part(key);
    if (part === null) return tip.hide();
    const label = part.item === null ? "Enter or a click unfolds." : lines_of(this.store.view, part.item, TIP_TEXT);
    tip.show(key, words_of(part), label, stage.seen_of(key));
  }
}
