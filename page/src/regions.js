// Regions of a picture: their outlines over it, filled by mark, and bars with intervals, the highest score first.

import { element, percent, probability, svg } from "./elements.js";
import { Bars } from "./features.js";
import { colourOf, pixelUnder } from "./maps.js";
import { linesBetween, overlay, Pieces } from "./pieces.js";
import { decoded } from "./png.js";
import { Wipe } from "./wipe.js";

const MOST = 200; // rows of the list at the start
const CORRECTED = { none: "uncorrected", bonferroni: "Bonferroni", holm: "Holm", bh: "BH", by: "BY", "e-bh": "e-BH", "closed-e-bh": "closed e-BH" };
const FILL = 0.7; // weight of a mark's colour at full opacity: the picture shows through

export class Regions {
  constructor(result, label, onPoint) {
    const [height, width] = result.drawn.shape;
    Object.assign(this, { result, width, height, onPoint, cursor: null, opacity: 1 });
    const { compared } = result;
    const settings = { sizeOf: compared ? Math.abs : (score) => score, clean: false, most: MOST };
    this.bars = new Bars(result, `${label}: regions, the ${compared ? "largest difference" : "highest score"} first`, onPoint, settings);
    this.canvas = element("canvas", { width, height, role: "img", "aria-label": `${label}: the picture, its regions filled by mark. The list beside it names them.` });
    this.context = this.canvas.getContext("2d");
    this.outlines = element("div", { class: "frame" }, this.canvas);
    this.outlines.style.maxWidth = `calc(var(--screen) * ${0.8 / (height / width)})`;
    this.canvas.addEventListener("pointermove", (event) => this.#under(event, "hover"));
    this.canvas.addEventListener("click", (event) => this.#under(event, "keep"));
    if (compared) this.wipe = new Wipe(compared, this.#maps(label));
    this.caption = element("p", { class: "sum" });
    this.named = element("p", { class: "named small" });
    this.node = element(
      "div",
      { class: "views" },
      element("div", { class: "stacked" }, element("figure", {}, this.outlines, element("figcaption", {}, this.caption, this.named)), this.wipe?.node ?? null),
      this.bars.node,
    );
  }

  /** A frame for the maps of both parts of a comparison. */
  #maps(label) {
    const canvas = element("canvas", { role: "img", "aria-label": `${label}: the picture, its regions filled by the scores of either part. The list beside it has them.` });
    const frame = element("div", { class: "frame" }, canvas);
    frame.style.maxWidth = this.outlines.style.maxWidth;
    canvas.addEventListener("pointermove", (event) => this.#under(event, "hover"));
    canvas.addEventListener("click", (event) => this.#under(event, "keep"));
    return { frame, canvas };
  }

  async load() {
    const { result, width, height } = this;
    this.pieces = await Pieces.of(result.drawn);
    if (this.pieces.length !== result.size) throw new Error("its regions do not fit their scores");
    this.background = await decoded(result.picture); // it may have more pixels than the regions' map
    Object.assign(this.canvas, { width: this.background.width, height: this.background.height });
    if (this.wipe) {
      const other = result.compared.picture;
      this.grounds = [this.background, other ? await decoded(other) : this.background];
      Object.assign(this.wipe.left, { width: this.background.width, height: this.background.height });
    }
    this.pointed = svg("path", { class: "pointed" });
    this.under = svg("path", { class: "under" });
    const lines = linesBetween(this.pieces.labels, width, height);
    this.outlines.append(
      overlay(width, height, svg("path", { d: lines, class: "under" }), svg("path", { d: lines }), this.under, this.pointed),
    );
  }

  #under(event, how) {
    const region = this.pieces.at(pixelUnder(event, this.canvas, this.width, this.height));
    if (region !== null) this.onPoint(region, how);
    if (region !== null && how === "keep") this.bars.reveal(region);
  }

  /** Frame a region, and say its figures. */
  point(feature) {
    this.cursor = feature;
    this.bars.point(feature);
    const lines = feature === null ? "" : linesBetween(this.pieces.mask([feature]), this.width, this.height, true);
    for (const path of [this.under, this.pointed]) path.setAttribute("d", lines);
    this.#sayPointed();
  }

  nameOf(feature) {
    return this.result.names[feature];
  }

  drawLayer(name, opacity) {
    this.opacity = opacity;
    this.wipe?.draw((map) => (p) => map[this.#regionAt(p)] ?? NaN, this.grounds, name === "picture" ? 0 : opacity);
    if (this.result.marks) this.#paint();
  }

  drawMarks() {
    this.bars.drawMarks();
    this.#paint();
    this.#saySum();
    this.#sayPointed();
  }

  /** The region that a pixel of the picture shows, or -1. */
  #regionAt(p) {
    const { pieces, background } = this;
    const row = Math.floor((Math.floor(p / background.width) * pieces.height) / background.height);
    return pieces.labels[row * pieces.width + Math.floor(((p % background.width) * pieces.width) / background.width)];
  }

  #paint() {
    const { result, opacity } = this;
    const { picture, grey, width, height } = this.background;
    const colours = Object.fromEntries(Object.entries(result.looks).map(([mark, look]) => [mark, colourOf(look)]));
    const image = this.context.createImageData(width, height);
    const weight = (result.faint ? 0.35 : 1) * FILL * opacity;
    for (let p = 0; p < width * height; p++) {
      const region = this.#regionAt(p);
      const mark = region < 0 ? 0 : result.marks[region];
      for (let c = 0; c < 3; c++) {
        const under = grey[p] * opacity + picture[4 * p + c] * (1 - opacity);
        image.data[4 * p + c] = mark === 0 ? under : weight * colours[mark][c] + (1 - weight) * under;
      }
      image.data[4 * p + 3] = 255;
    }
    this.context.putImageData(image, 0, 0);
  }

  /** How many regions have each mark, and how much of the picture they cover. */
  #saySum() {
    const { result, pieces } = this;
    const parts = [1, -1, 0].map((mark) => {
      const found = [...pieces.runs.keys()].filter((region) => result.marks[region] === mark);
      const covered = pieces.mask(found).reduce((sum, inside) => sum + inside, 0) / (this.width * this.height);
      return `${found.length} ${result.kinds[mark]}${found.length ? ` (${percent(covered, 0)} of the picture)` : ""}`;
    });
    this.caption.textContent = `Of ${pieces.length} regions: ${parts.join(", ")}. Grey: undecided, or in no region.`;
  }

  #sayPointed() {
    const { cursor } = this;
    this.named.textContent = cursor === null ? "Point at a region, or move through the list by the arrow keys." : this.about(cursor);
  }

  /** One region in a sentence: its score with interval, its mark, and the level of that mark. */
  about(region) {
    const { result, pieces } = this;
    const share = percent(pieces.sizes[region] / (this.width * this.height));
    const score = result.maps.smoothed
      ? `${result.said("smoothed", region)} (interval ${result.said("lower", region)} to ${result.said("upper", region)})`
      : result.said("mean", region);
    const both = result.saidOfBoth(region).map((said, k) => `“${result.compared.names[k]}” ${said}, `).join("");
    const difference = both ? "difference " : "";
    const level = `alpha ${probability(result.alpha)}, ${CORRECTED[result.inEffect]}`;
    return `${this.nameOf(region)}, ${share} of the picture: ${both}${difference}${score}; ${result.kinds[result.marks[region]]} at ${level}`;
  }
}
