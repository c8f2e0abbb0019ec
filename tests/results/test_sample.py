"""A sample's answers against slow second implementations, and what it refuses."""

import math
import pickle
import re
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

import metfa
from metfa import stats
from metfa._base.warnings import DegenerateAttributionsWarning, SignedAttributionsWarning
from metfa.results.decisions import TooFewSamplesError
from metfa.results.sample import AttributionSample

SHAPES = [(3,), (4, 5), (2, 3, 4)]


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
        "provenance": {"explainer": "E", "noise": "N", "rng": "0x1", "streams": "s"},
    }
    return AttributionSample(values=values, **{**defaults, **fields})


def scores(n, batch, shape, seed=0, dtype=np.float64):
    """Positive scores whose features differ, with some ties."""
    rng = np.random.default_rng(seed)
    level = rng.choice([0.2, 0.5, 0.8], size=(1, batch, *shape))
    return np.round(np.abs(level + rng.normal(0, 0.15, (n, batch, *shape))), 2).astype(dtype)


def features(sample):
    """Every (row, feature index, its samples as a list of floats)."""
    for row in range(sample.values.shape[1]):
        for feature in np.ndindex(sample.feature_shape):
            yield row, feature, [float(v) for v in sample.values[(slice(None), row, *feature)]]


def slow_tails(samples, height):
    """P(Bin >= above) and P(Bin >= below), exactly."""
    n = len(samples)
    counts = sum(v > height for v in samples), sum(v < height for v in samples)
    return [Fraction(sum(math.comb(n, k) for k in range(count, n + 1)), 2**n) for count in counts]


def slow_marks(sample, height_of, alpha):
    marks = np.zeros((sample.values.shape[1], *sample.feature_shape), dtype=int)
    for row, feature, samples in features(sample):
        above, below = slow_tails(samples, height_of(row, feature))
        marks[(row, *feature)] = (above <= alpha) - (below <= alpha)
    return marks


# The maps


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_mean_median_and_deviation_are_those_of_plain_python(n, batch, shape):
    sample = make(scores(n, batch, shape))
    for row, feature, samples in features(sample):
        at = (row, *feature)
        assert sample.mean()[at] == pytest.approx(math.fsum(samples) / n, rel=1e-14)
        ordered = sorted(samples)
        assert sample.median()[at] == pytest.approx((ordered[(n - 1) // 2] + ordered[n // 2]) / 2, rel=1e-14)
        if n > 1:
            centre = math.fsum(samples) / n
            deviation = math.sqrt(math.fsum((v - centre) ** 2 for v in samples) / (n - 1))
            assert sample.std()[at] == pytest.approx(deviation, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(("n", "level"), [(6, 0.95), (10, 0.95), (20, 0.99), (31, 0.5)])
def test_interval_and_smoothed_map_are_order_statistics(n, level, batch, shape):
    sample = make(scores(n, batch, shape))
    interval, smoothed = sample.confidence_interval(level), sample.smoothed(level)
    k = max(k for k in range(n) if scipy.stats.binom.cdf(k, n, 0.5) <= (1 - level) / 2 + 1e-15)
    assert interval.confidence_level == pytest.approx(1 - 2 * scipy.stats.binom.cdf(k, n, 0.5), abs=1e-12)
    for row, feature, samples in features(sample):
        ordered = sorted(samples)
        at = (row, *feature)
        assert interval.low[at] == ordered[k]
        assert interval.high[at] == ordered[n - 1 - k]
        assert smoothed[at] == pytest.approx(sum(ordered[k : n - k]) / (n - 2 * k), rel=1e-12)


def test_other_ranks_reproduce_the_papers_text():
    sample = make(scores(10, 2, (3,)))
    ranks = stats.paper_ranks(10)
    ordered = np.sort(sample.values, axis=0)
    np.testing.assert_allclose(sample.smoothed(ranks=ranks), ordered[1:8].mean(axis=0))
    np.testing.assert_array_equal(sample.confidence_interval(ranks=ranks).low, ordered[0])


def test_interval_of_the_mean_is_the_jackknifes_and_the_central_limit_theorems():
    sample = make(scores(12, 2, (4,)))
    interval = sample.mean_interval(0.9)
    z = scipy.stats.norm.ppf(0.95)
    for row, feature, samples in features(sample):
        left_out = [np.mean(samples[:i] + samples[i + 1 :]) for i in range(12)]
        error = math.sqrt(11 / 12 * sum((m - np.mean(left_out)) ** 2 for m in left_out))
        at = (row, *feature)
        assert interval.low[at] == pytest.approx(np.mean(samples) - z * error)
        assert interval.high[at] == pytest.approx(np.mean(samples) + z * error)


def test_a_constant_stays_exactly_what_it_is():
    sample = make(np.full((7, 1, 3), 0.1))
    assert (sample.mean() == 0.1).all()
    assert (sample.std() == 0).all()
    assert (sample.smoothed() == 0.1).all()


def test_small_deviations_about_a_large_mean_are_not_lost_to_float32():
    values = (1000 + np.arange(8) / 1024).reshape(8, 1, 1).astype(np.float32)
    assert make(values).std()[0, 0] == pytest.approx(np.std(values.astype(np.float64), ddof=1), rel=1e-6)


def test_half_precision_is_averaged_in_float32_and_counted_exactly():
    values = scores(20, 2, (60,), dtype=np.float16)
    half, single = make(values), make(values.astype(np.float64))
    for name in ("mean", "std", "median", "smoothed"):
        assert getattr(half, name)().dtype == np.float32
        np.testing.assert_allclose(getattr(half, name)(), getattr(single, name)(), rtol=1e-5)
    assert half.confidence_interval().low.dtype == np.float16
    np.testing.assert_array_equal(half.threshold(), single.threshold())
    np.testing.assert_array_equal(half.significance_map(), single.significance_map())
    huge = make(np.full((6, 1, 2), 60000, dtype=np.float16))
    assert (huge.mean() == 60000).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_the_order_of_the_samples_changes_nothing(shape):  # bugs.md 33
    values = scores(15, 2, shape, seed=1)
    a, b = make(values), make(np.random.default_rng(1).permutation(values))
    for name in ("median", "smoothed", "threshold"):
        np.testing.assert_array_equal(getattr(a, name)(), getattr(b, name)())
    np.testing.assert_allclose(a.mean(), b.mean(), rtol=1e-14)
    np.testing.assert_array_equal(a.significance_map(split=0), b.significance_map(split=0))
    np.testing.assert_array_equal(a.confidence_interval().high, b.confidence_interval().high)


# The test


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("shape", SHAPES)
def test_pvalues_are_scipys_sign_test(shape, alternative):
    sample = make(scores(13, 2, shape))
    result = sample.test(0.5, alternative=alternative)
    for row, feature, samples in features(sample):
        above, below = sum(v > 0.5 for v in samples), sum(v < 0.5 for v in samples)
        one_sided = {
            side: scipy.stats.binomtest(count, 13, 0.5, alternative="greater").pvalue
            for side, count in (("greater", above), ("less", below))
        }
        both = min(1, 2 * min(one_sided.values()))
        at = (row, *feature)
        assert result.pvalue[at] == pytest.approx({**one_sided, "two-sided": both}[alternative], rel=1e-12)
        assert (result.above[at], result.below[at]) == (above, below)
        assert result.sign[at] == (above > below) - (above < below)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("batch", [1, 3])
def test_thresholds_come_as_number_one_an_input_one_a_feature_or_rule(shape, batch):
    values = scores(12, batch, shape)
    sample = make(values)
    per_input = np.linspace(0.3, 0.6, batch)
    per_feature = np.random.default_rng(2).uniform(0.2, 0.8, (batch, *shape))

    def rule(own):
        return float(np.quantile(own, 0.4))

    def from_rule(row, feature):
        return rule(values[:, row])

    for threshold, height_of in [
        (0.5, lambda row, feature: 0.5),
        (list(per_input), lambda row, feature: per_input[row]),
        (per_feature, lambda row, feature: per_feature[(row, *feature)]),
        (rule, from_rule),
    ]:
        split = {"split": 0} if callable(threshold) else {}
        expected = slow_marks(sample, height_of, Fraction(1, 20))
        marks = sample.significance_map(threshold, **split)
        assert marks.dtype == np.int8
        np.testing.assert_array_equal(marks, expected)
        pvalue = sample.test(threshold, **split).pvalue
        for row, feature, samples in features(sample):
            two_sided = min(1, 2 * min(slow_tails(samples, height_of(row, feature))))
            assert pvalue[(row, *feature)] == pytest.approx(float(two_sided), rel=1e-12)


def test_a_threshold_may_be_a_torch_tensor():
    torch = pytest.importorskip("torch")
    sample = make(scores(12, 2, (4,)))
    np.testing.assert_array_equal(
        sample.significance_map(torch.tensor([0.3, 0.6], dtype=torch.float64)), sample.significance_map([0.3, 0.6])
    )


@pytest.mark.parametrize(
    ("threshold", "error", "message"),
    [
        ([0.1, 0.2, 0.3], ValueError, r"one for each input \(2,\) or one for each feature \(2, 4\), got shape \(3,\)"),
        (np.zeros((4,)), ValueError, r"got shape \(4,\)"),
        (np.zeros((2, 1)), ValueError, r"got shape \(2, 1\)"),
        ("jenks", TypeError, "got the text .jenks"),
        (["a", "b"], TypeError, r"`threshold` must be a number or a rule, got list: \['a', 'b'\]"),
        (lambda values: "high", TypeError, "a threshold rule must return one number, got str: 'high'"),
        (lambda values: values[0], TypeError, "a threshold rule must return one number, got ndarray"),
    ],
)
def test_bad_thresholds(threshold, error, message):
    sample = make(scores(12, 2, (4,)))
    for question in (sample.significance_map, sample.test):
        with pytest.raises(error, match=message):
            question(threshold)


def test_a_rule_that_is_no_function():
    with pytest.raises(TypeError, match=r"`rule` must be a function, called as rule\(values\), got float: 0\.5"):
        make(scores(12, 2, (4,))).threshold(0.5)


@pytest.mark.parametrize("alpha", [0.05, 0.01, 2**-6])
@pytest.mark.parametrize("n", [7, 10, 12])
def test_uncorrected_means_each_side_at_alpha(n, alpha):
    """Every possible count of values above the threshold, none tied."""
    values = np.array([[1.0 if i < above else 0.0 for above in range(n + 1)] for i in range(n)])[:, None]
    marks = make(values).significance_map(0.5, alpha=alpha)[0]
    tails = [Fraction(sum(math.comb(n, k) for k in range(above, n + 1)), 2**n) for above in range(n + 1)]
    expected = [int(tails[a] <= Fraction(alpha)) - int(tails[n - a] <= Fraction(alpha)) for a in range(n + 1)]
    assert list(marks) == expected
    assert sum(expected) == 0
    assert 1 in expected


@pytest.mark.parametrize("n", [5, 6, 7])
def test_all_of_five_samples_above_are_significant(n):  # bugs.md 7
    assert make(np.ones((n, 1, 1))).significance_map(0.5)[0, 0] == 1


def holm(p):
    order = np.argsort(p)
    adjusted, running = np.empty_like(p), 0.0
    for place, index in enumerate(order):
        running = max(running, (len(p) - place) * p[index])
        adjusted[index] = min(1, running)
    return adjusted


@pytest.mark.parametrize("correction", ["bonferroni", "holm", "bh", "by"])
@pytest.mark.parametrize("shape", [(60,), (8, 8)])
def test_corrections_act_on_each_side_of_one_input(shape, correction):
    rng = np.random.default_rng(3)
    level = rng.choice([-0.6, 0.0, 0.7], size=(1, 2, *shape))
    sample = make(level + rng.normal(0, 0.6, (25, 2, *shape)))
    marks = sample.significance_map(0.0, correction=correction)
    for row in range(2):
        above = (sample.values[:, row] > 0).sum(axis=0).ravel()
        adjusted = {
            "bonferroni": lambda p: np.minimum(1, len(p) * p),
            "holm": holm,
            "bh": lambda p: scipy.stats.false_discovery_control(p, method="bh"),
            "by": lambda p: scipy.stats.false_discovery_control(p, method="by"),
        }[correction]
        important, unimportant = (
            adjusted(scipy.stats.binom.sf(counts - 1, 25, 0.5)) <= 0.05 for counts in (above, 25 - above)
        )
        assert not (important & unimportant).any()
        expected = important.astype(int) - unimportant
        np.testing.assert_array_equal(marks[row].ravel(), expected)
        assert 0 < np.count_nonzero(expected) < expected.size


@pytest.mark.parametrize("n", [6, 11, 20])
def test_the_interval_holds_the_thresholds_that_are_not_rejected(n):
    sample = make(scores(n, 2, (30,)))
    interval = sample.confidence_interval(0.95)
    for height in np.unique(np.concatenate([sample.values.ravel(), sample.values.ravel() + 0.005])):
        rejected = sample.test(height).pvalue <= 0.05
        inside = (interval.low <= height) & (height <= interval.high)
        np.testing.assert_array_equal(inside, ~rejected)


# Natural breaks


def test_the_papers_threshold_splits_all_values_of_one_input_best():
    sample = make(scores(9, 2, (6,)))
    heights = sample.threshold(stats.jenks)
    assert heights.dtype == np.float64
    for row in range(2):
        values = sorted(float(v) for v in sample.values[:, row].ravel())
        within = {i: np.var(values[:i]) * i + np.var(values[i:]) * (len(values) - i) for i in range(1, len(values))}
        cut = min(within, key=within.get)
        assert heights[row] == pytest.approx((values[cut - 1] + values[cut]) / 2)


@pytest.mark.parametrize("value", [0.0, 0.3])
def test_constant_maps_warn_and_nothing_is_significant(value):  # bugs.md 10
    sample = make(np.full((20, 1, 60), value))
    with pytest.warns(DegenerateAttributionsWarning, match=f"equal values \\(all {value}\\)"):
        assert not sample.significance_map().any()


def test_ties_at_the_threshold_speak_for_neither_side():  # bugs.md 10
    assert not make(np.zeros((20, 1, 60))).significance_map(0.0).any()


def test_zeros_and_ones_need_no_jitter():  # bugs.md 9
    values = np.array([1.0] * 6 + [0.0] * 4).reshape(10, 1, 1)
    sample = make(values)
    interval = sample.confidence_interval()
    assert (interval.low[0, 0], interval.high[0, 0]) == (0, 1)
    assert sample.significance_map(0.5)[0, 0] == 0
    assert sample.test(1.0).above[0, 0] == 0
    assert sample.test(1.0).below[0, 0] == 4


def test_signed_attributions_warn_for_the_input_that_has_them():
    values = scores(20, 2, (60,)) * np.array([1000.0, 1.0])[:, None]
    values[:, 1] -= 0.5
    with pytest.warns(SignedAttributionsWarning, match=r"input 1: from -0\.\d+ to 0\.\d+.*use the threshold 0"):
        make(values).significance_map(stats.jenks)
    signs = make(values).test().sign  # no warning: this is the remedy
    assert set(np.unique(signs)) == {-1, 0, 1} or set(np.unique(signs)) == {-1, 1}


def test_a_speck_of_negative_scores_does_not_warn():
    values = scores(20, 1, (60,))
    values[0, 0, 0] = -0.01
    make(values).threshold()


# Splitting


@pytest.mark.parametrize("n_features", [3, 50])
def test_no_samples_are_kept_back_unasked(n_features):
    sample = make(scores(20, 2, (n_features,), seed=1))
    np.testing.assert_array_equal(sample.significance_map(), sample.significance_map(sample.threshold()))
    assert sample.summary()[0].split == 0


def test_split():
    values = scores(20, 1, (4,))
    sample, heights = make(values), make(values[:8]).threshold()
    np.testing.assert_array_equal(sample.significance_map(split=8), make(values[8:]).significance_map(heights))
    np.testing.assert_array_equal(sample.test(stats.jenks, split=8).above, make(values[8:]).test(heights).above)
    assert (sample.threshold(split=8) == heights).all()
    assert sample.summary(split=8)[0].split == 8
    assert sample.summary(split=8)[0].threshold == heights[0]
    np.testing.assert_array_equal(
        make(values).significance_map(split=0), make(values).significance_map(make(values).threshold())
    )


def test_samples_from_which_a_given_threshold_was_taken_can_be_left_out():
    values = scores(20, 1, (4,))
    sample, rest = make(values), make(values[5:])
    np.testing.assert_array_equal(sample.test(0.25, split=5).above, rest.test(0.25).above)
    np.testing.assert_array_equal(sample.significance_map(0.25, split=5), rest.significance_map(0.25))
    np.testing.assert_array_equal(sample.test(0.25, split=0).above, sample.test(0.25).above)


@pytest.mark.parametrize(
    ("split", "error", "message"),
    [(20, ValueError, "got 20 of 20"), (-1, ValueError, "at least 0, got -1"), (2.0, TypeError, "got float: 2.0")],
)
def test_bad_splits(split, error, message):
    with pytest.raises(error, match=f"`split`.*{re.escape(message)}"):
        make(scores(20, 1, (4,))).significance_map(split=split)
    if split != 20:
        with pytest.raises(error, match="`split`"):
            make(scores(20, 1, (4,))).threshold(split=split)


def test_no_more_samples_choose_than_there_are():
    with pytest.raises(ValueError, match="`split` must be at most 20, got 21"):
        make(scores(20, 1, (4,))).threshold(split=21)


def rejections(split, runs=1000, n=20):
    """Rates at which one standard normal feature, median 0, is marked; and marked on the wrong side of the h used."""
    values = np.random.default_rng(0).standard_normal((n, runs, 1))
    sample = make(values)
    heights = np.array([stats.jenks(values[: split or n, run]) for run in range(runs)])
    marks = sample.significance_map(lambda values: stats.jenks(values), split=split)[:, 0]  # else one never stands out
    wrong = ((marks == 1) & (heights >= 0)) | ((marks == -1) & (heights <= 0))
    return np.mean(marks != 0), np.mean(wrong)


def test_a_threshold_from_one_features_own_samples():
    """One feature whose median is the population's natural break, N = 20: marked in about .155 of runs (.041 nominal).

    Against the threshold really used, which is random, a mark is false with probability at most alpha a side, split or
    not: `below(h) <= below(V)` for h <= V. False alarm of each bound: P(Bin(1000, .05) > 80) and
    P(Bin(1000, .155) < 110 or > 200) are below 1e-4; the seed is fixed.
    """
    assert scipy.stats.binom.sf(80, 1000, 0.05) < 1e-4
    marked, wrong = rejections(split=0)
    assert 0.11 < marked < 0.20
    assert wrong < 0.08
    marked_by_split, wrong = rejections(split=5)
    assert marked_by_split > marked + 0.1  # keeping samples back makes the threshold less precise, not the test better
    assert wrong < 0.08


# Too few samples


@pytest.mark.parametrize(
    ("settings", "shape", "needed"),
    [
        ({}, (60,), 5),
        ({"alpha": 0.01}, (60,), 7),
        ({"correction": "bonferroni"}, (60,), 11),
        ({"correction": "holm"}, (60,), 11),
        ({"correction": "holm"}, (50,), 10),
        ({"correction": "bh", "threshold": -1.0}, (60,), 5),  # all on one side: it is a matter of how many are
        ({"correction": "by", "threshold": -1.0}, (60,), 7),
        ({"correction": "e-bh", "threshold": -1.0}, (60,), 6),
        ({"correction": "bonferroni"}, (3,), 6),
        ({"split": 4}, (3,), 9),
        ({"correction": "bonferroni", "split": 4}, (3,), 10),
        ({"threshold": 0.5}, (3,), 5),
    ],
)
def test_too_few_samples_names_the_smallest_number_and_that_works(settings, shape, needed):
    def sample(n):
        values = np.zeros((n, 1, *shape))
        values[..., ::2] = 1.0  # as clear as can be
        return make(values + np.linspace(0, 0.01, n)[:, None, None])

    with pytest.raises(TooFewSamplesError, match=rf"`alpha`=0\.\d+ \(.*got {needed - 1}\D.*at least {needed} are"):
        sample(needed - 1).significance_map(**settings)
    with pytest.raises(TooFewSamplesError, match=f"at least {needed} are"):
        sample(needed - 1).summary(**settings)
    assert (np.abs(sample(needed).significance_map(**settings)) == 1).all()


def test_bonferroni_over_the_pixels_of_an_image_needs_20():
    values = np.ones((19, 1, 224, 224), dtype=np.float16)
    with pytest.raises(
        ValueError, match=r"bonferroni over 50,176 features, each side\).*got 19, at least 20 are needed"
    ):
        make(values).significance_map(0.5, correction="bonferroni")
    values = np.ones((20, 1, 224, 224), dtype=np.float16)
    assert (make(values).significance_map(0.5, correction="bonferroni") == 1).all()


def test_one_sample_has_maps_but_no_interval():  # bugs.md 5
    sample = make(scores(1, 1, (3,)))
    for name in ("mean", "median"):
        np.testing.assert_array_equal(getattr(sample, name)(), sample.values[0])
    with pytest.raises(ValueError, match=r"`confidence_level`=0.95: got 1, at least 6 are needed"):
        sample.confidence_interval()
    with pytest.raises(ValueError, match="got 1, at least 6 are needed"):
        sample.smoothed()
    with pytest.raises(ValueError, match="`std` needs at least 2 samples, got 1"):
        sample.std()
    with pytest.raises(ValueError, match="got 1, at least 5 are needed"):
        sample.significance_map(0.1)


@pytest.mark.parametrize(("level", "needed"), [(0.95, 6), (0.99, 8), (0.999, 11)])
def test_the_interval_names_the_smallest_number_and_that_works(level, needed):
    with pytest.raises(ValueError, match=f"got {needed - 1}, at least {needed} are needed"):
        make(scores(needed - 1, 1, (3,))).confidence_interval(level)
    assert make(scores(needed, 1, (3,))).confidence_interval(level).confidence_level >= level


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"alpha": 0.5}, ValueError, "`alpha` must lie between 0 and 0.5, got 0.5"),
        ({"alpha": 0}, ValueError, "`alpha` must lie between 0 and 0.5, got 0"),
        ({"alpha": math.nan}, ValueError, "`alpha` must lie between 0 and 0.5, got nan"),
        ({"alpha": True}, TypeError, "`alpha` must be a number, got bool: True"),
        ({"alpha": "5%"}, TypeError, "`alpha` must be a number, got str: '5%'"),
        ({"threshold": math.nan}, ValueError, "`threshold` must be a number or a rule, got nan"),
        ({"threshold": [math.nan]}, ValueError, "`threshold` must be a number or a rule, got nan"),
        ({"correction": "sidak"}, ValueError, "'bonferroni', 'holm', 'bh', 'by', 'e-bh', 'closed-e-bh', got 'sidak'"),
        ({"correction": 3}, TypeError, "`correction` must be a string or None, got int: 3"),
    ],
)
def test_bad_levels_and_corrections(settings, error, message):
    with pytest.raises(error, match=re.escape(message)):
        make(scores(20, 1, (60,))).significance_map(**settings)


# The object


def test_arrays_are_read_only_and_the_callers_stay_writable():
    mine = scores(6, 1, (3,))
    sample = make(mine, inputs={"a": np.zeros((1, 2))}, scores=np.zeros((1, 4)), predictions=np.zeros((6, 1), int))
    for array in (sample.values, sample.vanilla, sample.scores, sample.predictions, sample.inputs["a"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert mine.flags.writeable
    with pytest.raises(AttributeError, match="cannot assign to field 'values'"):
        sample.values = mine


def test_inputs_in_a_tuple_are_read_only_too():
    sample = make(scores(6, 1, (3,)), inputs=(np.zeros((1, 2)), np.zeros((1, 3))))
    with pytest.raises(ValueError, match="read-only"):
        sample.inputs[1][0] = 1


def test_sizes():
    sample = make(scores(6, 2, (3, 4)))
    assert (sample.n_samples, sample.feature_shape, sample.n_features) == (6, (3, 4), 12)


def test_a_pickled_sample_answers_the_same(tmp_path):
    sample = make(scores(20, 1, (8, 8)))
    stored = metfa.load(sample.save(tmp_path / "s"))
    again = pickle.loads(pickle.dumps(stored))
    np.testing.assert_array_equal(again.significance_map(), sample.significance_map())


def test_flip_rate_counts_noisy_inputs_of_another_class():
    predictions = np.array([[0, 1], [2, 1], [0, 0], [0, 1]])
    sample = make(scores(4, 2, (3,)), scores=np.array([[3.0, 1, 2], [0, 5, 1]]), predictions=predictions)
    assert list(sample.flip_rate) == [0.25, 0.25]


@pytest.mark.parametrize(
    "fields",
    [
        {"predictions": None, "scores": np.zeros((2, 3))},
        {"predictions": np.zeros((4, 2), int), "scores": None},
        {"predictions": np.zeros((4, 2), int), "scores": np.zeros(2)},
    ],
)
def test_flip_rate_is_none_where_it_is_unknown(fields):
    assert make(scores(4, 2, (3,)), **fields).flip_rate is None


def test_repr_is_short_and_true():
    sample = make(scores(6, 2, (3, 4)))
    assert repr(sample) == "AttributionSample(6 samples of 2 inputs, 3×4 features, explainer=E, noise=N, rng=0x1)"
    assert "6 samples of 1 input, 3 features" in repr(make(scores(6, 1, (3,))))
    assert "6 samples of 1 input, 1 feature, explainer" in repr(make(scores(6, 1, (1,))))
    hostile = make(scores(6, 1, (3,)), provenance={"explainer": "x" * 10_000, "noise": "\x1b[31m\nred"})
    assert f"explainer={'x' * 120}…, noise" in repr(hostile)
    assert repr(hostile).isprintable()


@pytest.mark.parametrize("shape", [(3,), (9, 9), (2, 9, 9)])
def test_notebook_repr_escapes_names(shape):
    sample = make(scores(20, 1, shape), provenance={"explainer": "<script>alert(1)</script>", "noise": '"&'})
    text = sample._repr_html_()
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert ("data:image/png;base64," in text) == (len(shape) < 3)


@pytest.mark.parametrize("there", [True, False])
def test_notebook_repr_says_what_to_install(there, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: there or None)
    text = make(scores(20, 1, (3,)))._repr_html_()
    assert "\nTo explore it here: result.explore()" in text
    assert (', after pip install "metfa[notebook]"</pre>' in text) == (not there)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("change", [lambda v: v - 0.5, np.zeros_like, lambda v: v[:1]])
def test_notebook_repr_neither_warns_nor_fails(change):
    assert "<img" in make(change(scores(20, 1, (9, 9))))._repr_html_()


def test_plot_draws_bars_of_features_and_maps_of_images():
    assert len(make(scores(20, 1, (5,))).plot(max_features=3).axes) == 1
    assert len(make(scores(20, 1, (5, 5))).plot().axes) == 7
    with pytest.raises(ValueError, match=r"must hold maps .* got features of shape \(2, 5, 5\)"):
        make(scores(20, 1, (2, 5, 5))).plot()


# Joining


def explained(n_samples, first_sample=0, rng=0, noise=None, weight=2.0, inputs=None, **names):
    def explainer(inputs, target):
        return np.abs(inputs * weight), inputs[:, :2]

    return metfa.explain(
        explainer,
        np.linspace(0.2, 0.8, 12).reshape(2, 6) if inputs is None else inputs,
        0,
        noise=noise or metfa.noise.Uniform(0.1),
        n_samples=n_samples,
        rng=rng,
        run=metfa.Run(first_sample=first_sample, **names),
        predict=lambda inputs: inputs[:, :2],
    )


def test_joined_samples_equal_one_run():
    whole = explained(12)
    parts = explained(5, 7).concat(explained(4)).concat(explained(3, 4))
    np.testing.assert_array_equal(parts.values, whole.values)
    np.testing.assert_array_equal(parts.predictions, whole.predictions)
    assert parts.sample_ids == whole.sample_ids == tuple(range(12))
    assert parts.provenance["n_samples"] == 12
    assert parts.provenance["first_sample"] == 0
    assert parts.provenance["seconds"] >= 0
    assert parts.provenance["maps_made"] == whole.provenance["maps_made"] == 12 * len(whole.vanilla)
    np.testing.assert_array_equal(parts.flip_rate, whole.flip_rate)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: explained(4, 5), "3 sample ids that are here already, from 5: .*`first_sample=8`"),
        (lambda: explained(4, 8, rng=1), "made with rng=0x1, this with 0x0"),
        (lambda: explained(4, 8, noise=metfa.noise.Uniform(0.2)), r"noise=Uniform\(radius=0.2.*radius=0.1"),
        (lambda: explained(4, 8, weight=2.2), "explains another model"),
        (lambda: explained(4, 8, inputs=np.full((2, 6), 0.5)), "another `input_names`"),
        (lambda: explained(4, 8, inputs=np.full((2, 6), 0.5), input_names=["a", "b"]), "another `input_names`"),
    ],
)
def test_what_cannot_be_joined(other, message):
    with pytest.raises(ValueError, match=message):
        explained(8).concat(other())


def test_other_feature_names_are_not_joined():
    one = explained(4, feature_names=list("abcdef"))
    with pytest.raises(ValueError, match=r"another `feature_names`: .*'x'"):
        one.concat(explained(4, 4, feature_names=list("abcdex")))
    assert one.concat(explained(4, 4, feature_names=list("abcdef"))).feature_names == tuple("abcdef")


def test_equal_ids_of_other_inputs_are_not_joined():
    one = explained(4, input_names=["a", "b"])
    other = explained(4, 4, inputs=np.full((2, 6), 0.5), input_names=["a", "b"])
    with pytest.raises(ValueError, match=r"another `inputs`: an array \(2, 6\)"):
        one.concat(other)


def test_long_compositions_of_noise_are_told_apart():
    def compose(radius):
        return metfa.noise.Compose(
            *(metfa.noise.Uniform(0.01, bounds=(0, 1)) for _ in range(3)), metfa.noise.Uniform(radius, bounds=(0, 1))
        )

    with pytest.raises(ValueError, match=r"made with noise=Compose"):
        explained(4, noise=compose(0.1)).concat(explained(4, 4, noise=compose(0.2)))


def test_masks_as_targets_are_compared_whole():
    values = scores(6, 1, (3,))
    a, b = np.zeros((100, 100)), np.zeros((100, 100))
    b[50, 50] = 1
    one = make(values, target=(a,))
    other = make(values, target=(b,), sample_ids=tuple(range(6, 12)))
    with pytest.raises(ValueError, match="another `target`"):
        one.concat(other)
    assert one.concat(make(values, target=(a.copy(),), sample_ids=tuple(range(6, 12)))).n_samples == 12


def test_one_other_map_among_many_is_noticed():
    values = np.ones((2, 100, 4))
    other = values[0].copy()
    other[7] = 3.0
    with pytest.raises(ValueError, match="explains another model"):
        make(values).concat(make(values, vanilla=other, sample_ids=(2, 3)))


def test_only_samples_are_joined():
    with pytest.raises(TypeError, match="`other` must be an AttributionSample, got dict"):
        make(scores(6, 1, (3,))).concat({})


def test_predictions_of_one_side_alone_are_dropped():
    values = scores(3, 1, (3,))
    one = make(values, predictions=np.zeros((3, 1), int), scores=np.zeros((1, 2)))
    assert one.concat(make(values, sample_ids=(3, 4, 5))).predictions is None
