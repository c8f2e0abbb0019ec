// Features along one axis: the words of a text in their order, or bars with error bars, the largest first.

import { Both, Texts } from "./both.js";
import { element, short, svg } from "./elements.js";

const MOST_BARS = 40;
const STRONGEST = 0.45; // opacity of a word's background, at which letters are read in light and dark

/** Move the focus among elements of which one at a time can be tabbed to. */
export function moveFocus(event, place, elements, steps) {
  const ends = { Home: 0, End: elements.length - 1 };
  const next = elements[event.key in ends ? ends[event.key] : place + steps[event.key]];
  if (!next) return;
  event.preventDefault();
  elements[place].tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

/** The name of a mark without what it is compared with: "more", "less". */
export function shortOf(kind) {
  return kind.split(" than ")[0];
}

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
          onpointerenter: () => onPoint(feature, "hover"),
          onclick: () => onPoint(feature, "keep"),
          onfocus: () => onPoint(feature, "move"),
          onkeydown: (event) => this.#key(event, feature),
        },
        name,
      ),
    );
    this.legend = element("p", { class: "small" });
    const gaps = result.gaps ?? ["", ...result.names.slice(1).map(() => " "), ""];
    const pieces = this.spans.flatMap((span, feature) => [span, gaps[feature + 1]]);
    const text = element("div", { class: "text", dir: "auto", role: "group", "aria-label": label }, gaps[0], ...pieces);
    this.both = result.compared ? new Texts(result, (score, size) => this.#background(score, size)) : null;
    this.node = element("div", {}, text, this.legend, this.both?.node ?? null);
  }

  async load() {}

  #key(event, feature) {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.onPoint(feature, "keep");
      return;
    }
    moveFocus(event, feature, this.spans, { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 });
  }

  point(feature) {
    if (this.cursor !== null) this.spans[this.cursor].classList.remove("pointed");
    this.both?.point(this.cursor, feature);
    this.cursor = feature;
    if (feature !== null) this.spans[feature].classList.add("pointed");
  }

  nameOf(feature) {
    return `“${this.result.names[feature]}”`;
  }

  #background(score, size) {
    const hue = score < 0 ? "0 114 178" : "230 159 0";
    return `rgb(${hue} / ${((this.result.faint ? 0.35 : 1) * STRONGEST * Math.min(1, Math.abs(score) / size)).toFixed(3)})`;
  }

  /** Colour each word by its stable score, whatever map is chosen for pictures. */
  drawLayer() {
    const { result } = this;
    const name = result.maps.smoothed ? "smoothed" : "mean";
    const size = Math.max(...result.names.map((_, feature) => Math.abs(result.score(name, feature)))) || 1;
    for (const [feature, span] of this.spans.entries()) {
      span.style.backgroundColor = this.#background(result.score(name, feature), size);
    }
    const hues = result.signed ? "orange above 0, blue below" : "orange";
    const [above, below] = [result.kinds[1], result.kinds[-1]];
    const { compared } = result;
    const also = compared ? ` Below: ${compared.stable} scores of both, on a scale of their own (strongest ${short(this.both.strongest)}).` : "";
    this.legend.textContent =
      `Background: ${name} ${result.thing} of a ${result.noun}, ${hues}, the stronger the further from 0 (strongest ${short(size)}). ` +
      `Underlined: ${above}${result.looks[-1] === "negative" ? `, wavy: ${below}` : ""}; dotted: undecided.` +
      (result.contradicted ? ` In all, ${result.contradicted}.` : "") +
      also;
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
  /**
   * Those with the largest `sizeOf` their score stand first, `most` of them at the start; `clean`: scores without noise
   * are drawn too; `below`: what stands below the bar of a feature.
   */
  constructor(result, label, onPoint, { sizeOf = Math.abs, clean = true, most = MOST_BARS, below = () => null } = {}) {
    clean = clean && Boolean(result.maps.vanilla);
    Object.assign(this, { result, onPoint, clean, most, below, cursor: null });
    const drawn = clean || !result.maps.lower ? Object.values(result.maps) : [result.maps.lower, result.maps.upper];
    const start = clean || !Number.isFinite(result.threshold) ? [0] : [0, result.threshold]; // the legend names its line
    this.low = drawn.reduce((low, map) => map.reduce((a, b) => Math.min(a, b), low), Math.min(...start));
    this.high = drawn.reduce((high, map) => map.reduce((a, b) => Math.max(a, b), high), Math.max(...start));
    const main = result.maps.smoothed ? "smoothed" : "mean";
    const sizes = result.names.map((_, feature) => sizeOf(result.score(main, feature)));
    this.order = [...sizes.keys()].sort((a, b) => sizes[b] - sizes[a]);
    this.main = main;
    this.rows = new Map();
    this.both = result.compared ? new Both(result) : null;
    this.body = element("div", { class: "bars", role: "list", "aria-label": label });
    for (const [place, feature] of this.order.slice(0, most).entries()) this.body.append(this.#row(feature, place));
    this.more = element("button", { type: "button", onclick: () => this.#showAll() }, `Show all ${this.order.length}`);
    this.more.hidden = this.order.length <= most;
    const heading = this.both?.heading(result.noun) ?? null;
    this.node = element("div", { class: this.both ? "with-both" : "" }, heading, this.body, this.more, element("p", { class: "small" }, this.#legend()));
  }

  #legend() {
    const { contradicted } = this.result;
    const interval = this.result.maps.lower ? `; line with caps: interval of its ${this.result.middle}` : "";
    const { thing, compared } = this.result;
    const bar = `${compared ? `Thin stroke: “${compared.names[0]}”, thick stroke: “${compared.names[1]}”, on one scale. ` : ""}Bar: ${this.main} ${thing}`;
    if (!this.clean) return `${bar}${interval}; dashed: the threshold.`;
    return `${bar}${interval}; thick stroke${compared ? " on it" : ""}: ${thing} without noise, red outside its interval${contradicted ? ` (${contradicted})` : ""}.`;
  }

  #showAll() {
    for (const [place, feature] of this.order.entries()) {
      if (place >= this.most) this.body.append(this.#row(feature, place));
    }
    this.more.hidden = true;
    this.drawMarks();
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
        onpointerenter: () => this.onPoint(feature, "hover"),
        onclick: () => this.onPoint(feature, "keep"),
        onfocus: () => this.onPoint(feature, "move"),
        onkeydown: (event) => this.#key(event, place),
      },
      element("span", { class: "name" }, element("bdi", {}, result.names[feature]), value),
      this.both?.cell(feature, result.saidOfBoth(feature, 3)) ?? null,
      picture,
      element("span", { class: "kind" }),
      this.below(feature),
    );
    this.rows.set(feature, { row, picture });
    return row;
  }

  #key(event, place) {
    moveFocus(event, place, [...this.body.children], { ArrowUp: -1, ArrowDown: 1 });
  }

  point(feature) {
    this.rows.get(this.cursor)?.row.classList.remove("pointed");
    this.cursor = feature;
    this.rows.get(feature)?.row.classList.add("pointed");
  }

  /** Bring a feature's row into sight within the list, and nothing else. */
  reveal(feature) {
    if (!this.rows.has(feature)) this.#showAll();
    const { row } = this.rows.get(feature);
    this.body.scrollTop = row.offsetTop - (this.body.clientHeight - row.clientHeight) / 2;
  }

  nameOf(feature) {
    return this.result.names[feature];
  }

  #x(score) {
    return 20 + 960 * ((score - this.low) / (this.high - this.low || 1)); // with room for the caps of the error bars
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
      if (this.clean) {
        const clean = this.#x(result.score("vanilla", feature));
        parts.push(line(clean, clean, 2, 18, result.outside(feature) ? "clean outside" : "clean"));
      }
      parts.push(line(this.#x(0), this.#x(0), 0, 20, "zero"));
      if (Number.isFinite(result.threshold)) {
        parts.push(line(this.#x(result.threshold), this.#x(result.threshold), 0, 20, "threshold"));
      }
      picture.replaceChildren(...parts);
      row.querySelector(".kind").textContent = shortOf(kind);
      const both = this.both ? `${result.saidOfBoth(feature).map((said, k) => `${result.compared.names[k]} ${said}`).join(", ")}, difference ` : "";
      row.setAttribute("aria-label", `${result.names[feature]}: ${both}${short(score)}, ${kind}`);
    }
  }
}
