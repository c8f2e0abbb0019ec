"""Ranks against the reference table, exact coverage, and errors that say what to write."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

from metfa import stats

# n, k, ranks of the interval, number averaged, exact coverage; verified with SciPy, level 0.95
REFERENCE = [
    (6, 0, (1, 6), 6, 0.96875),
    (10, 1, (2, 9), 8, 0.97852),
    (20, 5, (6, 15), 10, 0.95861),
    (30, 9, (10, 21), 12, 0.95723),
    (50, 17, (18, 33), 16, 0.96716),
    (70, 26, (27, 44), 18, 0.95861),
    (100, 39, (40, 61), 22, 0.96480),
    (200, 85, (86, 115), 30, 0.95996),
]


def coverage(n: int, low: int, high: int) -> float:
    """P(e_(low) <= V <= e_(high)) for a continuous law: V has at least `low` and fewer than `high` samples below it."""
    return float(Fraction(sum(math.comb(n, below) for below in range(low, high)), 2**n))


@pytest.mark.parametrize(("n", "k", "interval", "averaged", "level"), REFERENCE)
def test_reference_table(n, k, interval, averaged, level):
    ranks = stats.median_ranks(n)
    assert (ranks.low, ranks.high) == interval == (k + 1, n - k)
    assert (ranks.first, ranks.last) == interval
    assert ranks.last - ranks.first + 1 == averaged
    assert ranks.confidence_level == pytest.approx(level, abs=5e-6)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_coverage_is_the_exact_one_and_the_interval_the_shortest(level):
    for n in range(8, 120):
        ranks = stats.median_ranks(n, level)
        assert ranks.confidence_level == coverage(n, ranks.low, ranks.high) >= level
        if ranks.low + 1 < ranks.high - 1:
            assert coverage(n, ranks.low + 1, ranks.high - 1) < level


def test_a_level_reached_exactly_is_accepted():
    assert stats.median_ranks(6, 0.96875).low == 1
    with pytest.raises(ValueError, match=r"got 6, at least 7 are needed"):
        stats.median_ranks(6, math.nextafter(0.96875, 1))


@pytest.mark.slow
def test_many_samples():
    ranks = stats.median_ranks(100_000)
    assert ranks.low == scipy.stats.binom.ppf(0.025, 100_000, 0.5)  # the first count whose lower tail exceeds 0.025
    assert ranks.confidence_level == pytest.approx(0.95, abs=1e-3)


@pytest.mark.parametrize("n", [*range(9, 60), 100, 200])
def test_paper_ranks_lose_one_more_at_the_top(n):
    ours, papers = stats.median_ranks(n), stats.paper_ranks(n)
    assert (papers.low, papers.high) == (ours.low - 1, ours.high)
    assert (papers.first, papers.last) == (ours.first, ours.last - 1)
    assert papers.confidence_level == coverage(n, papers.low, papers.high)


@pytest.mark.parametrize("n", [6, 7, 8])
def test_paper_ranks_without_a_rank_0(n):
    with pytest.raises(
        ValueError, match=rf"`n`={n} at `confidence_level`=0.95: k = 0.*write median_ranks\({n}, 0.95\)"
    ):
        stats.paper_ranks(n)


@pytest.mark.parametrize("function", [stats.median_ranks, stats.paper_ranks])
@pytest.mark.parametrize(("n", "best"), [(5, 0.9375), (4, 0.875), (2, 0.5)])
def test_too_few_samples_name_the_remedy(function, n, best):
    message = rf"`confidence_level`=0.95: got {n}, at least 6 are needed, or write confidence_level={best}, the most"
    with pytest.raises(ValueError, match=message):
        function(n)
    assert stats.median_ranks(n, best).low == 1


def test_one_sample_has_no_interval():
    with pytest.raises(ValueError, match=r"`confidence_level`=0.5: got 1, at least 2 are needed$"):
        stats.median_ranks(1, 0.5)


@pytest.mark.parametrize(
    ("arguments", "fewest"),
    [
        ({"alternative": "greater"}, 5),
        ({"alternative": "less"}, 5),
        ({}, 6),
        ({"n_tests": 50_176}, 21),
        ({"alpha": 0.5}, 2),
        ({"alpha": 0.5, "alternative": "less"}, 1),
        ({"alpha": 2.0**-10, "alternative": "less"}, 10),
        ({"alpha": 2.0**-10, "n_tests": 2**10}, 21),
    ],
)
def test_min_samples(arguments, fewest):
    assert stats.min_samples(**arguments) == fewest


def test_min_samples_is_the_smallest_that_a_test_can_use():
    for alpha in (0.3, 0.05, 0.01, 1e-5):
        n = stats.min_samples(alpha)
        assert stats.sign_test([1.0] * n, 0).pvalue <= alpha < stats.sign_test([1.0] * (n - 1), 0).pvalue
        assert stats.median_ranks(n, 1 - alpha).low == 1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: stats.median_ranks(0), ValueError, "`n` must be at least 1, got 0"),
        (lambda: stats.median_ranks(10.0), TypeError, "`n` must be an integer, got float: 10.0"),
        (lambda: stats.median_ranks(True), TypeError, "`n` must be an integer, got bool: True"),
        (lambda: stats.median_ranks(10, 95), ValueError, "`confidence_level` .* got 95.0; for 95 % write 0.95"),
        (lambda: stats.median_ranks(10, 1.0), ValueError, "`confidence_level` .* got 1.0$"),
        (lambda: stats.median_ranks(10, float("nan")), ValueError, "`confidence_level` .* got nan$"),
        (lambda: stats.median_ranks(10, True), TypeError, "`confidence_level` .* got bool: True"),
        (lambda: stats.median_ranks(10, "0.95"), TypeError, "`confidence_level` .* got str: '0.95'"),
        (lambda: stats.min_samples(0.0), ValueError, "`alpha` .* got 0.0$"),
        (lambda: stats.min_samples(alternative="both"), ValueError, "'two-sided', 'greater', 'less', got 'both'"),
        (lambda: stats.min_samples(alternative=1), TypeError, "`alternative` must be one of .*, got int: 1"),
        (lambda: stats.min_samples(n_tests=0), ValueError, "`n_tests` must be at least 1, got 0"),
        (lambda: stats.Ranks(5, 0, 5, 1, 5, 0.9), ValueError, "`low` and `high` .* <= 5, got 0, 5"),
        (lambda: stats.Ranks(5, 1, 5, 4, 3, 0.9), ValueError, "`first` and `last` .* <= 5, got 4, 3"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_more_samples_than_exact_ranks_are_made_for():
    with pytest.raises(ValueError, match=r"`n` must be at most 100,000, got 100000000"):
        stats.median_ranks(100_000_000)


# ---- several features together


@pytest.mark.parametrize("n", [21, 22, 50, 100])
def test_of_many_features_the_ranks_are_the_innermost_that_bonferroni_allows(n):
    ranks = stats.median_ranks(n, n_features=224 * 224)
    missed = [2 * scipy.stats.binom.cdf(k - 1, n, 0.5) * 224 * 224 for k in (ranks.low, ranks.low + 1)]  # P(B < k)
    assert missed[0] <= 0.05 < missed[1]
    assert ranks.high == n + 1 - ranks.low
    assert ranks.confidence_level == pytest.approx(1 - missed[0], rel=1e-9)
    assert ranks.confidence_level >= 0.95


def test_few_samples_for_many_features_name_the_remedy():
    message = r"`confidence_level`=0.95 of 50176 features together: got 20, at least 21 are needed, or write confidence"
    with pytest.raises(ValueError, match=message) as caught:
        stats.median_ranks(20, n_features=50_176)
    best = float(str(caught.value).split("confidence_level=")[1].split(",")[0])
    assert stats.median_ranks(20, best, n_features=50_176).low == 1
    assert stats.min_samples(n_tests=50_176) == 21
    with pytest.raises(ValueError, match=r"got 3, at least 21 are needed$"):
        stats.median_ranks(3, n_features=50_176)
    for n_features in (0, -1):
        with pytest.raises(ValueError, match="`n_features` must be at least 1"):
            stats.median_ranks(50, n_features=n_features)


def test_one_feature_is_the_usual_case():
    assert stats.median_ranks(50, 0.9, n_features=1) == stats.median_ranks(50, 0.9)
    assert stats.sequence_ranks(50, 0.9, n_features=1) == stats.sequence_ranks(50, 0.9)


def test_at_any_time_the_level_is_shared_too():
    ranks, alone = stats.sequence_ranks(100, n_features=50_176), stats.sequence_ranks(100)
    assert ranks.sequential
    assert ranks.low < alone.low
    logs = stats.log_e_values([100 - ranks.low, 100 - ranks.low + 1], 100)
    assert logs[0] < math.log(2 * 50_176 / (1 - 0.95)) <= logs[1]
    needed = r"of 50176 features together at any time: got 10, at least (\d+) are needed"
    with pytest.raises(ValueError, match=needed) as caught:
        stats.sequence_ranks(10, n_features=50_176)
    least = int(str(caught.value).split("at least ")[1].split()[0])
    assert stats.sequence_ranks(least, n_features=50_176).low == 1
    with pytest.raises(ValueError, match=f"at least {least} are needed"):
        stats.sequence_ranks(least - 1, n_features=50_176)


def test_all_intervals_cover_together():
    """Of 40 features, every other the opposite of its neighbour, hardly any interval misses its median."""
    rng = np.random.default_rng(0)
    missed = alone = 0
    for _ in range(200):
        samples = rng.normal(size=(30, 40))
        samples[:, 1::2] = -samples[:, ::2]
        together = stats.median_interval(samples, ranks=stats.median_ranks(30, 0.9, n_features=40))
        single = stats.median_interval(samples, ranks=stats.median_ranks(30, 0.9))
        missed += bool(((together.low > 0) | (together.high < 0)).any())
        alone += bool(((single.low > 0) | (single.high < 0)).any())
    assert missed <= 32  # of at most 20 expected; false alarm 3e-3 at most
    assert alone > 100
