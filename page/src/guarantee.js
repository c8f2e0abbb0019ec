// What can be promised about any region, also one drawn after a look: closed testing, as metfa.stats does it.
//
// Tests are functions of a count, so that a family is a histogram: how many features have each count. A bound for a
// region takes the histogram of the region, and then as many steps as there are counts.

import { histogramOf } from "./decide.js";

const BITS = 60; // of sums of e-values, which are exact integers

function sum(features) {
  return features.reduce((before, count) => before + count, 0);
}

/**
 * Bounds on how many hypotheses of a set are false, for every set at once, from p-values of any dependence: Hommel's
 * test of each intersection, as `stats.simes_bounds`.
 *
 * @param {number[]} table p-values by the count, which fall
 * @param {Uint32Array} features how many of all hypotheses have each count
 * @param {number} alpha
 * @returns {(set: Uint32Array) => number} the bound of a set, of which the histogram is given
 */
export function simesBounds(table, features, alpha) {
  const m = sum(features);
  let largest = m;
  let above = m + 1;
  let share = alpha;
  while (largest > 0 && largest < above) {
    above = largest; // larger sets are all rejected, so that a smaller sum is enough
    share = alpha / harmonic(largest);
    largest = largestKept(table, features, m, share, above);
  }
  const steps = table.map((p) => stepOf(largest * p, share, m + 1));
  return (set) => {
    let found = 0;
    let within = 0;
    for (let count = table.length - 1; count >= 0; count--) {
      within += set[count];
      found = Math.max(found, within - steps[count] + 1);
    }
    return found;
  };
}

function harmonic(size) {
  let total = 0;
  for (let k = 1; k <= size; k++) total += 1 / k;
  return total;
}

/** Size of the largest set that is not rejected: of i hypotheses, the i largest p-values are the hardest to reject. */
function largestKept(table, features, m, share, most) {
  let kept = 0;
  let rejected = most + 1;
  while (rejected - kept > 1) {
    const size = Math.floor((kept + rejected) / 2);
    if (isKept(table, features, m - size, size, share)) kept = size;
    else rejected = size;
  }
  return kept;
}

function isKept(table, features, left, size, share) {
  let rank = -left; // of the last hypothesis of each count, among the `size` largest p-values
  for (let count = table.length - 1; count >= 0; count--) {
    rank += features[count];
    if (features[count] && rank > 0 && !(size * table[count] > rank * share)) return false;
  }
  return true;
}

/** Smallest u >= 1 with scaled <= u share, at most `most`; compared as written, without a rounded quotient. */
function stepOf(scaled, share, most) {
  let step = Math.min(most, Math.max(1, Math.ceil(Math.min(scaled / share, most))));
  if (scaled > step * share) step += 1;
  if (step > 1 && scaled <= (step - 1) * share) step -= 1;
  return Math.min(step, most);
}

/**
 * The same from e-values, whose means decide about intersections: under any dependence and whenever sampling stops, as
 * `stats.e_value_bounds`.
 *
 * @param {number[]} logs natural logarithms of e-values by the count, which rise
 */
export function eValueBounds(logs, features, alpha) {
  const m = Math.max(1, sum(features));
  const unit = 2 ** (BITS - m.toString(2).length);
  let surplus = logs.map((log) => {
    const paid = Math.exp(Math.min(log + Math.log(alpha), Math.log(m + 1)));
    return BigInt(Math.floor((paid - 1) * unit));
  });
  const debt = surplus.reduce((all, one, count) => (one < 0n ? all - one * BigInt(features[count]) : all), 0n);
  surplus = surplus.map((one) => (one > debt ? debt : one));
  return (set) => {
    let paid = 0n;
    let within = 0; // hypotheses that pay, from the smallest surplus on
    let enough = null; // how many of these are needed
    for (let count = 0; count < logs.length; count++) {
      if (surplus[count] < 0n || !set[count]) continue;
      const whole = paid + surplus[count] * BigInt(set[count]);
      if (enough === null && whole >= debt) {
        const missing = debt - paid;
        const needed = missing > 0n ? Number((missing + surplus[count] - 1n) / surplus[count]) : 1;
        enough = within + Math.max(1, needed);
      }
      paid = whole;
      within += set[count];
    }
    return enough === null ? 0 : within - enough + 1;
  };
}

/** Whether anything can be promised about `size` features: if all samples of all of them lay on one side. */
export function canPromise({ tails, logs }, size, alpha) {
  const features = new Uint32Array(tails.length);
  features[tails.length - 1] = size;
  return (logs ? eValueBounds(logs, features, alpha) : simesBounds(tails, features, alpha))(features) > 0;
}

/**
 * Bounds for any region of a map: how many of its features lie above the threshold, and how many below, at least. Each
 * statement holds with probability 1 - alpha for all regions at once.
 *
 * @param {{above: Uint32Array, below: Uint32Array}} counts samples above and below the threshold, for each feature
 * @param {{tails: number[], logs: number[] | null}} tables p-values by the count, or e-values, which then decide
 * @param {number} alpha
 * @param {Uint8Array | null} tested which features are tested; null for all
 * @returns {(mask: Uint8Array) => {size: number, above: number, below: number}}
 */
export function guarantees(counts, { tails, logs }, alpha, tested = null) {
  const bins = tails.length;
  const bounds = {};
  for (const side of ["above", "below"]) {
    const features = histogramOf(counts[side], bins, tested);
    bounds[side] = logs ? eValueBounds(logs, features, alpha) : simesBounds(tails, features, alpha);
  }
  return (mask) => {
    const [above, below] = ["above", "below"].map((side) => histogramOf(counts[side], bins, tested, mask));
    return { size: sum(above), above: bounds.above(above), below: bounds.below(below) };
  };
}
