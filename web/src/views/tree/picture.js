// From a tree and what is wanted of it to pictures by key: choose, place, draw. Pure.
// Not here: the page (index.js).

import { counts_of } from "../../parts/text.js";
import { choose, key_of } from "./choose.js";
import { icicle } from "./icicle.js";
import { MAX_DRAWN, paper } from "./paper.js";
import { RADIUS, box, circle, edge_text, root_circle } from "./shapes.js";

const ROW = 26, LEAST = 24; // the height of a leaf, and the least width of a node, in pixels
const LIMIT = 200; // what is drawn of a large tree before anybody asks for more

/**
 * @param {object} wanted  model, must (ids), room (pixels), graph (bool), is_run, wish (wish.js), and what a Scene of
 *   shapes.js has besides
 * @returns {object} what sheet.js draws, and kept, path (a Map with the keys on it), can_graph; root: the spot of the root in a graph
 */
export function picture(wanted) {
  const { model, must, is_run, wish } = wanted;
  const { drawn, kept } = choose(model, { ...wish, must, is_run, limit: LIMIT });
  const can_graph = drawn.length > 0 && drawn.length < MAX_DRAWN;
  const is_graph = wanted.graph && can_graph;
  const key = (id) => key_of(id, model, kept);
  const [path, named, found] = [wanted.path, wanted.named, wish.found].map((ids) => counts_of(Array.from(ids, key)));
  const scene = { ...wish, ...wanted, path, named, found, here: key(wish.here) };
  return { drawn, kept, path, is_graph, can_graph, ...(is_graph ? graph : boxes)(scene, drawn) };
}

function boxes(scene, drawn) {
  const fold = 23 * scene.char + 10; // "+37 nodes, 1.2k tokens"
  const { boxes, width, height } = icicle(drawn, { width: scene.room * scene.zoom, row: ROW, least: LEAST, fold });
  const draw = (part) => box(scene, part, boxes.get(part.key));
  return { draw, under: [], boxes, width: Math.max(width, 1), height: height + 2, zoom: 1 };
}

function graph(scene, drawn) {
  const texts = new Map(drawn.map((part) => [part.key, edge_text(scene, part)]));
  const { spots, ...places } = paper(drawn, texts, { radius: RADIUS, gap: 8 });
  const draw = (part) => circle(scene, part, spots.get(part.key));
  return { draw, under: [["root", root_circle(places.root)]], ...places, zoom: scene.zoom };
}
