// The rows of a table: a result of each, decided on the same terms, and which of them stand where.

import { scores, unpacked, unpackedMaps } from "./decode.js";
import { Result, unpackedSamples } from "./result.js";

const STRONG = 0.99; // share of the decided cells that have a colour of their own; the others have the strongest

export class Rows {
  /** Unpack the data of the page: maps of all rows stand one after the other. */
  static async of({ rows, layers, compared, ...shared }) {
    const size = shared.shape[0];
    const own = (maps, k) => Object.fromEntries(Object.entries(maps).map(([name, map]) => [name, map.subarray(k * size, (k + 1) * size)]));
    const maps = await unpackedMaps(layers);
    const both = compared ? await unpackedMaps(compared) : null;
    const made = new Rows();
    Object.assign(made, shared, { layers, compared, size, names: shared.names });
    made.each = await Promise.all(
      rows.map(async (row, k) => {
        const edges = Array.from(scores(await unpacked(row.edges), { kind: "double" }));
        const samples = await unpackedSamples(row.samples);
        const parts = { samples, maps: own(maps, k), compared: both ? { ...compared, maps: own(both, k) } : null };
        return Result.made({ ...shared, kind: "bars", layers, edges, computed: row.computed, values: row.values, rounding: row.rounding, faint: row.cautions.length > 0 }, parts);
      }),
    );
    made.about = rows.map(({ name, explained, cautions }) => ({ name, explained, cautions }));
    return made;
  }

  get layerNames() {
    return [];
  }

  /** The row whose words and kinds stand for all: thresholds may differ, names of marks by their sign do not. */
  get first() {
    return this.each[0];
  }

  reset() {
    for (const row of this.each) row.reset();
  }

  decide(alpha, correction, place) {
    for (const row of this.each) row.decide(alpha, correction, place);
    const shares = { 1: 0, 0: 0, "-1": 0 };
    for (const row of this.each) for (const mark of row.marks) shares[mark] += 1 / (this.size * this.each.length);
    this.shares = shares;
    this.columns ??= this.#columns();
    this.top ??= this.#top();
  }

  /** How far the score of a cell lies from the threshold of its row; 0 where it is undecided. */
  apart(k, feature) {
    const row = this.each[k];
    return row.marks[feature] ? row.score(row.main, feature) - row.threshold : 0;
  }

  /** How much a cell counts for the order: its distance, of important ones alone where the threshold is not 0. */
  weight(k, feature) {
    const apart = this.apart(k, feature);
    return this.each[k].threshold === 0 ? Math.abs(apart) : Math.max(0, apart);
  }

  /** All features, those with the largest weights over all rows first. */
  #columns() {
    const sums = this.names.map((_, feature) => this.each.reduce((sum, _row, k) => sum + this.weight(k, feature), 0));
    return byLargest(sums);
  }

  #top() {
    const found = this.each.flatMap((row, k) => [...row.marks.keys()].filter((feature) => row.marks[feature]).map((feature) => Math.abs(this.apart(k, feature))));
    found.sort((a, b) => a - b);
    return found[Math.floor(STRONG * (found.length - 1))] || found.at(-1) || 1;
  }

  /** The feature with the largest weight in a row; -1 where there is none. */
  lead(k) {
    let [lead, most] = [-1, 0];
    for (const feature of this.columns) {
      const weight = this.weight(k, feature);
      if (weight > most) [lead, most] = [feature, weight];
    }
    return lead;
  }

  /**
   * Places of the rows that are shown, in their order.
   *
   * @param {{text: string, feature: number, mark: number | null}} filter rows whose name holds the text and whose feature (-1: any) has
   *   the mark (null: any)
   * @param {{by: "given" | "grouped" | number, down: boolean}} sort as given, by the leading feature, or by the score of one, marks first
   */
  order({ text, feature, mark }, { by, down }) {
    const wanted = text.trim().toLowerCase();
    const has = (row) => mark === null || (feature < 0 ? row.marks.includes(mark) : row.marks[feature] === mark);
    const named = ({ name, explained }) => `${name} ${explained ?? ""}`.toLowerCase().includes(wanted);
    const places = [...this.each.keys()].filter((k) => has(this.each[k]) && named(this.about[k]));
    if (by === "given") return places;
    if (by === "grouped") {
      const place = new Map(this.columns.map((column, at) => [column, at]));
      const keys = new Map(places.map((k) => [k, this.lead(k)]));
      const score = (k) => (keys.get(k) < 0 ? 0 : this.apart(k, keys.get(k)));
      const at = (k) => place.get(keys.get(k)) ?? this.size;
      return places.sort((a, b) => at(a) - at(b) || score(b) - score(a) || a - b);
    }
    const side = down ? 1 : -1;
    const mine = (k) => this.each[k];
    const score = (k) => mine(k).score(mine(k).main, by);
    return places.sort((a, b) => side * (mine(b).marks[by] - mine(a).marks[by] || score(b) - score(a)) || a - b);
  }
}

/** Places of numbers, the largest first; equal ones in their order. */
export function byLargest(numbers) {
  return [...numbers.keys()].sort((a, b) => numbers[b] - numbers[a] || a - b);
}
