// An answer: a reader chooses one of its sentences, and sees below which sources raise its score.

import { Chosen } from "./chosen.js";
import { element, short } from "./elements.js";
import { moveFocus } from "./features.js";

const MOST_NAMED = 3; // sources that stand behind a sentence
const answers = []; // of this page: a sentence that is chosen in one is chosen in all
const LONG = 280; // letters of a source that are shown before it is opened

/** A text of at most so many letters. */
function cut(text, longest) {
  return text.length <= longest ? text : `${[...text].slice(0, longest - 1).join("")}…`;
}

export class Answer {
  constructor(rows, label) {
    Object.assign(this, { rows, result: rows, cursor: null, chosen: 0, each: [] });
    const { pieces, oneText, answerNoun } = rows;
    this.buttons = rows.each.map((_, k) => this.#button(k));
    const shown = pieces.map(([text, k], place) => {
      if (place === 0) text = text.trimStart();
      if (k === null) return text;
      const before = text.slice(0, text.length - text.trimStart().length);
      const after = text.slice(text.trimEnd().length);
      return element("span", { class: "spoken" }, before, this.buttons[k], after);
    });
    const several = rows.each.length > 1;
    this.text = element("div", { class: oneText ? "answer-text" : "answer-text listed", dir: "auto", role: several ? "radiogroup" : "group", "aria-label": `${label}: its ${answerNoun}s` }, ...shown);
    this.hint = element("p", { class: "small" }, `${several ? `Choose one of the ${answerNoun}s, by a click or the arrow keys. ` : ""}In brackets: its sources that are found.`);
    this.legend = element("p", { class: "small" });
    this.detail = element("div", { class: "chosen-answer" });
    this.panel = { draw() {}, read() {}, pin() {}, node: "" };
    answers.push(this);
    this.node = element("div", { class: "answer-view" }, this.text, this.hint, this.detail, this.legend);
  }

  async load() {}

  point() {}

  nameOf(feature) {
    return this.rows.names[feature];
  }

  drawLayer() {}

  #button(k) {
    const several = this.rows.each.length > 1;
    const attributes = several
      ? {
          role: "radio",
          tabindex: k === 0 ? "0" : "-1",
          onclick: () => this.#choose(k),
          onfocus: () => this.#choose(k),
          onkeydown: (event) => moveFocus(event, k, this.buttons, { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }),
        }
      : {};
    return element(
      "span", // which goes on in the next line, as a button would not
      { class: "sentence", ...attributes },
      element("bdi", {}, this.rows.about[k].name),
      element("span", { class: "cited" }),
    );
  }

  #choose(k) {
    const { name } = this.rows.about[k];
    for (const one of answers) {
      const place = one === this ? k : one.rows.about.findIndex((other) => other.name === name);
      if (place < 0 || one.chosen === place) continue;
      one.chosen = place;
      one.#show();
    }
  }

  /** After a decision: what stands behind the sentences, and the sources of the one that is chosen. */
  drawMarks() {
    for (const one of this.each) one?.decided();
    this.#cite();
    this.#show();
    this.legend.textContent = `“${this.rows.first.kinds[-1]}” does not say that a source does not matter: another may say the same.${this.rows.each.length > 1 ? ` Each ${this.rows.answerNoun} is decided by itself.` : ""}${this.rows.besides.length ? " Numbers beside a source have no error bars and scales of their own; no mark looks at them." : ""}`;
  }

  letGo() {
    this.each[this.chosen]?.letGo();
  }

  #show() {
    const { rows, chosen } = this;
    this.each[chosen] ??= this.#made(chosen);
    this.detail.replaceChildren(this.each[chosen].node);
    for (const [k, button] of this.buttons.entries()) {
      if (rows.each.length === 1) continue;
      button.setAttribute("aria-checked", String(k === chosen));
      button.classList.toggle("is-chosen", k === chosen);
      button.tabIndex = k === chosen ? 0 : -1;
    }
  }

  #made(k) {
    const settings = { sizeOf: (score) => score, clean: false, below: (feature) => this.#texts(k, feature) };
    const made = new Chosen(this.rows, k, settings, () => this.#cite());
    if (this.rows.each.length === 1) made.node.querySelector("h3").hidden = true; // it stands above
    made.decided();
    return made;
  }

  /** The sources that are found, behind each sentence. */
  #cite() {
    for (const [k, button] of this.buttons.entries()) {
      const row = this.rows.each[k];
      const found = [...row.marks.keys()].filter((feature) => row.marks[feature] > 0);
      found.sort((a, b) => row.score("mean", b) - row.score("mean", a));
      const names = found.slice(0, MOST_NAMED).map((feature) => cut(row.names[feature], 32));
      const more = found.length > MOST_NAMED ? ` +${found.length - MOST_NAMED}` : "";
      button.querySelector(".cited").textContent = ` [${names.length ? names.join(", ") + more : "none is found"}]`;
    }
  }

  /** The texts of a source, or of those that are kept or dropped together. */
  #texts(k, feature) {
    const others = this.rows.besides.map(([name, values]) => `${name} ${short(values[k][feature], 3)}`).join(", ");
    const { members, group } = this.rows.sources[feature];
    const lines = members.map(([name, text]) => {
      const named = group ? element("b", {}, element("bdi", {}, name), ": ") : null;
      if (text.length <= LONG) return element("p", { dir: "auto" }, named, text);
      const opened = element("details", { onclick: (event) => event.stopPropagation(), onkeydown: (event) => event.stopPropagation() });
      opened.append(element("summary", { dir: "auto" }, named, element("span", { class: "short" }, cut(text, LONG))), element("p", { dir: "auto" }, text));
      return opened;
    });
    return element("div", { class: "source-text" }, group ? element("p", { class: "small" }, "Kept or dropped together:") : null, ...lines, others ? element("p", { class: "small" }, `Beside it: ${others}`) : null);
  }
}
