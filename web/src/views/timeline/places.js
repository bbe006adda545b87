// Where in the rows the keyboard is, and where a key takes it. A place is {lane, bar}; bar is null on a stream's line.
//
// Not here: which key that is (hands.js), what a place looks like (index.js).

/** The row of a place, or null; rows may have moved since. */
export function row_of(rows, place) {
  if (place === null) return null;
  const { lane, bar } = place;
  const at = rows.findIndex((row) => row.lane === lane && (bar === null ? row.bars === null : (row.bars?.includes(bar) ?? false)));
  return at < 0 ? null : at;
}

/** The first place of all, or null. */
export function first_place(rows) {
  return rows.length ? { lane: rows[0].lane, bar: rows[0].bars?.[0] ?? null } : null;
}

/** The place of what is in focus, or null. */
export function place_of(track, { request, stream }) {
  const bar = request === null ? null : (track.bars.get(request) ?? null);
  const lane = bar === null && stream === null ? undefined : track.lanes.get(bar?.stream ?? stream);
  return lane === undefined ? null : { lane, bar };
}

/** When it begins, and when it ended (null: it goes on). */
export function begin_of({ lane, bar }) {
  return bar === null ? lane.began : bar.starts[0];
}

export function end_of({ lane, bar }) {
  return bar === null ? lane.ended : bar.end;
}

/** The place left, right, up, down, first or last of one in row `at`, or null; up and down stay near a time. */
export function moved(rows, at, place, name, t_ns) {
  if (name === "up" || name === "down") {
    const row = rows[name === "up" ? at - 1 : at + 1];
    return row === undefined ? null : { lane: row.lane, bar: nearest(row.bars, t_ns) };
  }
  const bars = rows[at].bars ?? [];
  const i = bars.indexOf(place.bar);
  const bar = { left: bars[i - 1], right: bars[i + 1], first: bars[0], last: bars.at(-1) }[name];
  return bar === undefined || place.bar === null ? null : { lane: place.lane, bar };
}

function nearest(bars, t_ns) {
  if (!bars?.length) return null;
  const off = (bar) => Math.abs(bar.starts[0] - t_ns);
  return bars.reduce((best, bar) => (off(bar) < off(best) ? bar : best));
}
