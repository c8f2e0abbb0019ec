"""What counts as a whole score, in the units of the maps."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa._base.validation import check_number

__all__ = ["checked_unit", "largest_of"]


def checked_unit(unit: Any) -> float | np.ndarray | None:
    """`unit` as a float, a read-only array (batch,) of float64, or None; raises for anything else."""
    if unit is None:
        return None
    numbers = unit if isinstance(unit, np.ndarray | list) else [unit]
    for number in numbers:
        check_number(number, "unit")
    if numbers is not unit:
        return float(unit)
    numbers = np.array(unit, dtype=np.float64)
    if numbers.ndim != 1:
        raise ValueError(f"`unit` must be one number, or one for each input, got shape {numbers.shape}")
    numbers.flags.writeable = False
    return numbers


def largest_of(maps: np.ndarray) -> np.ndarray:
    r"""Largest absolute score of each map (batch, \*features), (batch,) float64."""
    return np.abs(maps.reshape(len(maps), -1).astype(np.float64)).max(axis=1, initial=0.0)
