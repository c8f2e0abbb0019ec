// Features along one axis: the words of a text in their order, or bars with error bars, the largest first.

import { element, short, svg } from "./elements.js";

const MOST_BARS = 40;

export class Words {
  constructor(result, label, onPoint) {
    Object.assign(this, { result, onPoint, cursor: null });
    this.spans = result.names.map((name, feature) =>
      element(
        "span",
        {
          class: "word",
          role: "button",
          tabindex: feature === 0 ? "0" : "-1",
          onpointerenter: () => onPoint(feature, false),
          onpointerdown: () => onPoint(feature, true),
          onfocus: () => onPoint(feature, true),
          onkeydown: (event) => this.#key(event, feature),
        },
        name,
      ),
    );
    const gaps = result.gaps ?? ["", ...result.names.slice(1).map(() => " "), ""];
    const pieces = this.spans.flatMap((span, feature) => [span, gaps[feature + 1]]);
    this.node = element("p", { class: "text", dir: "auto", "aria-label": label }, gaps[0], ...pieces);
  }

  async load() {}

  #key(event, feature) {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    const next = this.spans[feature + step];
    if (!next) return;
    event.preventDefault();
    this.spans[feature].tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  point(feature) {
    if (this.cursor !== null) this.spans[this.cursor].classList.remove("pointed");
    this.cursor = feature;
    if (feature !== null) this.spans[feature].classList.add("pointed");
  }

  nameOf(feature) {
    return `“${this.result.names[feature]}”`;
  }

  drawLayer(name) {
    const { result } = this;
    const size = Math.max(Math.abs(result.layers.low), Math.abs(result.layers.high)) || 1;
    for (const [feature, span] of this.spans.entries()) {
      const score = result.score(name === "width" ? "upper" : name, feature);
      const hue = score < 0 ? "0 114 178" : "230 159 0";
      span.style.backgroundColor = `rgb(${hue} / ${(0.6 * Math.min(1, Math.abs(score) / size)).toFixed(3)})`;
    }
  }

  drawMarks() {
    for (const [feature, span] of this.spans.entries()) {
      span.classList.remove("important", "unimportant", "positive", "negative", "undecided");
      span.classList.add(this.result.looks[this.result.marks[feature]]);
      span.setAttribute("aria-label", `${this.result.names[feature]}, ${this.result.kinds[this.result.marks[feature]]}`);
    }
  }
}

export class Bars {
  constructor(result, label, onPoint) {
    Object.assign(this, { result, onPoint, cursor: null });
    const main = result.maps.smoothed ? "smoothed" : "mean";
    const sizes = result.names.map((_, feature) => Math.abs(result.score(main, feature)));
    this.order = [...sizes.keys()].sort((a, b) => sizes[b] - sizes[a]).slice(0, MOST_BARS);
    this.main = main;
    this.rows = new Map();
    const body = element("div", { class: "bars", role: "list", "aria-label": label });
    for (const [place, feature] of this.order.entries()) body.append(this.#row(feature, place));
    const rest = result.names.length - this.order.length;
    this.node = element(
      "div",
      {},
      body,
      rest > 0 ? element("p", { class: "small" }, `${rest} features with smaller scores are not shown.`) : null,
    );
  }

  async load() {}

  #row(feature, place) {
    const { result } = this;
    const value = result.values ? ` = ${result.values[feature]}` : "";
    const picture = svg("svg", { class: "bar", viewBox: "0 0 1000 20", preserveAspectRatio: "none", "aria-hidden": "true" });
    const row = element(
      "div",
      {
        class: "row",
        role: "listitem",
        tabindex: place === 0 ? "0" : "-1",
        onpointerenter: () => this.onPoint(feature, false),
        onpointerdown: () => this.onPoint(feature, true),
        onfocus: () => this.onPoint(feature, true),
        onkeydown: (event) => this.#key(event, place),
      },
      element("span", { class: "name", title: result.names[feature] }, `${result.names[feature]}${value}`),
      picture,
      element("span", { class: "kind" }),
    );
    this.rows.set(feature, { row, picture });
    return row;
  }

  #key(event, place) {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const next = this.rows.get(this.order[place + step]);
    if (!next) return;
    event.preventDefault();
    this.rows.get(this.order[place]).row.tabIndex = -1;
    next.row.tabIndex = 0;
    next.row.focus();
  }

  point(feature) {
    this.rows.get(this.cursor)?.row.classList.remove("pointed");
    this.cursor = feature;
    this.rows.get(feature)?.row.classList.add("pointed");
  }

  nameOf(feature) {
    return this.result.names[feature];
  }

  #x(score) {
    const low = Math.min(0, this.result.layers.low);
    const high = Math.max(0, this.result.layers.high);
    return 1000 * ((score - low) / (high - low || 1));
  }

  drawLayer() {}

  drawMarks() {
    const { result, main } = this;
    for (const [feature, { row, picture }] of this.rows) {
      const kind = result.kinds[result.marks[feature]];
      const score = result.score(main, feature);
      const [from, to] = [this.#x(0), this.#x(score)].sort((a, b) => a - b);
      const look = result.looks[result.marks[feature]];
      const parts = [svg("rect", { class: look, x: from, y: 4, width: Math.max(to - from, 1), height: 12 })];
      const line = (x1, x2, y1, y2, name) =>
        svg("line", { x1, x2, y1, y2, class: name, "vector-effect": "non-scaling-stroke" });
      if (result.maps.lower) {
        const [low, high] = [this.#x(result.score("lower", feature)), this.#x(result.score("upper", feature))];
        parts.push(line(low, high, 10, 10, "error"), line(low, low, 5, 15, "error"), line(high, high, 5, 15, "error"));
      }
      parts.push(line(this.#x(0), this.#x(0), 0, 20, "zero"));
      if (Number.isFinite(result.threshold)) {
        parts.push(line(this.#x(result.threshold), this.#x(result.threshold), 0, 20, "threshold"));
      }
      picture.replaceChildren(...parts);
      row.querySelector(".kind").textContent = kind;
      row.setAttribute("aria-label", `${result.names[feature]}: ${short(score)}, ${kind}`);
    }
  }
}
