// What metfa.stats decides, from counts: the same tables, the same order of floating-point steps, the same marks.

/**
 * Numbers of samples strictly above and strictly below an edge, for each feature.
 *
 * Samples lie in cells: cell 2k + 1 is the edge k itself, cell 2k what lies between it and the edge before.
 */
export function countsAt(samples, edge) {
  const { n, size } = samples;
  const above = new Uint32Array(size);
  const below = new Uint32Array(size);
  if (samples.encoding === "counts") {
    const at = samples.at?.[edge];
    for (let p = 0; p < size; p++) {
      below[p] = samples.below[edge][p];
      above[p] = n - below[p] - (at ? at[p] : 0);
    }
    return { above, below };
  }
  const cell = 2 * edge + 1;
  for (let start = 0; start < samples.cells.length; start += size) {
    for (let p = 0; p < size; p++) {
      const found = samples.cells[start + p];
      above[p] += found > cell;
      below[p] += found < cell;
    }
  }
  return { above, below };
}

/** Two-sided p-value by the larger of the two counts: twice the smaller tail, at most 1. */
export function twoSided(tails) {
  return tails.map((tail) => Math.min(1, 2 * tail));
}

/**
 * p-values, adjusted within one family, by the count.
 *
 * @param {number[]} table p-values by the count, which fall
 * @param {Uint32Array} features how many features have each count
 * @param {string} correction bonferroni, holm, bh or by; e-bh is bh of the reciprocals of e-values, and so is a
 *   first answer for closed-e-bh
 * @param {number} harmonic 1 + 1/2 + ... + 1/m for "by"
 */
export function adjusted(table, features, correction, harmonic) {
  const m = features.reduce((sum, count) => sum + count, 0);
  const found = new Float64Array(table.length);
  if (correction === "bonferroni") {
    return found.map((_, count) => Math.min(1, table[count] * m));
  }
  if (correction === "holm") {
    let rank = 1;
    let highest = 0;
    for (let count = table.length - 1; count >= 0; count--) {
      if (!features[count]) continue;
      highest = Math.max(highest, table[count] * (m - rank + 1));
      found[count] = Math.min(1, highest);
      rank += features[count];
    }
    return found;
  }
  let last = m;
  let lowest = Infinity;
  for (let count = 0; count < table.length; count++) {
    if (!features[count]) continue;
    lowest = Math.min(lowest, table[count] * (m / last));
    found[count] = Math.min(1, correction === "by" ? lowest * harmonic : lowest);
    last -= features[count];
  }
  return found;
}

/** Corrections that need a number of samples that was fixed beforehand. */
export const FIXED_ONLY = ["holm", "bh", "by"];

/** Which counts are significant in one family; arguments as for `adjusted`, and e-values by the count for "closed-e-bh". */
function significant(table, features, alpha, correction, harmonic, eValues) {
  const pvalues = correction === "none" ? table : adjusted(table, features, correction, harmonic);
  const found = Array.from(pvalues, (value) => value <= alpha);
  return correction === "closed-e-bh" ? closed(eValues, features, alpha, found) : found;
}

/**
 * Which counts closed e-BH rejects, of which e-BH has `found` some: see `_least_closed` in metfa's results/families.py.
 *
 * The same sums in the same order, so that the browser decides as Python does.
 */
export function closed(eValues, features, alpha, found) {
  const some = [...features.keys()].filter((count) => features[count]);
  const sizes = some.map((count) => features[count]);
  const m = sizes.reduce((sum, size) => sum + size, 0);
  const values = some.map((count) => Math.min(alpha * eValues[count], m));
  const before = [[0, 0]];
  sizes.forEach((size, k) => before.push([before[k][0] + size, before[k][1] + size * values[k]]));
  for (let first = 0; first < some.length; first++) {
    if (eValues[some[first]] <= 1) continue;
    if (found[some[first]]) break;
    const r = m - before[first][0];
    let [held, worth, others, allowed] = [0, 0, 0, true];
    for (let k = first; k < some.length && allowed; k++) {
      held += sizes[k];
      worth += sizes[k] * values[k];
      const owed = held / r;
      while (others < first && values[others] < owed) others += 1;
      allowed = worth + before[others][1] >= owed * (held + before[others][0]);
    }
    if (allowed) return found.map((_, count) => count >= some[first]);
  }
  return found;
}

/** How many features have each count; with a `mask`, of those in it; those that are not tested are not counted. */
export function histogramOf(counts, bins, tested = null, mask = null) {
  const features = new Uint32Array(bins);
  for (let p = 0; p < counts.length; p++) {
    if ((!mask || mask[p]) && (!tested || tested[p])) features[counts[p]] += 1;
  }
  return features;
}

/**
 * Marks of all features: 1 above the threshold, -1 below, 0 undecided.
 *
 * Each side is tested at alpha: without a correction each feature, with one all features, as a family of their own. If
 * the sides are corrected `together`, as older results were, alpha is the level of both. Features that are not tested
 * (`tested` is false there) get 0 and are not counted. "closed-e-bh" needs the `eValues` by the count.
 */
export function marksOf({ above, below }, tails, alpha, correction, harmonic, { tested = null, together = false, eValues = null } = {}) {
  const bins = tails.length;
  let up, down;
  if (together && correction !== "none") {
    const larger = above.map((count, p) => (2 * Math.max(count, below[p]) > bins - 1 ? Math.max(count, below[p]) : 0));
    const halved = eValues?.map((value) => value / 2);
    up = down = significant(twoSided(tails), histogramOf(larger, bins, tested), alpha, correction, harmonic, halved);
  } else {
    [up, down] = [above, below].map((counts) => significant(tails, histogramOf(counts, bins, tested), alpha, correction, harmonic, eValues));
  }
  const marks = new Int8Array(above.length);
  for (let p = 0; p < above.length; p++) {
    if (tested && !tested[p]) continue;
    if (above[p] > below[p]) marks[p] = up[above[p]] ? 1 : 0;
    else if (below[p] > above[p]) marks[p] = down[below[p]] ? -1 : 0;
  }
  return marks;
}

/** Features marked falsely, expected if every median lay at the threshold, without a correction. */
export function expectedFalseMarks(tails, alpha, size) {
  const least = tails.findIndex((tail) => tail <= alpha);
  return least < 0 ? 0 : 2 * tails[least] * size;
}

/** Numbers of samples of one feature in `bins` groups of cells from left to right. */
export function histogram(samples, edges, feature, bins) {
  const counts = new Array(bins).fill(0);
  const binOf = (cell) => Math.min(bins - 1, Math.floor(((cell + 0.5) / (2 * edges + 1)) * bins));
  if (samples.encoding === "counts") {
    let before = 0;
    for (let edge = 0; edge <= edges; edge++) {
      const upTo = edge < edges ? samples.below[edge][feature] : samples.n;
      counts[binOf(2 * edge)] += upTo - before;
      before = upTo;
    }
    return counts;
  }
  for (let k = 0; k < samples.n; k++) counts[binOf(samples.cells[k * samples.size + feature])] += 1;
  return counts;
}
