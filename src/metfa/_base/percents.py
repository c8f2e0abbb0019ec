"""Shares in percent, and counts of things: the one place where they become text."""

from __future__ import annotations

import math
from decimal import Decimal

__all__ = ["counted", "percent", "rows_of_one_call"]

DIGITS = 6  # of a number that somebody chose, such as alpha: 0.025 is 2.5%, 1/3 is 33.3333%
MOST_PLACES = 17  # a float below 1 needs no more; smaller shares are written as powers of ten


def percent(share: float, places: int | None = None) -> str:
    """A share such as 0.025 as text, "2.5%"; what is not 0 or 1 is never written as 0% or 100%.

    Parameters
    ----------
    share : float
        Usually from 0 to 1.
    places : int, optional
        Digits behind the point; more are shown where these would read 0 or 100 for a share that is neither. None: all
        digits of a number that somebody chose, up to six significant ones of the share or of what is missing to 1.

    Returns
    -------
    str
        The decimal number that Python shows for `share`, times 100, correctly rounded (half to even) to the digits that
        are shown.
    """
    if not math.isfinite(share):
        return "–"
    exact = Decimal(repr(float(share)))
    value = exact.scaleb(2)
    least = min(abs(exact), abs(1 - exact)).scaleb(2)  # distance from what it must not be mistaken for
    if places is None:
        places = max(0, DIGITS - 1 - least.adjusted()) if least else 0
        shown = _rounded(value, min(places, MOST_PLACES)).normalize()
    else:
        shown = _rounded(value, places)
    if shown in (0, 100) and least:
        needed = -least.adjusted()
        if needed > MOST_PLACES:
            return f"{100 * float(share):.1g}%"
        shown = _rounded(value, needed)
    return f"{shown:f}%"


def counted(count: int, noun: str) -> str:
    """A number of things, such as "1 word" or "1,000 words"."""
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s"


def rows_of_one_call(count: int, n_rows: int) -> str:
    """How many of the rows that an explainer got in one call, which it cannot tell from noisy copies of one input."""
    return f"{count:,} of {counted(n_rows, 'row')} of one call (inputs, or noisy copies of them)"


def _rounded(value: Decimal, places: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-places))
