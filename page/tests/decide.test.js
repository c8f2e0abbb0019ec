import assert from "node:assert/strict";
import { test } from "node:test";

import { adjusted, closed, countsAt, expectedFalseMarks, histogram, marksOf, twoSided } from "../src/decide.js";

/** P(B >= k) of B ~ Binomial(n, 1/2). */
function tailsOf(n) {
  const terms = [1];
  for (let k = 0; k < n; k++) terms.push((terms[k] * (n - k)) / (k + 1));
  return terms.map((_, k) => terms.slice(k).reduce((a, b) => a + b) / 2 ** n);
}

/** Adjusted p-values by sorting them all: slow, and the textbook's. */
function slowly(pvalues, correction, harmonic) {
  const m = pvalues.length;
  const order = [...pvalues.keys()].sort((a, b) => pvalues[a] - pvalues[b]);
  const found = new Array(m);
  if (correction === "bonferroni") return pvalues.map((p) => Math.min(1, p * m));
  if (correction === "holm") {
    let highest = 0;
    order.forEach((at, i) => {
      highest = Math.max(highest, pvalues[at] * (m - i));
      found[at] = Math.min(1, highest);
    });
    return found;
  }
  let lowest = Infinity;
  for (let i = m - 1; i >= 0; i--) {
    lowest = Math.min(lowest, pvalues[order[i]] * (m / (i + 1)));
    found[order[i]] = Math.min(1, correction === "by" ? lowest * harmonic : lowest);
  }
  return found;
}

test("counts at an edge leave out what lies at it", () => {
  const samples = { n: 4, size: 2, encoding: "cells", cells: Uint8Array.from([0, 1, 2, 3, 3, 3, 4, 4]) };
  assert.deepEqual(countsAt(samples, 0), { above: Uint32Array.of(3, 3), below: Uint32Array.of(1, 0) });
  assert.deepEqual(countsAt(samples, 1), { above: Uint32Array.of(1, 1), below: Uint32Array.of(2, 1) });
});

test("counts that are kept are read, with ties and without", () => {
  const below = [Int16Array.of(1, 2), Int16Array.of(3, 4)];
  assert.deepEqual(countsAt({ n: 5, size: 2, encoding: "counts", below }, 1), {
    above: Uint32Array.of(2, 1),
    below: Uint32Array.of(3, 4),
  });
  const at = [Int16Array.of(0, 0), Int16Array.of(2, 0)];
  assert.deepEqual(countsAt({ n: 5, size: 2, encoding: "counts", below, at }, 1), {
    above: Uint32Array.of(0, 1),
    below: Uint32Array.of(3, 4),
  });
});

test("two-sided p-values stay below one", () => {
  assert.deepEqual(twoSided(tailsOf(3)), [1, 1, 1, 0.25]);
});

for (const correction of ["bonferroni", "holm", "bh", "by", "e-bh"]) {
  test(`${correction} by counts is ${correction} by sorting`, () => {
    const n = 12;
    const table = twoSided(tailsOf(n));
    for (let seed = 1; seed < 20; seed++) {
      const counts = Array.from({ length: 30 }, (_, k) => (seed * 7919 + k * k * 104729 + k) % (n + 1));
      const families = new Uint32Array(n + 1);
      for (const count of counts) families[count] += 1;
      const harmonic = counts.map((_, k) => 1 / (k + 1)).reduce((a, b) => a + b);
      const fast = adjusted(table, families, correction, harmonic);
      const expected = slowly(counts.map((count) => table[count]), correction, harmonic);
      counts.forEach((count, k) => assert.equal(fast[count], expected[k]));
    }
  });
}

/** Closed e-BH by its definition: no set of hypotheses may have a mean below its share of the rejected ones. */
function closedSlowly(eValues, counts, alpha) {
  const sorted = [...counts].sort((a, b) => b - a);
  for (let r = sorted.length; r > 0; r--) {
    if (eValues[sorted[r - 1]] <= 1 || sorted[r] === sorted[r - 1]) continue;
    let allowed = true;
    for (let set = 1; set < 2 ** sorted.length && allowed; set++) {
      const chosen = sorted.map((_, k) => k).filter((k) => (set >> k) & 1);
      const mean = chosen.reduce((sum, k) => sum + eValues[sorted[k]], 0) / chosen.length;
      allowed = mean >= (chosen.filter((k) => k < r).length / (alpha * r)) * (1 - 1e-12);
    }
    if (allowed) return sorted[r - 1];
  }
  return Infinity;
}

test("closed e-BH by counts is that of its definition", () => {
  const eValues = [0.01, 0.05, 0.2, 0.7, 3, 9, 30, 110, 900];
  let more = 0;
  for (let seed = 1; seed < 60; seed++) {
    const counts = Array.from({ length: 8 }, (_, k) => (seed * 7919 + k * k * 104729 + k * seed) % 9);
    const features = new Uint32Array(9);
    for (const count of counts) features[count] += 1;
    const alpha = [0.05, 0.2, 0.4][seed % 3];
    const found = Array.from(adjusted(eValues.map((e) => Math.min(1, 1 / e)), features, "e-bh", 1), (p, count) => features[count] > 0 && p <= alpha);
    const least = closedSlowly(eValues, counts, alpha);
    const marked = closed(eValues, features, alpha, found);
    counts.forEach((count) => assert.equal(marked[count], count >= least));
    more += counts.some((count) => marked[count] && !found[count]);
  }
  assert.ok(more > 5);
});

test("marks say which side, and only where it is significant", () => {
  const counts = { above: Uint32Array.of(10, 0, 6, 5, 0), below: Uint32Array.of(0, 10, 4, 5, 0) };
  const tails = tailsOf(10);
  assert.deepEqual([...marksOf(counts, tails, 0.05, "none", 1)], [1, -1, 0, 0, 0]);
  assert.deepEqual([...marksOf(counts, tails, 0.05, "none", 1, { tested: Uint8Array.of(0, 1, 1, 1, 1) })], [0, -1, 0, 0, 0]);
  assert.deepEqual([...marksOf(counts, tails, 0.001, "bonferroni", 1)], [0, 0, 0, 0, 0]);
});

test("what is not tested does not count for a correction", () => {
  const counts = { above: Uint32Array.of(10, 0, 0), below: Uint32Array.of(0, 0, 0) };
  const tails = tailsOf(10);
  const level = tails[10];
  assert.equal(marksOf(counts, tails, level, "bonferroni", 1)[0], 0);
  assert.equal(marksOf(counts, tails, level, "bonferroni", 1, { tested: Uint8Array.of(1, 0, 0) })[0], 1);
});

test("each side is a family of its own, or both are one", () => {
  const counts = { above: Uint32Array.of(9, 0, 0, 0), below: Uint32Array.of(1, 10, 10, 10) };
  const tails = tailsOf(10);
  const level = 2 * tails[9] * 1.001; // 4 tests and 1 of rank 1, or 8 tests and 1 of rank 4
  assert.deepEqual([...marksOf(counts, tails, level, "bh", 1)], [0, -1, -1, -1]);
  assert.deepEqual([...marksOf(counts, tails, level, "bh", 1, { together: true })], [1, -1, -1, -1]);
});

test("false marks expected", () => {
  const tails = tailsOf(10);
  assert.equal(expectedFalseMarks(tails, 0.05, 100), 2 * tails[9] * 100);
  assert.equal(expectedFalseMarks(tailsOf(3), 0.05, 100), 0);
});

test("a histogram holds every sample once", () => {
  const cells = { n: 3, size: 2, encoding: "cells", cells: Uint8Array.from([0, 6, 3, 6, 6, 6]) };
  assert.deepEqual(histogram(cells, 3, 0, 7), [1, 0, 0, 1, 0, 0, 1]);
  assert.deepEqual(histogram(cells, 3, 1, 7), [0, 0, 0, 0, 0, 0, 3]);
  const counts = { n: 5, size: 1, encoding: "counts", below: [1, 1, 4].map((count) => Int16Array.of(count)) };
  assert.equal(histogram(counts, 3, 0, 4).reduce((a, b) => a + b), 5);
});
