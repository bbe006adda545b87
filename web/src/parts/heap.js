// A binary heap: the value of the highest score comes out first; of equal scores, the one that was put in first.

export class Heap {
  #rows = []; // [score, number, value]
  #n = 0;

  push(score, value) {
    const rows = this.#rows;
    const row = [score, this.#n++, value];
    let at = rows.length;
    for (let above = (at - 1) >> 1; at > 0 && is_before(row, rows[above]); above = (at - 1) >> 1) {
      rows[at] = rows[above];
      at = above;
    }
    rows[at] = row;
  }

  /** The next value, or null. */
  pop() {
    const rows = this.#rows;
    if (!rows.length) return null;
    const [top, last] = [rows[0], rows.pop()];
    if (rows.length) this.#sink(last);
    return top[2];
  }

  #sink(row) {
    const rows = this.#rows;
    let at = 0;
    for (let next = 1; next < rows.length; next = 2 * at + 1) {
      if (next + 1 < rows.length && is_before(rows[next + 1], rows[next])) next += 1;
      if (!is_before(rows[next], row)) break;
      rows[at] = rows[next];
      at = next;
    }
    rows[at] = row;
  }
}

const is_before = (a, b) => a[0] > b[0] || (a[0] === b[0] && a[1] < b[1]);
