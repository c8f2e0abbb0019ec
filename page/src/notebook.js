// The page in a cell of a notebook: it says what is chosen on it, takes over what was chosen before, and asks for more samples.

import { FIXED_ONLY } from "./decide.js";
import { element } from "./elements.js";

const PAUSE = 150; // milliseconds without a change, after which it is said
const MOST = 100_000; // samples that one may ask for at once

export class Notebook {
  /**
   * @param {object} made what Python says of the samples: their number, whether there may be more, and what stands then
   * @param {object} page the parts of the page: its data, its fields, and its results, with what draws them anew
   */
  constructor(made, { data, field, corrections, shown, refresh }) {
    Object.assign(this, { made, data, field, corrections, shown, refresh, until: null, said: null, heard: false });
    this.pixels = shown.filter(({ result }) => result.edges && !this.#beside(result));
    this.regions = shown.filter(({ result }) => result.edges && this.#beside(result));
    for (const select of Object.values(corrections)) {
      for (const option of select?.options ?? []) option.disabled = made.anyTime && FIXED_ONLY.includes(option.value);
    }
    this.#build();
  }

  /** From now on the cell is listened to. */
  begin() {
    addEventListener("message", (event) => event.source === parent && this.#hear(event.data));
    new ResizeObserver(() => this.#say("height", Math.ceil(document.body.getBoundingClientRect().height))).observe(document.body);
    this.#say("ready");
  }

  /** Something may have changed: it is said once it rests. */
  changed() {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.#tell(), PAUSE);
  }

  #say(what, value = null) {
    parent.postMessage({ metfa: what, value }, "*");
  }

  #hear({ metfa, value }) {
    if (metfa === "chosen") {
      if (!this.heard) this.said = this.#chosen(); // a view that opens has chosen nothing yet, and takes nothing back
      this.heard = true;
      this.#take(value);
    }
    if (metfa === "dark") this.#dress(value);
    if (metfa === "sampling") this.#follow(value);
  }

  // What is chosen

  #beside(result) {
    return Boolean(result.ofRegions && this.corrections.regions);
  }

  #chosen() {
    const moved = ({ result }) => (result.edge === (result.computed ?? 0) ? null : result.threshold);
    return {
      n: this.made.n,
      alpha: this.data.alphas[Number(this.field("alpha").value)],
      correction: this.corrections.single.value,
      correctionOfRegions: this.corrections.regions?.value ?? null,
      moved: this.pixels.map(moved),
      movedOfRegions: this.regions.map(moved),
      drawn: this.pixels.map(({ drawing }) => drawing?.runs ?? []),
    };
  }

  #tell() {
    const chosen = this.#chosen();
    if (!this.heard || JSON.stringify(chosen) === JSON.stringify(this.said)) return;
    this.said = chosen;
    this.#say("chosen", chosen);
  }

  /** Choose what was chosen before, in this view or another one. */
  #take(chosen) {
    if (!chosen || JSON.stringify(chosen) === JSON.stringify(this.said)) return;
    this.said = chosen;
    this.field("alpha").value = nearest(this.data.alphas, chosen.alpha);
    this.corrections.single.value = chosen.correction;
    if (this.corrections.regions && chosen.correctionOfRegions) this.corrections.regions.value = chosen.correctionOfRegions;
    this.#move(this.pixels, chosen.moved);
    this.#move(this.regions, chosen.movedOfRegions);
    for (const [k, { drawing }] of this.pixels.entries()) if (drawing) drawing.runs = chosen.drawn[k] ?? [];
    this.refresh();
  }

  #move(results, thresholds) {
    for (const [k, { result }] of results.entries()) {
      const threshold = thresholds[k] ?? null;
      if (threshold === null) result.reset();
      else result.edge = nearest(result.edges, threshold);
    }
  }

  // More samples

  #build() {
    const { made } = this;
    this.number = element("input", { type: "number", min: 1, max: MOST, step: 1, value: made.suggested, "aria-label": `how many ${made.noun}s` });
    this.cost = element("span", { class: "small" });
    this.start = element("button", { type: "button", class: "start", onclick: () => this.#start() }, "Sample more");
    this.stop = element("button", { type: "button", class: "stop", hidden: "", onclick: () => this.#stop() }, "Stop");
    this.progress = element("progress", { hidden: "", "aria-label": "further samples" });
    this.state = element("span", { class: "small", role: "status", "aria-live": "polite" });
    this.number.addEventListener("input", () => this.#estimate());
    this.#estimate();
    const asking = element("div", { class: "asking" }, this.number, this.start, this.stop, this.cost, this.progress, this.state);
    const bar = element(
      "section",
      { class: "samples", "aria-label": "Samples" },
      element("p", {}, element("strong", {}, made.title), " ", made.stands),
      made.more ? asking : null,
      element("p", { class: "small" }, made.ifMore),
    );
    document.querySelector("main").before(bar);
  }

  get #asked() {
    const asked = Math.round(Number(this.number.value));
    return asked >= 1 && asked <= MOST ? asked : null;
  }

  #estimate() {
    const seconds = this.#asked && this.made.secondsEach ? this.#asked * this.made.secondsEach : 0;
    this.start.disabled = this.#asked === null;
    this.cost.textContent = this.#asked === null ? `a number from 1 to ${MOST.toLocaleString("en")}` : seconds ? about(seconds) : "";
  }

  /** Rounds follow one another as long as this page asks for the next one. */
  #start() {
    this.#tell();
    this.from = this.made.n;
    this.until = this.made.n + this.#asked;
    this.#run(true);
    this.#show(this.made.n);
    this.#say("more", { from: this.made.n, until: this.until });
  }

  #stop() {
    this.until = null;
    this.stop.disabled = true;
    this.state.textContent = "stops after this round";
  }

  #run(running) {
    for (const one of [this.number, this.start, this.cost]) one.hidden = running;
    for (const one of [this.stop, this.progress]) one.hidden = !running;
    this.stop.disabled = false;
  }

  #show(n) {
    this.progress.max = this.until - this.from;
    this.progress.value = n - this.from;
    this.state.textContent = `${(n - this.from).toLocaleString("en")} of ${(this.until - this.from).toLocaleString("en")}`;
  }

  /** After a round: the next one, or the page of all samples. */
  #follow({ n, ended }) {
    if (ended) {
      this.#run(false);
      this.until = null;
      this.state.textContent = ended;
    }
    if (this.from === undefined) return; // another view has asked, or nobody
    if (this.until !== null && n < this.until) {
      this.#show(n);
      this.#say("more", { from: n, until: this.until });
    } else if (n > this.made.n) this.#say("done");
  }

  // How it looks

  /** Light or dark as the notebook is, whatever the system is. */
  #dress(dark) {
    dress(dark);
    this.refresh();
  }
}

/** Let the rules for a dark page hold, or not. */
export function dress(dark) {
  document.documentElement.style.colorScheme = dark ? "dark" : "light";
  for (const rule of document.styleSheets[0].cssRules) {
    if (!rule.media) continue;
    rule.ofDark ??= rule.media.mediaText.includes("prefers-color-scheme");
    if (rule.ofDark) rule.media.mediaText = dark ? "all" : "not all";
  }
}

function nearest(values, wanted) {
  return values.reduce((best, value, k) => (Math.abs(value - wanted) < Math.abs(values[best] - wanted) ? k : best), 0);
}

function about(seconds) {
  if (seconds < 1) return "less than a second";
  return seconds < 90 ? `about ${Math.ceil(seconds)} s` : `about ${Math.ceil(seconds / 60).toLocaleString("en")} min`;
}
