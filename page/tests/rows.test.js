import assert from "node:assert/strict";
import { test } from "node:test";

import { byLargest, Rows } from "../src/rows.js";

function rowsOf(marks, scores, threshold = 0) {
  const rows = new Rows();
  const each = marks.map((own, k) => ({ marks: Int8Array.from(own), main: "mean", threshold, score: (_, feature) => scores[k][feature], decide() {} }));
  const about = marks.map((_, k) => ({ name: `row ${k}`, explained: k % 2 ? "class 1" : null, cautions: [] }));
  Object.assign(rows, { names: ["a", "b"], size: 2, each, about });
  rows.decide(0.05, "none", 0);
  return rows;
}

const ALL = { text: "", feature: -1, mark: null };
const MARKS = [[1, 0], [0, 0], [-1, 1], [1, -1]];
const SCORES = [[1, 0.1], [0.2, 0], [-2, 1], [3, -9]];

test("equal numbers keep their order", () => {
  assert.deepEqual(byLargest([1, 3, 3, 0]), [1, 2, 0, 3]);
});

test("undecided cells have no weight, and unimportant ones none where the threshold is not 0", () => {
  const rows = rowsOf(MARKS, SCORES);
  assert.deepEqual([0, 1, 2, 3].map((k) => [rows.weight(k, 0), rows.weight(k, 1)]), [[1, 0], [0, 0], [2, 1], [3, 9]]);
  assert.deepEqual(rows.columns, [1, 0]);
  assert.deepEqual([0, 1, 2, 3].map((k) => rows.lead(k)), [0, -1, 0, 1]);
  assert.deepEqual(rows.shares, { 1: 3 / 8, 0: 3 / 8, "-1": 2 / 8 });
  assert.equal(rowsOf(MARKS, SCORES, 0.5).weight(3, 1), 0);
  assert.equal(rowsOf(MARKS, SCORES, 0.5).weight(3, 0), 2.5);
});

test("rows are filtered by marks and names, and sorted", () => {
  const rows = rowsOf(MARKS, SCORES);
  const given = { by: "given", down: true };
  assert.deepEqual(rows.order(ALL, given), [0, 1, 2, 3]);
  assert.deepEqual(rows.order({ ...ALL, mark: -1 }, given), [2, 3]);
  assert.deepEqual(rows.order({ ...ALL, mark: 1, feature: 0 }, given), [0, 3]);
  assert.deepEqual(rows.order({ ...ALL, mark: 0 }, given), [0, 1]);
  assert.deepEqual(rows.order({ ...ALL, text: " CLASS 1 " }, given), [1, 3]);
  assert.deepEqual(rows.order(ALL, { by: 0, down: true }), [3, 0, 1, 2]);
  assert.deepEqual(rows.order(ALL, { by: 0, down: false }), [2, 1, 0, 3]);
  assert.deepEqual(rows.order(ALL, { by: "grouped", down: true }), [3, 0, 2, 1]);
});
