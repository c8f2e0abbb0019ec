"""The samples of each feature in ascending order, or as much of the order as is needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa._arrays import namespace
from metfa.stats._ranks import Ranks
from metfa.stats.blocks import comparable

__all__ = ["middle_of", "ordered_copy", "side_by_side"]


def side_by_side(rows: np.ndarray) -> np.ndarray:
    """A copy with the samples of a feature side by side, so that sorting runs along memory."""
    return np.array(comparable(rows), order="C")


def ordered_copy(rows: Any) -> tuple[Any, Any]:
    """Ascending copy of `rows`, in a comparable dtype, and the number of NaN in each."""
    if not isinstance(rows, np.ndarray):
        rows, xp = comparable(rows), namespace(rows)
        return xp.sort(rows, axis=-1), xp.count_nonzero(rows != rows, axis=-1)  # only NaN differs from itself
    ordered = side_by_side(rows)
    ordered.sort(axis=-1)
    return ordered, _missing(ordered, ordered[..., -1])  # NaN come last


def _missing(ordered: np.ndarray, last: np.ndarray) -> np.ndarray:
    """The number of NaN in each row, of which those that hold any have one as `last`."""
    if not (last != last).any():
        return np.zeros(last.shape, np.int64)
    return np.count_nonzero(ordered != ordered, axis=-1)


def middle_of(rows: np.ndarray, ranks: Ranks) -> tuple[np.ndarray, np.ndarray]:
    """The one or two order statistics of `ranks`, and the number of NaN in each row: no other need be in order."""
    parted = side_by_side(rows)
    parted.partition(ranks.last - 1, axis=-1)
    upper = parted[..., ranks.last - 1 :]
    found = upper[..., :1]
    if ranks.first < ranks.last:
        found = np.concatenate([parted[..., : ranks.first].max(axis=-1, keepdims=True), found], axis=-1)
    return found, _missing(parted, upper.max(axis=-1))
