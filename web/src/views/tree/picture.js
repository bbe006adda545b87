// From a tree and what is wanted of it to pictures by key: choose, place, draw. Pure.
// Not here: the page (index.js).

import { choose } from "./choose.js";
import { icicle } from "./icicle.js";
import { places } from "./keys.js";
import { MAX_DRAWN, paper } from "./paper.js";
import { found_in_folds } from "./search.js";
import { RADIUS, box, circle, edge_text, root_circle } from "./shapes.js";

const ROW = 26, LEAST = 24; // the height of a leaf, and the least width of a node, in pixels
export const LIMIT = 200; // what is drawn of a large tree before anybody asks for more
const CALM = 40; // below a run, a larger tree than this shows only what the run has touched

/**
 * @param {object} wanted  model, view, marks, room (pixels), char, zoom, graph (bool), is_run, from (item), must, opened,
 *   closed, before, and what a Scene of shapes.js has besides
 * @returns {object} drawn, kept, places, width, height, zoom, is_graph, can_graph; boxes: {x, y, w, h} by key; root: the spot
 *   of the root in a graph; pictures(is_wanted): [key, picture] of the parts that are wanted, of all without a function
 */
export function picture(wanted) {
  const { model, from } = wanted;
  const { drawn, kept } = choose(model, { ...wanted, limit: LIMIT, calm: wanted.is_run ? CALM : null });
  const can_graph = drawn.length > 0 && drawn.length < MAX_DRAWN;
  const is_graph = wanted.graph && can_graph;
  const scene = { ...wanted, places: places(drawn), n_found: found_in_folds(wanted.found, model, kept, from) };
  const made = is_graph ? graph(scene, drawn) : boxes(scene, drawn);
  return { drawn, kept, places: scene.places, on: wanted.path, is_graph, can_graph, ...made };
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
  const pictures = () => [["root", root_circle(root)], ...drawn.map((part) => [part.key, circle(scene, part, { ...spots.get(part.key), ...texts.get(part.key) })])];
  const boxes = new Map();
  for (const [key, { x, y, left, h }] of spots) {
    const high = Math.max(h, RADIUS);
    boxes.set(key, { x: left, y: y - high, w: x + RADIUS - left, h: high + RADIUS });
  }
  return { pictures, boxes, root, width, height, zoom: scene.zoom };
}
