// What is said about a region that a reader drew: how many of its pixels are important at least, and why not.

import { element, level, percent, probability, rest, short } from "./elements.js";
import { canPromise } from "./guarantee.js";

const MOST_NAMED = 6;
const BROKEN = "chosen among 60 stops of the slider after a look, such a promise was broken in 5% to 10% of simulated runs, at alpha 5%."; // metfa's own simulation of three laws

/** Why no guarantee is shown for any region, in plain words; null if one is. */
export function whyNone(result, alpha) {
  if (!result.edges.length) return "Nothing is promised about regions, because no threshold separates the scores.";
  if (!result.fixed) {
    return (
      "Nothing is promised about regions here, because the threshold was chosen from the same samples that are tested. For one " +
      `${BROKEN} Write the page with a threshold from samples that are left out, such as split=10, or with a number that ` +
      "was fixed before sampling, such as threshold=0.3."
    );
  }
  if (result.edge !== result.computed) {
    return (
      "Nothing is promised about regions while the threshold is moved: the promise is for the threshold that was fixed " +
      `before. For one ${BROKEN}`
    );
  }
  if (!canPromise(result, result.testedSize, alpha)) {
    return `With ${result.n} samples nothing can be promised about regions at alpha ${probability(alpha)}: more are needed.`;
  }
  return null;
}

/** A share in percent, rounded down: "at least" stays true. */
function atLeast(part, whole) {
  return percent(Math.floor((1000 * part) / whole) / 1000);
}

function statement(bound, size, kind, { one, many }) {
  if (bound === size) return size === 1 ? `The pixel ${one} ${kind}.` : `All its ${size.toLocaleString("en")} pixels ${many} ${kind}.`;
  if (!bound) return `No number of pixels that ${many} ${kind} can be promised in it.`;
  return `At least ${bound.toLocaleString("en")} of its ${size.toLocaleString("en")} pixels (${atLeast(bound, size)}) ${many} ${kind}.`;
}

/**
 * Elements that say what is known about a drawing.
 *
 * @param {{size: number, above: number, below: number}} found bounds of the region
 * @param {object} result the pixels
 * @param {{alpha: number, atStart: boolean}} settings alpha, and whether it is the one that the page was made with
 */
export function guaranteeOf(found, result, { alpha, atStart }) {
  const [above, below] = [result.kinds[1], result.kinds[-1]];
  const verb = result.compared && result.threshold === 0 ? { one: "gets", many: "get" } : { one: "is", many: "are" };
  const when = result.logs ? " and whenever sampling stops" : "";
  const place = result.threshold === 0 ? "0" : `the threshold ${short(result.threshold)}`;
  const source =
    result.rule === "as given" || result.rule === "as given to Until"
      ? "The threshold was given as a number: the promise holds if that was chosen before anybody saw these samples."
      : `The threshold was fixed without the samples that are tested (${result.rule}).`;
  const moved = atStart ? "" : " You changed alpha: the promise holds if you chose it before you looked.";
  if (!found.above && !found.below) {
    return [element("p", { class: "bound" }, `No number of pixels that ${verb.many} ${above}, or ${below}, can be promised in it.`)];
  }
  return [
    element("p", { class: "bound" }, `${statement(found.above, found.size, above, verb)} ${statement(found.below, found.size, below, verb)}`),
    element(
      "p",
      { class: "small" },
      `Each of these two statements is right with probability at least ${rest(alpha)}, for all regions at once${when}, so also for ` +
        `one that you draw after you looked at the map. Both together: at least ${rest(2 * alpha)}.${moved}`,
    ),
    element(
      "details",
      {},
      element("summary", {}, "What it says, and what not"),
      element(
        "p",
        { class: "small" },
        `A pixel ${verb.one} ${above} if the median of its ${result.thing} under the noise lies above ${place}, and ${below} if it lies below. ` +
          `The statements say how many there are, not which ones. They hold for any dependence between pixels. ${source}`,
      ),
      element(
        "p",
        { class: "small" },
        "Whether the drawing as a whole gets more than the rest of the picture is not shown: this page holds counts of samples, " +
          "not the scores. In Python sample.over(mask[None], against=\"rest\") asks it. But you chose this region after you saw " +
          "these samples, so ask it of new samples alone: metfa.explain with another seed.",
      ),
    ),
  ];
}

/** Elements that say what is known about whole regions of the page, each by itself. */
export function wholeRegions(chosen, view) {
  const { result } = view;
  const rows = chosen.slice(0, MOST_NAMED).map((region) => element("li", {}, element("bdi", {}, view.about(region))));
  if (chosen.length > MOST_NAMED) rows.push(element("li", {}, `and ${chosen.length - MOST_NAMED} more`));
  return [element("ul", { class: "whole" }, ...rows), element("p", { class: "small" }, afterLooking(result))];
}

function afterLooking({ correction, alpha, anyTime, kinds, saw, size, refused, tooFew, together }) {
  if (refused || tooFew) return "";
  const sure = anyTime || saw ? "Bonferroni" : "Holm"; // which is for a fixed number of samples, and a fixed threshold
  const all = `all ${size.toLocaleString("en")} regions`;
  if (correction === "none") {
    return `These marks are not corrected. If you chose a region because it looked strong, its mark may be false more often than in ${level(alpha)} of the cases: choose a correction above, such as ${sure}.`;
  }
  if (correction === "bonferroni" || correction === sure.toLowerCase()) {
    return `These marks are corrected over ${all}, so you may choose any of them after you looked.`;
  }
  if (correction === "holm") {
    return `These marks are corrected over ${all} by Holm, which is unproven with a threshold from the same samples: ${sure} holds for any choice.`;
  }
  const which = together ? "all marks together" : `those called “${kinds[1]}”, and of those called “${kinds[-1]}”,`;
  return `These marks are corrected over ${all}: on average at most ${level(alpha)} of ${which} are false. A few that you choose after you looked may be false more often; ${sure} holds for any choice.`;
}
