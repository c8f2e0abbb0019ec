// Both maps of a comparison in one frame, on one scale: one on the left of a border, the other on its right.

import { element } from "./elements.js";
import { colourMap, paintScores, scaleBar, scaleOf } from "./painting.js";

const NARROW = 14; // percent of the width, in which no label has room

export class Wipe {
  /**
   * @param {object} compared both parts of the comparison
   * @param {{frame: HTMLElement, canvas: HTMLCanvasElement}} view a frame with a canvas, for the map on the left
   */
  constructor(compared, { frame, canvas }) {
    const [before, after] = compared.names;
    this.compared = compared;
    this.colours = colourMap(compared.colours);
    this.scale = scaleOf(compared, compared.signed);
    this.left = canvas;
    this.right = element("canvas", { class: "right", "aria-hidden": "true" });
    this.line = element("div", { class: "line", "aria-hidden": "true" });
    this.labels = [before, after].map((name, k) => element("span", { class: `side ${["left", "right"][k]}`, "aria-hidden": "true" }, element("bdi", {}, name)));
    this.border = element("input", {
      type: "range",
      class: "border",
      min: 0,
      max: 100,
      step: "any",
      value: 50,
      "aria-label": `border between two maps: “${before}” on its left, “${after}” on its right`,
      oninput: () => this.#moved(),
    });
    canvas.after(this.right); // below the cross of the map
    frame.classList.add("wiped");
    frame.append(...this.labels, this.border, this.line);
    const each = compared.changed ? ", each over its own input" : "";
    this.node = element(
      "figure",
      {},
      frame,
      element(
        "figcaption",
        {},
        element("span", {}, `both maps, ${compared.stable}, on one scale${each}: `, element("bdi", {}, `“${before}”`), " on the left of the border, ", element("bdi", {}, `“${after}”`), " on the right. Drag the border, or move it by the arrow keys."),
        element("div", { class: "scale", "aria-hidden": "true" }, ...scaleBar(this.scale, this.colours)),
      ),
    );
    this.#moved();
  }

  #moved() {
    const place = Number(this.border.value);
    this.right.style.clipPath = `inset(0 0 0 ${place}%)`;
    this.line.style.left = `${place}%`;
    const shares = [place, 100 - place];
    this.labels.forEach((label, k) => (label.hidden = shares[k] < NARROW));
    this.border.setAttribute("aria-valuetext", this.compared.names.map((name, k) => `“${name}” ${Math.round(shares[k])}%`).join(", "));
  }

  /**
   * Paint both maps.
   *
   * @param {(map: Float32Array) => (pixel: number) => number} scores of a map, by the pixel of the canvas
   * @param {object[]} grounds what lies below the left map, and below the right one
   */
  draw(scores, grounds, opacity) {
    const { before, after } = this.compared.maps;
    for (const [k, [canvas, map]] of [[this.left, before], [this.right, after]].entries()) {
      const { width, height } = this.left;
      if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
      paintScores(canvas.getContext("2d"), scores(map), this.scale, this.colours, grounds[k], opacity);
    }
  }
}
