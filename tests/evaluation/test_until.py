"""Studies that sample until a rule is met, and that measure what is decided and certified."""

import dataclasses
import warnings

import numpy as np
import pytest

import metfa
from metfa import Study, evaluate, metrics
from metfa.evaluation import prepare
from metfa.noise import Gaussian, Uniform
from metfa.plot import mstd_ratio, stability_and_faithfulness

WEIGHTS = np.random.default_rng(0).normal(size=(12, 3))
ROWS = np.random.default_rng(1).random((4, 12))
NOISE = Gaussian(0.1)
RULE = metfa.Until(undecided=0.1, max_samples=150)
DECIDED = {"sample_size": {}, "undecided": {}, "interval_width": {}, "certified_radius": {}, "certified_share": {
    "radius": 0.02}}  # fmt: skip


def linear(rows):
    return rows @ WEIGHTS


def sizes(model):
    return size


def size(inputs, target):
    return np.abs(inputs * WEIGHTS[:, target].T)


def contrast(images):
    mean = images.mean(axis=(1, 2, 3))
    return np.stack([5 * mean, -mean], axis=1)


def brightness(model):
    return bright


def bright(inputs, target):
    return inputs.mean(axis=1)


def study(**changes):
    settings = {
        "model": linear, "inputs": ROWS, "explainers": {"sizes": sizes}, "metrics": DECIDED,
        "sampling": {"normal": NOISE}, "n_samples": RULE, "version": "1",
    }  # fmt: skip
    return Study(**{**settings, **changes})


def by_input(result, metric):
    return {row["input"]: row["score"] for row in result.rows if row["metric"] == metric}


def explained(described, index, n_samples):
    x = ROWS[index : index + 1]
    goal = [int(linear(x).argmax())]
    return metfa.explain(size, x, goal, noise=NOISE, n_samples=n_samples, rng=described.seed)


@pytest.mark.slow
def test_every_input_has_the_samples_that_it_takes(tmp_path):
    described = study()
    result = evaluate(described, store=tmp_path)
    found = {name: by_input(result, name) for name in DECIDED}
    for index in range(len(ROWS)):
        sample = explained(described, index, RULE)
        one = {name: found[name][str(index)] for name in DECIDED}
        assert one["sample_size"] == sample.n_samples
        assert one["undecided"] == np.mean(sample.significance_map() == 0)
        assert one["interval_width"] == metrics.interval_width(sample).score[0]
        radii = sample.certified_radius(correction="closed-e-bh")
        assert one["certified_radius"] == pytest.approx(radii.mean(), rel=1e-12)
        assert one["certified_share"] == np.mean(radii >= 0.02)
    assert len(set(found["sample_size"].values())) > 1


def test_maps_are_of_those_samples(tmp_path):
    described = study(metrics={"faithfulness": {"steps": 6}})
    rows = evaluate(described, store=tmp_path).rows
    for index in range(len(ROWS)):
        sample = explained(described, index, RULE)
        for aggregate, map_ in (("mean", sample.mean()), ("smoothed", sample.smoothed())):
            (row,) = [
                row for row in rows
                if (row["input"], row["metric"], row["aggregate"]) == (str(index), "overall", aggregate)
            ]  # fmt: skip
            expected = metrics.overall(linear, ROWS[index : index + 1], map_, list(sample.target), steps=6)
            assert row["score"] == expected.score[0]
            assert row["n_samples"] is None


def test_a_rule_that_its_budget_ends_makes_the_maps_of_a_fixed_number(tmp_path):
    """Under an outer noise too, where each draw is sampled by the rule."""
    asked = {"metrics": {"mstd": {}, "max_sensitivity": {}}, "outer": {"uniform": Uniform(0.1)}, "n_outer": 3}
    never = metfa.Until(undecided=0, threshold=0.5, max_samples=20, first=20)
    by_rule = evaluate(study(n_samples=never, **asked), store=tmp_path / "rule")
    fixed = evaluate(study(n_samples=20, **asked), store=tmp_path / "fixed")
    assert len(by_rule.rows) == 2 * 3 * len(ROWS)
    for one, other in zip(by_rule.rows, fixed.rows, strict=True):
        assert [one[name] for name in ("metric", "aggregate")] == [other[name] for name in ("metric", "aggregate")]
        assert one["score"] == pytest.approx(other["score"], rel=1e-12)


@pytest.mark.slow
def test_measures_of_a_fixed_number_of_samples(tmp_path):
    terms = {"threshold": 0.3, "correction": "bh"}
    asked = {"undecided": terms, "certified_radius": terms, "certified_share": {**terms, "radius": 0.05}}
    described = study(metrics=asked, n_samples=[20, 40], confidence_level=[0.9, 0.95])
    rows = evaluate(described, store=tmp_path).rows
    for n in (20, 40):
        sample = explained(described, 0, n)
        for level in (0.9, 0.95):
            one = {
                row["metric"]: row["score"] for row in rows
                if (row["input"], row["n_samples"], row["confidence_level"]) == ("0", n, level)
            }  # fmt: skip
            radii = sample.certified_radius(0.3, alpha=1 - level, correction="bh")
            marks = sample.significance_map(0.3, alpha=1 - level, correction="bh")
            assert one == {
                "undecided": np.mean(marks == 0),
                "certified_radius": pytest.approx(radii.mean()),
                "certified_share": np.mean(radii >= 0.05),
            }


def test_regions_are_those_that_the_rule_decided(tmp_path):
    pictures = 0.5 + np.random.default_rng(2).random((2, 1, 6, 6))
    described = study(model=contrast, inputs=pictures, explainers={"b": brightness}, metrics={"region_score": {}})
    rows = evaluate(described, store=tmp_path).rows
    x = pictures[:1]
    sample = metfa.explain(bright, x, rng=0, noise=NOISE, n_samples=RULE, predict=contrast)
    important = sample.significance_map() == 1
    assert rows[0]["score"] == metrics.region_score(contrast, x, important, list(sample.target)).score[0]


def test_tables_say_the_rule_and_never_a_number_that_was_not_drawn(tmp_path):
    described = study(metrics={**DECIDED, "mstd": {}}, outer={"normal": NOISE}, n_outer=2)
    result = evaluate(described, store=tmp_path)
    for table in result.tables():
        text = table.to_markdown() + table.to_latex() + table.to_csv()
        assert "N by Until(undecided=0.1, max" in text
        assert "N = " not in text
        assert "None" not in text
    assert (
        "threshold 0 of signed scores, natural break of the medians of others, closed-e-bh correction of each side"
        in result.table("undecided").title
    )
    assert "95%," not in result.table("sample_size").title
    assert result.table("certified_share").title.endswith("radius 0.02, ±: 95% interval by Student's t")
    with pytest.raises(
        ValueError,
        match=r"`n_samples` must be left out, because N is set by Until\(undecided=0\.1, max_samples=150\), got 150",
    ):
        result.table("mstd", n_samples=150)


def test_figures_say_the_rule(tmp_path):
    asked = {"metrics": {"mstd": {}, "faithfulness": {"steps": 6}}, "outer": {"normal": NOISE}, "n_outer": 2}
    result = evaluate(study(confidence_level=[0.8, 0.95], **asked), store=tmp_path)
    with pytest.raises(ValueError, match=r"several `n_samples`, and there is only N by Until\(undecided=0\.1"):
        mstd_ratio(result)
    assert (
        mstd_ratio(result, against="alpha").axes[0].get_xlabel() == "alpha (N by Until(undecided=0.1, max_samples=150))"
    )
    assert stability_and_faithfulness(result).axes[0].lines


def test_the_estimate_is_the_most_that_it_can_come_to(tmp_path):
    most = prepare(study(), store=tmp_path).estimate()
    assert most.at_most
    assert most.explanations == len(ROWS) * (151 + 2)  # two rows alone show that rows are independent
    assert "units: up to about 612 explanations" in str(most)
    assert "up to" not in str(prepare(study(n_samples=20, metrics=["interval_width"]), store=tmp_path).estimate())


def test_another_rule_is_another_study(tmp_path):
    given = metfa.Until(undecided=RULE.undecided, threshold=0.3, max_samples=RULE.max_samples, first=7)
    addresses = {
        unit.address
        for rule in (RULE, dataclasses.replace(RULE, undecided=0.2), given, 150)
        for unit in prepare(study(n_samples=rule, metrics=["interval_width"]), store=tmp_path).units[:1]
    }
    assert len(addresses) == 4


CERTIFIED = {"certified_radius": {}}
FEW = metfa.Until(undecided=0.1, threshold=0.3)
VERY_SURE = {"metrics": ["interval_width"], "confidence_level": 0.99}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_samples": metfa.Until(undecided=0.1, max_seconds=9)}, "leave `max_seconds` out of `Until`"),
        ({"n_samples": [10, RULE]}, "`n_samples` must be an integer, got Until"),
        ({"n_samples": FEW, **VERY_SURE}, "may stop at 6 samples, and interval_width at .*0.99 needs 10: .*first=10"),
        ({"n_samples": dataclasses.replace(FEW, max_samples=8), **VERY_SURE}, "`max_samples` must be .* 10 .*, got 8"),
        ({"confidence_level": 0.99}, r"decides at alpha 0.05, and may stop too soon for undecided .*, alpha=0.01\)"),
        ({"metrics": {"undecided": {"correction": "bh"}}}, "must hold whenever sampling stops"),
        ({"metrics": {"undecided": {"correction": "holmes"}}}, "`correction` must be .* did you mean 'holm'"),
        ({"metrics": {"undecided": {"threshold": "jenks"}}}, "a number or a rule, got the text 'jenks'"),
        ({"metrics": {"undecided": {"threshold": np.full(12, 0.5)}}}, "one number or a rule in a study, got an array"),
        ({"metrics": {"certified_radius": {"threshold": np.inf}}, "n_samples": 20}, "a number or a rule, got inf"),
        ({"metrics": {"undecided": {"split": 0}}}, "`split` of undecided needs a `threshold`"),
        ({"metrics": {"undecided": {"correction": "bonferroni"}}}, "may stop too soon for undecided with 'bonferroni'"),
        ({"metrics": {"rule_met": {}}, "n_samples": 20}, "rule_met needs a rule, as in `n_samples=metfa.Until"),
        ({"n_samples": metfa.Until(undecided=0.1, threshold=np.full(4, 0.5))}, "one number or a rule, got an array of"),
        ({"metrics": {"undecided": {"split": -1}}}, "`split` must be at least 0, got -1"),
        ({"metrics": {"undecided": {"alpha": 0.1}}}, "undecided has no setting 'alpha'; it has threshold"),
        ({"metrics": {"undecided": {}}, "confidence_level": 0.5}, "`alpha` must lie between 0 and 0.5, got 0.5"),
        ({"metrics": {"undecided": {"split": 8}}, "n_samples": 10}, "at least 13 for undecided at .*0.95, got 10"),
        ({"metrics": {"certified_share": {}}}, "certified_share needs radius"),
        ({"metrics": {"certified_share": {"radius": 0}}}, "`radius` must be finite and above 0, got 0"),
        ({"metrics": CERTIFIED, "sampling": {"u": Uniform(0.1)}}, r"needs Gaussian noise .*`sampling\['u'\]` Uni"),
        ({"metrics": CERTIFIED, "n_samples": 20}, "a threshold that does not depend on the samples that are tested"),
        ({"metrics": {"certified_radius": {"split": 5}}}, "`split` of certified_radius needs a `threshold`"),
        ({"metrics": {"certified_radius": {"split": 5}}, "n_samples": 20}, "a threshold that does not depend on"),
        (
            {"metrics": {"certified_radius": {"threshold": 0.1, "correction": "by"}}, "n_samples": 20},
            "takes the corrections None, 'bonferroni', 'bh', 'e-bh', 'closed-e-bh', got 'by'",
        ),
    ],
)  # fmt: skip
def test_what_cannot_work_shows_at_once(changes, message):
    with pytest.raises((ValueError, TypeError), match=message):
        study(**changes)


def test_features_too_many_for_the_samples_are_a_reason_and_cost_no_other_figure(tmp_path):
    """How many features an input has shows only when it is explained."""
    asked = {"undecided": {"correction": "bonferroni"}, "interval_width": {}, "region_score": {}}
    pictures = 0.5 + np.random.default_rng(2).random((2, 1, 6, 6))
    few = metfa.Until(undecided=0.99, threshold=0.9, correction="bonferroni", max_samples=10, first=10)
    for n_samples in (6, few):
        described = study(
            model=contrast, inputs=pictures, explainers={"b": brightness}, metrics=asked, n_samples=n_samples
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = evaluate(described, store=tmp_path)
        rows = {row["metric"]: row for row in result.rows}
        assert rows["undecided"]["reason"] == "so few samples that nothing could become significant"
        assert rows["interval_width"]["score"] > 0
        assert "2 of 2 missing: so few samples that" in result.table("undecided").notes[0]


def test_which_inputs_met_the_rule(tmp_path):
    described = study(metrics={"rule_met": {}, "sample_size": {}, "undecided": {}})
    result = evaluate(described, store=tmp_path)
    met, share = by_input(result, "rule_met"), by_input(result, "undecided")
    assert {name: float(undecided <= 0.1) for name, undecided in share.items()} == met
    assert set(met.values()) == {0.0, 1.0}
    assert set(by_input(result, "sample_size").values()) & {150.0}
    assert result.table("rule_met").cells[0][0][0].mean == np.mean(list(met.values()))


def test_where_smoothed_maps_may_be_means(tmp_path):
    asked = {"metrics": {"faithfulness": {"steps": 6}}}
    note = "at 95% no sample is trimmed for inputs with fewer than 9: there smoothed equals mean"
    for rule, notes in ((FEW, [note]), (metfa.Until(undecided=0.1, threshold=0.3, first=9), [])):
        table = evaluate(study(n_samples=rule, **asked), store=tmp_path).table("faithfulness")
        assert list(table.notes) == notes


@pytest.mark.parametrize(
    ("rule", "written"),
    [
        (metfa.Until(undecided=0.1), "Until(undecided=0.1, max_samples=500)"),
        (
            metfa.Until(undecided=0.1, threshold=0.5, alpha=0.01, correction=None, first=9, max_samples=60),
            "Until(undecided=0.1, threshold=0.5, alpha=0.01, correction=None, max_samples=60, first=9)",
        ),
        (metfa.Until(undecided=0.1, threshold=np.median), "Until(undecided=0.1, threshold=median, max_samples=500)"),
        (metfa.Until(width=0.08), "Until(width=0.08, confidence_level=0.95, max_samples=500)"),
    ],
)
def test_a_rule_is_described_as_it_is_written(rule, written):
    assert rule.described == written
