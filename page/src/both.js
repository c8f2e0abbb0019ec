// Both values of features of a comparison: side by side in a row, or as two coloured texts.

import { element, svg } from "./elements.js";

/** Scores of both parts in one row: their figures, and two strokes on a scale that all rows share. */
export class Both {
  constructor({ compared }) {
    const scores = Object.values(compared.maps);
    this.compared = compared;
    this.low = scores.reduce((low, map) => map.reduce((a, b) => Math.min(a, b), low), 0);
    this.high = scores.reduce((high, map) => map.reduce((a, b) => Math.max(a, b), high), 0);
  }

  #x(score) {
    return 20 + 960 * ((score - this.low) / (this.high - this.low || 1));
  }

  /** The cell of a feature, whose scores are `said` so. */
  cell(feature, said) {
    const [before, after] = ["before", "after"].map((part) => this.#x(this.compared.maps[part][feature]));
    const zero = this.#x(0);
    const line = (x1, x2, y1, y2, name) => svg("line", { x1, x2, y1, y2, class: name, "vector-effect": "non-scaling-stroke" });
    const picture = svg(
      "svg",
      { viewBox: "0 0 1000 20", preserveAspectRatio: "none", "aria-hidden": "true" },
      line(zero, zero, 0, 20, "zero"),
      line(before, after, 10, 10, "change"),
      line(before, before, 2, 18, "before"),
      line(after, after, 2, 18, "after"),
    );
    return element("span", { class: "both" }, said.join(" \u2192 "), picture);
  }

  /** Names of the columns, for the eye. */
  heading(noun) {
    const [before, after] = this.compared.names;
    return element(
      "div",
      { class: "row heading", "aria-hidden": "true" },
      element("span", { class: "name" }, noun),
      element("span", { class: "both" }, element("bdi", {}, before), " \u2192 ", element("bdi", {}, after)),
      element("span", {}, "difference"),
    );
  }
}

/** A text twice, with the scores of either part as colours on one scale. */
export class Texts {
  constructor(result, backgroundOf) {
    const { compared } = result;
    this.strongest = Math.max(Math.abs(compared.low), Math.abs(compared.high)) || 1;
    this.spans = [];
    const figures = ["before", "after"].map((part, k) => {
      const { names, gaps } = compared.texts?.[k] ?? result;
      const spans = names.map((name) => element("span", { class: "word" }, name));
      for (const [feature, span] of spans.entries()) span.style.backgroundColor = backgroundOf(compared.maps[part][feature], this.strongest);
      this.spans.push(spans);
      const between = gaps ?? ["", ...names.slice(1).map(() => " "), ""];
      const text = element("div", { class: "text", dir: "auto" }, between[0], ...spans.flatMap((span, feature) => [span, between[feature + 1]]));
      return element("figure", {}, element("figcaption", {}, element("bdi", {}, `\u201c${compared.names[k]}\u201d`), `, ${compared.stable} scores`), text);
    });
    this.node = element("div", { class: "views texts" }, ...figures);
  }

  /** Move the frame from one word to another, in both texts; null for none. */
  point(from, to) {
    for (const spans of this.spans) {
      spans[from]?.classList.remove("pointed");
      spans[to]?.classList.add("pointed");
    }
  }
}
