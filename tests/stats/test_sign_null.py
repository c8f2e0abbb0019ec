"""Tails of Binomial(n, 1/2): exact, whatever n."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.special
import scipy.stats

from metfa.stats.sign_null import fewest_samples, largest_count, lower_tails, upper_tail_table


def slow_tail(n: int, k: int) -> Fraction:
    return Fraction(sum(math.comb(n, i) for i in range(k, n + 1)), 2**n)


@pytest.mark.parametrize("n", [*range(1, 61), 127, 200])
def test_every_tail_is_the_float_nearest_to_the_fraction(n):
    assert upper_tail_table(n).tolist() == [float(slow_tail(n, k)) for k in range(n + 1)]


@pytest.mark.parametrize("n", [1, 2, 7, 10, 60])
def test_lower_tails_run_up_to_one(n):
    assert list(lower_tails(n)) == [2**n * slow_tail(n, n - k) for k in range(n + 1)]


@pytest.mark.parametrize("n", [500, 2000, 20_001])
def test_large_n_agrees_with_scipy(n):
    k = np.arange(n + 1)
    np.testing.assert_allclose(upper_tail_table(n), scipy.stats.binom.sf(k - 1, n, 0.5), rtol=1e-9, atol=1e-300)


@pytest.mark.slow
def test_a_hundred_thousand_samples():
    n = 100_000
    table = upper_tail_table(n)
    middle = math.comb(n, n // 2)
    assert table[n // 2] == ((1 << n) + middle) / (1 << (n + 1))
    assert table[n // 2 + 1] == ((1 << n) - middle) / (1 << (n + 1))
    some = np.array([49_000, 49_700, 50_500, 51_000, 55_000])
    np.testing.assert_allclose(table[some], scipy.special.bdtrc(some - 1, n, 0.5), rtol=1e-9)
    assert table[0] == 1
    assert table[n] == 0
    assert np.all(np.diff(table) <= 0)


def test_tails_round_correctly_among_subnormals():
    least = 5e-324  # 2**-1074
    assert upper_tail_table(1074)[-1] == least
    assert upper_tail_table(1075)[-1] == 0  # half of it: a tie, to even
    assert upper_tail_table(1080)[-2] == 17 * least  # 1081 / 2**6 = 16.89


def test_tables_cannot_be_spoilt():
    with pytest.raises(ValueError, match="read-only"):
        upper_tail_table(10)[3] = 0


@pytest.mark.parametrize("n", range(1, 61))
@pytest.mark.parametrize(
    "level", [Fraction(1, 40), Fraction(1, 20), Fraction(1, 4), Fraction(3, 4), Fraction(1, 2**10)]
)
def test_largest_count_is_the_last_that_fits(n, level):
    k, tail = largest_count(n, level)
    fitting = [j for j in range(n + 1) if slow_tail(n, n - j) <= level]
    assert k == (fitting[-1] if fitting else -1)
    assert tail == (2**n * slow_tail(n, n - k) if fitting else 0)


def test_a_level_that_is_a_tail_is_reached():
    assert largest_count(10, Fraction(11, 1024)) == (1, 11)
    assert largest_count(10, Fraction(11, 1024) - Fraction(1, 2**80)) == (0, 1)


@pytest.mark.parametrize("level", [Fraction(1, 2), Fraction(1, 20), Fraction(1, 32), Fraction(1, 33), Fraction(2, 3)])
def test_fewest_samples(level):
    n = fewest_samples(level)
    assert Fraction(1, 2**n) <= level < Fraction(1, 2 ** (n - 1))
