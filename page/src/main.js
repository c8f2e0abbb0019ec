// The page: the data are unpacked, drawn, and decided anew where a setting changes.

import { Answer } from "./answers.js";
import { Drawing } from "./drawing.js";
import { probability, element, percent } from "./elements.js";
import { Bars, Words } from "./features.js";
import { layerName, Maps } from "./maps.js";
import { dress, Notebook } from "./notebook.js";
import { Panel } from "./panel.js";
import { Regions } from "./regions.js";
import { Result } from "./result.js";
import { Rows } from "./rows.js";
import { Series } from "./series.js";
import { Table } from "./table.js";
import { Volume } from "./volume.js";

const VIEWS = { maps: Maps, regions: Regions, series: Series, volume: Volume, words: Words, bars: Bars, table: Table, answer: Answer };
const LAYERED = ["maps", "series", "volume"];

/** A result with its pictures, which the page holds once each, in place of their places. */
function withPictures(result, pictures) {
  if (!result) return result;
  const { picture, compared, ...rest } = result;
  return { ...rest, picture: pictures[picture], compared: withPictures(compared, pictures) };
}

async function start() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { theme } = document.documentElement.dataset; // of the notebook, if the page is in one
  if (theme) dress(theme === "dark");
  const controls = document.querySelector(".controls");
  const shown = [];
  let notebook = null;
  for (const section of document.querySelectorAll(".result")) {
    const own = data.results[Number(section.dataset.index)];
    const result = await (own.rows ? Rows : Result).of(withPictures(own, data.pictures));
    const label = section.querySelector("h2").textContent;
    const one = { result, kept: null };
    one.view = new VIEWS[result.kind](result, label, (feature, how) => point(one, feature, how));
    const onThreshold = (edge) => {
      result.edge = edge;
      decide(one);
    };
    one.panel = one.view.panel ?? new Panel(result, (feature) => one.view.nameOf(feature), onThreshold);
    await one.view.load();
    if (result.kind === "maps") {
      const regions = result.beside === null ? null : shown[result.beside].view;
      one.drawing = new Drawing(one.view, regions, () => onThreshold(result.computed), () => notebook?.changed());
    }
    const live = section.querySelector(".live");
    live.append(element("div", { class: result.compared && one.drawing ? "maps-compared" : "" }, one.view.node, one.drawing?.node ?? ""), one.view.panel ? "" : one.panel.node);
    live.hidden = false;
    shown.push(one);
  }

  const field = (name) => controls.elements.namedItem(name);
  const settings = () => ({
    layer: field("layer")?.value ?? "smoothed",
    outlines: field("outlines")?.checked ?? true,
    opacity: field("opacity") ? Number(field("opacity").value) / 100 : 1,
    place: Number(field("alpha").value),
    alpha: data.alphas[Number(field("alpha").value)],
  });
  const corrections = { single: field("correction"), regions: field("correction-of-regions") };
  const correctionOf = (result) => ((result.ofRegions && corrections.regions) || corrections.single).value;

  function decide(one) {
    const { alpha, place } = settings();
    const correction = correctionOf(one.result);
    one.result.decide(alpha, correction, place);
    one.view.drawMarks();
    one.panel.draw(correction, alpha);
    notebook?.changed();
    for (const { drawing } of shown.filter((other) => other === one || shown[other.result.beside] === one)) {
      drawing?.decided(alpha, alpha === data.alpha);
    }
    if (one.view.cursor === null) return;
    one.panel.read(one.view.cursor);
    one.panel.pin(one.kept !== null);
  }

  function draw(one) {
    const { layer, opacity, outlines } = settings();
    const names = one.result.layerNames;
    one.view.showOutlines?.(outlines);
    one.view.drawLayer(names.includes(layer) ? layer : names[0], opacity);
  }

  function say() {
    const { alpha, opacity } = settings();
    controls.querySelector(".said.alpha").textContent = probability(alpha);
    field("alpha").setAttribute("aria-valuetext", probability(alpha));
    const opaque = controls.querySelector(".said.opacity");
    if (opaque) opaque.textContent = percent(opacity, 0);
    const named = ({ value, selectedOptions }) => selectedOptions[0].textContent || value;
    const ofRegions = corrections.regions ? `; of regions ${named(corrections.regions)}` : "";
    document.querySelector(".settings").textContent = `Alpha ${probability(alpha)}; correction ${named(corrections.single)}${ofRegions}.`;
  }

  /**
   * Move the cursor in this result and in all of the same features. A click keeps it, whatever the pointer hovers over, until
   * it is clicked again, moved by keys or let go by Escape.
   */
  function point(one, feature, how) {
    const group = shown.filter((other) => other === one || (other.result.kind === one.result.kind && sameFeatures(other, one)));
    if (how === "hover" && group.some((other) => other.kept !== null)) return;
    for (const other of group) {
      other.kept = how === "keep" && other.kept !== feature ? feature : null;
      other.view.point(feature);
      other.panel.read(feature);
      other.panel.pin(other.kept !== null);
    }
  }

  function letGo() {
    for (const one of shown) {
      one.kept = null;
      one.panel.pin(false);
      one.view.letGo?.();
    }
  }

  function sameFeatures(a, b) {
    const same = (of) => of(a.result) === of(b.result);
    return same(({ shape }) => shape.join()) && same(({ names }) => names?.join()) && same(({ drawn }) => drawn?.runs);
  }

  if (field("layer")) {
    const maps = shown.map((one) => one.result).filter((result) => LAYERED.includes(result.kind));
    const names = [...new Set(maps.flatMap((result) => result.layerNames))];
    const compared = maps.every((result) => result.compared);
    field("layer").replaceChildren(...names.map((name) => element("option", { value: name }, layerName(name, compared))));
  }
  field("alpha").max = data.alphas.length - 1;

  function asMade() {
    field("alpha").value = data.alphas.indexOf(data.alpha);
    corrections.single.value = data.correction;
    if (corrections.regions) corrections.regions.value = data.correctionOfRegions;
    for (const one of shown) {
      one.result.reset();
      one.kept = null;
      one.view.point(null);
      one.panel.read(null);
    }
    refresh();
  }

  function refresh() {
    say();
    shown.forEach(draw);
    shown.forEach(decide);
  }

  controls.addEventListener("input", (event) => {
    say();
    if (["layer", "opacity", "outlines"].includes(event.target.name)) shown.forEach(draw);
    else shown.forEach(decide);
  });
  controls.addEventListener("reset", () => setTimeout(asMade));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") letGo();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", refresh);
  if (data.notebook) notebook = new Notebook(data.notebook, { data, field, corrections, shown, refresh });
  const folded = () => document.querySelectorAll("details:not([open])");
  addEventListener("beforeprint", () => folded().forEach((one) => one.setAttribute("open", "for-print")));
  addEventListener("afterprint", () =>
    document.querySelectorAll("details[open=for-print]").forEach((one) => one.removeAttribute("open")),
  );
  controls.addEventListener("submit", (event) => event.preventDefault());
  asMade();
  controls.hidden = false;
  document.querySelector(".settings").hidden = false;
  window.metfaReport = shown; // for who wants to look into the numbers
  document.documentElement.dataset.ready = "yes";
  notebook?.begin();
}

start().catch((error) => {
  const why = "DecompressionStream" in window ? `the file is damaged (${error.message})` : "it needs a browser from 2023 or later";
  const message = `This page could not be drawn: ${why}. The figures below are those that it was made with.`;
  document.querySelector("header").append(element("p", { class: "note", role: "alert" }, message));
  throw error;
});
