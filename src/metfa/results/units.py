"""What counts as a whole score, in the units of the maps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from metfa._base.mapped import at_features
from metfa._base.validation import as_list, check_number
from metfa.results.moments import largest_of, mean_of, median_of
from metfa.stats.blocks import sums_over

__all__ = ["checked_unit", "unit_of"]

SMALL = 1024  # features of a map of which all medians are computed, for all inputs at once
CANDIDATES = 32  # features with large means, whose medians bound the largest one from below


def unit_of(vanilla: np.ndarray | None, samples: np.ndarray) -> np.ndarray:
    r"""Unit of each input, (batch,) float64, from its clean map (batch, \*features) and samples (n, batch, \*features).

    It is the smaller of the largest absolute clean score and the largest absolute median: one of the two may be wild,
    as at a pole or in a saturated place, and a unit that is too large hides what is there. A population (None) has no
    clean map.
    """
    if math.prod(samples.shape[2:]) <= SMALL:
        medians = largest_of(median_of(samples))
    else:
        medians = np.array([_largest_median(samples[:, row]) for row in range(samples.shape[1])])
    return medians if vanilla is None else np.minimum(largest_of(vanilla), medians)


def _largest_median(values: np.ndarray) -> float:
    r"""Largest absolute median of samples (n, \*features).

    The features with the largest means give a bound. Only features with half of their samples beyond it can exceed it,
    so few medians are computed.
    """
    n = len(values)
    means = np.abs(mean_of(values)).ravel()
    if not means.size:
        return 0.0
    bound = _at(values, np.argsort(means, kind="stable")[-CANDIDATES:])

    def add_beyond(total: np.ndarray, sample: np.ndarray, _: Any) -> None:
        total += np.abs(sample) > bound

    more = np.flatnonzero(2 * sums_over(values, add_beyond, np.int64) >= n)
    return max(bound, _at(values, more)) if more.size else bound


def _at(values: np.ndarray, features: np.ndarray) -> float:
    """Largest absolute median of some features."""
    return float(np.abs(median_of(at_features(values, features))).max())


def checked_unit(unit: Any) -> float | np.ndarray | None:
    """`unit` as a float, a read-only array (batch,) of float64, or None; raises for anything else."""
    if unit is None:
        return None
    if not isinstance(unit, np.ndarray | list):
        return check_number(unit, "unit")
    numbers = np.array(
        [check_number(number, "unit") for number in as_list(unit, "unit", "a number, or one for each input")]
    )
    if numbers.ndim != 1:
        raise ValueError(f"`unit` must be one number, or one for each input, got shape {numbers.shape}")
    numbers.flags.writeable = False
    return numbers
