"""The figures a person reads first."""

import math

import numpy as np
import pytest

from metfa import stats
from metfa._base.warnings import DegenerateAttributionsWarning
from metfa.results.sample import AttributionSample


def make(values, **fields):
    values = np.asarray(values)
    n, batch = values.shape[:2]
    defaults = {
        "inputs": np.zeros((batch, 2)),
        "target": (0,) * batch,
        "vanilla": values[0].copy(),
        "scores": None,
        "predictions": None,
        "sample_ids": tuple(range(n)),
        "input_names": tuple(f"id{row}" for row in range(batch)),
    }
    return AttributionSample(values=values, **{**defaults, **fields})


def two_levels(n=20, batch=2, high=(30, 10), n_features=100):
    """Input k has `high[k]` features clearly high and the others clearly low, but two that are undecided."""
    values = np.random.default_rng(0).uniform(0, 0.1, (n, batch, n_features))
    for row in range(batch):
        values[:, row, : high[row]] += 1
    values[::2, :, -2:] += 1
    return make(values)


def test_shares_count_the_marks_and_add_up():
    sample = two_levels()
    for row, summary in enumerate(sample.summary()):
        marks = sample.significance_map()[row]
        assert summary.above == (30, 10)[row] / 100 == np.mean(marks == 1)
        assert summary.below == (68, 88)[row] / 100
        assert summary.undecided == 0.02
        assert summary.above + summary.below + summary.undecided == pytest.approx(1)
        assert summary.threshold == sample.threshold()[row]
        assert (summary.n_samples, summary.n_features, summary.split) == (20, 100, 0)


def test_intervals_carry_the_exact_coverage_and_their_mean_width():
    sample = two_levels()
    interval = sample.confidence_interval(0.99)
    for row, summary in enumerate(sample.summary(confidence_level=0.99)):
        assert summary.confidence_level == stats.median_ranks(20, 0.99).confidence_level
        assert summary.mean_interval_width == pytest.approx((interval.high - interval.low)[row].mean())


def test_the_width_of_half_precision_intervals_does_not_overflow():
    values = np.tile(np.array([-60000, 60000], dtype=np.float16), 5)[:, None, None] * np.ones((1, 1, 60), np.float16)
    assert make(values).summary(0.0)[0].mean_interval_width == 120000


def test_false_marks_are_those_of_the_tested_samples():
    assert two_levels().summary()[0].expected_false_marks == stats.expected_false_marks(20, 0.05, 100)
    few = make(np.random.default_rng(0).uniform(0, 1, (20, 1, 10)) + np.arange(10) / 5)
    assert few.summary(split=5)[0].expected_false_marks == stats.expected_false_marks(15, 0.05, 10)
    assert two_levels().summary(correction="bh")[0].expected_false_marks is None


def test_given_thresholds_are_shown_where_they_are_one_an_input():
    sample = two_levels()
    assert [s.threshold for s in sample.summary(0.5)] == [0.5, 0.5]
    assert [s.threshold for s in sample.summary([0.4, 0.5])] == [0.4, 0.5]
    per_feature = np.full((2, 100), 0.5)
    assert [s.threshold for s in sample.summary(per_feature)] == [None, None]
    assert "(median above the threshold, one for each feature)" in str(sample.summary(per_feature)[0])


def test_the_text_says_what_is_claimed():
    sample = make(
        two_levels().values,
        scores=np.array([[1.0, 0], [1, 0]]),
        predictions=np.array([[0, 1]] * 5 + [[1, 0]] * 15),
    )
    text = str(sample.summary()[0])
    assert "samples:              20 of each feature's score; 100 features" in text
    assert "important:             30.00% (median above the threshold, 0." in text
    assert "unimportant:           68.00% (median below it)" in text
    assert "undecided:              2.00%" in text
    assert "up to 4.1 of 100 features marked falsely on average (4.1%), if every median lay at the threshold" in text
    assert "each holds its median with probability 95.86%, more where scores tie; mean width 0.0618" in text
    assert "prediction flips:     75% of the noisy inputs" in text


@pytest.mark.parametrize(
    ("correction", "claim"),
    [
        ("bonferroni", "no feature is called important falsely, with probability at least 95%; the same for unimp"),
        ("holm", "; both together with at least 90% (alpha 0.05 a side, holm)"),
        ("bh", "of those called important, at most 5% on average are false, under positive dependence; the same for"),
        ("by", "under any dependence; the same for those called unimportant (alpha 0.05 a side, by)"),
    ],
)
def test_corrections_claim_what_they_control(correction, claim):
    assert claim in str(two_levels().summary(correction=correction)[0])


def test_samples_left_out_are_named():
    few = make(np.random.default_rng(0).uniform(0, 1, (20, 1, 10)) + np.arange(10) / 5)
    assert "20 of each feature's score, 5 of them for the threshold alone; 10 features" in str(few.summary(split=5)[0])


@pytest.mark.parametrize(("level", "says"), [(0.95, "95% needs 6"), (0.99, "99% needs 8"), (0.999, "99.9% needs 11")])
def test_too_few_samples_for_an_interval_name_the_number_for_the_level_asked(level, says):
    summary = make(two_levels().values[:5]).summary(confidence_level=level)[0]
    assert (summary.confidence_level, summary.mean_interval_width) == (None, None)
    assert f"none: 5 samples are too few, {says}" in str(summary)


def test_a_level_in_percent_is_refused_by_its_name():
    with pytest.raises(ValueError, match=r"`confidence_level` must lie strictly between 0 and 1, got 95.0"):
        two_levels().summary(confidence_level=95)


def test_constant_maps_say_that_no_threshold_exists():
    with pytest.warns(DegenerateAttributionsWarning, match="no threshold separates") as caught:
        summary = make(np.zeros((20, 1, 60))).summary()[0]
    assert len(caught) == 1
    assert math.isnan(summary.threshold)
    assert summary.undecided == 1
    assert "(median above the threshold, none exists)" in str(summary)
    assert summary.cautions == ("No feature stands out: all scores are equal",)


def test_no_flips_are_claimed_where_they_are_unknown():
    summary = two_levels().summary()[0]
    assert summary.flip_rate is None
    assert "flips" not in str(summary)
