"""Checks of numbers and names in arguments, which several layers share."""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Iterable
from numbers import Real
from typing import Any

__all__ = ["check_flag", "check_number", "did_you_mean", "is_text", "positive_int"]


def positive_int(value: Any, name: str, minimum: int = 1) -> int:
    """`value` as an int of at least `minimum`; else a TypeError or ValueError that names the argument."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"`{name}` must be an integer, got {type(value).__name__}: {value!r}")
    number = operator.index(value)
    if number < minimum:
        raise ValueError(f"`{name}` must be at least {minimum}, got {number}")
    return number


def check_number(value: Any, name: str, *, least: float = 0.0, above: float = -math.inf) -> None:
    """Raise unless `value` is a finite number, at least `least` (-inf allows any) and larger than `above`."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"`{name}` must be a number, got {type(value).__name__}: {value!r}")
    if not (math.isfinite(value) and least <= float(value) > above):
        allowed = f" and at least {least:g}" if least else " and not negative"
        if above >= least:
            allowed = f" and above {above:g}" if math.isfinite(above) else ""
        raise ValueError(f"`{name}` must be finite{allowed}, got {value}")


def check_flag(value: Any, name: str) -> None:
    """Raise unless `value` is True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"`{name}` must be True or False, got {type(value).__name__}: {value!r}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """End of an error message: the known name that is nearest to `name`, ignoring case, or nothing."""
    spelt = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(name.casefold(), spelt, n=1)
    return f", did you mean {spelt[close[0]]!r}?" if close else ""


def is_text(row: Any) -> bool:
    """Whether this is one text: a str, or the list of its tokens."""
    return isinstance(row, str) or (isinstance(row, list | tuple) and all(isinstance(token, str) for token in row))
