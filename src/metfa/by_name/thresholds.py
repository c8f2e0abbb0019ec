"""Threshold by name, as the command line and study files write it."""

from __future__ import annotations

import math
from collections.abc import Callable

from metfa.results.rules import RULES

__all__ = ["threshold_of"]


def threshold_of(text: str, name: str) -> Callable[..., float] | float:
    """Rule or number from its text form, a name such as ``jenks`` or a number; errors call it `name`."""
    if text in RULES:
        return RULES[text]
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(
            f"{name} must be 'jenks_of_medians' (natural break of the medians), 'jenks_of_means', 'jenks' (of all "
            f"scores) or a number, got {text!r}"
        )
    return number
