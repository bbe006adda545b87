// What is wanted of the picture: which subtree, what is unfolded and folded by hand, where the keyboard is, what is
// searched for, how far it is zoomed in. Plain values and what changes them; no page.
// Not here: what is drawn for it (picture.js).

import { key_of } from "./choose.js";
import { path_of } from "./model.js";
import { Search } from "./search.js";

const MORE = 40; // children that one unfolding brings

export class Wish {
  from = 0; // the id of the node whose subtree is drawn; 0: all
  zoom = 1;
  opened = new Set(); // ids
  closed = new Set();
  before = new Set();
  active = null; // a key
  query = "";
  found = [];
  here = null; // the one of `found` that is looked at
  #search = new Search();

  /** The tree has changed: let go of what is no more. */
  follow(view, model) {
    if (this.from !== 0 && !model.items.has(this.from)) this.from = 0;
    for (const ids of [this.opened, this.closed]) for (const id of ids) if (!model.items.has(id)) ids.delete(id);
    if (this.query) this.look_for(view, model, this.query);
  }

  /** It was drawn: where something is not there any more, the keyboard goes to the fold that hides it, if there is one. */
  settle({ kept, boxes }, model) {
    this.before = kept;
    if (this.active === null || boxes.has(this.active)) return;
    const key = key_of(Number(this.active.replace("f", "")), model, kept);
    this.active = boxes.has(key) ? key : null;
  }

  /** Draw more of what a fold hides; the keyboard goes to the first of it. */
  unfold({ parent, hidden }) {
    this.closed.delete(parent.id);
    for (const { id } of hidden.slice(0, MORE)) this.opened.add(id);
    this.active = String(hidden[0].id);
  }

  /** Fold all that is below a part (choose.js), or unfold it where that is done; the keyboard goes to the part. */
  toggle({ key, item, below }) {
    if (below[0]?.item === null) this.unfold(below[0]); // nothing is drawn before the fold
    else if (below.length) this.closed.add(item.id);
    this.active = key;
  }

  /** Draw the subtree of a node alone, or all (0). */
  only(id) {
    this.from = id;
    this.closed.delete(id);
    this.zoom = 1;
  }

  /** Make sure that an item can be drawn: it is below `from`, and nothing above it is folded by hand. */
  let_in(item) {
    const path = path_of(item);
    if (this.from !== 0 && !path.some((at) => at.id === this.from)) this.only(0);
    for (const { id } of path.slice(0, -1)) this.closed.delete(id);
  }

  /** Search; where the match that is looked at is still one, it stays so. */
  look_for(view, model, query) {
    this.found = this.#search.find(view, model, query);
    if (query !== this.query || !this.found.includes(this.here)) this.here = null;
    this.query = query;
  }

  /** Go n matches on, around the end. Returns the node's id, or null. */
  next_found(n) {
    const { found } = this;
    const at = found.indexOf(this.here);
    if (found.length) this.here = found.at((at < 0 && n < 0 ? 0 : at) + n) ?? found[0];
    return this.here;
  }

  /** Zoom by a factor; 0 resets. */
  zoom_by(factor, is_graph) {
    const [least, most] = is_graph ? [0.3, 4] : [1, 60];
    const zoom = Math.min(Math.max(this.zoom * factor, least), most);
    this.zoom = factor === 0 || Math.abs(zoom - 1) < 0.01 ? 1 : zoom;
  }
}
