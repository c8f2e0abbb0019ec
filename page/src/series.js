// A series: the signal of each channel with its marked steps, and the scores with their interval, on one axis of time.

import { counts, scores, unpacked } from "./decode.js";
import { element, percent, short } from "./elements.js";
import { Bars } from "./features.js";
import { colourOf, layerName } from "./maps.js";
import { labelsOf, midsOf, OVERLAPPING, runsOf, ticks } from "./places.js";

const FIGURES = 46; // pixels of the page: figures of the scales
const NAMES = [40, 150]; // least and most room of the names of channels
const RIGHT = 12;
const FONT = "12px system-ui, sans-serif";
const AXIS = 34; // below all rows: figures and label of time
const SHADE = { 1: 0.5, "-1": 0.28 }; // weight of a mark's colour behind the signal
const LANE = 5; // a strip below each row has the full colours
const SECOND = "#d55e00"; // of two signals
const TALLEST = 16384; // points of a canvas: browsers draw none that is much taller
const STEP = 10; // with Shift
const CLOSER = 2;

export class Series {
  constructor(result, label, onPoint) {
    Object.assign(this, { result, onPoint, cursor: null, at: null, layer: "smoothed" });
    const { located } = result;
    [this.rows, this.length] = located.shape;
    this.from = 0;
    this.to = this.length;
    this.canvas = element("canvas", {
      tabindex: "0",
      role: "application",
      "aria-roledescription": "series",
      "aria-label": `${label}: the signal with its marked steps, and the scores. Arrow keys move from step to step, with Shift ten at a time${this.rows > 1 ? ", up and down from channel to channel" : ""}; plus and minus change how much is shown.`,
    });
    this.line = element("div", { class: "at", hidden: "" });
    this.row = element("div", { class: "row-at", hidden: "" });
    this.frame = element("div", { class: "series-frame" }, this.canvas, this.line, this.row);
    this.caption = element("p", { class: "small" });
    const button = (text, name, act) => element("button", { type: "button", "aria-label": name, onclick: act }, text);
    this.zoom = element(
      "div",
      { class: "tools zoom" },
      button("+", "show fewer steps", () => this.#zoom(1 / CLOSER)),
      button("−", "show more steps", () => this.#zoom(CLOSER)),
      button("◀", "earlier steps", () => this.#pan(-1)),
      button("▶", "later steps", () => this.#pan(1)),
      button("Whole", "show all steps", () => this.#view(0, this.length)),
    );
    this.bars = result.names ? new Bars(result, `${label}: regions, the largest score first`, onPoint) : null;
    this.node = element("div", { class: "series" }, element("figure", {}, this.zoom, this.frame, element("figcaption", {}, this.caption)), this.bars?.node ?? null);
    this.canvas.addEventListener("pointermove", (event) => this.#under(event, "hover"));
    this.canvas.addEventListener("click", (event) => this.#under(event, "keep"));
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
    this.canvas.addEventListener("focus", () => this.at === null && this.#go(0, this.from));
  }

  async load() {
    const { located } = this.result;
    this.labels = await labelsOf(located, this.rows * this.length, this.result.size);
    const { times } = located;
    this.times = typeof times === "string" ? scores(await unpacked(times), { kind: "double" }) : Float64Array.from({ length: this.length }, (_, k) => times.first + k * times.step);
    if (this.times.length !== this.length) throw new Error("its times do not fit its steps");
    this.edges = midsOf(this.times);
    this.signals = [];
    for (const { low, high, levels } of located.signals) {
      const found = counts(await unpacked(levels), 16);
      if (found.length !== located.channels.length * this.length) throw new Error("its signal does not fit its steps");
      this.signals.push({ low, high, levels: found });
    }
    this.panels = this.#panels();
    const context = this.canvas.getContext("2d");
    context.font = FONT;
    const widest = Math.max(...this.panels.map(({ name }) => context.measureText(name).width));
    this.left = FIGURES + Math.ceil(Math.max(NAMES[0], Math.min(NAMES[1], widest + 8)));
    this.height = this.panels.reduce((sum, { height }) => sum + height, 0) + AXIS;
    this.frame.style.height = `${this.height}px`;
    new ResizeObserver(() => this.#draw()).observe(this.frame);
  }

  /** What is drawn in which row of the picture, from the top downwards. */
  #panels() {
    const { channels } = this.result.located;
    const n = channels.length;
    const tall = n === 1 ? 150 : n <= 4 ? 100 : 46;
    const panels = [];
    channels.forEach((name, channel) => {
      const row = this.rows > 1 ? channel : 0;
      if (this.signals.length) panels.push({ kind: "signal", channel, row, name, height: tall });
      if (this.rows > 1) panels.push({ kind: "score", row, name: this.signals.length ? "score" : name, height: Math.max(40, 0.7 * tall) });
    });
    if (this.rows === 1) panels.push({ kind: "score", row: 0, name: this.result.thing, height: 150 });
    return panels;
  }

  // What is shown of the time

  #view(from, to) {
    const size = Math.max(Math.min(8, this.length), Math.min(this.length, Math.round(to - from)));
    this.from = Math.max(0, Math.min(this.length - size, Math.round(from)));
    this.to = this.from + size;
    this.#draw();
  }

  #zoom(factor) {
    const middle = this.at !== null && this.#step() >= this.from && this.#step() < this.to ? this.#step() : (this.from + this.to) / 2;
    const half = ((this.to - this.from) * factor) / 2;
    this.#view(middle - half, middle + half);
  }

  #pan(direction) {
    const shift = (direction * (this.to - this.from)) / 2;
    this.#view(this.from + shift, this.to + shift);
  }

  #step() {
    return this.at % this.length;
  }

  // The cursor

  #under(event, how) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const share = Math.max(0, Math.min(1, (x - this.left) / (box.width - this.left - RIGHT)));
    const time = this.edges[this.from] + share * (this.edges[this.to] - this.edges[this.from]);
    let top = 0;
    let row = this.rows - 1;
    for (const panel of this.panels) {
      top += panel.height;
      if (y < top) {
        row = panel.row;
        break;
      }
    }
    this.#go(row, this.#stepAt(time), how);
  }

  /** The step that holds a time. */
  #stepAt(time) {
    let [low, high] = [0, this.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.edges[middle] <= time) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #go(row, step, how = "move") {
    const at = row * this.length + step;
    const feature = this.labels[at];
    if (feature < 0) return;
    this.wanted = at;
    this.onPoint(feature, how);
    this.wanted = null;
    if (step < this.from || step >= this.to) this.#view(step - (this.to - this.from) / 2, step + (this.to - this.from) / 2);
  }

  #key(event) {
    if (event.key === "+" || event.key === "=") this.#zoom(1 / CLOSER);
    else if (event.key === "-" || event.key === "−") this.#zoom(CLOSER);
    else if (!this.#moved(event)) return;
    event.preventDefault();
  }

  #moved(event) {
    const size = event.shiftKey ? STEP : 1;
    const moves = { ArrowLeft: [0, -size], ArrowRight: [0, size], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -this.length], End: [0, this.length] };
    const move = moves[event.key];
    if (!move) return false;
    const at = this.at ?? this.from;
    const row = Math.max(0, Math.min(this.rows - 1, Math.floor(at / this.length) + move[0]));
    const step = Math.max(0, Math.min(this.length - 1, (at % this.length) + move[1]));
    this.#go(row, step);
    return true;
  }

  /** Move the line of the cursor to a feature, of a region to the place asked for or to its first step. */
  point(feature) {
    this.cursor = feature;
    if (feature === null) this.at = null;
    else if (this.wanted !== null && this.wanted !== undefined && this.labels[this.wanted] === feature) this.at = this.wanted;
    else if (this.at === null || this.labels[this.at] !== feature) this.at = this.labels.indexOf(feature);
    this.bars?.point(feature);
    this.#drawCursor();
  }

  nameOf(feature) {
    if (this.result.names) return this.result.names[feature];
    const at = this.at !== null && this.labels[this.at] === feature ? this.at : this.labels.indexOf(feature);
    const step = at % this.length;
    const { label, channels } = this.result.located;
    const unit = /\((.*)\)$/.exec(label)?.[1];
    const when = label === "step" ? `step ${step}` : `time ${short(this.times[step], 6)}${unit ? ` ${unit}` : ""} (step ${step})`;
    return this.rows > 1 ? `${channels[Math.floor(at / this.length)]}, ${when}` : when;
  }

  // What the page asks for

  drawLayer(name) {
    this.layer = name;
    this.#draw();
  }

  drawMarks() {
    this.bars?.drawMarks();
    this.#draw();
  }

  // The picture

  #draw() {
    const width = this.frame.clientWidth;
    if (!width || !this.result.marks || !this.edges) return;
    const ratio = Math.min(window.devicePixelRatio || 1, TALLEST / this.height);
    Object.assign(this.canvas, { width: Math.round(width * ratio), height: Math.round(this.height * ratio) });
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    const style = getComputedStyle(this.frame);
    this.paper = style.getPropertyValue("--paper").trim();
    this.ink = style.getPropertyValue("--ink").trim();
    this.faint = style.getPropertyValue("--faint").trim();
    this.rule = style.getPropertyValue("--line").trim();
    this.colours = Object.fromEntries(Object.entries(this.result.looks).map(([mark, look]) => [mark, `rgb(${colourOf(look).join(" ")})`]));
    const right = width - RIGHT;
    const span = this.edges[this.to] - this.edges[this.from];
    this.x = (time) => this.left + ((time - this.edges[this.from]) / span) * (right - this.left);
    let top = 0;
    for (const panel of this.panels) {
      this.#drawPanel(context, panel, top, right);
      top += panel.height;
    }
    this.#drawTimes(context, top, right);
    this.#drawCursor();
    this.#say();
  }

  #drawPanel(context, panel, top, right) {
    const bottom = top + panel.height - 4;
    context.save();
    context.beginPath();
    context.rect(this.left, top, right - this.left, panel.height);
    context.clip();
    if (this.layer !== "picture") this.#drawMarks(context, panel.row, top, bottom);
    const within = panel.kind === "signal" ? this.#drawSignal(context, panel, top + 3, bottom - LANE - 2) : this.#drawScore(context, panel, top + 3, bottom - LANE - 2);
    context.restore();
    context.strokeStyle = this.rule;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(this.left - 0.5, top);
    context.lineTo(this.left - 0.5, bottom);
    context.moveTo(this.left, bottom + 1.5);
    context.lineTo(right, bottom + 1.5);
    context.stroke();
    context.textAlign = "right";
    context.fillStyle = panel.kind === "signal" || !this.signals.length ? this.ink : this.faint;
    context.font = FONT;
    context.textBaseline = "middle";
    context.fillText(fitted(context, panel.name, this.left - FIGURES - 6), this.left - FIGURES, (top + bottom) / 2);
    context.fillStyle = this.faint;
    context.font = "10px system-ui, sans-serif";
    context.textBaseline = "top";
    context.fillText(short(within.high, 3), this.left - 4, top + 1);
    context.textBaseline = "bottom";
    context.fillText(short(within.low, 3), this.left - 4, bottom);
  }

  #drawMarks(context, row, top, bottom) {
    const { marks, faint } = this.result;
    const start = row * this.length;
    for (const [mark, from, to] of runsOf((step) => this.#markAt(marks, start + step), this.from, this.to)) {
      const [left, right] = [this.x(this.edges[from]), this.x(this.edges[to])];
      context.fillStyle = this.colours[mark];
      context.globalAlpha = (faint ? 0.35 : 1) * SHADE[mark];
      context.fillRect(left, top, right - left, bottom - top);
      context.globalAlpha = faint ? 0.35 : 1;
      context.fillRect(left, bottom - LANE, right - left, LANE);
    }
    context.globalAlpha = 1;
  }

  #markAt(marks, at) {
    const feature = this.labels[at];
    return feature < 0 ? 0 : marks[feature];
  }

  #drawSignal(context, { channel }, top, bottom) {
    const scale = { low: Math.min(...this.signals.map(({ low }) => low[channel])), high: Math.max(...this.signals.map(({ high }) => high[channel])) };
    const y = (value) => bottom - ((value - scale.low) / (scale.high - scale.low || 1)) * (bottom - top);
    for (const [k, { low, high, levels }] of this.signals.entries()) {
      const start = channel * this.length;
      const value = (step) => low[channel] + (levels[start + step] / 65535) * (high[channel] - low[channel]);
      this.#drawLine(context, value, y, { colour: k ? SECOND : this.ink, width: this.panels.length > 8 ? 0.9 : 1.2 });
    }
    return scale;
  }

  #drawScore(context, { row }, top, bottom) {
    const { result } = this;
    const { low, high } = this.#rangeOfScores();
    const y = (value) => bottom - ((value - low) / (high - low || 1)) * (bottom - top);
    const start = row * this.length;
    const score = (name) => (step) => {
      const feature = this.labels[start + step];
      return feature < 0 ? NaN : result.score(name, feature);
    };
    if (this.#hasBand) this.#drawBand(context, score("lower"), score("upper"), y);
    const line = (value) => {
      context.beginPath();
      context.moveTo(this.left, y(value));
      context.lineTo(this.x(this.edges[this.to]), y(value));
      context.stroke();
    };
    const level = (value, dash) => {
      context.strokeStyle = this.paper;
      context.lineWidth = dash.length ? 3.5 : 0;
      if (dash.length) line(value);
      context.setLineDash(dash);
      context.strokeStyle = this.ink;
      context.lineWidth = dash.length ? 1.2 : 0.6;
      line(value);
      context.setLineDash([]);
    };
    if (low < 0 && high > 0) level(0, []);
    if (this.layer !== "picture") this.#drawLine(context, score(this.layer), y, { colour: this.ink, width: 1.3 });
    if (this.#hasThreshold) level(result.threshold, [5, 4]);
    return { low, high };
  }

  /** Whether the line is of scores, beside which intervals and thresholds make sense. */
  get #isOfScores() {
    return !["width", "radius", "picture"].includes(this.layer);
  }

  get #hasBand() {
    return Boolean(this.result.maps.lower) && this.#isOfScores;
  }

  get #hasThreshold() {
    return Number.isFinite(this.result.threshold) && this.result.threshold !== 0 && this.#isOfScores;
  }

  /** One scale for all rows of scores, and for all layers but the width. */
  #rangeOfScores() {
    const { maps } = this.result;
    if (this.layer === "radius") return { low: 0, high: this.result.certificate.largest || 1 };
    this.ranges ??= {};
    const name = this.layer === "width" ? "width" : "scores";
    if (!this.ranges[name]) {
      let [low, high] = [0, 0];
      if (name === "width") for (let p = 0; p < this.result.size; p++) high = Math.max(high, maps.upper[p] - maps.lower[p]);
      else for (const [which, map] of Object.entries(maps)) if (which !== "radius") for (const value of map) [low, high] = [Math.min(low, value), Math.max(high, value)];
      this.ranges[name] = { low, high };
    }
    return this.ranges[name];
  }

  /** Of each column of pixels the lowest and the highest value, as many as there are steps or pixels. */
  #drawLine(context, value, y, { colour, width }) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.lineJoin = "round";
    context.beginPath();
    let column = null;
    let [low, high, last] = [0, 0, 0];
    let begun = false;
    const flush = () => {
      if (column === null) return;
      const at = column + 0.5;
      for (const one of [low, high, last]) {
        if (begun) context.lineTo(at, y(one));
        else context.moveTo(at, y(one));
        begun = true;
      }
    };
    const crowded = this.to - this.from > 2 * (this.x(this.edges[this.to]) - this.left);
    for (let step = this.from; step < this.to; step++) {
      const one = value(step);
      if (Number.isNaN(one)) {
        flush();
        [column, begun] = [null, false];
        continue;
      }
      const x = this.x(this.times[step]);
      if (!crowded) {
        if (begun) context.lineTo(x, y(one));
        else context.moveTo(x, y(one));
        begun = true;
        continue;
      }
      if (Math.floor(x) !== column) {
        flush();
        column = Math.floor(x);
        [low, high] = [one, one];
      }
      [low, high, last] = [Math.min(low, one), Math.max(high, one), one];
    }
    flush();
    context.stroke();
  }

  #drawBand(context, lower, upper, y) {
    context.fillStyle = this.faint;
    context.globalAlpha = 0.35;
    for (let step = this.from; step < this.to; step++) {
      const [low, high] = [lower(step), upper(step)];
      if (Number.isNaN(low)) continue;
      const [left, right] = [this.x(this.edges[step]), this.x(this.edges[step + 1])];
      context.fillRect(left, y(high), Math.max(right - left, 0.2), Math.max(y(low) - y(high), 0.5));
    }
    context.globalAlpha = 1;
  }

  #drawTimes(context, top, right) {
    context.fillStyle = this.faint;
    context.strokeStyle = this.rule;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const { value, text } of ticks(this.edges[this.from], this.edges[this.to], Math.max(2, Math.floor((right - this.left) / 90)))) {
      const x = this.x(value);
      context.beginPath();
      context.moveTo(x, top - 2);
      context.lineTo(x, top + 3);
      context.stroke();
      context.fillText(text, x, top + 4);
    }
    context.fillText(this.result.located.label, (this.left + right) / 2, top + 19);
  }

  /** The line at the cursor, and a frame around its channel: elements, so that the picture is not drawn anew. */
  #drawCursor() {
    const step = this.at === null ? -1 : this.#step();
    const hidden = step < this.from || step >= this.to;
    this.line.hidden = hidden;
    this.row.hidden = hidden || this.rows === 1;
    if (hidden || !this.x) return;
    this.line.style.left = `${this.x(this.times[step])}px`;
    this.line.style.height = `${this.height - AXIS}px`;
    let top = 0;
    let bounds = null;
    for (const { row, height } of this.panels) {
      if (row === Math.floor(this.at / this.length)) bounds = { top: bounds?.top ?? top, bottom: top + height };
      top += height;
    }
    const look = { left: `${this.left}px`, right: `${RIGHT}px`, top: `${bounds.top}px`, height: `${bounds.bottom - bounds.top - 3}px` };
    Object.assign(this.row.style, look);
  }

  #say() {
    const { result } = this;
    const band = this.#hasBand ? "; band: the interval of its median" : "";
    const dashed = this.#hasThreshold ? "; dashed: the threshold" : "";
    const both = this.signals.length > 1 ? ` Of the two signals, that of “${result.compared.names[1]}” is orange.` : "";
    const undecided = this.labels.includes(-1) ? "undecided, or in no region" : "undecided";
    const scale = this.panels.length > 2 && this.signals.length > 0 ? " The signal of each channel has a scale of its own." : "";
    const shown = this.to - this.from < this.length ? ` Shown: ${percent((this.to - this.from) / this.length, 0)} of the steps.` : "";
    this.caption.textContent =
      this.layer === "picture"
        ? `The signal alone.${both}${scale}${shown}`
        : `Shaded, with a strip below: ${result.kinds[1]}, ${result.kinds[-1]}; plain: ${undecided}. Line of scores: ${layerName(this.layer, Boolean(result.compared))}${band}${dashed}.${both}${result.located.overlapping ? OVERLAPPING : ""}${scale}${shown}`;
  }
}

/** A text that is no wider than this, shortened at its end. */
function fitted(context, text, width) {
  let found = text;
  while (found.length > 1 && context.measureText(found).width > width) found = `${found.slice(0, -2)}…`;
  return found;
}
