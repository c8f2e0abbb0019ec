"""Checks of plain arguments that several layers share."""

from __future__ import annotations

import operator
from typing import Any

__all__ = ["positive_int"]


def positive_int(value: Any, name: str, minimum: int = 1) -> int:
    """`value` as an int of at least `minimum`; TypeError or ValueError naming the argument otherwise."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"`{name}` must be an integer, got {type(value).__name__}: {value!r}")
    number = operator.index(value)
    if number < minimum:
        raise ValueError(f"`{name}` must be at least {minimum}, got {number}")
    return number
