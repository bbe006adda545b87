// From a tree and what is wanted of it to pictures by key: choose, place, draw. Pure.
// Not here: the page (index.js).

import { choose, key_of } from "./choose.js";
import { icicle } from "./icicle.js";
import { places } from "./keys.js";
import { MAX_DRAWN, paper } from "./paper.js";
import { RADIUS, box, circle, edge_text, root_circle } from "./shapes.js";

const ROW = 26, LEAST = 24; // the height of a leaf, and the least width of a node, in pixels
const LIMIT = 200; // what is drawn of a large tree before anybody asks for more
const CALM = 40; // below a run, a larger tree than this shows only what the run has touched

/**
 * @param {object} wanted  model, must (items), room (pixels), graph (bool), is_run, wish (wish.js), and what a Scene of
 *   shapes.js has besides
 * @returns {object} drawn, kept, places, path (a Map with the keys on it), width, height, zoom, is_graph, can_graph; boxes: {x, y, w, h} by key; root: the spot
 *   of the root in a graph; pictures(is_wanted): [key, picture] of the parts that are wanted, of all without a function
 */
export function picture(wanted) {
  const { model, must, wish } = wanted;
  const from = model.items.get(wish.from) ?? model.root;
  const { drawn, kept } = choose(model, { ...wish, from, must, limit: LIMIT, calm: wanted.is_run ? CALM : null });
  const can_graph = drawn.length > 0 && drawn.length < MAX_DRAWN;
  const is_graph = wanted.graph && can_graph;
  const key = (id) => key_of(id, model, kept);
  const [path, named, found] = [wanted.path, wanted.named, wish.found].map((ids) => counted(ids, key));
  const scene = { ...wish, ...wanted, path, named, found, found_at: key(wish.found[wish.found_at]), places: places(drawn) };
  return { drawn, kept, places: scene.places, path, is_graph, can_graph, ...(is_graph ? graph : boxes)(scene, drawn) };
}

/** How many of the ids have each key. */
function counted(ids, key) {
  const counts = new Map();
  for (const at of Array.from(ids, key)) counts.set(at, (counts.get(at) ?? 0) + 1);
  return counts;
}

function boxes(scene, drawn) {
  const fold = 23 * scene.char + 10; // "+37 nodes, 1.2k tokens"
  const at = icicle(drawn, { width: scene.room * scene.zoom, row: ROW, least: LEAST, fold });
  const pictures = (is_wanted = () => true) => drawn.filter(is_wanted).map((part) => [part.key, box(scene, part, at.boxes.get(part.key))]);
  return { pictures, boxes: at.boxes, width: Math.max(at.width, 1), height: at.height + 2, zoom: 1 };
}

/** A graph is small: all of it is drawn. */
function graph(scene, drawn) {
  const texts = new Map(drawn.map((part) => [part.key, edge_text(scene, part)]));
  const { spots, root, width, height } = paper(drawn, (part) => texts.get(part.key), { radius: RADIUS, gap: 8 });
  const pictures = () => [["root", root_circle(root)], ...drawn.map((part) => [part.key, circle(scene, part, spots.get(part.key))])];
  const boxes = new Map();
  for (const [key, { x, y, left, h }] of spots) {
    const high = Math.max(h, RADIUS);
    boxes.set(key, { x: left, y: y - high, w: x + RADIUS - left, h: high + RADIUS });
  }
  return { pictures, boxes, root, width, height, zoom: scene.zoom };
}
