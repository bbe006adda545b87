// Where one goes in an outline: rows one after another, each with its depth, and below each what hangs on it.
//
// Not here: which key goes there (the views).

/** The place of the row that the one at `at` hangs on; -1 where there is none. */
export function parent_at(rows, at) {
  return rows.findLastIndex(({ depth }, i) => i < at && depth < rows[at].depth);
}

/** The place of the first row below the one at `at`; -1 where there is none. */
export function child_at(rows, at) {
  return rows[at + 1]?.depth > rows[at].depth ? at + 1 : -1;
}
