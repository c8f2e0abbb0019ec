import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";

import { labelsOf, midsOf, runsOf, ticks } from "../src/places.js";

const packed = (labels) => deflateSync(Buffer.from(Int32Array.from(labels).buffer)).toString("base64");

test("places show their own feature, or the one that is written", async () => {
  assert.deepEqual([...(await labelsOf({ cells: null }, 3, 3))], [0, 1, 2]);
  assert.deepEqual([...(await labelsOf({ cells: packed([1, 0, -1]) }, 3, 2))], [1, 0, -1]);
  await assert.rejects(labelsOf({ cells: null }, 3, 2));
  await assert.rejects(labelsOf({ cells: packed([0, 2]) }, 2, 2));
  await assert.rejects(labelsOf({ cells: packed([0]) }, 2, 2));
});

test("steps end half way to their neighbours", () => {
  assert.deepEqual([...midsOf([0, 1, 3])], [-0.5, 0.5, 2, 4]);
  assert.deepEqual([...midsOf([7])], [6.5, 7.5]);
});

test("runs are of one mark each, without undecided ones", () => {
  const marks = [1, 1, 0, -1, -1, 1, 0];
  assert.deepEqual(runsOf((k) => marks[k], 0, 7), [[1, 0, 2], [-1, 3, 5], [1, 5, 6]]);
  assert.deepEqual(runsOf((k) => marks[k], 1, 4), [[1, 1, 2], [-1, 3, 4]]);
});

test("ticks are round and lie within their ends", () => {
  assert.deepEqual(ticks(-0.001, 9.999, 6).map(({ text }) => text), ["0", "2", "4", "6", "8"]);
  assert.deepEqual(ticks(8.75, 9.99, 6).map(({ text }) => text), ["9.0", "9.5"]);
  assert.deepEqual(ticks(0.0004, 0.0021, 4).map(({ text }) => text), ["0.0005", "0.0010", "0.0015", "0.0020"]);
});
