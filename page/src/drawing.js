// A reader draws a region on the maps, by pointer or keys, and reads what is guaranteed for it.

import { element, percent, svg } from "./elements.js";
import { guaranteeOf, wholeRegions, whyNone } from "./drawn.js";
import { guarantees } from "./guarantee.js";
import { pixelUnder } from "./maps.js";
import { linesBetween, overlay } from "./pieces.js";

const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
const HOW = {
  point: "Choose a tool, then draw on one of the maps.",
  box: "Drag a box on a map; with Shift it is added to what is drawn. Keys, on a map: arrows move the box (Shift: ten at a time), + and − change its size.",
  brush: "Paint on a map; with Shift the brush erases. Keys, on a map: arrows move, Enter paints.",
  whole: "Click on regions to choose them; click again to leave them out. Keys, on a map: arrows move, Enter chooses.",
};

let drawings = 0; // on this page, for the names of their fields

export class Drawing {
  /**
   * @param {Maps} maps the view of the pixels
   * @param {Regions | null} regions the view of the regions of the same picture
   * @param {() => void} onReturn takes the threshold back to the one that the page was made with
   * @param {() => void} onDrawn follows what is drawn
   */
  constructor(maps, regions, onReturn, onDrawn) {
    const { width, height, result } = maps;
    Object.assign(this, { maps, regions, result, width, height, onReturn, onDrawn, tool: "point", from: null, box: null });
    this.#empty();
    this.radius = Math.max(1, Math.round(Math.min(width, height) / 28));
    this.paths = maps.views.map((one) => this.#onto(one));
    this.settings = { alpha: 0.05, atStart: true };
    drawings += 1;
    this.said = element("div", { class: "said-of-region", role: "status", "aria-live": "polite", "aria-label": "what is known about the region" });
    this.hint = element("p", { class: "small" });
    this.size = element("label", { class: "brush" }, "Size ", this.#slider());
    this.clear = element("button", { type: "button", onclick: () => this.#clear() }, "Clear");
    this.node = element(
      "section",
      { class: "drawing", "aria-label": "Draw a region" },
      element("h3", {}, "Draw a region"),
      element("div", { class: "tools" }, element("div", { role: "radiogroup", "aria-label": "tool" }, ...this.#tools()), this.size, this.clear),
      this.hint,
      this.said,
    );
    this.#choose("point");
  }

  #tools() {
    const names = { point: "Off", box: "Box", brush: "Brush", ...(this.regions && { whole: "Whole regions" }) };
    return Object.entries(names).map(([tool, name]) => {
      const field = element("input", { type: "radio", name: `tool-${drawings}`, value: tool, onchange: () => this.#choose(tool) });
      field.checked = tool === "point";
      return element("label", {}, field, ` ${name}`);
    });
  }

  #slider() {
    const most = Math.max(2, Math.round(Math.min(this.width, this.height) / 6));
    const slider = element("input", { type: "range", min: 1, max: most, "aria-label": "size of the brush", oninput: () => (this.radius = Number(slider.value)) });
    slider.value = this.radius;
    return slider;
  }

  /** Listen on a map, before the map itself does, and lay the drawing's outline over it. */
  #onto({ canvas, frame }) {
    const paths = ["under", "drawn"].map((name) => svg("path", { class: name }));
    frame.append(overlay(this.width, this.height, ...paths));
    const at = (event) => pixelUnder(event, canvas, this.width, this.height);
    const before = (name, act) => frame.addEventListener(name, (event) => event.target === canvas && act(event), { capture: true });
    before("pointerdown", (event) => {
      if (this.tool === "point" || this.tool === "whole" || event.button !== 0) return;
      event.preventDefault();
      event.stopPropagation();
      canvas.focus({ preventScroll: true });
      canvas.setPointerCapture(event.pointerId);
      this.#begin(at(event), event.shiftKey);
    });
    before("pointermove", (event) => {
      if (this.from === null) return;
      event.stopPropagation();
      this.#extend(at(event));
    });
    for (const name of ["pointerup", "pointercancel"]) before(name, () => this.#end());
    before("click", (event) => {
      if (this.tool === "point") return;
      event.stopPropagation();
      if (this.tool === "whole") this.#toggle(at(event));
    });
    before("keydown", (event) => {
      if (!this.#key(event)) return;
      event.preventDefault();
      event.stopPropagation();
    });
    return paths;
  }

  #choose(tool) {
    this.tool = tool;
    this.from = null;
    this.size.hidden = tool !== "brush";
    this.hint.textContent = HOW[tool];
    for (const { frame } of this.maps.views) frame.dataset.tool = tool;
    if (tool === "whole") this.#clear();
  }

  #empty() {
    this.mask = new Uint8Array(this.width * this.height);
    this.chosen = new Set(); // whole regions, as long as nothing else is drawn
    this.box = null;
  }

  #clear() {
    this.#empty();
    this.#draw();
  }

  #begin(pixel, shift) {
    if (this.chosen.size) this.#empty();
    this.kept = this.tool === "box" && !shift ? new Uint8Array(this.mask.length) : this.mask.slice();
    this.erasing = this.tool === "brush" && shift;
    this.from = this.last = pixel;
    this.said.setAttribute("aria-busy", "true");
    this.#extend(pixel);
  }

  #extend(pixel) {
    if (this.tool === "box") {
      const [top, left] = this.#place(this.from);
      const [bottom, right] = this.#place(pixel);
      this.#frame({ top: Math.min(top, bottom), left: Math.min(left, right), bottom: Math.max(top, bottom), right: Math.max(left, right) });
      return;
    }
    const [y, x] = this.#place(this.last);
    const [toY, toX] = this.#place(pixel);
    const steps = Math.max(1, Math.ceil(Math.hypot(toY - y, toX - x) / Math.max(1, this.radius / 2)));
    for (let k = 0; k <= steps; k++) this.#dab(y + ((toY - y) * k) / steps, x + ((toX - x) * k) / steps);
    this.last = pixel;
    this.#later();
  }

  #end() {
    if (this.from === null) return;
    this.from = null;
    this.said.removeAttribute("aria-busy");
    this.#later();
  }

  /** The pixel that keys are about: the cursor of the maps, or the middle. */
  #cursor() {
    return this.maps.cursor ?? (this.height >> 1) * this.width + (this.width >> 1);
  }

  #place(pixel) {
    return [Math.floor(pixel / this.width), pixel % this.width];
  }

  /** The box alone, beside what was kept. */
  #frame(box) {
    this.box = box;
    this.mask = this.kept.slice();
    for (let y = box.top; y <= box.bottom; y++) this.mask.fill(1, y * this.width + box.left, y * this.width + box.right + 1);
    this.#later();
  }

  #dab(y, x) {
    const reach = this.radius - 0.5;
    for (let row = Math.max(0, Math.ceil(y - reach)); row <= Math.min(this.height - 1, y + reach); row++) {
      const half = Math.sqrt(reach * reach - (row - y) ** 2);
      const left = Math.max(0, Math.ceil(x - half));
      const right = Math.min(this.width - 1, Math.floor(x + half));
      if (left <= right) this.mask.fill(this.erasing ? 0 : 1, row * this.width + left, row * this.width + right + 1);
    }
  }

  #toggle(pixel) {
    const region = this.regions.pieces.at(pixel);
    if (region === null) return;
    if (!this.chosen.delete(region)) this.chosen.add(region);
    this.mask = this.regions.pieces.mask(this.chosen);
    this.box = null;
    this.#later();
  }

  /** Whether a key was one of the tool's. */
  #key(event) {
    if (this.tool === "point" || event.ctrlKey || event.metaKey || event.altKey) return false;
    if (event.key === "Delete" || event.key === "Backspace") {
      this.#clear();
      return true;
    }
    if (this.tool === "box") return this.#keyOfBox(event);
    if (event.key !== "Enter" && event.key !== " ") return false;
    if (this.tool === "whole") {
      this.#toggle(this.#cursor());
      return true;
    }
    if (this.chosen.size) this.#empty();
    this.erasing = event.shiftKey;
    this.#dab(...this.#place(this.#cursor()));
    this.#later();
    return true;
  }

  #keyOfBox(event) {
    const grow = { "+": 1, "=": 1, "-": -1, "−": -1 }[event.key];
    const step = STEPS[event.key];
    if (!grow && !step) return false;
    if (!this.box) {
      this.#empty();
      this.kept = this.mask;
      const [y, x] = this.#place(this.#cursor());
      const [tall, wide] = [this.height >> 3, this.width >> 3];
      this.#frame(this.#within({ top: y - tall, left: x - wide, bottom: y + tall, right: x + wide }));
      return true;
    }
    const { top, left, bottom, right } = this.box;
    if (step) {
      const size = event.shiftKey ? 10 : 1;
      const down = Math.max(-top, Math.min(this.height - 1 - bottom, step[0] * size));
      const over = Math.max(-left, Math.min(this.width - 1 - right, step[1] * size));
      this.#frame({ top: top + down, left: left + over, bottom: bottom + down, right: right + over });
    } else if (grow > 0 || (bottom - top >= 2 && right - left >= 2)) {
      this.#frame(this.#within({ top: top - grow, left: left - grow, bottom: bottom + grow, right: right + grow }));
    }
    return true;
  }

  #within({ top, left, bottom, right }) {
    return { top: Math.max(0, top), left: Math.max(0, left), bottom: Math.min(this.height - 1, bottom), right: Math.min(this.width - 1, right) };
  }

  #later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.#draw();
    });
  }

  /** After a decision: at this alpha, which may be the one that the page was made with. */
  decided(alpha, atStart) {
    this.settings = { alpha, atStart };
    this.bound = null;
    this.#draw();
  }

  /** What is drawn, as runs of pixels: [first, number]. */
  get runs() {
    const runs = [];
    for (let p = 0; p < this.mask.length; p++) {
      if (!this.mask[p]) continue;
      if (p > 0 && this.mask[p - 1]) runs.at(-1)[1] += 1;
      else runs.push([p, 1]);
    }
    return runs;
  }

  /** Draw such runs in place of what is drawn. */
  set runs(runs) {
    this.#empty();
    for (const [first, number] of runs) this.mask.fill(1, first, first + number);
    this.#draw();
  }

  /** Bounds for a mask at the present settings; null if nothing is promised. */
  boundsOf(mask) {
    const { result } = this;
    if (whyNone(result, this.settings.alpha) !== null) return null;
    this.bound ??= guarantees(result.counts, { tails: result.tails, logs: result.logs }, this.settings.alpha, result.tested);
    return this.bound(mask);
  }

  #draw() {
    const lines = linesBetween(this.mask, this.width, this.height, true);
    for (const pair of this.paths) for (const path of pair) path.setAttribute("d", lines);
    this.clear.disabled = !lines;
    this.said.replaceChildren(...(lines ? this.#said() : []));
    this.onDrawn();
  }

  #said() {
    const { result, mask, settings, regions } = this;
    let size = 0;
    for (let p = 0; p < mask.length; p++) size += mask[p] && (!result.tested || result.tested[p]);
    const whole = percent(size / result.testedSize);
    const of = result.region ? "the surroundings" : "the picture";
    const pixels = `${size.toLocaleString("en")} ${size === 1 ? "pixel" : "pixels"}, ${whole} of ${of}`;
    const n = this.chosen.size;
    const drew = n ? `You chose ${n} ${n === 1 ? "region" : "regions"} (${pixels}).` : `You drew ${pixels}.`;
    const parts = [element("p", { class: "drawn-size" }, drew)];
    if (n) parts.push(...wholeRegions([...this.chosen], regions));
    const why = whyNone(result, settings.alpha);
    if (why !== null) {
      parts.push(element("p", { class: "note" }, why));
      if (result.fixed && result.edges.length && result.edge !== result.computed) parts.push(element("button", { type: "button", onclick: this.onReturn }, "Back to the threshold that was fixed"));
    } else if (size) {
      parts.push(...guaranteeOf(this.boundsOf(mask), result, settings));
    }
    return parts;
  }
}
