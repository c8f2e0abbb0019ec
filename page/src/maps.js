// Maps over their picture: a canvas with the map that is chosen, one with the decisions, and a cursor on all. In a
// comparison the map is that of the differences, and a third frame has both maps with a border between them.

import { element, svg } from "./elements.js";
import { colourMap, paintScores, scaleBar, scaleOf } from "./painting.js";
import { linesBetween, overlay } from "./pieces.js";
import { decoded } from "./png.js";
import { Wipe } from "./wipe.js";

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
const DIFFERENCES = {
  smoothed: "smoothed difference",
  vanilla: "difference without noise",
  mean: "mean of the differences",
  lower: "lower bound of the median difference",
  upper: "upper bound of the median difference",
};
const EXTREME = 4; // pictures longer than that are stretched, or they would be a line

/** Red, green and blue of a colour of the style, light or dark, as the legends have it. */
export function colourOf(look) {
  const digits = getComputedStyle(document.documentElement).getPropertyValue(`--${look}`).trim().slice(1);
  return [0, 2, 4].map((start) => parseInt(digits.slice(start, start + 2), 16));
}

export function layerName(name, ofDifferences = false) {
  return (ofDifferences && DIFFERENCES[name]) || LAYER_NAMES[name];
}

/** The pixel of a map under the pointer, the nearest if it is outside. */
export function pixelUnder(event, canvas, width, height) {
  const box = canvas.getBoundingClientRect();
  const within = (share, size) => Math.max(0, Math.min(size - 1, Math.floor(share * size)));
  return within((event.clientY - box.top) / box.height, height) * width + within((event.clientX - box.left) / box.width, width);
}

/** The pixel of a map that each pixel of its picture shows. */
function placesIn(ground, width, height) {
  const places = new Uint32Array(ground.width * ground.height);
  for (let p = 0; p < places.length; p++) {
    const row = Math.floor((Math.floor(p / ground.width) * height) / ground.height);
    places[p] = row * width + Math.floor(((p % ground.width) * width) / ground.width);
  }
  return places;
}

export class Maps {
  constructor(result, label, onPoint) {
    const [height, width] = result.shape;
    Object.assign(this, { result, width, height, onPoint, cursor: null });
    this.colours = colourMap(result.colours);
    const { compared } = result;
    this.layer = this.#view(`${label}: the chosen map ${compared ? "of differences " : ""}over the picture`);
    this.significance = this.#view(`${label}: what is significant`);
    this.views = [this.layer, this.significance];
    if (compared) {
      this.views.unshift(this.#view(`${label}: both maps over the picture`));
      this.wipe = new Wipe(compared, this.views[0]);
      this.outlines = { 1: this.#outlineOfMarks("more"), "-1": this.#outlineOfMarks("less") };
    }
    this.legend = element("div", { class: "scale", "aria-hidden": "true" });
    this.node = element(
      "div",
      { class: "views" },
      this.wipe?.node ?? null,
      element("figure", {}, this.layer.frame, element("figcaption", {}, this.layer.caption, this.legend)),
      element("figure", {}, this.significance.frame, element("figcaption", {}, this.significance.caption)),
    );
    this.outline = result.region ? this.#outline() : null;
  }

  async load() {
    this.ground = await decoded(this.result.picture); // it may have more pixels than the map
    const { width, height } = this.ground;
    for (const { canvas, frame } of this.views) {
      Object.assign(canvas, { width, height });
      if (height / width > EXTREME) frame.classList.add("tall");
      else if (height / width < 1 / EXTREME) frame.classList.add("flat");
      else frame.style.maxWidth = `calc(var(--screen) * ${(0.8 * width) / height})`;
    }
    const other = this.result.compared?.picture;
    this.grounds = [this.ground, other ? await decoded(other) : this.ground]; // of both maps of a comparison
    this.features = placesIn(this.ground, this.width, this.height);
  }

  /** A path around marks of one kind, over the map of differences. */
  #outlineOfMarks(name) {
    const paths = ["under", "marked"].map((one) => svg("path", { class: `${one} ${name}` }));
    this.layer.frame.append(overlay(this.width, this.height, ...paths));
    return paths;
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
    for (const { cross } of this.views) {
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
    this.drawn = name;
    this.wipe?.draw((map) => (p) => map[this.features[p]], this.grounds, name === "picture" ? 0 : opacity);
    if (name === "picture") {
      this.#drawPicture();
      return;
    }
    const { result, colours, features, ground } = this;
    const scale = this.#scale(name);
    paintScores(this.layer.context, (p) => result.score(name, features[p]), scale, colours, ground, opacity);
    this.#drawOutline(this.layer.context);
    this.layer.caption.textContent = this.#captionOf(name);
    this.legend.replaceChildren(...scaleBar(scale, colours));
  }

  /** Show or hide the lines around marks. */
  showOutlines(shown) {
    for (const path of Object.values(this.outlines ?? {}).flat()) path.style.display = shown ? "" : "none";
  }

  #captionOf(name) {
    return name === "radius" ? this.#aboutRadius() : this.#about(name);
  }

  #about(name) {
    const { compared } = this.result;
    const [before, after] = compared?.names ?? [];
    const of = compared && name in DIFFERENCES ? `: “${after}” minus “${before}”` : "";
    const outlined = compared ? `; outlined: ${this.result.kinds[1]}, dashed: ${this.result.kinds[-1]}` : "";
    const about = layerName(name, Boolean(compared)) + of + outlined;
    const contradicted = name === "vanilla" ? this.result.contradicted : ""; // all features are asked
    return contradicted ? `${about}; ${contradicted}` : about;
  }

  #aboutRadius() {
    return (
      "certified radius: a shorter change of the input (L2, in its units) leaves a pixel's median under the noise on its side of " +
      `the threshold, for this class, with the confidence that alpha and correction say; 0 where undecided. ${this.result.certifiedAt}.`
    );
  }

  #drawPicture() {
    const image = this.layer.context.createImageData(this.ground.width, this.ground.height);
    image.data.set(this.ground.picture);
    this.layer.context.putImageData(image, 0, 0);
    this.#drawOutline(this.layer.context);
    this.layer.caption.textContent = this.result.caption;
    this.legend.replaceChildren();
  }

  /** One scale for all maps of scores, so that they can be compared. */
  #scale(name) {
    const { layers, signed, certificate } = this.result;
    if (name === "radius") return scaleOf({ low: 0, high: certificate.largest, top: certificate.largest }, false);
    return scaleOf(layers, signed && name !== "width");
  }

  drawMarks() {
    const { result, width, height, features } = this;
    const { grey, picture } = this.ground;
    const colours = Object.fromEntries(Object.entries(result.looks).map(([mark, look]) => [mark, colourOf(look)]));
    const image = this.significance.context.createImageData(this.ground.width, this.ground.height);
    const weight = result.faint ? 0.25 : 0.78;
    for (let p = 0; p < features.length; p++) {
      const inside = result.region && result.region[features[p]];
      const colour = colours[result.marks[features[p]]];
      for (let c = 0; c < 3; c++) {
        image.data[4 * p + c] = inside ? picture[4 * p + c] : weight * colour[c] + (1 - weight) * grey[p];
      }
      image.data[4 * p + 3] = 255;
    }
    this.significance.context.putImageData(image, 0, 0);
    this.#drawOutline(this.significance.context);
    this.significance.caption.textContent = "significance at these settings";
    if (!this.wipe) return;
    for (const [mark, paths] of Object.entries(this.outlines)) {
      const lines = linesBetween(result.marks.map((one) => one === Number(mark)), width, height, true);
      for (const path of paths) path.setAttribute("d", lines);
    }
    if (this.drawn !== "picture") this.layer.caption.textContent = this.#captionOf(this.drawn);
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
    const [wide, tall] = [this.ground.width / this.width, this.ground.height / this.height];
    for (const [index, p] of this.outline.entries()) {
      context.fillStyle = index % 4 < 2 ? "#ffffff" : "#000000";
      context.fillRect((p % this.width) * wide, Math.floor(p / this.width) * tall, wide, tall);
    }
  }
}
