// Maps over their picture: one canvas with the map that is chosen, one with the decisions, and a cursor on both.

import { element } from "./elements.js";

const MARKS = { 1: [255, 207, 51], 0: [118, 118, 118], "-1": [11, 57, 120] };
const SIGNED_MARKS = { 1: [230, 159, 0], 0: [196, 196, 196], "-1": [11, 83, 148] };
const FAINTEST = 0.15; // weight of a map where its score is 0: the picture shows through
const LAYER_NAMES = {
  smoothed: "smoothed: the stable explanation",
  vanilla: "vanilla: one explanation, no noise",
  mean: "mean of the samples",
  lower: "lower bound of the median",
  upper: "upper bound of the median",
  width: "width of the interval",
};

export function layerName(name) {
  return LAYER_NAMES[name];
}

export class Maps {
  constructor(result, label, onPoint) {
    const [height, width] = result.shape;
    Object.assign(this, { result, width, height, onPoint, cursor: null });
    this.colours = Uint8Array.from(atob(result.colours), (letter) => letter.charCodeAt(0));
    this.layer = this.#view(`${label}: the chosen map over the picture`);
    this.significance = this.#view(`${label}: what is significant`);
    this.legend = element("div", { class: "scale", "aria-hidden": "true" });
    this.node = element(
      "div",
      { class: "views" },
      element("figure", {}, this.layer.frame, element("figcaption", {}, this.layer.caption, this.legend)),
      element("figure", {}, this.significance.frame, element("figcaption", {}, this.significance.caption)),
    );
    this.outline = result.region ? this.#outline() : null;
  }

  /** Take the picture's pixels, which the browser decodes. */
  async load() {
    const image = new Image();
    image.src = this.result.picture;
    await image.decode();
    const canvas = element("canvas", { width: this.width, height: this.height });
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(image, 0, 0);
    const pixels = context.getImageData(0, 0, this.width, this.height).data;
    this.picture = pixels;
    this.grey = new Uint8ClampedArray(this.width * this.height);
    for (let p = 0; p < this.grey.length; p++) {
      const brightness = 0.299 * pixels[4 * p] + 0.587 * pixels[4 * p + 1] + 0.114 * pixels[4 * p + 2];
      this.grey[p] = 64 + 0.6 * brightness;
    }
  }

  #view(label) {
    const canvas = element("canvas", {
      width: this.width,
      height: this.height,
      tabindex: "0",
      role: "application",
      "aria-roledescription": "map",
      "aria-label": `${label}. Arrow keys move from pixel to pixel, with Shift ten at a time.`,
    });
    const frame = element("div", { class: "frame" }, canvas);
    const cross = element("div", { class: "cross", hidden: "" });
    frame.append(cross);
    canvas.addEventListener("pointermove", (event) => this.onPoint(this.#under(event, canvas), false));
    canvas.addEventListener("pointerdown", (event) => this.onPoint(this.#under(event, canvas), true));
    canvas.addEventListener("keydown", (event) => this.#key(event));
    const caption = element("span");
    return { canvas, frame, cross, caption, context: canvas.getContext("2d") };
  }

  #under(event, canvas) {
    const box = canvas.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * this.width);
    const row = Math.floor(((event.clientY - box.top) / box.height) * this.height);
    return this.#at(row, column);
  }

  #at(row, column) {
    const y = Math.max(0, Math.min(this.height - 1, row));
    return y * this.width + Math.max(0, Math.min(this.width - 1, column));
  }

  #key(event) {
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const step = event.shiftKey ? 10 : 1;
    const at = this.cursor ?? this.#at(Math.floor(this.height / 2), Math.floor(this.width / 2));
    this.onPoint(this.#at(Math.floor(at / this.width) + step * move[0], (at % this.width) + step * move[1]), true);
  }

  /** Move the cross to a feature. */
  point(feature) {
    this.cursor = feature;
    for (const { cross } of [this.layer, this.significance]) {
      cross.hidden = feature === null;
      if (feature === null) continue;
      cross.style.left = `${(100 * ((feature % this.width) + 0.5)) / this.width}%`;
      cross.style.top = `${(100 * (Math.floor(feature / this.width) + 0.5)) / this.height}%`;
    }
  }

  nameOf(feature) {
    return `row ${Math.floor(feature / this.width)}, column ${feature % this.width}`;
  }

  drawLayer(name, opacity) {
    const { result, width, height, picture, grey, colours } = this;
    const { low, high, span } = this.#range(name);
    const image = this.layer.context.createImageData(width, height);
    const pixels = image.data;
    for (let p = 0; p < width * height; p++) {
      const score = result.score(name, p);
      const share = Math.min(1, Math.max(0, (score - low) / span));
      const colour = 3 * Math.round(share * 255);
      const strength = Math.abs(score) / (Math.max(Math.abs(low), Math.abs(high)) || 1);
      const weight = opacity * Math.min(1, FAINTEST + 2.5 * strength);
      for (let c = 0; c < 3; c++) {
        const under = opacity > 0 ? grey[p] * opacity + picture[4 * p + c] * (1 - opacity) : picture[4 * p + c];
        pixels[4 * p + c] = weight * colours[colour + c] + (1 - weight) * under;
      }
      pixels[4 * p + 3] = 255;
    }
    this.layer.context.putImageData(image, 0, 0);
    this.#drawOutline(this.layer.context);
    this.layer.caption.textContent = layerName(name);
    this.#drawScale(low, high);
  }

  /** One scale for all maps, so that they can be compared, cut where 1 in 1,000 scores lies above. */
  #range(name) {
    const { layers, signed } = this.result;
    const low = signed && name !== "width" ? -layers.top : Math.min(0, layers.low);
    return { low, high: layers.top, span: layers.top - low || 1 };
  }

  #drawScale(low, high) {
    const { layers } = this.result;
    const cut = { low: layers.low < low ? "≤ " : "", high: layers.high > high ? "≥ " : "" };
    const bar = element("canvas", { width: 256, height: 1 });
    const image = bar.getContext("2d").createImageData(256, 1);
    for (let k = 0; k < 256; k++) image.data.set([...this.colours.subarray(3 * k, 3 * k + 3), 255], 4 * k);
    bar.getContext("2d").putImageData(image, 0, 0);
    const said = (before, value) => element("span", {}, before + String(Number(value.toPrecision(3))));
    this.legend.replaceChildren(said(cut.low, low), bar, said(cut.high, high));
  }

  drawMarks() {
    const { result, width, height, grey, picture } = this;
    const colours = result.looks[1] === "positive" ? SIGNED_MARKS : MARKS;
    const image = this.significance.context.createImageData(width, height);
    for (let p = 0; p < width * height; p++) {
      const inside = result.region && result.region[p];
      const colour = colours[result.marks[p]];
      for (let c = 0; c < 3; c++) {
        image.data[4 * p + c] = inside ? picture[4 * p + c] : 0.78 * colour[c] + 0.22 * grey[p];
      }
      image.data[4 * p + 3] = 255;
    }
    this.significance.context.putImageData(image, 0, 0);
    this.#drawOutline(this.significance.context);
    this.significance.caption.textContent = "significance at these settings";
  }

  /** Pixels of the object that touch its surroundings. */
  #outline() {
    const { region } = this.result;
    const found = [];
    for (let p = 0; p < region.length; p++) {
      if (!region[p]) continue;
      const x = p % this.width;
      const beside = [x > 0 && p - 1, x < this.width - 1 && p + 1, p - this.width, p + this.width];
      if (beside.some((q) => q !== false && (q < 0 || q >= region.length || !region[q]))) found.push(p);
    }
    return found;
  }

  #drawOutline(context) {
    if (!this.outline) return;
    for (const [index, p] of this.outline.entries()) {
      context.fillStyle = index % 4 < 2 ? "#ffffff" : "#000000";
      context.fillRect(p % this.width, Math.floor(p / this.width), 1, 1);
    }
  }
}
