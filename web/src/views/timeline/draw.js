// Draws the rows and the axis of a timeline. Bars that are narrower than a pixel are drawn together.
//
// `frame` is {window, left, width, zero, cursor, last}: times in ns; the bars begin `left` pixels from the edge.
//
// Not here: which rows there are (rows.js), colours (paint.js), the areas below (areas.js).

import { largest } from "../../parts/largest.js";
import { LINES, PHASES } from "./paint.js";
import { span_words, ticks_of, x_of } from "./scale.js";

/** Heights in pixels: a stream's row, a request's row, the space above a stream. */
export const WIDE = { lane: 10, bar: 17, gap: 5 };
export const DENSE = { lane: 5, bar: 10, gap: 2 };
export const AXIS = 22;
const INDENT = 9;

/** The top of each row, and where the last one ends. */
export function tops_of(rows, size) {
  const tops = [];
  let y = 2;
  rows.forEach((row, i) => {
    if (row.bars === null || row.label) y += size.gap;
    tops.push(y);
    y += row.bars === null ? size.lane : size.bar;
    if (row.bars === null && rows[i + 1]?.lane !== row.lane) y += size.bar; // the label takes that much
  });
  return { tops, height: y + 4 };
}

/** The rows that can be seen between `top` and `top + height`; `marks` is {bar, lane, users, active}. */
export function draw_rows(context, paint, frame, rows, tops, size, top, height, marks) {
  draw_grid(context, paint, frame, height);
  rows.forEach((row, i) => {
    const tall = row.bars === null ? size.lane : size.bar;
    const y = tops[i] - top;
    if (y + tall + 20 < 0 || y > height) return;
    context.save();
    context.beginPath();
    context.rect(frame.left, y - 2, frame.width, tall + 4);
    context.clip();
    context.translate(frame.left, 0);
    if (row.bars === null) draw_lane(context, paint, frame, row.lane, y + tall / 2, tall, marks);
    else draw_bars(context, paint, frame, row, y, tall - 2, marks);
    context.restore();
    if (row.label) draw_label(context, paint, frame, row, y, size, marks);
  });
  draw_cursor(context, paint, frame, height);
}

/** The axis, with round times counted from the beginning; the time of the cursor takes the place of those under it. */
export function draw_axis(context, paint, frame) {
  context.font = `11px ${paint.font}`;
  context.textBaseline = "middle";
  context.fillStyle = paint.colours.faint;
  const flag = flag_of(context, frame);
  for (const { t_ns, text } of ticks_of(frame.window, frame.width, frame.zero)) {
    const x = frame.left + x_of(frame.window, frame.width, t_ns);
    const half = context.measureText(text).width / 2;
    const is_free = flag === null || x + half < flag.x - 4 || x - half > flag.x + flag.wide + 4;
    if (is_free && x - half > frame.left - 8 && x + half < frame.left + frame.width) context.fillText(text, x - half, 9);
    context.fillRect(Math.round(x), 17, 1, AXIS - 17);
  }
  draw_cursor(context, paint, frame, AXIS);
  if (flag === null) return;
  context.fillStyle = paint.colours.fg;
  context.fillRect(flag.x, 1, flag.wide, 16);
  context.fillStyle = paint.colours.bg;
  context.fillText(flag.text, flag.x + 4, 9);
}

/** {text, x, wide} of the time at the cursor, or null. */
function flag_of(context, frame) {
  if (frame.cursor === null) return null;
  const text = span_words(frame.cursor - frame.zero);
  const wide = context.measureText(text).width + 8;
  const middle = frame.left + x_of(frame.window, frame.width, frame.cursor);
  return { text, wide, x: Math.min(Math.max(middle - wide / 2, frame.left), frame.left + frame.width - wide) };
}

export function draw_grid(context, paint, frame, height) {
  context.fillStyle = paint.colours.line;
  context.globalAlpha = 0.6;
  for (const { t_ns } of ticks_of(frame.window, frame.width, frame.zero)) {
    context.fillRect(Math.round(frame.left + x_of(frame.window, frame.width, t_ns)), 0, 1, height);
  }
  context.globalAlpha = 1;
}

/** The line at the moment that is shown; what comes after it is faint. */
export function draw_cursor(context, paint, frame, height) {
  if (frame.cursor === null) return;
  const x = frame.left + Math.min(Math.max(x_of(frame.window, frame.width, frame.cursor), 0), frame.width);
  context.fillStyle = paint.colours.bg;
  context.globalAlpha = 0.6;
  context.fillRect(x, 0, frame.left + frame.width - x, height);
  context.globalAlpha = 1;
  context.fillStyle = paint.colours.fg;
  if (frame.cursor >= frame.window.from && frame.cursor <= frame.window.to) context.fillRect(x - 1, 0, 2, height);
}

/** A text cut to the room that there is. */
export function draw_text(context, text, x, y, room) {
  const fits = (words) => context.measureText(words).width <= room;
  const cut = (n) => `${text.slice(0, n).trimEnd()}…`;
  if (fits(text)) return context.fillText(text, x, y);
  const n = Math.floor(largest((n) => fits(cut(n)), text.length, 1));
  if (n) context.fillText(cut(n), x, y);
}

// ---------------------------------------------------------------------------------------------------- rows

function draw_label(context, paint, frame, { label, depth, lane }, y, size, marks) {
  const x = 6 + Math.min(depth, 6) * INDENT;
  context.font = `${marks.lane === lane.id && lane.id ? "bold " : ""}${size === WIDE ? 12 : 11}px ${paint.font}`;
  context.textBaseline = "middle";
  context.fillStyle = paint.colours.fg;
  draw_text(context, label, x, y + (size.lane + size.bar) / 2, frame.left - x - 6);
}

function draw_lane(context, paint, frame, lane, y, tall, marks) {
  const end = lane.ended ?? frame.last;
  let drawn = -Infinity;
  lane.starts.forEach((start, i) => {
    const stop = Math.min(lane.starts[i + 1] ?? end, end);
    const [x0, x1] = [x_of(frame.window, frame.width, start), x_of(frame.window, frame.width, stop)];
    if (x1 < 0 || x0 > frame.width || x1 - drawn < 0.5) return;
    drawn = x1;
    const look = LINES[lane.phases[i]];
    context.strokeStyle = paint.colours[lane.phases[i]];
    context.lineWidth = Math.min(look.width, tall - 2);
    context.setLineDash(look.dash);
    context.beginPath();
    context.moveTo(Math.max(x0, -10), y);
    context.lineTo(Math.min(x1, frame.width + 10), y);
    context.stroke();
  });
  context.setLineDash([]);
  draw_ends(context, paint, frame, lane, y, tall);
  if (marks.active !== lane) return;
  const x0 = x_of(frame.window, frame.width, lane.began);
  outline(context, paint, x0, y - tall / 2, x_of(frame.window, frame.width, end) - x0, tall);
}

/** A tick where a stream begins and one where it ends, turned up where it was joined. */
function draw_ends(context, paint, frame, lane, y, tall) {
  context.fillStyle = paint.colours.fg;
  const half = tall / 2;
  context.fillRect(x_of(frame.window, frame.width, lane.began), y - half, 1.5, tall);
  if (lane.ended === null) return;
  const x = x_of(frame.window, frame.width, lane.ended);
  context.fillRect(x - 1, y - half, 1.5, tall);
  if (lane.how === "joined") context.fillRect(x - 5, y - half, 5, 1.5);
}

function draw_bars(context, paint, frame, row, y, tall, marks) {
  let drawn = -Infinity;
  for (const bar of row.bars) {
    const end = bar.end ?? frame.last;
    const [x0, x1] = [x_of(frame.window, frame.width, bar.starts[0]), x_of(frame.window, frame.width, end)];
    if (x1 < -2 || x0 > frame.width + 2) continue;
    const is_marked = marks.bar === bar.id || marks.users.has(bar.id) || marks.active === bar;
    if (x1 - drawn < 0.75 && !is_marked) continue; // it would be within the pixels of those before
    drawn = draw_phases(context, paint, frame, bar, end, y, tall, drawn);
    if (tall >= 12) draw_name(context, paint, frame, row.lane, bar, x0, x1, y, tall);
    if (is_marked) outline(context, paint, x0, y, x1 - x0, tall, marks.active === bar);
  }
}

function draw_phases(context, paint, frame, bar, end, y, tall, drawn) {
  bar.starts.forEach((start, i) => {
    const x0 = Math.max(x_of(frame.window, frame.width, start), -2);
    const x1 = Math.min(x_of(frame.window, frame.width, Math.min(bar.starts[i + 1] ?? end, end)), frame.width + 2);
    if (x1 < 0 || x0 > frame.width || x1 - drawn < 0.5) return;
    const from = Math.max(x0, drawn);
    const wide = Math.max(x1 - from, 1);
    const phase = bar.phases[i];
    paint.fill(context, phase, PHASES[phase].pattern, from, y, wide, tall);
    context.fillStyle = paint.colours[phase];
    context.fillRect(from, y + tall - 2, wide, 2);
    drawn = from + wide;
  });
  return drawn;
}

function draw_name(context, paint, frame, lane, bar, x0, x1, y, tall) {
  const name = name_of(lane, bar);
  const left = Math.max(x0, 0) + 4;
  const room = Math.min(x1, frame.width) - left - 4;
  if (!name || room < 24) return;
  context.font = `11px ${paint.font}`;
  context.textBaseline = "middle";
  context.strokeStyle = paint.colours.bg;
  context.lineWidth = 3;
  context.fillStyle = paint.colours.fg;
  if (context.measureText(name).width > room) return;
  context.strokeText(name, left, y + tall / 2 - 1);
  context.fillText(name, left, y + tall / 2 - 1);
}

/** The name of the call that a request answers. */
export function name_of(lane, bar) {
  const call = lane.calls.find((each) => each.id === bar.call_id);
  return call === undefined ? "" : call.kind === "prefix" ? "prefix" : call.name.slice(0, 40);
}

function outline(context, paint, x, y, width, tall, is_active = true) {
  context.strokeStyle = paint.colours.fg;
  context.lineWidth = 2;
  context.setLineDash(is_active ? [] : [4, 2]);
  context.strokeRect(x - 1, y - 1, width + 2, tall + 1);
  context.setLineDash([]);
}
