// Draws how full the batch was in each step and the pool after it, under the rows and on the same axis.
//
// Not here: the rows (draw.js), colours (paint.js).

import { n_until } from "../../events.js";
import { grouped } from "../../parts/grouped.js";
import { draw_cursor, draw_grid, draw_text } from "./draw.js";
import { AREAS } from "./paint.js";
import { x_of } from "./scale.js";

const TALL = 40;
const GAP = 8;
export const AREAS_HEIGHT = 2 * TALL + 2 * GAP + 2;

const BANDS = [
  { // while a step runs
    title: "batch, max",
    parts: [["running", "n_running"], ["waiting", "n_waiting"]],
    most: (step) => step.n_running + step.n_waiting,
    span: (steps, at) => ({ from: Math.max(steps[at - 1]?.t_ns ?? -Infinity, steps[at].t_ns - steps[at].took_ns), to: steps[at].t_ns }),
  },
  { // as a step leaves it, until the next one is over
    title: "pool of",
    parts: [["locked", "n_locked"], ["evictable", "n_evictable"]],
    most: (step) => step.n_locked + step.n_evictable + step.n_free,
    span: (steps, at, last) => ({ from: steps[at].t_ns, to: steps[at + 1]?.t_ns ?? last }),
  },
];

/** Both bands; the numbers beside them are those at `at_ns`. */
export function draw_areas(context, paint, frame, steps, at_ns) {
  draw_grid(context, paint, frame, AREAS_HEIGHT);
  BANDS.forEach((band, i) => {
    const top = GAP / 2 + i * (TALL + GAP);
    const most = steps.reduce((top, step) => Math.max(top, band.most(step)), 1);
    context.save();
    context.beginPath();
    context.rect(frame.left, top, frame.width, TALL + 1);
    context.clip();
    context.translate(frame.left, 0);
    draw_band(context, paint, frame, columns_of(frame, steps, band), band, top + TALL, most);
    context.restore();
    context.fillStyle = paint.colours.faint;
    context.fillRect(frame.left, top + TALL, frame.width, 1);
    draw_numbers(context, paint, frame, band, steps[n_until(steps, at_ns, "t_ns") - 1], top, most);
  });
  draw_cursor(context, paint, frame, AREAS_HEIGHT);
}

/** Each part as one shape, so that its pattern has no seams. */
function draw_band(context, paint, frame, columns, { parts }, bottom, most) {
  const tops = columns.map(() => bottom);
  parts.forEach(([name], i) => {
    context.save();
    context.beginPath();
    columns.forEach(({ x0, x1, values }, at) => {
      const tall = (values[i] / most) * TALL;
      tops[at] -= tall;
      context.rect(x0, tops[at], x1 - x0, tall);
    });
    context.clip();
    paint.fill(context, name, AREAS[name].pattern, 0, bottom - TALL, frame.width, TALL);
    context.restore();
    context.fillStyle = paint.colours[name];
    columns.forEach(({ x0, x1, values }, at) => values[i] && context.fillRect(x0, tops[at], x1 - x0, 1));
  });
}

/** What is seen of a band: [{x0, x1, values}] in whole pixels; of the steps within one pixel, the highest counts. */
export function columns_of(frame, steps, { parts, span }) {
  const columns = [];
  for (let at = Math.max(0, n_until(steps, frame.window.from, "t_ns") - 1); at < steps.length; at++) {
    const { from, to } = span(steps, at, frame.last);
    const last = columns.at(-1);
    let x0 = Math.max(0, Math.round(x_of(frame.window, frame.width, from)));
    if (last !== undefined && x0 - last.x1 <= 1) x0 = last.x1; // a gap of no width but that of a pixel
    const x1 = Math.min(frame.width, Math.max(x0 + (last === undefined ? 1 : 0), Math.round(x_of(frame.window, frame.width, to))));
    if (x0 >= frame.width) break;
    if (x1 <= 0) continue;
    const values = parts.map(([, field]) => steps[at][field]);
    if (last !== undefined && last.x1 >= x1) last.values.forEach((value, i) => (last.values[i] = Math.max(value, values[i])));
    else columns.push({ x0, x1, values });
  }
  return columns;
}

function draw_numbers(context, paint, frame, { title, parts }, step, top, most) {
  context.textBaseline = "middle";
  context.fillStyle = paint.colours.fg;
  context.font = `bold 11px ${paint.font}`;
  draw_text(context, `${title} ${grouped(most)}`, 6, top + 7, frame.left - 12);
  context.font = `11px ${paint.font}`;
  context.fillStyle = paint.colours.faint;
  parts.forEach(([name, field], i) => {
    const text = step === undefined ? `– ${AREAS[name].word}` : `${grouped(step[field])} ${AREAS[name].word}`;
    draw_text(context, text, 6, top + 20 + 13 * i, frame.left - 12);
  });
}
