// Places of series and volumes: the feature that each one shows, and where it lies.

import { unpacked } from "./decode.js";

export const OVERLAPPING = " Where regions overlap, the smallest is shown.";

/** The feature of each place, -1 for none; of `place.cells`, or each place its own. */
export async function labelsOf({ cells }, places, features) {
  if (cells === null) {
    if (places !== features) throw new Error("its places do not fit their scores");
    return Int32Array.from({ length: places }, (_, k) => k);
  }
  const bytes = await unpacked(cells);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const labels = Int32Array.from({ length: bytes.length / 4 }, (_, k) => view.getInt32(4 * k, true));
  if (labels.length !== places || labels.some((label) => label >= features)) throw new Error("its places do not fit their scores");
  return labels;
}

/** Where each step begins and the last one ends: half way to its neighbours. */
export function midsOf(times) {
  const n = times.length;
  if (n === 1) return Float64Array.of(times[0] - 0.5, times[0] + 0.5);
  const edges = new Float64Array(n + 1);
  for (let k = 1; k < n; k++) edges[k] = (times[k - 1] + times[k]) / 2;
  edges[0] = 2 * times[0] - edges[1];
  edges[n] = 2 * times[n - 1] - edges[n - 1];
  return edges;
}

/** Runs of places with one mark that is not 0, as [mark, first, behind the last]. */
export function runsOf(markAt, from, to) {
  const runs = [];
  let start = from;
  for (let k = from; k <= to; k++) {
    const before = markAt(start);
    if (k < to && markAt(k) === before) continue;
    if (before !== 0) runs.push([before, start, k]);
    start = k;
  }
  return runs;
}

/** About `most` round numbers from one end to another, as texts too. */
export function ticks(low, high, most) {
  const rough = (high - low) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((one) => one >= rough) ?? 10 * power;
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push({ value: k * step, text: digits > 6 || step >= 1e6 ? (k * step).toPrecision(4) : (k * step).toFixed(digits) });
  return found;
}
