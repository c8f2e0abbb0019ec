"""Null law of the sign test: the tails of B ~ Binomial(n, 1/2), as exact integers over 2**n.

Each binomial coefficient is the one before it times a small fraction, so one pass of big-integer sums gives every tail.
A float appears only in the last division, which Python rounds correctly (to 0.0 below the smallest subnormal).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import islice

import numpy as np

__all__ = ["MOST_SAMPLES", "fewest_samples", "largest_count", "lower_tails", "upper_tail_table"]

MOST_SAMPLES = 100_000  # beyond it, exact tails take minutes: the time grows with the square


def lower_tails(n: int) -> Iterator[int]:
    """Yield ``2**n * P(B <= k)`` for k = 0, ..., n."""
    term = tail = 1
    for k in range(n + 1):
        yield tail
        term = term * (n - k) // (k + 1)
        tail += term


@lru_cache(maxsize=32)
def upper_tail_table(n: int) -> np.ndarray:
    """``P(B >= k)`` for k = 0, ..., n, each the float64 nearest to the exact tail; read-only."""
    whole = 1 << n
    table = np.ones(n + 1)
    for k, tail in enumerate(islice(lower_tails(n), (n + 1) // 2)):  # the other half by symmetry
        table[n - k] = tail / whole
        table[k + 1] = (whole - tail) / whole
    table.flags.writeable = False
    return table


@lru_cache(maxsize=256)
def largest_count(n: int, level: Fraction) -> tuple[int, int]:
    """Largest k with ``P(B <= k) <= level``, and the integer ``2**n * P(B <= k)``; ``(-1, 0)`` if there is none."""
    limit = level.numerator << n
    found = (-1, 0)
    for k, tail in enumerate(lower_tails(n)):
        if tail * level.denominator > limit:
            break
        found = (k, tail)
    return found


def fewest_samples(level: Fraction) -> int:
    """Smallest n whose extreme tail ``P(B <= 0) = 2**-n`` is at most `level`."""
    least = -(-level.denominator // level.numerator)  # the ceiling of 1 / level: 2**n must reach it
    return (least - 1).bit_length()
