// Many rows of a table: a cell for each row and feature, sorted and filtered by marks; a row that is chosen has its bars below.

import { Chosen } from "./chosen.js";
import { element, percent, short } from "./elements.js";
import { moveFocus, shortOf } from "./features.js";
import { Panel } from "./panel.js";

const PAGE = 50; // rows that are shown at once
const PALEST = 0.25; // weight of the colour of a decided cell whose score lies at the threshold
const FAINT = 0.25; // weight of the colours of a row with a caution
const SIGNS = { 1: "+", 0: "", "-1": "\u2212" };
const MARKS = [1, -1, 0];

export class Table {
  constructor(rows, label) {
    Object.assign(this, { rows, result: rows, cursor: null, chosen: null, page: 0, sort: { by: "given", down: true }, strongest: true });
    this.filter = { text: "", feature: -1, mark: null };
    this.grid = element("table", { class: "grid", "aria-label": label });
    this.count = element("span", { class: "small", role: "status" });
    this.back = element("button", { type: "button", onclick: () => this.#turn(-1) }, "Previous");
    this.next = element("button", { type: "button", onclick: () => this.#turn(1) }, "Next");
    this.detail = element("div", { class: "chosen", hidden: "" });
    this.legend = element("p", { class: "small" });
    this.panel = new Overall(rows);
    this.node = element(
      "div",
      { class: "table-of-rows" },
      this.#controls(),
      element("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": `${label}, table` }, this.grid),
      element("p", { class: "pager" }, this.back, this.next, this.count),
      this.legend,
      this.panel.node,
      this.detail,
    );
  }

  async load() {}

  #controls() {
    const select = (onchange, ...options) => element("select", { onchange }, ...options.map(([value, text]) => element("option", { value }, text)));
    const { names } = this.rows;
    this.ofMark = select((event) => this.#refilter({ mark: event.target.value === "" ? null : Number(event.target.value) }), ["", "any mark"], ...MARKS.map((mark) => [mark, ""]));
    const ofFeature = select((event) => this.#refilter({ feature: Number(event.target.value) }), [-1, `any ${this.rows.noun}`], ...names.map((name, feature) => [feature, name]));
    this.by = select(
      (event) => this.#resort(Number.isNaN(Number(event.target.value)) ? event.target.value : Number(event.target.value), true),
      ["given", "as given"],
      ["grouped", `by the strongest ${this.rows.noun}`],
      ...names.map((name, feature) => [feature, `by ${name}`]),
    );
    const columns = select((event) => this.#reorder(event.target.value === "largest"), ["largest", "largest first"], ["given", "as given"]);
    const text = element("input", { type: "search", size: "12", oninput: (event) => this.#refilter({ text: event.target.value }) });
    return element(
      "div",
      { class: "choices" },
      element("label", {}, "Rows with ", this.ofMark, " in ", ofFeature),
      element("label", {}, "named ", text),
      element("label", {}, "Order of rows ", this.by),
      element("label", {}, `Order of ${this.rows.noun}s `, columns),
    );
  }

  #refilter(change) {
    Object.assign(this.filter, change);
    this.page = 0;
    this.#draw();
  }

  #resort(by, down) {
    this.sort = { by, down };
    this.by.value = String(by);
    this.page = 0;
    this.#draw();
  }

  #reorder(strongest) {
    this.strongest = strongest;
    this.#draw();
  }

  #turn(step) {
    this.page += step;
    this.#draw();
  }

  point() {}

  nameOf(feature) {
    return this.rows.names[feature];
  }

  drawLayer() {}

  letGo() {
    this.shown?.letGo();
  }

  /** After a decision: the cells, and the bars of the row that is chosen. */
  drawMarks() {
    for (const [k, option] of [...this.ofMark.options].slice(1).entries()) option.textContent = this.rows.first.kinds[MARKS[k]];
    this.#draw();
    this.shown?.decided();
  }

  #draw() {
    const { rows } = this;
    const order = rows.order(this.filter, this.sort);
    const pages = Math.max(1, Math.ceil(order.length / PAGE));
    this.page = Math.min(Math.max(0, this.page), pages - 1);
    const places = order.slice(this.page * PAGE, (this.page + 1) * PAGE);
    const columns = this.strongest ? rows.columns : [...rows.names.keys()];
    const body = element("tbody", {}, ...places.map((k, place) => this.#row(k, place, columns)));
    this.grid.replaceChildren(element("thead", {}, this.#heads(columns), this.#shares(order, columns)), body);
    this.buttons = [...body.querySelectorAll("button")];
    this.back.disabled = this.page === 0;
    this.next.disabled = this.page === pages - 1;
    const from = this.page * PAGE;
    const all = rows.each.length.toLocaleString("en");
    this.count.textContent = places.length
      ? `rows ${from + 1} to ${from + places.length} of ${order.length.toLocaleString("en")}${order.length === rows.each.length ? "" : ` that are chosen, of all ${all}`}`
      : `none of all ${all} rows`;
    this.legend.textContent = this.#legend();
  }

  #legend() {
    const { first, top } = this.rows;
    const from = first.threshold === 0 ? "0" : "the threshold of its row";
    return (
      `+: ${first.kinds[1]}, ${SIGNS[-1]}: ${first.kinds[-1]}, the stronger the further the ${first.main} ${first.thing} lies from ${from} (strongest from ` +
      `${short(top, 3)} on); hatched: undecided. Above the cells: the share of these rows with each mark. Each row is decided by itself.`
    );
  }

  #heads(columns) {
    const head = (feature) => {
      const sorted = this.sort.by === feature;
      const turned = sorted && this.sort.down;
      const button = element("button", { type: "button", onclick: () => this.#resort(feature, !turned) }, element("bdi", {}, this.rows.names[feature]));
      return element("th", { scope: "col", "aria-sort": sorted ? (turned ? "descending" : "ascending") : null }, button);
    };
    return element("tr", { class: "heads" }, element("th", { scope: "col", class: "corner" }, "row"), ...columns.map(head));
  }

  /** The share of the chosen rows with each mark, for each feature. */
  #shares(order, columns) {
    const { each, first } = this.rows;
    const share = (feature) => {
      const counts = { 1: 0, 0: 0, "-1": 0 };
      for (const k of order) counts[each[k].marks[feature]] += 1;
      const parts = [0, -1, 1].map((mark) => {
        const part = element("i", { class: first.looks[mark] });
        part.style.flexGrow = counts[mark];
        return part;
      });
      const said = MARKS.map((mark) => `${first.kinds[mark]} ${percent(counts[mark] / (order.length || 1), 0)}`).join(", ");
      return element("td", { title: `${this.rows.names[feature]}: ${said}` }, element("span", { class: "column" }, ...parts));
    };
    return element("tr", { class: "shares-of-rows" }, element("th", { scope: "row" }, "share of rows"), ...columns.map(share));
  }

  #row(k, place, columns) {
    const { name, explained, cautions } = this.rows.about[k];
    const button = element(
      "button",
      { type: "button", tabindex: place === 0 ? "0" : "-1", onkeydown: (event) => this.#key(event, place) },
      element("bdi", {}, name),
      cautions.length ? element("abbr", { class: "warned", title: cautions.join("; ") }, " !") : null,
    );
    const head = element("th", { scope: "row" }, button, explained ? element("small", {}, ` ${explained.replace(", as predicted", "")}`) : null);
    const row = element("tr", { class: this.chosen === k ? "is-chosen" : "" }, head, ...columns.map((feature) => this.#cell(k, feature)));
    row.addEventListener("click", (event) => this.#choose(k, Number(event.target.closest("td")?.dataset.feature ?? NaN)));
    return row;
  }

  #cell(k, feature) {
    const row = this.rows.each[k];
    const mark = row.marks[feature];
    const strength = (row.faint ? FAINT : 1) * (PALEST + (1 - PALEST) * Math.min(1, Math.abs(this.rows.apart(k, feature)) / this.rows.top));
    const value = row.values ? ` = ${row.values[feature]}` : "";
    const interval = row.maps.lower ? ` (${row.said("lower", feature)} to ${row.said("upper", feature)})` : "";
    const title = `${row.names[feature]}${value}: ${row.said(row.main, feature)}${interval}, ${row.kinds[mark]}`;
    const cell = element("td", { class: `cell ${row.looks[mark]}`, title, "data-feature": feature }, SIGNS[mark]);
    cell.style.setProperty("--strength", `${(100 * strength).toFixed(0)}%`);
    if (mark < 0 && strength > 0.6) cell.classList.add("strong");
    return cell;
  }

  #key(event, place) {
    moveFocus(event, place, this.buttons, { ArrowUp: -1, ArrowDown: 1 });
  }

  /** Show the bars of a row, and point at a feature of it (NaN: at none); choosing it again closes them. */
  #choose(k, feature) {
    if (this.chosen === k && Number.isNaN(feature)) {
      this.chosen = this.shown = null;
      this.detail.hidden = true;
    } else if (this.chosen !== k) {
      this.chosen = k;
      this.shown = new Chosen(this.rows, k);
      this.detail.replaceChildren(this.shown.node);
      this.detail.hidden = false;
      this.shown.decided();
      this.detail.scrollIntoView({ block: "nearest" });
    }
    if (this.chosen === k && !Number.isNaN(feature)) this.shown.point(feature);
    this.#draw();
  }
}

/** What is decided in all rows together: shares of the cells, and what the level is of. */
class Overall {
  constructor(rows) {
    this.rows = rows;
    this.inside = new Panel(rows.first, (feature) => rows.names[feature], () => {});
    this.shares = element("ul", {});
    this.note = element("p", { class: "small" });
    this.node = element("div", { class: "panel" }, element("div", { class: "shares" }, this.shares), this.note);
  }

  draw(correction, alpha) {
    const { first, shares, each, size, noun } = this.rows;
    this.shares.replaceChildren(
      ...[1, 0, -1].map((mark) => element("li", {}, element("i", { class: `${first.looks[mark]} of-cell` }), ` ${shortOf(first.kinds[mark])} ${percent(shares[mark])} of all cells`)),
    );
    this.inside.draw(correction, alpha);
    const cells = (each.length * size).toLocaleString("en");
    const many = correction === "none" ? `There are ${cells} cells.` : `The correction is for each row by itself, not for all ${each.length.toLocaleString("en")} rows together.`;
    this.note.textContent = `In each row: ${this.inside.note.textContent} ${many}`;
  }

  read() {}

  pin() {}
}
