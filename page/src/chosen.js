// A row of several: its bars with intervals, and the figures of the feature that is pointed at.

import { element } from "./elements.js";
import { Bars } from "./features.js";
import { Panel } from "./panel.js";

/** A row that is chosen: its bars with intervals, its threshold, and the figures of the feature pointed at. */
export class Chosen {
  /** `settings` are those of the bars; `onDecided` is called when the row's own threshold has moved. */
  constructor(rows, k, settings = {}, onDecided = () => {}) {
    this.row = rows.each[k];
    const { name, explained, cautions } = rows.about[k];
    this.kept = null;
    this.bars = new Bars(this.row, name, (feature, how) => this.#pointed(feature, how), settings);
    this.panel = new Panel(this.row, (feature) => this.bars.nameOf(feature), (edge) => {
      this.row.edge = edge;
      this.row.decide(this.row.alpha, this.row.correction, this.row.place);
      this.decided();
      onDecided();
    });
    this.node = element(
      "section",
      { class: this.row.faint ? "faint" : "", "aria-label": name },
      element("h3", {}, element("bdi", {}, name), explained ? `: ${explained}` : ""),
      ...cautions.map((text) => element("p", { class: "caution" }, `${text}.`)),
      element("div", { class: "bars-and-panel" }, this.bars.node, this.panel.node),
    );
  }

  decided() {
    this.bars.drawMarks();
    this.panel.draw(this.row.correction, this.row.alpha);
    if (this.bars.cursor !== null) this.panel.read(this.bars.cursor);
    this.panel.pin(this.kept !== null);
  }

  point(feature) {
    this.#pointed(feature, "move");
    this.bars.reveal(feature);
  }

  letGo() {
    this.kept = null;
    this.panel.pin(false);
  }

  #pointed(feature, how) {
    if (how === "hover" && this.kept !== null) return;
    this.kept = how === "keep" && this.kept !== feature ? feature : null;
    this.bars.point(feature);
    this.panel.read(feature);
    this.panel.pin(this.kept !== null);
  }
}
