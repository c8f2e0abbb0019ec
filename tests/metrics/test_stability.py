"""Stability of a sample: by hand, against Captum, and for maps that are constant."""

import math
from itertools import combinations

import numpy as np
import pytest
import scipy.stats
import torch
from captum.metrics import sensitivity_max

import metfa
from metfa import DegenerateAttributionsWarning
from metfa.metrics import interval_width, max_sensitivity, mstd, prediction_agreement, top_k_overlap

NOISE = metfa.noise.Gaussian(0.1)


def sample_of(values, vanilla=None, predictions=None, scores=None):
    values = np.asarray(values, dtype=np.float64)
    return metfa.AttributionSample(
        values=values,
        inputs=np.zeros((values.shape[1], 2)),
        target=(0,) * values.shape[1],
        vanilla=values[0] if vanilla is None else np.asarray(vanilla, dtype=np.float64),
        scores=scores,
        predictions=predictions,
        sample_ids=tuple(range(len(values))),
        input_names=tuple(map(str, range(values.shape[1]))),
    )


VALUES = np.random.default_rng(0).random((10, 3, 4, 5))


def c4(n):
    """Mean of the standard deviation of n normal draws, by the mean of chi with n - 1 degrees of freedom."""
    return scipy.stats.chi(n - 1).mean() / math.sqrt(n - 1)


class TestMstd:
    def test_by_hand(self):
        result = mstd(sample_of(VALUES))
        expected = [
            np.mean([np.std(VALUES[:, row, i, j], ddof=1) for i in range(4) for j in range(5)]) for row in range(3)
        ]
        np.testing.assert_allclose(result.score, np.array(expected) / c4(10))
        np.testing.assert_allclose(result.raw, np.array(expected) / c4(10))
        np.testing.assert_allclose(result.level, VALUES.mean(axis=(0, 2, 3)))
        np.testing.assert_array_equal(result.constant, 0)

    def test_what_does_not_depend_on_the_range(self):
        values = VALUES * np.array([1.0, 0.01, 100.0])[:, None, None] + np.array([0.0, 5.0, -3.0])[:, None, None]
        result = mstd(sample_of(values))
        flat = values.reshape(10, 3, 20)
        low, high = flat.min(axis=2, keepdims=True), flat.max(axis=2, keepdims=True)
        spread = ((flat - low) / (high - low)).std(axis=0, ddof=1).mean(axis=1) / c4(10)
        np.testing.assert_allclose(result.rescaled, spread)
        pairs = [np.corrcoef(flat[:, row])[np.triu_indices(10, 1)].mean() for row in range(3)]
        np.testing.assert_allclose(result.correlation, pairs)
        np.testing.assert_allclose(result.over_level[:2], result.score[:2] / result.level[:2])
        assert np.isnan(result.over_level[2]) == (result.level[2] <= 0)
        np.testing.assert_allclose(result.rescaled, mstd(sample_of(VALUES)).rescaled)

    def test_a_smaller_range_lowers_mstd_alone(self):
        """Maps of the same shapes in half the range: the picture that a reader sees has not changed."""
        whole, half = mstd(sample_of(VALUES)), mstd(sample_of(VALUES / 2))
        np.testing.assert_allclose(half.score, whole.score / 2)
        np.testing.assert_allclose(half.rescaled, whole.rescaled)
        np.testing.assert_allclose(half.correlation, whole.correlation)

    def test_constant_maps_have_no_correlation(self):
        values = VALUES.copy()
        values[:, 1] = 0.5
        values[1:, 2] = 0
        with pytest.warns(DegenerateAttributionsWarning):
            result = mstd(sample_of(values))
        assert np.isnan(result.correlation).tolist() == [False, True, True]
        assert np.isnan(result.rescaled).tolist() == [False, True, False]
        values = VALUES.copy()
        values[:4, 0] = 0
        expected = np.corrcoef(VALUES[4:, 0].reshape(6, 20))[np.triu_indices(6, 1)].mean()
        np.testing.assert_allclose(mstd(sample_of(values)).correlation[0], expected)

    def test_one_feature_has_no_picture(self):
        result = mstd(sample_of(VALUES[:, :, 0, :1]))
        assert np.isnan([result.rescaled, result.correlation]).all()

    def test_constant_maps_are_not_stable_but_worthless(self):
        values = VALUES.copy()
        values[:, 1] = 0.5
        values[:5, 2] = 0
        with pytest.warns(DegenerateAttributionsWarning, match="1 of 3 inputs have constant maps only"):
            result = mstd(sample_of(values))
        assert np.isnan(result.score).tolist() == [False, True, False]
        np.testing.assert_array_equal(result.constant, [0, 1, 0.5])
        assert result.degenerate == (None, "constant maps only", None)

    def test_one_feature_is_not_a_constant_map(self):
        spread = VALUES[:, :, 0, 0].std(axis=0, ddof=1) / c4(len(VALUES))
        np.testing.assert_allclose(mstd(sample_of(VALUES[:, :, 0, :1])).score, spread)

    @pytest.mark.parametrize("n", [2, 3, 10, 50])
    def test_it_does_not_fall_with_few_draws(self, n):
        """Deviation 1, 40,000 features: without the correction .798 with 2 draws and .973 with 10."""
        values = np.random.default_rng(n).normal(size=(n, 1, 40_000))
        assert mstd(sample_of(values)).score[0] == pytest.approx(1, abs=0.015)
        assert values.std(axis=0, ddof=1).mean() == pytest.approx(c4(n), abs=0.015)

    def test_one_sample(self):
        with pytest.raises(ValueError, match="at least 2 samples"):
            mstd(sample_of(VALUES[:1]))

    def test_smoothed_maps_of_a_sample_meet_fresh_inner_noise(self):
        """With a fixed inner seed and no outer noise the spread would be 0."""
        x = np.random.default_rng(0).random((2, 30))
        smooth = metfa.Smoothed(lambda inputs, target: np.abs(inputs), noise=NOISE, n_samples=10, rng=0)
        inner = mstd(metfa.explain(smooth, x, 0, noise=None, n_samples=30, rng=0)).score
        outer = mstd(metfa.explain(smooth, x, 0, noise=NOISE, n_samples=30, rng=0)).score
        assert (inner > 0.02).all()
        assert (outer > 1.5 * inner).all()


class TestIntervalWidth:
    def test_by_hand(self):
        """N = 10: from the second to the ninth of ten."""
        ordered = np.sort(VALUES, axis=0)
        np.testing.assert_allclose(interval_width(sample_of(VALUES)).score, (ordered[8] - ordered[1]).mean(axis=(1, 2)))

    def test_too_few_samples(self):
        with pytest.raises(ValueError, match="got 5, at least 6 are needed"):
            interval_width(sample_of(VALUES[:5]))


class TestTopKOverlap:
    @pytest.mark.parametrize("k", [1, 7, 20])
    def test_by_hand(self, k):
        def top(maps):
            return set(np.argsort(maps.ravel())[-k:])

        expected = [np.mean([len(top(a) & top(b)) / k for a, b in combinations(VALUES[:, row], 2)]) for row in range(3)]
        np.testing.assert_allclose(top_k_overlap(sample_of(VALUES), k).score, expected)

    def test_ties_are_shared(self):
        """Four equal features for two places: each half inside, so that a pair has 4 · ½ · ½ of 2 in common."""
        np.testing.assert_allclose(top_k_overlap(sample_of([[[1, 1, 1, 1, 0]]] * 3), 2).score, 0.5)
        values = [[[1, 1, 0, 0]], [[1, 1, 0, 0]]]
        np.testing.assert_allclose(top_k_overlap(sample_of(values), 2).score, 1)
        np.testing.assert_allclose(top_k_overlap(sample_of(values), 1).score, 0.5)
        np.testing.assert_allclose(top_k_overlap(sample_of(values), 3).score, (2 + 2 * 0.25) / 3)

    def test_fewer_features_have_no_score(self):
        np.testing.assert_array_equal(top_k_overlap(sample_of(VALUES), 20).score, np.ones(3))
        with pytest.warns(DegenerateAttributionsWarning, match="3 of 3 inputs have fewer than 21 features: 0, 1, 2"):
            scores = top_k_overlap(sample_of(VALUES), 21)
        assert np.isnan(scores.score).all()
        assert scores.degenerate == ("fewer than 21 features",) * 3

    @pytest.mark.parametrize(
        ("n", "k", "error", "message"),
        [
            (10, 0, ValueError, "`k` must be at least 1, got 0"),
            (10, 1.5, TypeError, "`k` must be an integer, got float"),
            (1, 3, ValueError, "at least 2 samples"),
        ],
    )
    def test_bad_arguments(self, n, k, error, message):
        with pytest.raises(error, match=message):
            top_k_overlap(sample_of(VALUES[:n]), k)


@pytest.mark.parametrize(
    ("metric", "noise"),
    [
        (mstd, "outer"),
        (interval_width, "sampling"),
        (lambda sample: top_k_overlap(sample, 3), "outer"),
        (max_sensitivity, "outer"),
        (prediction_agreement, "outer"),
    ],
)
@pytest.mark.parametrize("maps", [VALUES, torch.from_numpy(VALUES), [sample_of(VALUES)], None])
def test_only_samples_are_measured(metric, noise, maps):
    with pytest.raises(
        TypeError,
        match=rf"must be an AttributionSample, explanations under {noise} noise, got {type(maps).__name__}: draw it by "
        r"`metfa\.explain\(explainer, inputs, target, noise=\.\.\., n_samples=10\)`",
    ):
        metric(maps)


@pytest.mark.parametrize("metric", [mstd, interval_width, max_sensitivity, lambda sample: top_k_overlap(sample, 3)])
def test_constant_maps_win_nowhere(metric):
    values = VALUES.copy()
    values[:, 1] = 0.5
    with pytest.warns(DegenerateAttributionsWarning, match="1 of 3 inputs have constant maps only: 1"):
        result = metric(sample_of(values))
    assert np.isnan(result.score).tolist() == [False, True, False]
    assert result.degenerate == (None, "constant maps only", None)


class TestMaxSensitivity:
    def test_against_captum(self):
        """The same explainer, the same noisy inputs."""
        weights = torch.from_numpy(np.random.default_rng(1).normal(size=(6, 6)))
        explain = lambda inputs, target=None: torch.tanh(inputs @ weights)  # noqa: E731
        inputs = torch.from_numpy(np.random.default_rng(0).random((3, 6)))
        sample = metfa.explain(explain, inputs, 0, noise=NOISE, n_samples=10, rng=0)
        rows = metfa.sampling.rows.Rows(inputs)
        noisy = np.stack(
            [
                NOISE(rows[row], metfa.sampling.streams.stream(0, identity, draw, metfa.sampling.streams.Purpose.NOISE))
                for row, identity in enumerate(rows.ids())
                for draw in range(10)
            ]
        )
        explained = lambda parts: (explain(parts[0] if isinstance(parts, tuple) else parts),)  # noqa: E731
        expected = sensitivity_max(explained, inputs, lambda _: torch.from_numpy(noisy), n_perturb_samples=10)
        np.testing.assert_allclose(max_sensitivity(sample).score, expected)

    def test_a_map_of_zeros(self):
        np.testing.assert_allclose(max_sensitivity(sample_of([[[3, 4]]], vanilla=[[0, 0]])).score, [5])


class TestPredictionAgreement:
    def test_by_hand(self):
        scores = np.array([[0.9, 0.1], [0.2, 0.8]])
        predictions = np.array([[0, 1], [0, 0], [0, 0], [1, 1]])
        sample = sample_of(VALUES[:4, :2], predictions=predictions, scores=scores)
        np.testing.assert_allclose(prediction_agreement(sample).score, [0.75, 0.5])

    def test_unknown(self):
        with pytest.raises(ValueError, match=r"model by `predict=`, or let the explainer return \(attributions"):
            prediction_agreement(sample_of(VALUES))
