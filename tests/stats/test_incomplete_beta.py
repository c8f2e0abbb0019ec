"""The incomplete beta function against SciPy, and where that has no digits left, against exact sums."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import special

from metfa.stats._incomplete_beta import log_beta, log_binomial_tail, log_incomplete_beta


def test_against_scipy():
    rng = np.random.default_rng(0)
    a, b = 10 ** rng.uniform(-1, 3, (2, 5000))
    x = rng.uniform(1e-3, 1 - 1e-3, 5000)
    found = log_incomplete_beta(x, a, b) - log_beta(a, b)
    expected = special.betainc(a, b, x)
    seen = expected > 1e-200  # below, SciPy's own digits go
    np.testing.assert_allclose(np.exp(found[seen]), expected[seen], rtol=1e-9)
    assert seen.sum() > 3000


@pytest.mark.parametrize("n", [1, 7, 200, 3000])
def test_tails_of_a_fair_coin_are_exact_sums(n):
    """Also those of 10^-900, for which floats have no room."""
    counts = np.unique(np.linspace(1, n, 40).astype(int))
    total = [sum(math.comb(n, k) for k in range(count, n + 1)) for count in counts.tolist()]
    expected = [math.log(tail) - n * math.log(2) for tail in total]
    np.testing.assert_allclose(log_binomial_tail(counts, n, 0.5), expected, atol=1e-10 * n)


def test_tails_of_another_coin():
    n, p = 30, Fraction(1, 8)
    for count in (1, 4, 17, 30):
        exact = sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(count, n + 1))
        assert float(log_binomial_tail(count, n, float(p))) == pytest.approx(math.log(exact), rel=1e-12)


def test_a_million():
    n = 1_000_000
    counts = np.array([400_000, 499_000, 500_000, 501_000, 600_000, n])
    found = log_binomial_tail(counts, n, 0.5)
    np.testing.assert_allclose(np.exp(found[1:4]), special.betainc(counts[1:4], n - counts[1:4] + 1, 0.5), rtol=1e-7)
    assert found[0] == pytest.approx(0, abs=1e-12)
    assert found[-1] == pytest.approx(-n * math.log(2), rel=1e-12)
    assert (np.diff(found) < 0).all()
