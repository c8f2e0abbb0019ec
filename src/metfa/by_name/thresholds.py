"""Threshold by name, as the command line and study files write it."""

from __future__ import annotations

import math
from collections.abc import Callable

from metfa import stats

__all__ = ["threshold_of"]


def threshold_of(text: str, name: str) -> Callable[..., float] | float:
    """Rule or number from its text form, ``jenks`` or a number; errors call it `name`."""
    if text == "jenks":
        return stats.jenks
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name} must be 'jenks' (natural breaks) or a number, got {text!r}")
    return number
