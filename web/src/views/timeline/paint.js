// Colours and patterns for a canvas, as the style sheet has them where the timeline stands. Each phase has a pattern
// too, so that none is told by its colour alone.
//
// Not here: what is painted (draw.js, areas.js).

import { h } from "../../parts/dom.js";

/** Phases of requests: what they are called, and a pattern. */
export const PHASES = {
  queued: { word: "queued", pattern: "dots" },
  prefill: { word: "prefill", pattern: "slant" },
  decode: { word: "decode", pattern: "plain" },
  jump: { word: "jump", pattern: "bars" },
  preempted: { word: "preempted", pattern: "cross" },
};
/** Phases of streams, which are lines. */
export const LINES = {
  call: { word: "stream: a call is answered", dash: [], width: 3 },
  "join-wait": { word: "waits for its branches", dash: [5, 3], width: 3 },
  program: { word: "between calls", dash: [1.5, 3], width: 1.5 },
};
/** Parts of the areas. */
export const AREAS = {
  running: { word: "running", pattern: "plain" },
  waiting: { word: "waiting", pattern: "dots" },
  locked: { word: "locked", pattern: "cross" },
  evictable: { word: "evictable", pattern: "slant" },
};

const NAMES = ["bg", "fg", "faint", "line", ...Object.keys(PHASES), ...Object.keys(LINES), ...Object.keys(AREAS)];
const TILE = 6; // pixels of a pattern

/** Colours of an element's style sheet by name, resolved, and the patterns made of them. */
export class Paint {
  constructor(element) {
    this._element = element;
    this._doc = element.ownerDocument;
    this._probes = NAMES.map((name) => h(this._doc, "span", { style: `color:var(--l-${name})` }));
    element.append(h(this._doc, "span", { hidden: true }, ...this._probes));
    this._source = "";
  }

  /** Look again: the theme may have changed. */
  refresh() {
    const style = this._doc.defaultView.getComputedStyle(this._element);
    const source = `${style.color} ${style.backgroundColor}`;
    if (source === this._source) return;
    this._source = source;
    this._patterns = new Map();
    this.colours = Object.fromEntries(NAMES.map((name, i) => [name, this._doc.defaultView.getComputedStyle(this._probes[i]).color]));
    this.font = style.fontFamily;
  }

  /** A rectangle in the colour of a name, in its pattern. */
  fill(context, name, pattern, x, y, width, height) {
    context.fillStyle = this.colours[name];
    if (pattern === "plain" || width < 2) {
      context.globalAlpha = 0.42;
      context.fillRect(x, y, width, height);
      context.globalAlpha = 1;
      return;
    }
    context.globalAlpha = 0.14;
    context.fillRect(x, y, width, height);
    context.globalAlpha = 1;
    context.fillStyle = this._pattern(context, name, pattern);
    context.fillRect(x, y, width, height);
  }

  _pattern(context, name, pattern) {
    const key = `${name} ${pattern}`;
    if (!this._patterns.has(key)) this._patterns.set(key, context.createPattern(this._tile(name, pattern), "repeat"));
    return this._patterns.get(key);
  }

  _tile(name, pattern) {
    const tile = h(this._doc, "canvas", { width: TILE, height: TILE });
    const context = tile.getContext("2d");
    context.strokeStyle = context.fillStyle = this.colours[name];
    const line = (...points) => {
      context.beginPath();
      for (let i = 0; i < points.length; i += 4) {
        context.moveTo(points[i], points[i + 1]);
        context.lineTo(points[i + 2], points[i + 3]);
      }
      context.stroke();
    };
    const slant = [-1, 1, 1, -1, 0, TILE, TILE, 0, TILE - 1, TILE + 1, TILE + 1, TILE - 1];
    const other = [-1, TILE - 1, 1, TILE + 1, 0, 0, TILE, TILE, TILE - 1, -1, TILE + 1, 1];
    if (pattern === "dots") context.fillRect(2, 2, 1.6, 1.6);
    else if (pattern === "bars") line(TILE / 2, 0, TILE / 2, TILE);
    else line(...slant, ...(pattern === "cross" ? other : []));
    return tile;
  }
}

/** A canvas of its own pixels; `begin(width, height)` clears it and gives a context in CSS pixels. */
export function create_canvas(doc, name) {
  const element = h(doc, "canvas", { class: name, "aria-hidden": "true" });
  return {
    element,
    begin(width, height) {
      const ratio = doc.defaultView.devicePixelRatio || 1;
      const [w, tall] = [Math.round(width * ratio), Math.round(height * ratio)];
      if (element.width !== w) element.width = w;
      if (element.height !== tall) element.height = tall;
      element.style.width = `${width}px`;
      element.style.height = `${height}px`;
      const context = element.getContext("2d");
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, width, height);
      return context;
    },
  };
}
