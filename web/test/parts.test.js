// Small parts that several views use, without a page.

import assert from "node:assert/strict";
import { test } from "node:test";
import { largest } from "../src/parts/largest.js";
import { child_at, parent_at } from "../src/parts/outline.js";
import { counts_of, count_words } from "../src/parts/text.js";
import { zoom_keys } from "../src/parts/zoom.js";

test("the largest value that fits is found, also where all fit or none does", () => {
  for (let most = 1; most < 40; most += 1) {
    for (let n = 0; n <= most; n += 1) assert.equal(Math.floor(largest((value) => Math.floor(value) <= n, most, 1)), n, `${n} of ${most}`);
  }
  assert.equal(largest(() => false, 9, 1), 0);
  assert.ok(Math.abs(largest((value) => value * value <= 2, 100, 1e-9) - Math.SQRT2) < 1e-9);
});

test("in an outline, each row hangs on the last one before it that is less deep", () => {
  const rows = [0, 1, 2, 2, 1, 0, 3].map((depth) => ({ depth }));
  assert.deepEqual(rows.map((_, at) => parent_at(rows, at)), [-1, 0, 1, 1, 0, -1, 5]);
  assert.deepEqual(rows.map((_, at) => child_at(rows, at)), [1, 2, -1, -1, -1, 6, -1]);
});

test("counts keep the order in which the values come", () => {
  assert.deepEqual([...counts_of(["b", "a", "b"])], [["b", 2], ["a", 1]]);
  assert.equal(count_words(["b", "a", "b"]), "2 b, 1 a");
});

test("zooming in and out again by keys leads back", () => {
  let zoom = 1;
  const keys = zoom_keys((factor) => (zoom *= factor));
  keys["+"]();
  assert.ok(zoom > 1);
  keys["-"]();
  assert.ok(Math.abs(zoom - 1) < 1e-12);
  keys["="]();
  assert.ok(zoom > 1);
});
