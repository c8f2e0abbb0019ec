"""A result of many rows as one table: its numbers for the page, and the words around them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from metfa import stats
from metfa._base.percents import counted, percent
from metfa._base.provenance import method_of, printable
from metfa.plot.cells import Cells, name_of_row, rows_in_words
from metfa.report._cells import Edges, Samples, packed
from metfa.report._compared import classes_of, compared_of, names_of
from metfa.report._content import Content, check_drawable, rule_in_words
from metfa.report._deciding import deciding
from metfa.report._inputs import named
from metfa.report._layers import layers_of
from metfa.report._places import placed_kind
from metfa.report._regions import plane_of
from metfa.report._words import about_of, closing, opening
from metfa.results.cautions import about_outside, cautions, nothing_stands_out, rounding_of
from metfa.results.decisions import Decision, TooFewSamplesError
from metfa.results.one_map import is_noisy
from metfa.results.promises import promise
from metfa.results.sample import AttributionSample
from metfa.results.scores import Scores
from metfa.results.terms import Terms
from metfa.results.thresholds import flat_rows, resolved, zone_of
from metfa.text.reading import harmless_text

__all__ = ["OF_ONE", "data_of_rows", "heading_of_table", "is_table", "samples_of_row", "table_content"]

MOST_SECTIONS = 12  # rows that have a section each; of more, readers look for a row in a table
OF_ONE = ("class explained", "explained", "input name", "input", "to repeat it")  # facts that hold for one row alone
STRONGEST = 3  # features that are named of each row
SIGNS = {1: "+", -1: "\N{MINUS SIGN}"}


def is_table(result: Any) -> bool:
    """Whether a result is shown as one table: of more than 12 rows with the same features along one axis."""
    if not isinstance(result, AttributionSample) or len(result.target) <= MOST_SECTIONS:
        return False
    if isinstance(result.inputs, list) and result.noun in ("feature", "source"):  # words of texts, sources of answers
        return False
    with_regions = result.stopping is not None and result.stopping.over is not None
    along_one = len(result.feature_shape) == 1 and not with_regions and plane_of(result) is None
    return along_one and placed_kind(result, None) is None


def heading_of_table(sample: AttributionSample) -> str:
    """Heading of a result of many rows: its explainer, the class if there is one, and how many rows there are."""
    named = method_of(sample.provenance.get("explainer"))
    if sample.pair is not None:
        named = "{1} minus {0}".format(*names_of(sample))
    target = sample.target[0]
    if target is not None and len(set(map(repr, sample.target))) == 1:
        named = f"{named}, {sample.target_noun} {target}"
    return harmless_text(printable(f"{named}: {counted(len(sample.target), 'row')}"))


def table_content(
    name: str,
    sample: AttributionSample,
    terms: Terms,
    confidence_level: float,
    *,
    given: bool,
    flips_from: float,
) -> Content:
    """Content of a result of many rows, on these terms at the start; `given`: the caller gave the threshold."""
    check_drawable(name, sample)
    if terms.sides is not None:
        terms = replace(terms, sides=tuple(map(harmless_text, terms.sides)))
    try:
        decision = sample.decide(terms)
        thresholds = decision.thresholds
    except TooFewSamplesError as error:
        decision, thresholds = str(error), resolved(sample.values, terms, sample.unmoved)[0]
    if thresholds.size not in (1, len(sample.target)):
        raise ValueError(
            f"`threshold` must be one number for each input in a report, got one for each feature "
            f"{thresholds.shape[1:]}: its slider shows one number"
        )
    each = np.broadcast_to(thresholds.reshape(-1), (len(sample.target),))
    zones = np.broadcast_to(zone_of(np.zeros((len(each), 1)), terms.unit, sample.values), (len(each), 1))[:, 0]
    ones = [sample.of_input(row) for row in range(len(sample.target))]
    warned = [list(map(harmless_text, cautions(one, 0, flips_from))) for one in ones]
    data = {
        **data_of_rows("table", sample, terms, confidence_level, given=given),
        "names": named(ones[0], "bars")["names"],
        "faint": False,
        "rows": [
            {
                "name": harmless_text(name_of_row(sample, row)),
                "explained": classes_of(one),
                "cautions": warned[row],
                "values": named(one, "bars")["values"],
                **samples_of_row(one, terms.split, float(each[row]), float(zones[row]), len(ones)),
            }
            for row, one in enumerate(ones)
        ],
    }
    cells = Cells.of(sample, decision, confidence_level, flips_from) if isinstance(decision, Decision) else None
    classes = None if cells is None else rows_in_words(np.arange(len(ones)), cells).partition("explained: ")[2]
    return Content(
        name,
        "table",
        data,
        [(fact, text) for fact, text in about_of(sample) if fact not in OF_ONE],
        _paragraph(sample, decision, terms),
        _lines(sample, decision, confidence_level, warned),
        classes or None,
        _cautions(sample, decision, warned, flips_from),
        _rows(data, decision, cells),
    )


def data_of_rows(
    kind: str, sample: AttributionSample, terms: Terms, confidence_level: float, *, given: bool
) -> dict[str, Any]:
    """What the page needs to know of all rows together, on these terms at the start."""
    return {
        "kind": kind,
        "noun": sample.noun,
        "sampleNoun": sample.sample_noun,
        "called": terms.sides,
        "calledAt": terms.sides_at,
        "beside": None,
        "ofEffects": sample.of_effects,
        "noisy": is_noisy(sample.provenance),
        "compared": compared_of(sample, kind, confidence_level, None),
        "shape": list(sample.feature_shape),
        "rule": rule_in_words(sample, terms, given=given),
        "split": terms.split,
        "layers": layers_of(sample, confidence_level, np.asarray),
        "certificate": None,
        **deciding(sample, terms),
        "signed": bool(sample.signed),
    }


def samples_of_row(one: AttributionSample, split: int, threshold: float, zone: float, n_rows: int) -> dict[str, Any]:
    """Samples of a row about its own threshold; `zone`: what counts as 0."""
    stops = [] if math.isnan(threshold) else [threshold, 0.0] if one.signed else [threshold]
    if 0.0 not in stops or any(0 < abs(stop) <= zone for stop in stops):
        zone = 0.0
    values = one.values[split:, 0]
    samples = Samples.of(values, Edges.of(values, stops, zone=zone, n_rows=n_rows))
    at = np.flatnonzero(samples.edges == threshold)
    return {
        "edges": packed(samples.edges.astype("<f8")),
        "computed": int(at[0]) if len(at) else None,
        "samples": samples.data,
        "rounding": float(rounding_of(one)[0]),
    }


def _cautions(
    sample: AttributionSample, decision: Decision | str, warned: list[list[str]], flips_from: float
) -> list[str]:
    """What must not be missed of all rows together."""
    found = []
    rows = sum(map(bool, warned))
    if rows:
        share = f"{percent(flips_from, 0)} or more of the noisy copies"
        found.append(f"The noise changed the prediction in {share} of {rows:,} of {counted(len(warned), 'row')}")
    nothing = () if isinstance(decision, str) else decision.nothing
    for said, n in flat_rows(nothing, sample.noun):
        found.append(f"{said[0].upper()}{said[1:]} in {n:,} of {counted(len(warned), 'row')}")
    return found


def _paragraph(sample: AttributionSample, decision: Decision | str, terms: Terms) -> str:
    """What was done and found, in words without statistics, with the settings of the page at its start."""
    noun, (n_rows, size) = sample.noun, (len(sample.target), sample.n_features)
    text = f"{opening(sample, noun)} This was done for each of {n_rows:,} rows."
    if terms.split:
        text += f" The first {terms.split:,} explanations of each row were used for the threshold alone."
    if isinstance(decision, str):
        return f"{text} These are too few explanations to decide anything at the level that was asked for."
    scores = "scores" if sample.pair is None else "differences"
    kinds, threshold = decision.kinds, decision.threshold
    at = "the threshold of its row" if threshold is None else f"{threshold:.3g}"
    called = "said to get" if threshold == 0 and kinds[1].startswith("more ") else "called"
    if terms.correction is None:
        chance = f"chance alone marks it in at most {percent(terms.alpha)} of the cases on each side"
        sure = f"if its {scores} are as likely above as below, {chance}"
    else:
        said = promise(replace(terms, correction=terms.in_effect), size, expected=None, kinds=kinds, noun=noun)
        sure = f"corrected for looking at {counted(size, noun)} of a row at once, and not at many rows: {said}"
    share = {mark: percent(float((decision.marks == mark).mean()), 1) for mark in (1, 0, -1)}
    return (
        f"{text} A {noun} of a row is {called} {kinds[1]} if its {scores} lie above {at} more often than chance "
        f"explains, and {kinds[-1]} if they lie below it more often than chance explains ({sure}). So of all "
        f"{n_rows * size:,} cells of the table {share[1]} are {called} {kinds[1]} and {share[-1]} {kinds[-1]}; "
        f"{share[0]} are undecided. {closing(sample)}"
    )


def _lines(
    sample: AttributionSample, decision: Decision | str, confidence_level: float, warned: list[list[str]]
) -> list[tuple[str, str]]:
    """The figures of all rows together."""
    if isinstance(decision, str):
        return [("significance", decision)]
    noun, size, kinds, terms = sample.noun, sample.n_features, decision.kinds, decision.terms
    rows, scores = counted(len(warned), "row"), Scores.of_all(sample, confidence_level)
    expected = None
    if terms.correction is None and not decision.any_time:
        expected = stats.expected_false_marks(decision.test.n, terms.alpha, size)
    promised = promise(terms, size, expected=expected, kinds=kinds, unproven=False, noun=noun)
    lines = [("rows", f"{rows}, each with {counted(size, noun)}")]
    lines.append(("samples", f"{sample.n_samples} of each {noun} in each row"))
    lines += [
        (kinds[mark], f"{percent(float((decision.marks == mark).mean()), 2)} of all cells") for mark in (1, -1, 0)
    ]
    lines.append(("false marks", f"in each row by itself: {promised} ({terms.level})"))
    too_few = sample.too_few_for(confidence_level)
    of_each = f"each holds its {scores.median} with probability {percent(scores.level, 2)}"
    lines.append(("intervals", of_each if too_few is None else f"none: {too_few}"))
    if scores.ends is not None and scores.vanilla is not None:
        lines.append(
            ("contradicted", about_outside(int(scores.outside.sum()), scores.outside.size, "cell", scores.quantity))
        )
    if sample.flip_rate is not None:
        flips = f"{percent(float(sample.flip_rate.mean()), 1)} of the noisy copies of all rows"
        lines.append(("prediction flips", flips))
    return lines


def _rows(data: dict[str, Any], decision: Decision | str, cells: Cells | None) -> list[tuple[str, ...]]:
    """A line for each row: how many features have each mark, and the strongest; the first holds the headings."""
    if isinstance(decision, str) or cells is None:
        return []
    kinds, names = decision.kinds, data["names"]
    lines: list[tuple[str, ...]] = [("row", "explained", kinds[1], kinds[-1], kinds[0], "strongest", "")]
    for row, marks, weight, why in zip(data["rows"], cells.marks, cells.weight, decision.nothing, strict=True):
        strongest = [place for place in np.argsort(-weight, kind="stable")[:STRONGEST] if weight[place] > 0]
        told = [*row["cautions"], *nothing_stands_out((why,), 0, data["noun"])]
        lines.append((
            row["name"],
            row["explained"] or "",
            *(str(int((marks == mark).sum())) for mark in (1, -1, 0)),
            ", ".join(f"{names[place]} ({SIGNS[int(marks[place])]})" for place in strongest),
            "; ".join(told),
        ))  # fmt: skip
    return lines
