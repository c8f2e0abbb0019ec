// A volume: slices along an axis, by a slider, with the chosen map and with the decisions.

import { unpacked } from "./decode.js";
import { element, percent, svg } from "./elements.js";
import { Bars } from "./features.js";
import { colourOf, layerName, pixelUnder } from "./maps.js";
import { colourMap, paintScores, scaleBar, scaleOf } from "./painting.js";
import { labelsOf, OVERLAPPING } from "./places.js";

const STEP = 10; // with Shift
const STRIP = 30; // units of height of the bars above the slider

let volumes = 0; // on this page, for the names of their fields

export class Volume {
  constructor(result, label, onPoint) {
    Object.assign(this, { result, label, onPoint, cursor: null, opacity: 1, layer: "smoothed" });
    const { located } = result;
    this.shape = located.shape;
    this.axis = located.axis;
    this.at = located.at ?? [0, 0, 0];
    this.colours = colourMap(result.colours);
    volumes += 1;
    this.slider = element("input", { type: "range", min: 0, step: 1, oninput: () => this.#show(Number(this.slider.value)) });
    this.where = element("output", { class: "number" });
    this.bars = result.names ? new Bars(result, `${label}: regions, the largest score first`, onPoint) : null;
    this.path = svg("path", { class: "marked-slices" });
    this.strip = svg("svg", { class: "strip", preserveAspectRatio: "none", "aria-hidden": "true" }, this.path);
    this.views = ["the chosen map over the slice", "what is significant"].map((about) => this.#view(`${label}: ${about}`));
    [this.chosen, this.significance] = this.views;
    this.legend = element("div", { class: "scale", "aria-hidden": "true" });
    this.about = element("p", { class: "small" });
    this.node = element(
      "div",
      { class: "volume" },
      element("div", { class: "tools" }, element("div", { role: "radiogroup", "aria-label": "slices along" }, ...this.#axes())),
      element("div", { class: "slices" }, this.strip, this.slider, this.where),
      element(
        "div",
        { class: "views" },
        element("figure", {}, this.chosen.frame, element("figcaption", {}, this.chosen.caption, this.legend)),
        element("figure", {}, this.significance.frame, element("figcaption", {}, this.significance.caption)),
      ),
      this.about,
      this.bars?.node ?? null,
    );
  }

  async load() {
    const { result } = this;
    const size = this.shape.reduce((a, b) => a * b);
    this.labels = await labelsOf(result.located, size, result.size);
    this.grey = await unpacked(result.picture);
    if (this.grey.length !== size) throw new Error("its voxels do not fit their scores");
    if (!result.located.at) this.at = this.#placeOf(this.#strongest());
    this.#turn(this.axis);
  }

  /** The first voxel that shows the largest score by absolute value. */
  #strongest() {
    const map = this.result.maps[this.result.main];
    let [best, most] = [0, -1];
    for (const [voxel, feature] of this.labels.entries()) if (feature >= 0 && Math.abs(map[feature]) > most) [best, most] = [voxel, Math.abs(map[feature])];
    return best;
  }

  #axes() {
    return this.result.located.axes.map((name, axis) => {
      const field = element("input", { type: "radio", name: `axis-${volumes}`, value: axis, onchange: () => this.#turn(axis) });
      field.checked = axis === this.axis;
      return element("label", {}, field, ` along ${name}s`);
    });
  }

  #view(label) {
    const canvas = element("canvas", {
      tabindex: "0",
      role: "application",
      "aria-roledescription": "slice",
      "aria-label": `${label}. Arrow keys move from voxel to voxel, with Shift ten at a time; Page Up and Page Down change the slice.`,
    });
    const cross = element("div", { class: "cross", hidden: "" });
    const frame = element("div", { class: "frame" }, canvas, cross);
    canvas.addEventListener("pointermove", (event) => this.#under(event, canvas, "hover"));
    canvas.addEventListener("click", (event) => this.#under(event, canvas, "keep"));
    canvas.addEventListener("keydown", (event) => this.#key(event));
    canvas.addEventListener("focus", () => this.#go(this.at));
    return { canvas, frame, cross, caption: element("span"), context: canvas.getContext("2d") };
  }

  // Places

  #voxel([z, y, x]) {
    return (z * this.shape[1] + y) * this.shape[2] + x;
  }

  #placeOf(voxel) {
    const [, height, width] = this.shape;
    return [Math.floor(voxel / (height * width)), Math.floor(voxel / width) % height, voxel % width];
  }

  /** Of a region the first voxel, -1 where smaller ones hide it. */
  #voxelOf(feature) {
    return this.result.names || this.labels[feature] !== feature ? this.labels.indexOf(feature) : feature;
  }

  /** The axes that a slice has, of its rows and its columns. */
  get #plane() {
    return [0, 1, 2].filter((axis) => axis !== this.axis);
  }

  #under(event, canvas, how) {
    const [down, across] = this.#plane;
    const pixel = pixelUnder(event, canvas, this.shape[across], this.shape[down]);
    const at = [...this.at];
    [at[down], at[across]] = [Math.floor(pixel / this.shape[across]), pixel % this.shape[across]];
    this.#go(at, how);
  }

  #go(at, how = "move") {
    const voxel = this.#voxel(at);
    const feature = this.labels[voxel];
    if (feature < 0) {
      if (how === "move") this.#moveTo(at);
      return;
    }
    this.wanted = voxel;
    this.onPoint(feature, how);
    this.wanted = null;
  }

  #key(event) {
    const [down, across] = this.#plane;
    const size = event.shiftKey ? STEP : 1;
    const moves = {
      ArrowLeft: [across, -size],
      ArrowRight: [across, size],
      ArrowUp: [down, -size],
      ArrowDown: [down, size],
      Home: [across, -this.shape[across]],
      End: [across, this.shape[across]],
      PageUp: [this.axis, -size],
      PageDown: [this.axis, size],
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const at = [...this.at];
    at[move[0]] = Math.max(0, Math.min(this.shape[move[0]] - 1, at[move[0]] + move[1]));
    this.#go(at);
  }

  #voxelShown(feature) {
    const asked = [this.wanted ?? -1, this.#voxel(this.at)].find((voxel) => this.labels[voxel] === feature);
    return asked ?? this.#voxelOf(feature);
  }

  /** Move the cross to a feature, of a region to the voxel asked for or to its first one. */
  point(feature) {
    this.cursor = feature;
    this.bars?.point(feature);
    const voxel = feature === null ? -1 : this.#voxelShown(feature);
    if (voxel >= 0) this.#moveTo(this.#placeOf(voxel));
    else this.#drawCross();
  }

  #moveTo(at) {
    const turned = at[this.axis] !== this.at[this.axis];
    this.at = at;
    if (turned) this.#drawSlice();
    this.#drawCross();
  }

  nameOf(feature) {
    if (this.result.names) return this.result.names[feature];
    const at = this.#placeOf(this.#voxelOf(feature));
    return this.result.located.axes.map((name, axis) => `${name} ${at[axis]}`).join(", ");
  }

  // Slices

  #turn(axis) {
    this.axis = axis;
    const [down, across] = this.#plane;
    const { spacing } = this.result.located;
    const [height, width] = [this.shape[down], this.shape[across]];
    const ratio = (width * spacing[across]) / (height * spacing[down]);
    for (const { canvas, frame } of this.views) {
      Object.assign(canvas, { width, height });
      canvas.style.aspectRatio = String(Math.max(ratio, 0.2));
      frame.style.maxWidth = `calc(var(--screen) * ${0.6 * Math.max(ratio, 0.2)})`;
    }
    this.slider.max = this.shape[axis] - 1;
    this.slider.setAttribute("aria-label", this.result.located.axes[axis]);
    if (this.result.marks) this.drawMarks();
  }

  #show(number) {
    const at = [...this.at];
    at[this.axis] = number;
    this.at = at;
    this.#drawSlice();
    if (this.cursor !== null) this.#go(at);
  }

  drawLayer(name, opacity) {
    Object.assign(this, { layer: name, opacity });
    this.#drawSlice();
  }

  drawMarks() {
    this.bars?.drawMarks();
    this.#drawStrip();
    this.#drawSlice();
    this.#drawCross();
  }

  /** Calls `act(pixel, voxel)` for all of a slice. */
  #each(act) {
    const strides = [this.shape[1] * this.shape[2], this.shape[2], 1];
    const [down, across] = this.#plane;
    const start = this.at[this.axis] * strides[this.axis];
    let p = 0;
    for (let y = 0; y < this.shape[down]; y++) {
      for (let x = 0; x < this.shape[across]; x++, p++) act(p, start + y * strides[down] + x * strides[across]);
    }
  }

  #drawSlice() {
    if (!this.labels || !this.result.marks) return;
    const { result, layer } = this;
    const { width, height } = this.chosen.canvas;
    const size = width * height;
    const features = new Int32Array(size);
    const ground = { picture: new Uint8ClampedArray(4 * size), grey: new Uint8ClampedArray(size) };
    this.#each((p, voxel) => {
      features[p] = this.labels[voxel];
      const light = this.grey[voxel];
      ground.picture.fill(light, 4 * p, 4 * p + 3);
      ground.grey[p] = 64 + 0.6 * light;
    });
    this.slider.value = this.at[this.axis];
    this.where.textContent = this.#whereText();
    this.slider.setAttribute("aria-valuetext", this.where.textContent);
    if (layer === "picture") {
      paintScores(this.chosen.context, () => NaN, { low: 0, high: 1, span: 1 }, this.colours, ground, 0);
      this.chosen.caption.textContent = result.caption;
      this.legend.replaceChildren();
    } else {
      const scale = this.#scale(layer);
      paintScores(this.chosen.context, (p) => (features[p] < 0 ? NaN : result.score(layer, features[p])), scale, this.colours, ground, this.opacity);
      this.chosen.caption.textContent = layerName(layer, Boolean(result.compared)) + (layer === "radius" ? `. ${result.certifiedAt}` : "");
      this.legend.replaceChildren(...scaleBar(scale, this.colours));
    }
    this.#paintMarks(features, ground.grey);
  }

  #whereText() {
    const { located } = this.result;
    const distance = located.unit ? `, ${Number((this.at[this.axis] * located.spacing[this.axis]).toPrecision(4))} ${located.unit}` : "";
    return `${located.axes[this.axis]} ${this.at[this.axis]} of 0 to ${this.shape[this.axis] - 1}${distance}`;
  }

  #scale(name) {
    const { layers, signed, certificate } = this.result;
    if (name === "radius") return scaleOf({ low: 0, high: certificate.largest, top: certificate.largest }, false);
    return scaleOf(layers, signed && name !== "width");
  }

  #paintMarks(features, grey) {
    const { result } = this;
    const colours = Object.fromEntries(Object.entries(result.looks).map(([mark, look]) => [mark, colourOf(look)]));
    const { context, canvas } = this.significance;
    const image = context.createImageData(canvas.width, canvas.height);
    const weight = result.faint ? 0.25 : 0.78;
    let above = 0;
    for (let p = 0; p < features.length; p++) {
      const mark = features[p] < 0 ? null : result.marks[features[p]];
      above += mark === 1;
      for (let c = 0; c < 3; c++) image.data[4 * p + c] = mark === null ? grey[p] : weight * colours[mark][c] + (1 - weight) * grey[p];
      image.data[4 * p + 3] = 255;
    }
    context.putImageData(image, 0, 0);
    this.significance.caption.textContent = `significance at these settings: ${percent(above / features.length)} of this slice ${result.kinds[1]}`;
  }

  /** How much of each slice lies above the threshold, as bars over the slider. */
  #drawStrip() {
    const { shape, axis, labels, result } = this;
    const found = new Float64Array(shape[axis]);
    const below = shape.slice(axis + 1).reduce((a, b) => a * b, 1);
    for (let voxel = 0; voxel < labels.length; voxel++) {
      if (labels[voxel] >= 0 && result.marks[labels[voxel]] === 1) found[Math.floor(voxel / below) % shape[axis]] += 1;
    }
    const most = found.reduce((a, b) => Math.max(a, b), 0) || 1;
    this.strip.setAttribute("viewBox", `0 0 ${shape[axis]} ${STRIP}`);
    const bars = Array.from(found, (count, k) => (count ? `M${k} ${STRIP}v${(-STRIP * count) / most}h1v${(STRIP * count) / most}z` : ""));
    this.path.setAttribute("d", bars.join(""));
    const slices = found.reduce((sum, count) => sum + (count > 0), 0);
    this.about.textContent = `Bars above the slider: how much of each slice is ${result.kinds[1]} (${slices} of ${shape[axis]} slices have any). Page Up and Page Down change the slice.${result.located.overlapping ? OVERLAPPING : ""}`;
  }

  #drawCross() {
    const [down, across] = this.#plane;
    const here = this.labels[this.#voxel(this.at)];
    const elsewhere = here >= 0 && here !== this.cursor; // in a region that smaller ones hide
    for (const { cross } of this.views) {
      cross.hidden = this.cursor === null || elsewhere;
      cross.style.left = `${(100 * (this.at[across] + 0.5)) / this.shape[across]}%`;
      cross.style.top = `${(100 * (this.at[down] + 0.5)) / this.shape[down]}%`;
    }
  }
}
