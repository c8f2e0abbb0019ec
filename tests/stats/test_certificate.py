"""Certified radii and ranks: reference values, exact bounds, and laws for which they are tight."""

import re
from statistics import NormalDist

import numpy as np
import pytest
from scipy import stats as scipy_stats

from metfa import stats

PHI = NormalDist()


class TestProportionBound:
    @pytest.mark.parametrize("n", [1, 10, 50, 1000])
    @pytest.mark.parametrize("alpha", [0.05, 1e-6])
    def test_is_that_of_clopper_and_pearson(self, n, alpha):
        counts = np.unique(np.linspace(0, n, 23).astype(int))
        found = stats.proportion_bound(counts, n, alpha)
        expected = [
            0.0 if count == 0 else scipy_stats.beta.ppf(alpha, count, n - count + 1) for count in counts.tolist()
        ]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)

    @pytest.mark.parametrize("n", [7, 100])
    def test_at_any_time_it_is_what_the_e_value_rejects(self, n):
        counts = np.arange(n + 1)
        assert float(stats.proportion_bound([0], n, 0.05, sequential=True)[0]) < 1e-15
        bounds = stats.proportion_bound(counts, n, 0.05, sequential=True)
        assert (np.diff(bounds) >= 0).all()
        assert (bounds <= stats.proportion_bound(counts, n, 0.05)).all()
        for count, bound in zip(counts.tolist(), bounds.tolist(), strict=True):
            if bound > 1e-12:
                below, above = (
                    float(stats.log_e_values([count], n, probability=p)[0]) for p in (bound, bound * (1 + 1e-9))
                )
                assert above < np.log(20) <= below + 1e-12

    @pytest.mark.parametrize("sequential", [False, True])
    @pytest.mark.parametrize("function", [stats.proportion_bound, stats.certified_radius])
    def test_all_libraries_and_dtypes(self, backend, function, sequential):
        counts = np.array([[0, 3, 9], [10, 7, 8]])
        if backend.is_floating:
            with pytest.raises(TypeError, match="`counts` must be integers, got"):
                function(backend.make(counts), 10, 0.05, sequential=sequential)
            return
        given = backend.make(counts)
        found = function(given, 10, 0.05, sequential=sequential)
        assert type(found) is type(given)
        expected = [[float(function([count], 10, 0.05, sequential=sequential)[0]) for count in row] for row in counts]
        np.testing.assert_allclose(backend.host(found), expected, rtol=1e-6, atol=1e-12)

    @pytest.mark.slow
    def test_at_any_time_it_may_be_looked_at_often(self):
        """The largest bound of all looks exceeds the probability in few runs; that of a fixed number in many."""
        rng = np.random.default_rng(0)
        truth, runs, looks = 0.8, 1500, [10, 15, 22, 33, 50, 75, 110, 160, 240]
        counts = np.cumsum(rng.random((240, runs)) < truth, axis=0)
        wrong = {
            sequential: np.any(
                [stats.proportion_bound(counts[n - 1], n, 0.05, sequential=sequential) > truth for n in looks], axis=0
            ).mean()
            for sequential in (True, False)
        }
        assert wrong[True] <= 0.05 + 3.8 * (0.05 * 0.95 / runs) ** 0.5
        assert wrong[False] > 0.12

    @pytest.mark.parametrize(
        ("settings", "error", "message"),
        [
            ({"counts": [0.5]}, TypeError, "`counts` must be integers, got float64"),
            ({"counts": [11]}, ValueError, "`counts` must lie in 0..10, the number of samples, got 11..11"),
            ({"alpha": 0}, ValueError, "`alpha` must"),
            ({"n": 0}, ValueError, "`n` must be at least 1, got 0"),
        ],
    )
    def test_bad_input(self, settings, error, message):
        with pytest.raises(error, match=re.escape(message)):
            stats.proportion_bound(**{"counts": [5], "n": 10, "alpha": 0.05, **settings})


class TestRadius:
    @pytest.mark.parametrize(
        ("count", "n", "expected"),
        [(10, 10, 0.647), (20, 20, 1.084), (50, 50, 1.570), (100, 100, 1.888), (1000, 1000, 2.749), (95, 100, 1.269)],
    )
    def test_reference(self, count, n, expected):
        assert float(stats.certified_radius([count], n, 0.05)[0]) == pytest.approx(expected, abs=5e-4)

    def test_nothing_is_certified_at_half(self):
        radii = stats.certified_radius(np.array([[0, 5], [8, 10]]), 10, 0.05)
        np.testing.assert_array_equal(radii == 0, [[True, True], [True, False]])
        assert (stats.certified_radius([8], 10, 0.05, sequential=True) == 0).all()

    def test_is_positive_just_where_the_sign_test_rejects(self):
        for n in (5, 12, 40):
            counts = np.arange(n + 1)
            pvalues = [scipy_stats.binomtest(count, n, 0.5, "greater").pvalue for count in counts.tolist()]
            np.testing.assert_array_equal(stats.certified_radius(counts, n, 0.05) > 0, np.array(pvalues) <= 0.05)

    def test_is_tight_for_a_linear_map(self):
        """Of w x + noise the median crosses the threshold where the bound says, if the probability is known."""
        sigma, height, n = 0.3, 1.0, 100_000
        probability = 0.9
        x = height + sigma * PHI.inv_cdf(probability)  # P(x + noise > height) is the probability
        radius = sigma * float(stats.certified_radius([int(n * probability)], n, 1e-3)[0])
        assert radius < x - height
        assert radius == pytest.approx(x - height, rel=0.02)


class TestRanks:
    @pytest.mark.parametrize(
        ("n", "radius", "low", "high"), [(100, 0.25, 31, 70), (100, 0.5, 22, 79), (1000, 0.5, 280, 721)]
    )
    def test_reference(self, n, radius, low, high):
        ranks = stats.certified_ranks(n, radius)
        assert (ranks.low, ranks.high) == (low, high)
        assert ranks.confidence_level >= 0.95

    def test_without_a_move_they_are_those_of_the_median(self):
        for n in (6, 10, 99):
            assert stats.certified_ranks(n, 0) == stats.median_ranks(n)
            nearly = stats.certified_ranks(n, 1e-9)
            assert (nearly.low, nearly.high) == (stats.median_ranks(n).low, stats.median_ranks(n).high)

    @pytest.mark.parametrize(("n", "radius", "level"), [(30, 0.3, 0.9), (200, 1.0, 0.95), (12, 0.1, 0.99)])
    def test_are_the_narrowest_that_cover(self, n, radius, level):
        ranks, outer, miss = stats.certified_ranks(n, radius, level), PHI.cdf(-radius), (1 - level) / 2
        assert scipy_stats.binom.cdf(ranks.low - 1, n, outer) <= miss < scipy_stats.binom.cdf(ranks.low, n, outer)
        assert ranks.confidence_level == pytest.approx(1 - 2 * scipy_stats.binom.cdf(ranks.low - 1, n, outer), abs=1e-9)

    @pytest.mark.parametrize(
        ("n", "radius", "miss"), [(10_000, 0.5, 1e-6), (100_000, 0.25, 1e-10), (100_000, 0.25, 1e-13)]
    )
    def test_cover_at_strict_levels(self, n, radius, miss):
        """Here P(B < k) would have few digits, or none, as 1 minus the other tail."""
        ranks, outer = stats.certified_ranks(n, radius, 1 - miss), PHI.cdf(-radius)
        half = (1 - (1 - miss)) / 2
        assert scipy_stats.binom.cdf(ranks.low - 1, n, outer) <= half < scipy_stats.binom.cdf(ranks.low, n, outer)

    def test_too_few(self):
        with pytest.raises(ValueError, match=r"within a radius of 2 .*got 20, at least 161 are needed"):
            stats.certified_ranks(20, 2)
        assert stats.certified_ranks(161, 2).low == 1
        with pytest.raises(ValueError, match="no number of samples is enough"):
            stats.certified_ranks(20, 50)
        with pytest.raises(ValueError, match="`radius` must be finite and not negative, got -1"):
            stats.certified_ranks(20, -1)
