import assert from "node:assert/strict";
import { test } from "node:test";

import { histogramOf } from "../src/decide.js";
import { canPromise, eValueBounds, guarantees, simesBounds } from "../src/guarantee.js";

/** P(B >= k) of B ~ Binomial(n, 1/2). */
function tailsOf(n) {
  const terms = [1];
  for (let k = 0; k < n; k++) terms.push((terms[k] * (n - k)) / (k + 1));
  return terms.map((_, k) => terms.slice(k).reduce((a, b) => a + b) / 2 ** n);
}

function random(seed) {
  let state = seed;
  return () => {
    state = (state * 1664525 + 1013904223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

const subsets = (m) => Array.from({ length: 2 ** m - 1 }, (_, k) => [...Array(m).keys()].filter((j) => ((k + 1) >> j) & 1));

/** Hommel's test with the sum that is enough for the largest kept set: closed testing over every intersection. */
function keptByHommel(pvalues, alpha) {
  const m = pvalues.length;
  const harmonic = (k) => Array.from({ length: k }, (_, j) => 1 / (j + 1)).reduce((a, b) => a + b, 0);
  const simes = (sets, share) =>
    sets.filter((set) => {
      const sorted = set.map((j) => pvalues[j]).sort((a, b) => a - b);
      return sorted.every((p, k) => set.length * p > (k + 1) * share);
    });
  let sets = subsets(m);
  let most = m;
  for (;;) {
    const share = alpha / harmonic(most);
    sets = simes(subsets(m), share).filter((set) => set.length <= most);
    const largest = Math.max(0, ...sets.map((set) => set.length));
    if (largest === most || largest === 0) return sets;
    most = largest;
  }
}

/** At least so many of S are false: what is left of S when the kept set that covers most of it is true. */
function byClosure(kept, set) {
  return set.length - Math.max(0, ...kept.map((true_) => true_.filter((j) => set.includes(j)).length));
}

test("bounds from p-values are those of closed testing over every intersection", () => {
  const n = 12;
  const tails = tailsOf(n);
  let compared = 0;
  for (let seed = 1; seed < 25; seed++) {
    const next = random(seed);
    const counts = Array.from({ length: 6 }, () => Math.min(n, Math.floor(next() * 6) + (next() < 0.6 ? 8 : 2)));
    const alpha = [0.05, 0.2, 0.45][seed % 3];
    const bound = simesBounds(tails, histogramOf(counts, n + 1), alpha);
    const kept = keptByHommel(counts.map((count) => tails[count]), alpha);
    for (const set of subsets(6)) {
      const expected = byClosure(kept, set);
      compared += expected > 0;
      assert.equal(bound(histogramOf(set.map((j) => counts[j]), n + 1)), expected);
    }
  }
  assert.ok(compared > 200);
});

test("bounds from e-values are those of closed testing over every intersection", () => {
  const values = [0.05, 0.3, 0.9, 2, 7, 26, 90, 700];
  const logs = values.map(Math.log);
  let compared = 0;
  for (let seed = 1; seed < 25; seed++) {
    const next = random(seed);
    const counts = Array.from({ length: 6 }, () => Math.floor(next() * values.length));
    const alpha = [0.05, 0.2][seed % 2];
    const bound = eValueBounds(logs, histogramOf(counts, values.length), alpha);
    const kept = subsets(6).filter((set) => set.reduce((sum, j) => sum + values[counts[j]], 0) / set.length < 1 / alpha);
    for (const set of subsets(6)) {
      const expected = byClosure(kept, set);
      compared += expected > 0;
      assert.equal(bound(histogramOf(set.map((j) => counts[j]), values.length)), expected);
    }
  }
  assert.ok(compared > 200);
});

test("an empty region, nothing to find and nothing else than findings", () => {
  const tails = tailsOf(20);
  const none = new Uint32Array(21);
  const middle = none.with(10, 500);
  const top = none.with(20, 500);
  assert.equal(simesBounds(tails, top, 0.05)(none), 0);
  assert.equal(simesBounds(tails, middle, 0.05)(middle), 0);
  assert.equal(simesBounds(tails, top, 0.05)(top), 500);
  const logs = tails.map((p) => -Math.log(p) / 2);
  assert.equal(eValueBounds(logs, top, 0.05)(none), 0);
  assert.equal(eValueBounds(logs, middle, 0.05)(middle), 0);
  assert.equal(eValueBounds(logs, top, 0.05)(top), 500);
});

test("a larger region has no smaller bound, and both sides are counted by themselves", () => {
  const n = 30;
  const next = random(3);
  const above = Uint32Array.from({ length: 400 }, (_, p) => (p < 200 ? 26 + Math.floor(next() * 5) : Math.floor(next() * 6)));
  const below = above.map((count) => n - count);
  const bound = guarantees({ above, below }, { tails: tailsOf(n), logs: null }, 0.05);
  const mask = new Uint8Array(400);
  let before = { size: 0, above: 0, below: 0 };
  for (let p = 0; p < 400; p++) {
    mask[p] = 1;
    const found = bound(mask);
    assert.equal(found.size, p + 1);
    for (const side of ["above", "below"]) {
      assert.ok(found[side] >= before[side]);
      assert.ok(found[side] <= 200);
    }
    before = found;
  }
  assert.ok(before.above > 150);
  assert.ok(before.below > 150);
});

test("with too few samples nothing can be promised", () => {
  const harmonic = Array.from({ length: 1000 }, (_, k) => 1 / (k + 1)).reduce((a, b) => a + b);
  const least = Math.ceil(Math.log2(harmonic / 0.05)); // 2^-n <= alpha / H_m
  assert.equal(canPromise({ tails: tailsOf(least - 1), logs: null }, 1000, 0.05), false);
  assert.equal(canPromise({ tails: tailsOf(least), logs: null }, 1000, 0.05), true);
  assert.equal(canPromise({ tails: [1, 0.5], logs: [0, Math.log(19)] }, 1000, 0.05), false);
  assert.equal(canPromise({ tails: [1, 0.5], logs: [0, Math.log(21)] }, 1000, 0.05), true);
});

test("what is not tested is no part of a region", () => {
  const above = Uint32Array.of(20, 20, 20, 0);
  const tested = Uint8Array.of(1, 1, 0, 1);
  const bound = guarantees({ above, below: above.map((count) => 20 - count) }, { tails: tailsOf(20), logs: null }, 0.05, tested);
  assert.deepEqual(bound(Uint8Array.of(1, 1, 1, 0)), { size: 2, above: 2, below: 0 });
});
