// What stands beside a result: its threshold, the shares of the decisions, and the figures of the feature pointed at.

import { element, level, percent, probability, rest, short, svg } from "./elements.js";

const BINS = 32;

export class Panel {
  constructor(result, nameOf, onThreshold) {
    Object.assign(this, { result, nameOf });
    this.slider = element("input", {
      type: "range",
      min: 0,
      max: Math.max(0, result.edges.length - 1),
      step: 1,
      "aria-label": "threshold",
      oninput: () => onThreshold(Number(this.slider.value)),
    });
    this.slider.disabled = result.edges.length < 2;
    this.back = element("button", { type: "button", onclick: () => onThreshold(result.computed) }, this.#rule());
    this.back.disabled = result.computed === null;
    this.said = element("span", { class: "number" });
    this.shares = element("div", { class: "shares" });
    this.note = element("p", { class: "small" });
    this.reading = element("div", { class: "reading", role: "status", "aria-live": "polite" });
    this.node = element(
      "div",
      { class: "panel" },
      element("label", { class: "threshold" }, element("span", {}, "Threshold ", this.said), this.slider),
      this.back,
      this.shares,
      this.note,
      this.#aboutDifferences(),
      this.reading,
    );
    this.read(null);
  }

  #rule() {
    const { computed, edges, rule } = this.result;
    if (computed === null) return "no threshold exists";
    return `${rule}: ${short(edges[computed])}`;
  }

  /** What a decision about differences says, and how they were made. */
  #aboutDifferences() {
    const { compared } = this.result;
    if (!compared) return "";
    const [before, after] = compared.names.map((name) => element("bdi", {}, `“${name}”`));
    const copy = compared.changed ? "under the same noise" : "in the same noisy copy";
    const changed = compared.changed ? "The inputs differ, so there is no certificate. " : "";
    return element(
      "p",
      { class: "small differences" },
      "Decided is the median of the difference ",
      after,
      " minus ",
      before,
      ` ${copy}, not the difference of the two medians. Undecided: no difference is shown, which does not mean that there is none. ${changed}${compared.scale}`,
    );
  }

  /** Threshold, shares and what to expect, after a decision. */
  draw(correction, alpha) {
    const { result } = this;
    this.slider.value = result.edge;
    this.said.textContent = result.edges.length ? short(result.threshold) : "none separates the scores";
    this.slider.setAttribute("aria-valuetext", this.said.textContent);
    const order = [1, 0, -1];
    const words = order.map((mark) => `${result.kinds[mark]} ${percent(result.shares[mark])}`);
    this.shares.replaceChildren(
      element(
        "div",
        { class: "stack", "aria-hidden": "true" },
        ...order.map((mark) => {
          const part = element("span", { class: result.looks[mark] });
          part.style.flexGrow = result.shares[mark];
          return part;
        }),
      ),
      element(
        "ul",
        {},
        ...order.map((mark, k) => element("li", {}, element("i", { class: result.looks[mark] }), ` ${words[k]}`)),
      ),
    );
    this.note.textContent = this.#expectation(correction, alpha);
  }

  #expectation(correction, alpha) {
    const { result } = this;
    const of = result.region ? "pixels around the object" : `${result.noun}s`;
    if (!result.edges.length) return "Nothing is decided.";
    if (result.tooFew) {
      const kept = result.split ? ` beside the first ${result.split}` : "";
      return `With ${result.n} ${result.sampleNoun}s${kept} nothing can become significant at these settings: at least ${result.tooFew} are needed.`;
    }
    if (result.refused) {
      return "Sampling stopped because of what was seen, and this correction is for a number of samples that was fixed beforehand: choose e-BH, Bonferroni or none.";
    }
    const [above, below] = [1, -1].map((mark) => (result.kinds[mark].includes(" ") ? `"${result.kinds[mark]}"` : result.kinds[mark]));
    const size = `${result.testedSize.toLocaleString("en")} ${of}`;
    if (correction === "none" && (result.anyTime || result.ofEffects)) {
      const stops = result.anyTime ? ", whenever sampling stops" : "";
      return `Uncorrected: each of ${size} is called ${above} falsely with probability at most ${level(alpha)}${stops}; the same for ${below}.`;
    }
    if (correction === "none") {
      const number = result.expected >= 10 ? Math.round(result.expected).toLocaleString("en") : short(result.expected, 2);
      return `Uncorrected: up to ${number} of ${size} are marked falsely on average (${percent(result.expected / result.testedSize)}), if every median lay at the threshold.`;
    }
    const unproven = "unproven with a threshold from the same samples";
    if (["bonferroni", "holm"].includes(correction)) {
      const seen = correction === "holm" && result.saw ? ` (${unproven}: choose Bonferroni)` : "";
      const sure = `with probability at least ${rest(alpha)}${seen}`;
      if (!result.together) {
        return `None of ${size} is called ${above} falsely, ${sure}; the same for ${below}; both together with at least ${rest(2 * alpha)}.`;
      }
      if (correction === "holm") return `None of ${size} with its median at the threshold is marked, ${sure}.`;
      return `None of ${size} is called ${above} or ${below} falsely, ${sure}.`;
    }
    const most = level(alpha);
    const condition = {
      bh: `under positive dependence${result.saw ? ` (${unproven})` : ""}`,
      by: "under any dependence",
      "e-bh": "under any dependence and whenever sampling stops",
      "closed-e-bh": `under any dependence and whenever sampling stops${result.saw ? " (decided by e-BH: closed e-BH is for a threshold chosen without these samples)" : ""}`,
    }[correction];
    if (result.together) {
      return `On average at most ${most} of all marks together (${above} and ${below}) are false, ${condition}; of the ${above} ones alone it may be more.`;
    }
    return `Of the ${of} called ${above}, at most ${most} on average are false, ${condition}; the same for those called ${below}.`;
  }

  /** Figures of one feature. */
  read(feature) {
    const { result } = this;
    this.reading.classList.toggle("empty", feature === null);
    if (feature === null) {
      this.reading.replaceChildren(
        element("p", { class: "small" }, `Point at a ${result.noun}, or move there by the arrow keys, for its ${result.samplesCalled}.`),
      );
      return;
    }
    const rows = result.saidOfBoth(feature).map((score, k) => [element("span", {}, element("bdi", {}, `“${result.compared.names[k]}”`), `, ${result.compared.stable}`), score]);
    const difference = result.compared ? "difference, " : "";
    const main = result.ofEffects ? `mean ${result.thing}` : result.main;
    rows.push([`${difference}${main}`, result.said(result.main, feature)]);
    if (result.maps.lower) {
      const interval = `${result.said("lower", feature)} to ${result.said("upper", feature)}`;
      const kind = result.ofEffects ? "asymptotic " : result.anyTime ? "at any time " : "";
      rows.push([`interval of the ${result.middle}${result.compared ? " difference" : ""}, ${kind}${percent(result.layers.level, 2)}`, interval]);
    } else {
      rows.push(["interval", `none: ${result.layers.missing}`]);
    }
    const beyond = result.outside(feature) ? " (outside the interval)" : "";
    if (result.maps.vanilla) rows.push([result.compared ? "difference without noise" : "one explanation, no noise", result.said("vanilla", feature) + beyond]);
    const outside = !result.tested || result.tested[feature];
    if (!outside) {
      rows.splice(0, rows.length, ["decision", "none: part of the object, which is not tested"]);
    } else if (result.edges.length) {
      const above = result.counts.above[feature];
      const below = result.counts.below[feature];
      const equal = result.n - above - below;
      const after = result.split ? ` after the first ${result.split},` : "";
      const which = `${result.samplesCalled}${after} above, below the threshold`;
      rows.push([which, `${above}, ${below}${equal ? ` (${equal} at it)` : ""}`]);
      const value = result.byEValues ? "1 / e-value" : "p-value";
      rows.push([`${value} of “above”, of “below”`, `${probability(result.sides[above])}, ${probability(result.sides[below])}`]);
      rows.push(["decision", result.kinds[result.marks[feature]]]);
      if (result.maps.radius) {
        const radius = result.score("radius", feature) > 0 ? result.said("radius", feature) : "none";
        rows.push([`certified L2 radius of the median. ${result.certifiedAt}`, radius]);
      }
    }
    this.reading.replaceChildren(
      element("h3", {}, element("bdi", {}, this.nameOf(feature))),
      element("dl", {}, ...rows.flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)])),
      outside && result.edges.length ? this.#histogram(feature) : "",
      element("p", { class: "small pinned", hidden: "" }, "Kept: click it again, or press Escape, to let go."),
    );
  }

  /** Say that the figures stay while the pointer moves on. */
  pin(kept) {
    const note = this.reading.querySelector(".pinned");
    if (note) note.hidden = !kept;
  }

  #histogram(feature) {
    const { result } = this;
    const counts = result.histogramOf(feature, BINS);
    const tallest = Math.max(...counts, 1);
    const { low, high } = result.layers;
    const bars = counts.map((count, bin) =>
      svg("rect", { x: bin * 10 + 1, y: 60 - (56 * count) / tallest, width: 8, height: (56 * count) / tallest }),
    );
    const at = ((2 * result.edge + 1.5) / (2 * result.edges.length + 1)) * BINS * 10;
    bars.push(svg("line", { x1: at, x2: at, y1: 0, y2: 60, class: "threshold", "vector-effect": "non-scaling-stroke" }));
    return element(
      "figure",
      { class: "histogram" },
      svg("svg", { viewBox: `0 0 ${BINS * 10} 60`, preserveAspectRatio: "none", role: "img", "aria-label": `histogram of ${result.n} ${result.samplesCalled}` }, ...bars),
      element("figcaption", {}, `its ${result.n} ${result.samplesCalled}${result.split ? " that are tested" : ""}, from the lowest ${result.thing} of all to the highest; the line is the threshold`),
    );
  }
}
