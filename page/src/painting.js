// Scores as colours over a picture, and the scale of these colours.

import { element, short } from "./elements.js";

const FAINTEST = 0.15; // weight of a map where its score is 0: the picture shows through
const STEPS = 256;

/** Red, green and blue of each step of a colour map. */
export function colourMap(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

/** One scale for maps that are compared, cut where 1 in 1,000 scores lies above; about 0 where scores have signs. */
export function scaleOf({ low, high, top }, about0) {
  const from = about0 ? -top : Math.min(0, low);
  return { low: from, high: top, span: top - from || 1, cut: { low: low < from ? "≤ " : "", high: high > top ? "≥ " : "" } };
}

/**
 * Paint a map over its picture; strong scores cover it, faint ones let it show through.
 *
 * @param {CanvasRenderingContext2D} context of a canvas as large as the picture
 * @param {(pixel: number) => number} scoreAt the score of a pixel of the picture; NaN where there is none
 * @param {{low: number, high: number, span: number}} scale see `scaleOf`
 * @param {Uint8Array} colours see `colourMap`
 * @param {{picture: Uint8ClampedArray, grey: Uint8ClampedArray}} ground what lies below
 * @param {number} opacity 0 shows the picture alone
 */
export function paintScores(context, scoreAt, { low, high, span }, colours, { picture, grey }, opacity) {
  const { width, height } = context.canvas;
  const image = context.createImageData(width, height);
  const pixels = image.data;
  const strongest = Math.max(Math.abs(low), Math.abs(high)) || 1;
  for (let p = 0; p < width * height; p++) {
    const score = scoreAt(p);
    const none = Number.isNaN(score);
    const share = Math.min(1, Math.max(0, (score - low) / span));
    const colour = none ? 0 : 3 * Math.round(share * (STEPS - 1));
    const weight = none ? 0 : opacity * Math.min(1, FAINTEST + (2.5 * Math.abs(score)) / strongest);
    for (let c = 0; c < 3; c++) {
      const under = opacity > 0 ? grey[p] * opacity + picture[4 * p + c] * (1 - opacity) : picture[4 * p + c];
      pixels[4 * p + c] = weight * colours[colour + c] + (1 - weight) * under;
    }
    pixels[4 * p + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

/** The colours from the lowest score to the highest, with their numbers. */
export function scaleBar({ low, high, cut }, colours) {
  const bar = element("canvas", { width: STEPS, height: 1 });
  const context = bar.getContext("2d");
  const image = context.createImageData(STEPS, 1);
  for (let k = 0; k < STEPS; k++) image.data.set([...colours.subarray(3 * k, 3 * k + 3), 255], 4 * k);
  context.putImageData(image, 0, 0);
  const said = (before, value) => element("span", {}, before + short(value, 3));
  return [said(cut.low, low), bar, said(cut.high, high)];
}
