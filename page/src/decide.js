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
    const start = edge * size;
    const upTo = samples.upTo ?? samples.below;
    for (let p = 0; p < size; p++) {
      below[p] = samples.below[start + p];
      above[p] = n - upTo[start + p];
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
 * p-values, adjusted for all features together, by the larger count.
 *
 * @param {number[]} table two-sided p-values by the larger count, which fall
 * @param {Uint32Array} families how many features have each larger count
 * @param {string} correction bonferroni, holm, bh or by; e-bh is bh of the reciprocals of e-values
 * @param {number} harmonic 1 + 1/2 + ... + 1/m for "by"
 */
export function adjusted(table, families, correction, harmonic) {
  const m = families.reduce((sum, count) => sum + count, 0);
  const found = new Float64Array(table.length);
  if (correction === "bonferroni") {
    return found.map((_, count) => Math.min(1, table[count] * m));
  }
  if (correction === "holm") {
    let rank = 1;
    let highest = 0;
    for (let count = table.length - 1; count >= 0; count--) {
      if (!families[count]) continue;
      highest = Math.max(highest, table[count] * (m - rank + 1));
      found[count] = Math.min(1, highest);
      rank += families[count];
    }
    return found;
  }
  let last = m;
  let lowest = Infinity;
  for (let count = 0; count < table.length; count++) {
    if (!families[count]) continue;
    lowest = Math.min(lowest, table[count] * (m / last));
    found[count] = Math.min(1, correction === "by" ? lowest * harmonic : lowest);
    last -= families[count];
  }
  return found;
}

/** Corrections that need a number of samples that was fixed beforehand. */
export const FIXED_ONLY = ["holm", "bh", "by"];

/**
 * Marks of all features: 1 above the threshold, -1 below, 0 undecided.
 *
 * Without a correction each side is tested at alpha; with one, alpha is the level of all features together. Features
 * that are not tested (`tested` is false there) get 0 and are not counted.
 */
export function marksOf({ above, below }, tails, alpha, correction, harmonic, tested = null) {
  const table = twoSided(tails);
  let pvalues = table;
  let level = 2 * alpha;
  if (correction !== "none") {
    const families = new Uint32Array(table.length);
    for (let p = 0; p < above.length; p++) {
      if (!tested || tested[p]) families[Math.max(above[p], below[p])] += 1;
    }
    pvalues = adjusted(table, families, correction, harmonic);
    level = alpha;
  }
  const significant = Array.from(pvalues, (value) => value <= level);
  const marks = new Int8Array(above.length);
  for (let p = 0; p < above.length; p++) {
    if (tested && !tested[p]) continue;
    if (above[p] > below[p]) marks[p] = significant[above[p]] ? 1 : 0;
    else if (below[p] > above[p]) marks[p] = significant[below[p]] ? -1 : 0;
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
  const binOf = (cell) => Math.min(bins - 1, Math.floor((cell / (2 * edges + 1)) * bins));
  if (samples.encoding === "counts") {
    let before = 0;
    for (let edge = 0; edge <= edges; edge++) {
      const upTo = edge < edges ? samples.below[edge * samples.size + feature] : samples.n;
      counts[binOf(2 * edge)] += upTo - before;
      before = upTo;
    }
    return counts;
  }
  for (let k = 0; k < samples.n; k++) counts[binOf(samples.cells[k * samples.size + feature])] += 1;
  return counts;
}
