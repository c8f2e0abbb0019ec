"""Tables of paired differences: figures by hand, pairs by content, tests against SciPy, rates of false alarms."""

import csv
import io
import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.stats

from metfa import Study, evaluate
from metfa._base.warnings import EqualInputsWarning, FailedUnitsWarning
from metfa.evaluation.directions import HIGHER, LOWER, better_of
from metfa.evaluation.paired import ALPHA, minus, verdicts
from metfa.evaluation.tables import Cell
from metfa.evaluation.written import write_tables
from metfa.noise import Gaussian, Uniform
from metfa.stats.student import t_quantile

# Real studies of a small model: each row of the inputs holds the figures of the explainers A, B, ..., the first its map


def linear(rows):
    return rows @ np.eye(rows.shape[1])[:, :2]


@dataclass(frozen=True)
class Column:
    """An explainer whose map of an input has one score, the input's number in a column."""

    column: int

    def __call__(self, model):
        def explainer(inputs, target):
            if (inputs[:, self.column] < -1000).any():
                raise ValueError("no map")
            maps = np.zeros_like(inputs)
            maps[:, 0] = inputs[:, self.column]
            return maps

        return explainer


def first(model, inputs, attributions, target):
    """The figure of a map: its first feature; NaN above 1000."""
    return np.where(attributions[:, 0] > 1000, np.nan, attributions[:, 0])


def second(model, inputs, attributions, target):
    return -attributions[:, 0] * np.arange(len(inputs))


def studied(figures, *, explainers="AB", store="memory://differences", **settings):
    """A study of inputs (n, explainers) with the figure "first" of each."""
    inputs = np.asarray(figures, dtype=float)
    made = {name: Column(place) for place, name in enumerate(explainers)}
    settings = {"metrics": {"first": first}, "aggregates": ["vanilla"], "version": "1", **settings}
    return evaluate(Study(model=linear, inputs=inputs, explainers=made, **settings), store=store)


A = np.array([1.0, 2, 3, 4, 5, 6, 7, 8])
DIFFERENCES = np.array([1.0, 2, 3, 4, 5, 6, 7, -1])


def test_figures_by_hand():
    table = studied(np.stack([A, A + DIFFERENCES], axis=1)).table("first", against="A")
    assert (table.rows, table.columns, table.against) == (("B, vanilla",), ("first",), "A")
    ((((cell,),),)) = table.cells
    assert (cell.mean, cell.n, cell.missing) == (27 / 8, 8, 0)
    assert cell.half_width == pytest.approx(t_quantile(0.95, 7) * DIFFERENCES.std(ddof=1) / math.sqrt(8))
    verdict = cell.verdict
    assert (verdict.above, verdict.below, verdict.ties) == (7, 1, 0)
    assert verdict.pvalue == verdict.adjusted == 2 * (1 + 8) / 2**8
    assert (verdict.mark, str(verdict), verdict.needed) == (0, "not shown to differ", None)
    assert str(cell) == f"+3.3750 ± {cell.half_width:.4f}, not shown to differ (p = 0.07)"
    assert table.title == (
        "first minus that of A (8 inputs), ±: 95% interval by Student's t, p: exact sign test of the median "
        "difference, corrected by holm over 1 difference (the intervals are not)"
    )
    assert table.notes == ("not shown to differ does not mean equal: the interval says how large a difference may be",)
    other = studied(np.stack([A, A + DIFFERENCES], axis=1)).table("first", against="B")
    assert (other.rows, other.cells[0][0][0].mean) == (("A, vanilla",), -27 / 8)
    assert other.cells[0][0][0].verdict.pvalue == verdict.pvalue


@pytest.mark.parametrize(("explainers", "more"), [("AB", r"an explainer \(A, B\), "), ("A", "")])
@pytest.mark.parametrize("against", ["vanilla", "mean", "smoothed"])
def test_a_study_of_one_map_says_so(against, explainers, more):
    evaluation = studied(np.arange(6.0).reshape(3, 2)[:, : len(explainers)], explainers=explainers)
    said = f"`against` {against!r}: the study has vanilla maps alone, .*, or give {more}another Evaluation$"
    with pytest.raises(ValueError, match=said):
        evaluation.table("first", against=against)


def test_marks_and_their_words():
    up = studied(np.stack([A, A + 1], axis=1)).table("first", against="A").cells[0][0][0]
    assert (up.verdict.mark, str(up.verdict), up.verdict.pvalue) == (1, "higher", 2 / 2**8)
    assert str(up) == "+1.0000 ± 0.0000, higher (p = 0.0078)"
    down = studied(np.stack([A, A - 1], axis=1)).table("first", against="A").cells[0][0][0]
    assert (down.verdict.mark, str(down)) == (-1, "-1.0000 ± 0.0000, lower (p = 0.0078)")


def test_all_ties():
    table = studied(np.stack([A, A], axis=1)).table("first", against="A")
    cell = table.cells[0][0][0]
    assert (cell.verdict.ties, cell.verdict.pvalue, cell.verdict.mark) == (8, 1.0, 0)
    assert str(cell) == "0.0000 ± 0.0000, not shown to differ (p = 1, 8 ties)"
    one = studied(np.stack([A, A + (A == 3)], axis=1)).table("first", against="A").cells[0][0][0]
    assert (one.verdict.above, one.verdict.ties, one.verdict.pvalue) == (1, 7, 1.0)  # ties speak for neither side
    nearly = studied(np.stack([A, A * (1 + 1e-9)], axis=1)).table("first", against="A").cells[0][0][0]
    assert (nearly.verdict.ties, nearly.mean) == (8, 0.0)  # rounding is no difference


def test_one_input_and_the_least_number():
    table = studied([[1.0, 2.0]]).table("first", against="A")
    assert str(table.cells[0][0][0]) == "+1.0000, too few inputs, at least 6 needed (p = 1)"
    assert "±" not in table.title
    assert table.notes == ("not shown to differ does not mean equal",)  # no interval says how large
    five = studied(np.stack([A, A + 1], axis=1)[:5]).table("first", against="A").cells[0][0][0]
    assert five.verdict.needed == 6
    assert studied(np.stack([A, A + 1], axis=1)[:6]).table("first", against="A").cells[0][0][0].verdict.mark == 1


@pytest.mark.parametrize(("correction", "needed"), [("holm", 8), ("bonferroni", 8), ("none", 6), ("bh", 8), ("by", 9)])
def test_the_least_number_follows_the_correction(correction, needed):
    """Five differences to A; only B is one that n inputs could show."""
    rng = np.random.default_rng(0)
    figures = rng.normal(size=(12, 6))
    for n in range(2, 12):
        table = studied(figures[:n], explainers="ABCDEF").table("first", against="A", correction=correction)
        cells = [line[0][0] for line in table.cells]
        best = np.array([cell.verdict.pvalue for cell in cells])
        for place, cell in enumerate(cells):
            if cell.verdict.needed is not None:
                for size in (cell.verdict.needed - 1, cell.verdict.needed):
                    best[place] = 2 * 0.5**size
                    assert (adjusted(best, correction)[place] <= ALPHA) == (size == cell.verdict.needed)
                best[place] = cell.verdict.pvalue
    first_step = np.ones(5)
    first_step[0] = 2 * 0.5**needed
    assert (
        adjusted(first_step, correction)[0]
        <= ALPHA
        < adjusted(np.array([2 * first_step[0], 1, 1, 1, 1]), correction)[0]
    )


def adjusted(pvalues, correction):
    """By the definitions: closed tests over all subsets, and SciPy for false discovery rates."""
    m = len(pvalues)
    if correction in ("bh", "by"):
        return scipy.stats.false_discovery_control(pvalues, method=correction)
    if correction == "none":
        return pvalues
    if correction == "bonferroni":
        return np.minimum(1, m * pvalues)
    found = np.zeros(m)
    for size in range(1, m + 1):
        for some in itertools.combinations(range(m), size):
            local = min(1, size * min(pvalues[i] for i in some))
            for i in some:
                found[i] = max(found[i], local)
    return found


@pytest.mark.parametrize("correction", ["holm", "bonferroni", "bh", "by", "none", None])
def test_the_correction_over_the_whole_table(correction):
    rng = np.random.default_rng(1)
    base = rng.normal(size=(17, 1))
    shifts = np.array([0, 0.3, 0.6, 1.0, 2.0, 0.0])
    figures = np.round(base + shifts + 0.5 * rng.normal(size=(17, 6)), 1)  # some ties
    result = studied(figures, explainers="ABCDEF", metrics={"first": first, "second": second})
    table = result.table("first", against="A", correction=correction)
    differences = figures[:, 1:] - figures[:, :1]
    differences[np.abs(differences) < 1e-9] = 0
    counts = [max((d > 0).sum(), (d < 0).sum()) for d in differences.T]
    pvalues = np.array([min(1, 2 * scipy.stats.binom.sf(k - 1, 17, 0.5)) for k in counts])
    cells = [line[0][0] for line in table.cells]
    np.testing.assert_allclose([cell.verdict.pvalue for cell in cells], pvalues)
    expected = adjusted(pvalues, correction or "none")
    np.testing.assert_allclose([cell.verdict.adjusted for cell in cells], expected)
    assert [cell.verdict.mark for cell in cells] == [
        int(np.sign((d > 0).sum() - (d < 0).sum())) * (p <= 0.05) for d, p in zip(differences.T, expected, strict=True)
    ]
    assert len({cell.verdict.mark for cell in cells}) == 2
    named = f"corrected by {correction} over 5 differences" if correction not in ("none", None) else "not corrected"
    assert named in table.title


# Pairs


def test_pairs_are_by_content_and_not_by_place():
    """Two studies of other explainers on inputs in another order, of which two are not in the other."""
    rng = np.random.default_rng(2)
    inputs = rng.normal(size=(9, 2))
    order = rng.permutation(8)
    this, other = inputs[:8][order], np.concatenate([inputs[1:8], inputs[8:]])
    after = studied(this, explainers="A")
    before = evaluate(
        replace(after.study, inputs=other, explainers={"A": Column(1)}), store="memory://differences"
    )  # fmt: skip
    table = after.table("first", against=before)
    expected = [a - b for row in order if row > 0 for a, b in [inputs[row]]]
    cell = table.cells[0][0][0]
    assert cell.n == 7
    assert cell.mean == pytest.approx(np.mean(expected))
    assert (cell.verdict.above, cell.verdict.below) == ((np.array(expected) > 0).sum(), (np.array(expected) < 0).sum())
    assert table.title.startswith("first minus that of the other study (8 inputs)")
    assert table.notes[:2] == (
        "A: 1 of 8 missing: not among the inputs and targets of the other study",
        "1 input of the other study left out: not in this one",
    )
    assert (
        "each study explains the class that its own model predicts: give `targets` to explain the same" in table.notes
    )


def test_two_models():
    inputs = np.random.default_rng(3).normal(size=(8, 3))
    study = Study(
        model=linear, inputs=inputs, explainers={"A": Column(0), "B": Column(1)}, metrics={"first": first},
        aggregates=["vanilla"], version="1", targets=[0] * 8,
    )  # fmt: skip
    before, after = (evaluate(replace(study, version=version), store="memory://models") for version in "12")
    table = after.table("first", against=before)
    assert table.rows == ("A, vanilla", "B, vanilla")
    assert all(line[0][0].verdict.ties == 8 for line in table.cells)
    assert len(table.notes) == 1
    only = evaluate(replace(study, explainers={"B": Column(1), "C": Column(0)}), store="memory://models")
    table = only.table("first", against=before)
    assert table.rows == ("B, vanilla",)
    assert "not in the other study: C" in table.notes


@pytest.mark.filterwarnings("always::metfa._base.warnings.FailedUnitsWarning")
def test_missing_figures_are_counted_and_named():
    figures = np.stack([A, A + 1, A + 2], axis=1)
    figures[0, 0] = 2000  # A has no figure
    figures[1, 1] = 2000  # B has none
    figures[2, 0] = -2000  # A fails
    figures[3, 1] = -2000  # B fails
    with pytest.warns(FailedUnitsWarning):
        table = studied(figures, explainers="ABC").table("first", against="A")
    of_b, of_c = (line[0][0] for line in table.cells)
    assert (of_b.n, of_b.missing, of_b.mean) == (4, 4, 1)
    assert (of_c.n, of_c.missing, of_c.mean) == (6, 2, 2)
    assert str(of_b) == "+1.0000 ± 0.0000 (4 of 8 missing), too few inputs, at least 7 needed (p = 0.12)"
    assert str(of_c) == "+2.0000 ± 0.0000 (2 of 8 missing), too few inputs, at least 7 needed (p = 0.062)"
    assert table.notes == (
        "B: 2 of 8 missing: not finite (of A) (1), not finite (1)",
        "C: 1 of 8 missing: not finite (of A)",
        "B: 1 of 8 inputs failed, the first with ValueError: no map",
        "A: 1 of 8 inputs failed, the first with ValueError: no map",
        "not shown to differ does not mean equal: the interval says how large a difference may be",
    )


@pytest.mark.filterwarnings("always::metfa._base.warnings.FailedUnitsWarning")
def test_a_table_without_any_pair():
    with pytest.warns(FailedUnitsWarning):
        table = studied([[-2000, 1.0], [-2000, 2.0]]).table("first", against="A")
    assert str(table.cells[0][0][0]) == "–"
    assert table.cells[0][0][0].verdict is None
    assert not table.holds_differences
    assert "corrected by holm over 0 differences" in table.title
    (line,) = csv.DictReader(io.StringIO(table.to_csv()))
    assert (line["verdict"], line["mark"], line["n"]) == ("", "", "0")


def test_equal_inputs_count_once():
    figures = np.stack([A, A + 1], axis=1)[[0, 1, 2, 3, 3, 3, 3, 3]]
    with pytest.warns(EqualInputsWarning):
        table = studied(figures).table("first", against="A")
    assert table.cells[0][0][0].n == 4
    assert table.notes[0] == "4 inputs equal to others: each content counts once"
    twice = studied(np.stack([A, A + 1], axis=1)[[0, 1, 1]], targets=[0, 0, 1]).table("first", against="A")
    assert twice.cells[0][0][0].n == 3
    assert twice.notes[0] == "1 input with the content of others and another target: p takes them for independent"


def test_a_mean_on_the_other_side_is_said():
    figures = np.stack([A, A + np.array([1, 1, 1, 1, 1, 1, 1, -100])], axis=1)
    figures = np.concatenate([figures, figures[:7] + 10])
    table = studied(figures).table("first", against="A")
    assert table.cells[0][0][0].verdict.mark == 1
    assert table.notes == (
        "B, vanilla, first: the median difference is above 0 and the mean is not: a few inputs weigh much",
    )


# Directions, and the columns of each kind of measure


def test_every_measure_of_metfa_has_one_direction():
    from metfa.evaluation._measures import MEASURES

    made = {name for measure in MEASURES.values() for name in measure.makes or (measure.name,)}
    assert made <= HIGHER | LOWER
    assert not HIGHER & LOWER
    assert [better_of(name, same_units=True) for name in ("insertion", "deletion", "mstd", "own")] == [
        "higher", "lower", "lower", None
    ]  # fmt: skip
    assert better_of("mstd", same_units=False) is better_of("interval_width", same_units=False) is None


def sizes(model):
    return lambda inputs, target: np.abs(inputs) + 1


def small(model):
    return lambda inputs, target: (np.abs(inputs) + 1) / 1000


def flat(model):
    return lambda inputs, target: np.ones_like(inputs)


def against_order(model):
    return lambda inputs, target: 1 / (np.abs(inputs) + 1)


def full(explainers, inputs=12, **settings):
    described = {
        "model": linear, "inputs": np.random.default_rng(0).normal(size=(inputs, 4)) + 2, "explainers": explainers,
        "sampling": {"u": Uniform(0.1)}, "outer": {"n": Gaussian(0.1)}, "n_outer": 2, "n_samples": 6, "version": "1",
        "metrics": ["mstd"],
    }  # fmt: skip
    return evaluate(Study(**{**described, **settings}), store="memory://full")


WITHOUT_UNITS = ("over level", "rescaled", "correlation")


def of_cells(table):
    return {
        (row, column): cell
        for row, line in zip(table.rows, table.cells, strict=True)
        for column, (cell,) in zip(table.columns, line, strict=True)
    }


@pytest.mark.slow
def test_mstd_of_explainers_is_never_better_by_its_units():
    table = full({"sizes": sizes, "small": small}).table("mstd", against="sizes")
    assert table.columns == ("n", *WITHOUT_UNITS)
    cells = of_cells(table)
    for row in table.rows:
        assert str(cells[row, "n"].verdict) == "lower"  # a thousandth
        for column in WITHOUT_UNITS:
            assert str(cells[row, column].verdict) == "not shown to differ"
            assert cells[row, column].verdict.ties == 12
    assert "better: lower over level, lower rescaled, higher correlation, p: " in table.title
    outer = {"n": Gaussian(0.1), "average": Uniform(0.3), "own": None}  # a name of a column of ours, and no noise
    both = full({"sizes": sizes, "against_order": against_order}, outer=outer)
    table = both.table("mstd", against="sizes")
    assert table.columns == ("n", "average", "own", "average", *WITHOUT_UNITS)
    frame = both.to_dataframe().query("aggregate == 'vanilla' and outer != 'own'")
    for place, (column, key) in enumerate(
        [("n", "score"), ("average", "score"), *((name, name.replace(" ", "_")) for name in WITHOUT_UNITS)]
    ):
        some = frame[frame.outer == column] if place < 2 else frame
        by = some.groupby(["explainer", "input"])[key].mean().unstack(0)
        cell = table.cells[0][place if place < 2 else place + 2][0]
        assert cell.mean == pytest.approx((by["against_order"] - by["sizes"]).mean(), rel=1e-9), column
    assert [line[2][0].n for line in table.cells] == [0, 12, 12]  # the vanilla map has no randomness of its own


@pytest.mark.slow
def test_mstd_of_maps_is_better_when_lower():
    table = full({"sizes": sizes}, n_samples=9).table("mstd", against="vanilla")
    assert table.rows == ("sizes, mean, P = u", "sizes, smoothed, P = u")
    assert table.columns == ("n", *WITHOUT_UNITS)
    assert "better: lower mstd, lower over level, lower rescaled, higher correlation, p: " in table.title
    assert any("smoothing makes the range smaller: see rescaled and correlation" in note for note in table.notes)
    frame = full({"sizes": sizes}, n_samples=9).to_dataframe()
    by_map = frame.pivot_table(index="input", columns="aggregate", values="score")
    for row, name in zip(table.rows, ("mean", "smoothed"), strict=True):
        cell = of_cells(table)[row, "n"]
        assert cell.mean == pytest.approx((by_map[name] - by_map["vanilla"]).mean())
        assert cell.verdict.above == (by_map[name] > by_map["vanilla"]).sum()
    less = full({"sizes": sizes}, n_samples=9).table("mstd", against="mean")
    assert less.rows == ("sizes, smoothed, P = u",)


@pytest.mark.slow
def test_levels_that_are_not_above_0_are_named():
    def signed(model):
        return lambda inputs, target: np.abs(inputs) - 9

    table = full({"sizes": sizes, "signed": signed}).table("mstd", against="sizes")
    assert of_cells(table)["signed, vanilla", "over level"].n == 0
    assert "signed, smoothed, P = u, over level: 12 of 12 missing: a level that is not above 0" in " ".join(table.notes)


@pytest.mark.slow
def test_constant_maps_are_said():
    def sometimes(model):
        return lambda inputs, target: np.where(inputs[:, :1] > 2, 1, np.abs(inputs))

    notes = full({"sizes": sizes, "sometimes": sometimes}).table("mstd", against="sizes").notes
    assert any("of the maps are constant: perfectly stable and worthless" in note for note in notes)
    table = full({"sizes": sizes, "flat": flat}).table("mstd", against="sizes")
    assert {str(cell) for cell in of_cells(table).values()} == {"–"}


@pytest.mark.slow
def test_better_and_worse_faithfulness():
    result = full({"sizes": sizes, "against_order": against_order}, metrics={"faithfulness": {"steps": 4}})
    table = result.table("faithfulness", against="against_order", correction="none")
    frame = result.to_dataframe().query("aggregate == 'vanilla'")
    cells = of_cells(table)
    seen = set()
    for metric, up in (("insertion", True), ("deletion", False), ("overall", True)):
        by = frame[frame.metric == metric].pivot_table(index="input", columns="explainer", values="score")
        difference = by["sizes"] - by["against_order"]
        verdict = cells["sizes, vanilla", metric].verdict
        assert (verdict.above, verdict.below) == ((difference > 1e-9).sum(), (difference < -1e-9).sum())
        if verdict.mark:
            assert str(verdict) == ("better" if (verdict.mark > 0) == up else "worse")
            seen.add(metric)
    assert seen
    assert "better: higher insertion, lower deletion, higher overall" in table.title
    assert result.table("insertion", against="against_order").columns == ("insertion",)


def test_measures_of_samples_and_of_outer_noise():
    metrics = {
        "interval_width": {}, "undecided": {"threshold": 2.5}, "sample_size": {}, "top_k_overlap": {"k": 2},
        "max_sensitivity": {}, "robust_faithfulness": {"steps": 2}, "prediction_agreement": {},
    }  # fmt: skip
    outer = {"n": Gaussian(0.1), "o": Gaussian(0.3)}
    result = full({"sizes": sizes, "small": small}, inputs=4, metrics=metrics, outer=outer, aggregates=["vanilla"])
    tables = {table.title.partition(" minus")[0]: table for table in result.tables(against="sizes")}
    assert list(tables) == [
        "interval width", "undecided", "sample size", "top k overlap", "max sensitivity", "robust faithfulness"
    ]  # fmt: skip
    assert tables["interval width"].columns == ("P = u",)
    assert "better" not in tables["interval width"].title  # in the units of the maps
    assert "better: lower" in tables["sample size"].title
    assert tables["undecided"].title.startswith(
        "undecided minus that of sizes (4 inputs), N = 6, 95% (96.9% reached), threshold 2.5, no correction, "
    )
    assert "better: higher" in tables["top k overlap"].title
    assert tables["max sensitivity"].columns == ("n", "o", "average")
    assert tables["robust faithfulness"].columns == ("RI, O = n", "RI, O = o", "RD, O = n", "RD, O = o",
                                                     "RO, O = n", "RO, O = o")  # fmt: skip
    with pytest.raises(ValueError, match="prediction_agreement is of the model, which is the same for all explainers"):
        result.table("prediction_agreement", against="sizes")


# Refusals


REFUSED = [
    ({"against": "C"}, "`against` must be an explainer \\(A, B\\), a map \\(vanilla\\), another Evaluation, got 'C'"),
    ({"against": "smoothed"}, "`against` must be an explainer \\(A, B\\), a map \\(vanilla\\), another Evaluation"),
    ({"against": 3}, "`against` must be an explainer \\(A, B\\), a map \\(vanilla\\), another Evaluation, got 3"),
    ({"against": "A", "explainer": "A"}, "`against` 'A' is the `explainer` of the table: name another one"),
    ({"against": "A", "correction": "e-bh"}, "`correction` 'e-bh' is for sampling that may stop at any time"),
    ({"against": "A", "correction": "holmes"}, "`correction` must be None or one of .*, did you mean 'holm'"),
    ({"correction": "bh"}, "`correction` is of the tests of differences: give `against` too, got 'bh'"),
]


@pytest.mark.parametrize(("settings", "message"), REFUSED)
def test_refusals(settings, message):
    inputs = np.random.default_rng(0).normal(size=(3, 2))
    result = studied(inputs, sampling={"u": Uniform(0.1)}, aggregates=["vanilla", "smoothed"], n_samples=6)
    with pytest.raises(ValueError, match=message):
        result.table("first", **settings)


def test_what_cannot_be_compared():
    alone = studied([[1.0, 2.0]], explainers="A")
    with pytest.raises(ValueError, match="`against` 'A' is the only explainer of the study: there is none to compare"):
        alone.table("first", against="A")
    with pytest.raises(ValueError, match="`against` is the evaluation itself"):
        alone.table("first", against=alone)
    named = studied(
        [[1.0, 2.0]], explainers=["mean", "b"], aggregates=["vanilla", "mean"], sampling={"u": Uniform(0.1)}
    )
    with pytest.raises(ValueError, match="'mean' is the name of an explainer and of a map: rename the explainer"):
        named.table("first", against="mean")
    others = studied([[1.0, 2.0]], explainers="C")
    with pytest.raises(ValueError, match="the other study has none of the explainers A"):
        alone.table("first", against=others)
    with pytest.raises(ValueError, match="the study has no 'first'"):
        alone.table("first", against=studied([[1.0, 2.0]], explainers="A", metrics={"second": second}))
    widths = full({"a": sizes, "b": small}, inputs=2, metrics=["interval_width"])
    with pytest.raises(ValueError, match="`against` 'vanilla' compares maps, but interval_width measures samples"):
        widths.table("interval_width", against="vanilla")


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"metrics": {"mstd": {}, "top_k_overlap": {"k": 3}}}, "`metrics` of top_k_overlap"),
        ({"n_outer": 3}, "`n_outer`"),
        ({"n_samples": 7}, "`n_samples`"),
        ({"outer": {"n": Gaussian(0.2)}}, "`outer`"),
        ({"sampling": {"u": Uniform(0.2)}}, "`sampling`"),
        ({"aggregates": ["vanilla"]}, "`aggregates`"),
        ({"confidence_level": 0.9}, "`confidence_level`"),
    ],
)
def test_other_studies_that_measure_something_else(changes, name):
    metrics = {"mstd": {}, "top_k_overlap": {"k": 2}}
    result = full({"a": sizes}, inputs=1, metrics=metrics)
    other = full({"a": sizes}, inputs=1, **{"metrics": metrics, **changes})
    with pytest.raises(ValueError, match=f"the other study has other {name}, so a difference could be theirs"):
        result.table("top_k_overlap", against=other)


# Rates


@pytest.mark.slow
def test_an_explainer_against_itself_with_another_seed_rarely_alarms():
    """Figures of one skewed law, six columns that depend on each other: at most 5 % of the tables with any mark."""
    rng = np.random.default_rng(5)
    tables, alarms, uncorrected = 1000, 0, 0
    for table in range(tables):
        image = rng.normal(size=(14, 1))
        shared, own = rng.normal(size=(2, 14, 1)), rng.normal(size=(2, 14, 6))
        one, other = np.exp(image + 0.5 * shared + own)
        columns = [list(column) for column in (one - other).T]
        alarms += any(found.mark for found in verdicts(columns, [None] * 6, "holm"))
        if table < 200:
            uncorrected += any(found.mark for found in verdicts(columns, [None] * 6, None))
    assert alarms / tables <= 0.05
    assert uncorrected / 200 > 0.03  # it can fail
    assert uncorrected / 200 > 2 * alarms / tables


@pytest.mark.slow
def test_a_planted_difference_is_found():
    rng = np.random.default_rng(6)
    found = 0
    for _ in range(200):
        columns = [list(rng.normal(size=20)) for _ in range(5)] + [list(rng.normal(loc=1.5, size=20))]
        marks = [one.mark for one in verdicts(columns, [None] * 6, "holm")]
        found += marks[5]
        assert -1 not in marks[5:]
    assert found > 170


def test_no_figures_and_reasons():
    assert verdicts([["a", "b"], []], [None, None], "holm") == [None, None]
    found = minus({1: 2.0, 2: "dark", 3: 1.0, 4: 1.0, 5: "failed"}, {1: 1.0, 2: 1.0, 3: "grey", 5: 1.0}, "X", "gone")
    assert found == [1.0, "dark", "grey (of X)", "gone", "failed"]


# Texts


HOSTILE = r"a|b & c\d_e%f$g#h{i}~^<j>" + "\nk"


def test_every_form_of_a_table(tmp_path):
    figures = np.stack([A, A + 1, A], axis=1)
    result = studied(figures, explainers=["A", HOSTILE, "=1+1"])
    table = result.table("first", against="A")
    for text in (str(table), table.to_markdown(), table.to_latex()):
        assert "higher (p = 0.016)" in text
        assert "not shown to differ (p = 1, 8 ties)" in text
        assert "no difference" not in text
        assert "the same" not in text
    lines = table.to_markdown().splitlines()
    assert all(line.replace("\\\\", "").replace("\\|", "").count("|") == 3 for line in lines[2:6])
    assert r"$+1.0000 \pm 0.0000$, higher (p = 0.016)" in table.to_latex()
    read = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert [(line["mark"], line["verdict"], line["ties"]) for line in read] == [
        ("1", "higher", "0"), ("0", "not shown to differ", "8")
    ]  # fmt: skip
    assert float(read[0]["pvalue"]) == 2 / 2**8
    assert float(read[0]["adjusted_pvalue"]) == 4 / 2**8
    folder = write_tables(result, tmp_path / "tables", against="A", correction="bonferroni")
    assert {path.name for path in folder.iterdir()} == {
        "rows.csv", "tables.md", "tables.tex", "table-1.csv", "differences.md", "differences.tex", "difference-1.csv"
    }  # fmt: skip
    assert "corrected by bonferroni over 2 differences" in (folder / "differences.md").read_text()
    assert "minus" not in (folder / "tables.md").read_text()
    with pytest.raises(ValueError, match="`correction` is of the tests of differences"):
        write_tables(result, tmp_path / "others", correction="bh")
    with pytest.raises(ValueError, match="`correction` is of the tests of differences"):
        result.tables(correction="bh")


def test_a_cell_of_means_has_no_sign_and_no_verdict():
    assert str(Cell.of([1.0, 2.0])) == "1.5000 ± 6.3531"
