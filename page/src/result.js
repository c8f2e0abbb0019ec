// One result as the page holds it: its numbers unpacked, and what can be asked of them.

import { scores, undoDifferences, unpacked, unpackedMaps, unpackedPlanes } from "./decode.js";
import { percent, probability, short } from "./elements.js";
import { countsAt, expectedFalseMarks, FIXED_ONLY, histogram, marksOf } from "./decide.js";

const KINDS = { 1: "important", 0: "undecided", "-1": "unimportant" };
const SIGNED_KINDS = { 1: "positive", 0: "undecided", "-1": "negative" };
const CONTEXT_KINDS = { 1: "needed", 0: "undecided", "-1": "not needed" };

export class Result {
  /** Unpack the data of the page. */
  static async of(data) {
    const maps = await unpackedMaps(data.layers);
    if (data.certificate) maps.radius = scores(await unpacked(data.certificate.radii), { kind: "single" });
    const samples = await unpackedSamples(data.samples);
    const compared = data.compared ? await comparedOf(data.compared) : null;
    return Result.made(data, { samples, maps, compared, region: data.region ? await unpacked(data.region) : null });
  }

  /** From what is unpacked already. */
  static made(data, { samples, maps, compared = null, region = null }) {
    const result = new Result();
    Object.assign(result, data, { samples, maps, compared, region });
    result.size = samples.size;
    result.n = samples.n;
    result.tested = region ? region.map((inside) => 1 - inside) : null;
    result.testedSize = region ? region.reduce((sum, inside) => sum + 1 - inside, 0) : result.size;
    result.reset();
    const all = [...Object.values(maps), ...Object.values(compared?.maps ?? {})];
    const sizes = [data.shape.reduce((a, b) => a * b), ...all.map((map) => map.length)];
    if (sizes.some((size) => size !== result.size)) throw new Error("its parts do not fit each other");
    return result;
  }

  /** Back to the threshold that the page was made with. */
  reset() {
    this.edge = this.computed ?? 0;
  }

  /** The map that bars and cells show. */
  get main() {
    return this.maps.smoothed ? "smoothed" : "mean";
  }

  get threshold() {
    return this.edges.length ? this.edges[this.edge] : NaN;
  }

  /** What the marks are called here. */
  get kinds() {
    if (this.region) return CONTEXT_KINDS;
    if (this.called) {
      const [above, below] = this.threshold === this.calledAt ? this.called : [`above ${short(this.threshold, 3)}`, `below ${short(this.threshold, 3)}`];
      return { 1: above, 0: KINDS[0], "-1": below };
    }
    return this.threshold === 0 ? SIGNED_KINDS : KINDS;
  }

  /** How they look: the class of style. */
  get looks() {
    return this.threshold === 0 || this.called ? SIGNED_KINDS : KINDS;
  }

  /** What one number of a feature is. */
  get thing() {
    if (this.ofEffects) return "contribution";
    return this.compared || this.noun === "pair" ? "difference" : "score";
  }

  /** What the intervals are of. */
  get middle() {
    return this.ofEffects ? "mean" : "median";
  }

  /** What its samples are called: samples, rows or models, or the differences of a pair. */
  get samplesCalled() {
    return this.compared ? "differences" : `${this.sampleNoun}s`;
  }

  /** Score of a feature in a map, in the units of the explainer; "width" is upper less lower bound. */
  score(name, feature) {
    if (name === "width") return this.maps.upper[feature] - this.maps.lower[feature];
    return this.maps[name][feature];
  }

  /** Whether the score without noise lies outside the interval of the median by more than rounding; false where there is none. */
  outside(feature) {
    const { vanilla, lower, upper } = this.maps;
    if (!lower || !vanilla) return false;
    return vanilla[feature] < lower[feature] - this.rounding || vanilla[feature] > upper[feature] + this.rounding;
  }

  /** How many of the tested features that are, in words. */
  get contradicted() {
    if (!this.maps.lower || !this.maps.vanilla) return "";
    let count = 0;
    for (let p = 0; p < this.size; p++) if (!this.tested || this.tested[p]) count += this.outside(p);
    return `without noise ${count.toLocaleString("en")} of ${this.testedSize.toLocaleString("en")} ${this.thing}s (${percent(count / this.testedSize)}) lie outside their interval`;
  }

  /** A score in as many digits as it has here. */
  said(name, feature) {
    return name === "radius" ? short(this.score(name, feature), 3) : written(this.score(name, feature), this.layers);
  }

  /** Score of a feature before and after, as texts; none of what is no comparison. */
  saidOfBoth(feature, digits = 4) {
    if (!this.compared) return [];
    return ["before", "after"].map((part) => written(this.compared.maps[part][feature], this.compared, digits));
  }

  /** Settings that certified radii are of, whatever the sliders say. */
  get certifiedAt() {
    const { alpha, correction, threshold } = this.certificate;
    const corrected = correction === "none" ? "no correction" : correction;
    return `As made: threshold ${short(threshold)}, alpha ${probability(alpha)}, ${corrected}`;
  }

  get layerNames() {
    const names = this.maps.lower ? ["smoothed", "vanilla", "mean", "lower", "upper", "width"] : ["mean", "vanilla"];
    return [...names.filter((name) => name === "width" || this.maps[name]), ...(this.maps.radius ? ["radius"] : []), "picture"];
  }

  /** p-values of one side by the count on it: of e-values the reciprocals, where these decide. */
  get sides() {
    return this.byEValues ? this.reciprocals : this.tails;
  }

  /** Counts at the threshold, the marks they make, and what the figures beside them say. */
  decide(alpha, correction, place) {
    Object.assign(this, { alpha, correction, place });
    this.refused = this.anyTime && FIXED_ONLY.includes(correction);
    this.byEValues = this.anyTime || correction.endsWith("e-bh");
    this.saw = !this.fixed || this.edge !== this.computed;
    this.inEffect = this.saw && correction === "closed-e-bh" ? "e-bh" : correction;
    if (!this.edges.length) {
      this.counts = { above: new Uint32Array(this.size), below: new Uint32Array(this.size) };
      this.marks = new Int8Array(this.size);
    } else {
      this.counts = countsAt(this.samples, this.edge);
      this.marks = this.refused
        ? new Int8Array(this.size)
        : marksOf(this.counts, this.sides, alpha, this.inEffect, this.harmonic, this);
    }
    const { marks, tested, testedSize } = this;
    const [below, undecided, above] = countsOf(marks, tested);
    this.shares = { 1: above / testedSize, 0: undecided / testedSize, "-1": below / testedSize };
    const needed = this.refused ? 0 : this.needed[correction][place];
    this.tooFew = this.n < needed ? needed : null;
    this.expected = correction === "none" && !this.anyTime ? expectedFalseMarks(this.tails, alpha, this.testedSize) : null;
  }

  histogramOf(feature, bins) {
    return histogram(this.samples, this.edges.length, feature, bins);
  }
}

/** How many of the tested features are below the threshold, undecided and above it. */
function countsOf(marks, tested) {
  const counts = new Uint32Array(3);
  for (let p = 0; p < marks.length; p++) if (!tested || tested[p]) counts[marks[p] + 1] += 1;
  return counts;
}

/** A score of maps of this kind; those in steps have few digits. */
function written(score, { kind, low, high }, digits = 4) {
  return kind === "steps" ? `≈ ${short(score, 2, (high - low) / 255)}` : short(score, digits);
}

/** Both parts of a comparison, with their maps. */
async function comparedOf(data) {
  return { ...data, maps: await unpackedMaps(data) };
}

export async function unpackedSamples({ n, size, encoding, ...data }) {
  if (encoding === "cells") return { n, size, encoding, cells: undoDifferences(await unpacked(data.cells), size) };
  const at = data.at ? await unpackedPlanes(data.at) : null;
  return { n, size, encoding, below: await unpackedPlanes(data.below), at };
}
