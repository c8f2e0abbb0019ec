"""The incomplete beta function against SciPy, and where that has too few digits, against sums and series."""

import math
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from scipy import special

from metfa.stats._incomplete_beta import log_beta_ratio, log_binomial_tail, log_regularised_beta


def test_against_scipy():
    rng = np.random.default_rng(0)
    a, b = 10 ** rng.uniform(-1, 3, (2, 5000))
    x = rng.uniform(1e-3, 1 - 1e-3, 5000)
    found = log_regularised_beta(x, a, b)
    expected = special.betainc(a, b, x)
    seen = expected > 1e-200  # below, SciPy's own digits go
    np.testing.assert_allclose(np.exp(found[seen]), expected[seen], rtol=1e-9)
    assert seen.sum() > 3000


@pytest.mark.parametrize("n", [1, 7, 200, 3000])
def test_tails_of_a_fair_coin_are_exact_sums(n):
    """Also those of 10^-900, for which floats have no room."""
    tails = list(accumulate(math.comb(n, k) for k in range(n, 0, -1)))[::-1]  # of counts 1, ..., n
    exact = [_log_of(tail, 2**n) for tail in tails]
    np.testing.assert_allclose(log_binomial_tail(np.arange(1, n + 1), n, 0.5), exact, rtol=1e-13, atol=1e-12)


def test_tails_of_another_coin():
    n, p = 30, Fraction(1, 8)
    for count in (1, 4, 17, 30):
        exact = sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(count, n + 1))
        assert float(log_binomial_tail(count, n, float(p))) == pytest.approx(math.log(exact), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("probability", [0.5, 0.9])
@pytest.mark.parametrize("n", [1_000, 1_000_000])
def test_many_against_the_series_with_forty_digits(optional, n, probability):
    """At distances from the mean of up to 30 standard deviations, on both sides."""
    mp = optional("mpmath")
    deviation = math.sqrt(n * probability * (1 - probability))
    with mp.workdps(40):
        for distance in (-30, -8, -1, 0, 1, 8, 30):
            a = round(n * probability + distance * deviation) + 0.5
            b = n + 1 - a
            if min(a, b) <= 0:
                continue
            found = float(log_regularised_beta(probability, a, b))
            assert found == pytest.approx(float(_by_series(mp, probability, a, b)), rel=1e-13, abs=1e-11)


def test_all_of_a_million():
    n = 1_000_000
    assert float(log_binomial_tail(n, n, 0.5)) == pytest.approx(-n * math.log(2), rel=1e-14)
    assert float(log_binomial_tail(1, n, 0.5)) == 0


def test_a_probability_that_a_float_cannot_part_from_one():
    """1 - x is given beside x; of b = 1, I is x^a, and of a = 1, 1 - (1-x)^b."""
    for rest in (1e-20, 1e-300):
        assert float(log_regularised_beta(1.0, 7.0, 1.0, rest=rest)) == pytest.approx(-7 * rest, abs=1e-15)
        assert float(log_regularised_beta(rest, 7.0, 1.0, rest=1.0)) == pytest.approx(7 * math.log(rest), rel=1e-14)
    assert float(log_regularised_beta(0.3, 1.0, 5.0)) == pytest.approx(math.log(1 - 0.7**5), rel=1e-14)


def test_the_ratio_leaves_out_the_powers():
    x, a, b = np.array([0.2, 0.5, 0.8]), np.array([3.5, 0.5, 40.0]), np.array([2.0, 0.5, 7.5])
    expected = special.betainc(a, b, x) * special.beta(a, b) / (x**a * (1 - x) ** b)
    np.testing.assert_allclose(np.exp(log_beta_ratio(x, a, b)), expected, rtol=1e-12)


def _log_of(numerator, denominator):
    """Logarithm of a ratio of integers, exact to a float also near 1 and beyond a float's range."""
    rest = denominator - numerator
    if 2 * numerator > denominator:
        return math.log1p(-float(Fraction(rest, denominator)))
    return math.log(numerator) - math.log(denominator)


def _by_series(mp, x, a, b):
    """I = x^a (1-x)^b / (a B(a, b)) (1 + (a+b)/(a+1) x + ...), of positive terms; beyond the mean 1 minus the other."""
    x, a, b = mp.mpf(x), mp.mpf(a), mp.mpf(b)
    if x > a / (a + b):
        return mp.log1p(-mp.exp(_by_series(mp, 1 - x, b, a)))
    term = total = mp.mpf(1)
    k = 0
    while term > total * mp.mpf(10) ** -30:
        term *= (a + b + k) / (a + 1 + k) * x
        total += term
        k += 1
    log_beta = mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)
    return a * mp.log(x) + b * mp.log1p(-x) - mp.log(a) - log_beta + mp.log(total)
