// Regions as sets of pixels of one picture, and the lines around them.

import { unpacked } from "./decode.js";
import { svg } from "./elements.js";

const NONE = -1;

export class Pieces {
  /** From the data of the page: of each region the number of its runs; of each run a gap and a length. */
  static async of({ shape, counts, runs }) {
    const pieces = new Pieces();
    const [height, width] = shape;
    const total = counts.reduce((before, count) => before + count, 0);
    const bytes = await unpacked(runs);
    if (bytes.length !== 8 * total) throw new Error("its regions do not fit their runs");
    const number = (plane, k) => {
      const at = 4 * total * plane + k;
      return bytes[at] + 2 ** 8 * bytes[at + total] + 2 ** 16 * bytes[at + 2 * total] + 2 ** 24 * bytes[at + 3 * total];
    };
    Object.assign(pieces, { width, height, runs: [], sizes: [] });
    let k = 0;
    for (const count of counts) {
      const own = [];
      let end = 0;
      let size = 0;
      for (const last = k + count; k < last; k++) {
        const start = end + number(0, k);
        end = start + number(1, k);
        own.push([start, end]);
        size += end - start;
      }
      if (end > width * height) throw new Error("its regions do not fit the picture");
      pieces.runs.push(own);
      pieces.sizes.push(size);
    }
    pieces.labels = pieces.#labels();
    return pieces;
  }

  get length() {
    return this.runs.length;
  }

  /** The region that each pixel shows, or -1: where regions overlap, the smallest. */
  #labels() {
    const labels = new Int32Array(this.width * this.height).fill(NONE);
    const order = [...this.runs.keys()].sort((a, b) => this.sizes[b] - this.sizes[a]);
    for (const region of order) for (const [start, end] of this.runs[region]) labels.fill(region, start, end);
    return labels;
  }

  /** The region under a pixel; null where there is none. */
  at(pixel) {
    return this.labels[pixel] === NONE ? null : this.labels[pixel];
  }

  /** A mask of some regions. */
  mask(regions) {
    const mask = new Uint8Array(this.width * this.height);
    for (const region of regions) for (const [start, end] of this.runs[region]) mask.fill(1, start, end);
    return mask;
  }
}

/**
 * The lines between pixels that differ, as a path of SVG in units of pixels; with `closed`, also those between pixels at
 * the edge that are not 0 and what lies outside.
 */
export function linesBetween(labels, width, height, closed = false) {
  const at = (row, column) => {
    const inside = row >= 0 && row < height && column >= 0 && column < width;
    return inside ? labels[row * width + column] : 0;
  };
  const parts = [];
  const along = (lines, length, differs, said) => {
    for (let line = closed ? 0 : 1; line < lines + (closed ? 1 : 0); line++) {
      let start = -1;
      for (let k = 0; k <= length; k++) {
        const found = k < length && differs(line, k);
        if (found && start < 0) start = k;
        if (found || start < 0) continue;
        parts.push(said(line, start, k - start));
        start = -1;
      }
    }
  };
  along(height, width, (y, x) => at(y - 1, x) !== at(y, x), (y, x, length) => `M${x} ${y}h${length}`);
  along(width, height, (x, y) => at(y, x - 1) !== at(y, x), (x, y, length) => `M${x} ${y}v${length}`);
  return parts.join("");
}

/** Paths over a canvas, in units of its pixels. */
export function overlay(width, height, ...paths) {
  return svg("svg", { class: "over", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" }, ...paths);
}
