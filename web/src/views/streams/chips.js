// The pieces of one row as elements: each update changes only what is another piece than before, and tokens that were
// added become text at the end of their node, so that a selection of the reader's stays.
//
// Not here: which pieces there are (pieces.js), their looks (looks.js, css.js).

import { grouped } from "../../parts/grouped.js";
import { h, say } from "../../parts/dom.js";
import { slices } from "../../parts/runs.js";
import { shown, shown_lines } from "../../parts/text.js";
import { KINDS, SCALES } from "./looks.js";
import { create_odds, words_of } from "../../parts/odds.js";

const LONG = 420; // characters of a text of the program that are shown whole; of a longer one both ends
const HEAD = 220;
const TAIL = 120;
const MOST = 60; // pieces of one row, the latest
const FOLDED = new Set(["literal", "value"]);

export class Chips {
  /** `element` holds the chips; `on_size()` is called when the reader has unfolded something. */
  constructor(element, on_size) {
    this._doc = element.ownerDocument;
    this._element = element;
    this._on_size = on_size;
    this._pieces = [];
    this._chips = []; // {element, piece, segments: [{segment, element}]}, one for each of the pieces shown
    this._unfolded = new Set();
    this._most = MOST;
    this._runs = new WeakMap(); // from an element to its run and its piece, for titles
    this._more = h(this._doc, "button", { class: "more", tabindex: -1, onclick: () => this._show_more() });
    element.addEventListener("pointerover", (event) => this._name(event.target));
  }

  /** Show these pieces; those that are the same objects as before are left alone. Returns whether anything changed. */
  update(pieces) {
    this._pieces = pieces;
    const n_left = Math.max(0, pieces.length - this._most);
    const list = n_left ? pieces.slice(n_left) : pieces;
    say(this._more, `⋯ ${grouped(n_left)} earlier pieces`);
    if (n_left && !this._more.isConnected) this._element.prepend(this._more);
    if (!n_left) this._more.remove();
    while (this._chips.length && this._chips[0].piece.at < (list[0]?.at ?? 0)) this._chips.shift().element.remove();
    let changed = false;
    list.forEach((piece, i) => {
      const chip = this._chips[i];
      if (chip?.piece === piece) return;
      changed = true;
      if (chip === undefined) this._element.append((this._chips[i] = this._make(piece)).element);
      else if (alike(chip.piece, piece)) this._patch(chip, piece);
      else {
        const next = this._make(piece);
        chip.element.replaceWith(next.element);
        this._chips[i] = next;
      }
    });
    for (const chip of this._chips.splice(list.length)) {
      chip.element.remove();
      changed = true;
    }
    return changed;
  }

  /** Let the chips of a request stand out; null for none. */
  mark(request) {
    for (const { element, piece } of this._chips) {
      element.classList.toggle("marked", request !== null && piece.request === request);
    }
  }

  /** Show the middles of all long texts and the odds of all choices, or hide them again. */
  toggle_folds() {
    const folded = this._chips.filter(({ piece }) => is_long(piece));
    const odds = this._chips.map((chip) => chip.odds).filter(Boolean);
    const opens = folded.some(({ piece }) => !this._unfolded.has(piece.at)) || odds.some((each) => !each.is_open);
    for (const each of odds) each.toggle(opens);
    if (odds.length) this._on_size();
    for (const { piece } of folded) this._fold(piece.at, opens);
  }

  // --- making

  _make(piece) {
    const mark = KINDS[sign_of(piece)];
    const element = h(this._doc, "span", { class: `chip ${piece.kind}` });
    if (piece.call !== null) element.dataset.request = piece.request ?? "";
    if (piece.kind === "role") {
      element.append(shown(piece.name));
      return { element, piece, segments: [] };
    }
    const name = [mark.sign, piece.name && `${shown(piece.name)}${piece.of && ` ${piece.of}`}:`].filter(Boolean).join(" ");
    if (name) element.append(h(this._doc, "b", { class: "name" }, name), " ");
    const chip = { element, piece, segments: [] };
    this._patch(chip, piece);
    return chip;
  }

  _patch(chip, piece) {
    const { element, segments } = chip;
    chip.piece = piece;
    const wanted = this._segments(piece);
    element.querySelector(":scope > .note")?.remove();
    element.classList.toggle("live", piece.live);
    let same = 0;
    while (same < segments.length && same < wanted.length && this._grow(segments[same], wanted[same], piece)) same += 1;
    for (const old of segments.splice(same)) old.element.remove();
    for (const segment of wanted.slice(same)) {
      const made = this._segment(segment, piece);
      element.append(made);
      segments.push({ segment, element: made });
    }
    if (piece.note) element.append(h(this._doc, "i", { class: "note" }, ` ${shown(piece.note)}`));
    chip.odds?.element.remove();
    chip.odds = piece.scores.length ? create_odds(this._doc, piece.scores, this._on_size) : null;
    if (chip.odds !== null) element.append(chip.odds.element);
  }

  /** Make the element of a segment show another one, if it is the same with more text or none. */
  _grow(old, next, piece) {
    if (old.segment.look !== next.look || old.segment.fold !== next.fold || !next.text.startsWith(old.segment.text)) return false;
    const more = next.text.slice(old.segment.text.length);
    if (more) old.element.firstChild.appendData(shown_lines(more));
    old.segment = next;
    this._runs.set(old.element, { run: next, piece });
    old.element.removeAttribute("title");
    return true;
  }

  _segment(segment, piece) {
    if (segment.fold) {
      const words = `⋯ ${grouped(segment.fold)} characters ⋯`;
      const onclick = () => this._fold(piece.at, true);
      return h(this._doc, "button", { class: "fold", tabindex: -1, onclick, title: "Show all of it" }, words);
    }
    const element = h(this._doc, "span", { class: `run ${segment.look}` });
    element.append(this._doc.createTextNode(shown_lines(segment.text)));
    this._runs.set(element, { run: segment, piece });
    return element;
  }

  /** The runs of a piece, a long text of the program without its middle. */
  _segments(piece) {
    if (!is_long(piece) || this._unfolded.has(piece.at)) return piece.runs;
    const length = length_of(piece);
    const cut = (from, to) => slices(piece.runs, from, to);
    return [...cut(0, HEAD), { look: "fold", text: "", fold: length - HEAD - TAIL }, ...cut(length - TAIL, length)];
  }

  // --- what readers do

  _fold(at, opens) {
    if (opens) this._unfolded.add(at);
    else this._unfolded.delete(at);
    for (const chip of this._chips) if (chip.piece.at === at) this._patch(chip, chip.piece);
    this._on_size();
  }

  _show_more() {
    this._most += 200;
    for (const { element } of this._chips.splice(0)) element.remove();
    this.update(this._pieces);
    this._on_size();
  }

  /** Titles are made when somebody looks. */
  _name(target) {
    const found = this._runs.get(target);
    if (found !== undefined && !target.title) target.title = title_of(found.run, found.piece);
  }
}

/** What a run is, in words. */
export function title_of(run, piece) {
  const level = /^l[0-4]$/.test(run.look) ? Number(run.look[1]) : null;
  const kind = KINDS[run.look] ?? KINDS[piece.kind];
  const words = [kind.word];
  if (run.n) words.push(run.n === 1 ? "1 token" : `${run.n} tokens`);
  if (run.low !== null && level !== null) words.push(...values(run, level));
  if (piece.scores.length) words.push(`by score: ${words_of(piece.scores)}`);
  if (piece.under) words.push(`constraint: ${shown(piece.under.slice(0, 300))}`);
  if (piece.request !== null) words.push(`request ${piece.request}`);
  return words.join(" · ");
}

function values(run, level) {
  if (run.low < 0 || run.high <= 0) { // log probabilities are never above 0, and no time is below it
    const percent = (value) => `${(100 * Math.exp(value)).toPrecision(3)} %`;
    return [`probability ${range(percent(run.low), percent(run.high))} (${SCALES.logprob[level]})`];
  }
  const ms = (value) => `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ms`;
  return [`${range(ms(run.low), ms(run.high))} after the token before (${SCALES.latency[level]})`];
}

function range(low, high) {
  return low === high ? low : `${low} to ${high}`;
}

/** Whether a chip can become that of another piece without being made anew. */
function alike(old, next) {
  return ["kind", "name", "of", "request", "call"].every((field) => old[field] === next[field]) && old.under === next.under && next.kind !== "role";
}

function sign_of(piece) {
  if (piece.kind === "gen" && piece.under) return "constrained";
  return Object.hasOwn(KINDS, piece.kind) ? piece.kind : "literal";
}

function length_of(piece) {
  return piece.runs.reduce((sum, run) => sum + run.text.length, 0);
}

function is_long(piece) {
  return FOLDED.has(piece.kind) && length_of(piece) > LONG;
}
