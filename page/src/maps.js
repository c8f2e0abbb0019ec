// Maps over their picture: one canvas with the map that is chosen, one with the decisions, and a cursor on both.

import { element, short } from "./elements.js";

const FAINTEST = 0.15; // weight of a map where its score is 0: the picture shows through
const LAYER_NAMES = {
  smoothed: "smoothed: the stable explanation",
  vanilla: "vanilla: one explanation, no noise",
  mean: "mean of the samples",
  lower: "lower bound of the median",
  upper: "upper bound of the median",
  width: "width of the interval",
  radius: "certified radius: how far a decision holds",
  picture: "the input alone",
};
const EXTREME = 4; // maps longer than that are stretched, or they would be a line

/** Red, green and blue of a colour of the style, light or dark, as the legends have it. */
export function colourOf(look) {
  const digits = getComputedStyle(document.documentElement).getPropertyValue(`--${look}`).trim().slice(1);
  return [0, 2, 4].map((start) => parseInt(digits.slice(start, start + 2), 16));
}

export function layerName(name) {
  return LAYER_NAMES[name];
}

/** The pixel of a map under the pointer, the nearest if it is outside. */
export function pixelUnder(event, canvas, width, height) {
  const box = canvas.getBoundingClientRect();
  const within = (share, size) => Math.max(0, Math.min(size - 1, Math.floor(share * size)));
  return within((event.clientY - box.top) / box.height, height) * width + within((event.clientX - box.left) / box.width, width);
}

/** Pixels of a picture, which the browser decodes, their brightness, and its size. */
export async function decoded(source) {
  const image = new Image();
  image.src = source;
  await image.decode();
  const [width, height] = [image.naturalWidth, image.naturalHeight];
  const canvas = element("canvas", { width, height });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0);
  const picture = context.getImageData(0, 0, width, height).data;
  const grey = new Uint8ClampedArray(width * height);
  for (let p = 0; p < grey.length; p++) {
    const brightness = 0.299 * picture[4 * p] + 0.587 * picture[4 * p + 1] + 0.114 * picture[4 * p + 2];
    grey[p] = 64 + 0.6 * brightness;
  }
  return { picture, grey, width, height };
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

  async load() {
    const { picture, grey } = await decoded(this.result.picture);
    Object.assign(this, { picture, grey });
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
    const ratio = this.height / this.width;
    if (ratio > EXTREME) frame.classList.add("tall");
    else if (ratio < 1 / EXTREME) frame.classList.add("flat");
    else frame.style.maxWidth = `${80 / ratio}vh`;
    const cross = element("div", { class: "cross", hidden: "" });
    frame.append(cross);
    canvas.addEventListener("pointermove", (event) => this.onPoint(this.#under(event, canvas), "hover"));
    canvas.addEventListener("click", (event) => this.onPoint(this.#under(event, canvas), "keep"));
    canvas.addEventListener("keydown", (event) => this.#key(event));
    canvas.addEventListener("focus", () => this.onPoint(this.cursor ?? this.#middle(), "move"));
    const caption = element("span");
    return { canvas, frame, cross, caption, context: canvas.getContext("2d") };
  }

  #under(event, canvas) {
    return pixelUnder(event, canvas, this.width, this.height);
  }

  #at(row, column) {
    const y = Math.max(0, Math.min(this.height - 1, row));
    return y * this.width + Math.max(0, Math.min(this.width - 1, column));
  }

  #key(event) {
    const step = event.shiftKey ? 10 : 1;
    const moves = { ArrowLeft: [0, -step], ArrowRight: [0, step], ArrowUp: [-step, 0], ArrowDown: [step, 0] };
    moves.Home = [0, -this.width];
    moves.End = [0, this.width];
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const at = this.cursor ?? this.#middle();
    this.onPoint(this.#at(Math.floor(at / this.width) + move[0], (at % this.width) + move[1]), "move");
  }

  #middle() {
    return this.#at(Math.floor(this.height / 2), Math.floor(this.width / 2));
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
    if (name === "picture") {
      this.#drawPicture();
      return;
    }
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
    this.layer.caption.textContent = name === "radius" ? this.#aboutRadius() : this.#about(name);
    this.#drawScale(name, low, high);
  }

  #about(name) {
    const { contradicted } = this.result;
    return name === "vanilla" && contradicted ? `${layerName(name)}; ${contradicted}` : layerName(name);
  }

  #aboutRadius() {
    return (
      "certified radius: a shorter change of the input (L2, in its units) leaves a pixel's median under the noise on its side of " +
      `the threshold, for this class, with the confidence that alpha and correction say; 0 where undecided. ${this.result.certifiedAt}.`
    );
  }

  #drawPicture() {
    const image = this.layer.context.createImageData(this.width, this.height);
    image.data.set(this.picture);
    this.layer.context.putImageData(image, 0, 0);
    this.#drawOutline(this.layer.context);
    this.layer.caption.textContent = this.result.caption;
    this.legend.replaceChildren();
  }

  /** One scale for all maps of scores, so that they can be compared, cut where 1 in 1,000 scores lies above. */
  #range(name) {
    const { layers, signed, certificate } = this.result;
    if (name === "radius") return { low: 0, high: certificate.largest, span: certificate.largest || 1 };
    const low = signed && name !== "width" ? -layers.top : Math.min(0, layers.low);
    return { low, high: layers.top, span: layers.top - low || 1 };
  }

  #drawScale(name, low, high) {
    const { layers } = this.result;
    const cut = name === "radius" ? { low: "", high: "" } : { low: layers.low < low ? "≤ " : "", high: layers.high > high ? "≥ " : "" };
    const bar = element("canvas", { width: 256, height: 1 });
    const image = bar.getContext("2d").createImageData(256, 1);
    for (let k = 0; k < 256; k++) image.data.set([...this.colours.subarray(3 * k, 3 * k + 3), 255], 4 * k);
    bar.getContext("2d").putImageData(image, 0, 0);
    const said = (before, value) => element("span", {}, before + short(value, 3));
    this.legend.replaceChildren(said(cut.low, low), bar, said(cut.high, high));
  }

  drawMarks() {
    const { result, width, height, grey, picture } = this;
    const colours = Object.fromEntries(Object.entries(result.looks).map(([mark, look]) => [mark, colourOf(look)]));
    const image = this.significance.context.createImageData(width, height);
    const weight = result.faint ? 0.25 : 0.78;
    for (let p = 0; p < width * height; p++) {
      const inside = result.region && result.region[p];
      const colour = colours[result.marks[p]];
      for (let c = 0; c < 3; c++) {
        image.data[4 * p + c] = inside ? picture[4 * p + c] : weight * colour[c] + (1 - weight) * grey[p];
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
