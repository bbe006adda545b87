// Events as they come from a log: lines [seq, t_ns, source, kind, fields], and objects {seq, t_ns, source, kind, body}.
//
// Times are nanoseconds of a machine's clock; beyond 2^53 of them (104 days) they are a few nanoseconds off.

/** How many of some rows come up to a value of a field in which they grow: events by "seq", or by "t_ns". */
export function n_until(rows, value, field = "seq") {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle][field] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The event of a line. */
export function event_of(line) {
  return { seq: line[0], t_ns: line[1], source: line[2], kind: line[3], body: line[4] };
}
