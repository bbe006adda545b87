// What is wanted of the picture: which subtree, what is unfolded and folded by hand, where the keyboard is, what is
// searched for, how far it is zoomed in. Plain values and what changes them; no page.
// Not here: what is drawn for it (picture.js).

import { path_of } from "./model.js";
import { Search } from "./search.js";

const MORE = 40; // children that one unfolding brings
const MIN_ZOOM = { icicle: 1, graph: 0.3 }, MAX_ZOOM = { icicle: 60, graph: 4 };

export class Wish {
  from = 0; // the id of the node whose subtree is drawn; 0: all
  zoom = 1;
  opened = new Set(); // ids
  closed = new Set();
  before = new Set();
  active = null; // a key
  query = "";
  found = [];
  found_at = -1; // in `found`
  #search = new Search();

  /** The tree has changed: let go of what is no more. */
  follow(view, model) {
    if (this.from !== 0 && !model.items.has(this.from)) this.from = 0;
    for (const ids of [this.opened, this.closed]) for (const id of ids) if (!model.items.has(id)) ids.delete(id);
    if (this.query) this.look_for(view, model, this.query);
  }

  /** It was drawn: what is not there any more cannot have the keyboard. */
  settle({ kept, places }, model) {
    this.before = kept;
    if (this.active !== null && !places.has(this.active)) this.active = nearest(this.active, places, model);
  }

  /** Draw more of what a fold hides; the keyboard goes to the first of it. */
  unfold({ parent, hidden }) {
    this.closed.delete(parent.id);
    for (const { id } of hidden.slice(0, MORE)) this.opened.add(id);
    this.active = String(hidden[0].id);
  }

  /** Fold all that is below an item, or unfold it where that is done; the keyboard goes to the item. */
  toggle(item, drawn) {
    const fold = drawn.find(({ key }) => key === `f${item.id}`);
    if (fold?.hidden.length === item.children.length) this.unfold(fold);
    else if (item.children.length) this.closed.add(item.id);
    this.active = String(item.id);
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
    const id = this.found[this.found_at];
    this.found = this.#search.find(view, model, query);
    this.found_at = query === this.query && id !== undefined ? this.found.indexOf(id) : -1;
    this.query = query;
  }

  /** Go n matches on, around the end. Returns the node's id, or null. */
  next_found(n) {
    if (!this.found.length) return null;
    const at = this.found_at < 0 && n < 0 ? 0 : this.found_at;
    this.found_at = (at + n + this.found.length) % this.found.length;
    return this.found[this.found_at];
  }

  /** Zoom by a factor; 0 resets. */
  zoom_by(factor, look) {
    const zoom = Math.min(Math.max(this.zoom * factor, MIN_ZOOM[look]), MAX_ZOOM[look]);
    this.zoom = factor === 0 || Math.abs(zoom - 1) < 0.01 ? 1 : zoom;
  }
}

/** The key of what stands for a key that is not drawn: the fold that hides it, or the nearest item above. */
function nearest(key, places, model) {
  const id = Number(key.replace("f", ""));
  for (let at = id === 0 ? model.root : model.items.get(id) ?? null; at !== null; at = at.parent) {
    if (places.has(String(at.id))) return String(at.id);
    if (at.parent !== null && places.has(`f${at.parent.id}`)) return `f${at.parent.id}`;
  }
  return null;
}
