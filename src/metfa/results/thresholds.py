"""Thresholds as numbers: what a rule finds in the samples, why it finds none, and the samples on either side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metfa import stats
from metfa._base.percents import counted
from metfa._base.validation import shown
from metfa._base.warnings import DegenerateAttributionsWarning, SignedAttributionsWarning, warn
from metfa.results.moments import ends_of, ends_of_each, first_signed
from metfa.results.rules import CUT, is_break
from metfa.results.terms import Terms, check_fits
from metfa.stats.counts import count_sides
from metfa.stats.prominences import smallest_difference
from metfa.stats.validation import as_rows

__all__ = [
    "UNMOVED", "flat_in_words", "flat_rows", "half", "number_of", "resolved", "ruled", "shared", "sides", "zone_of",
]  # fmt: skip

EQUAL = tuple(f"{cut} are equal" for cut in CUT.values())
NONE_FOUND = "the rule found no threshold"
UNMOVED = "all samples are the same"


def half(values: np.ndarray) -> float:  # noqa: ARG001
    """The rule for masks in [0, 1] that are all 0: nothing is above it, and no warning says so."""
    return 0.5


def flat_in_words(why: str, noun: str) -> str:
    """Why nothing is decided, after a colon: no feature stands out of the others, or nothing has moved at all."""
    return f"nothing is decided: {why}" if why == UNMOVED else f"no {noun} stands out: {why}"


def flat_rows(nothing: Sequence[str | None], noun: str) -> list[tuple[str, int]]:
    """The same of several inputs, shortly: what is so, and in how many of them."""
    still = sum(why == UNMOVED for why in nothing)
    flat = sum(why is not None for why in nothing) - still
    return [(said, n) for said, n in ((f"no {noun} stands out", flat), (UNMOVED, still)) if n]


def resolved(values: np.ndarray, terms: Terms, unmoved: np.ndarray) -> tuple[np.ndarray, tuple[str | None, ...]]:
    r"""Thresholds in a shape that broadcasts against (batch, \*features), and why there is none, for each input.

    A rule takes the first `split` samples, or all. Inputs that are `unmoved` (batch,), see `AttributionSample.unmoved`,
    get none, so that their samples, one explanation N times, are on neither side.
    """
    check_fits(terms, values.shape)
    given, nothing = terms.threshold, terms.nothing or (None,) * values.shape[1]
    if callable(given):
        given, nothing = ruled(given, values, terms.unit, terms.split)
    thresholds = _for_each_input(np.asarray(given), values.ndim)
    if unmoved.any():
        thresholds = np.where(_for_each_input(unmoved, values.ndim), math.nan, thresholds)
        nothing = tuple(UNMOVED if still else why for still, why in zip(unmoved, nothing, strict=True))
    return thresholds, nothing


def shared(thresholds: np.ndarray) -> float | None:
    """The threshold that all have in common, nan if there is none; None where they differ."""
    first = float(thresholds.flat[0]) if thresholds.size else math.nan
    return first if np.array_equal(thresholds, np.full_like(thresholds, first), equal_nan=True) else None


def _for_each_input(numbers: np.ndarray, ndim: int) -> np.ndarray:
    """One number for each input, (batch,), in a shape that broadcasts against one sample; other shapes as they are."""
    return numbers.reshape(-1, *[1] * (ndim - 2)) if numbers.ndim == 1 else numbers


def sides(values: np.ndarray, thresholds: np.ndarray, unit: Any) -> tuple[np.ndarray, np.ndarray]:
    r"""Numbers of samples (n, batch, \*features) above and below thresholds that broadcast against (batch, \*features).

    About the threshold 0, scores that count as 0 (see `Terms.unit`) are on neither side.
    """
    rows, n = as_rows(values, 0)
    zone = zone_of(thresholds, unit, values)
    if not zone.any():
        return count_sides(rows, n, thresholds)
    return count_sides(rows, n, thresholds + zone)[0], count_sides(rows, n, thresholds - zone)[1]


def zone_of(thresholds: np.ndarray, unit: Any, values: np.ndarray) -> np.ndarray:
    r"""How far from its threshold a score of samples (n, batch, \*features) counts for neither side.

    It is above 0 for the threshold 0 alone, which asks for a sign: a residue of rounding has one too.
    """
    if unit is None:
        return np.zeros(1)
    share = smallest_difference(np.asarray(unit, dtype=np.float64), values.dtype)
    return np.where(thresholds == 0, _for_each_input(share, values.ndim), 0.0)


def ruled(
    rule: Callable[[np.ndarray], Any], values: np.ndarray, unit: Any = None, split: int = 0
) -> tuple[np.ndarray, tuple[str | None, ...]]:
    r"""Threshold that `rule` finds in the first `split` (0: all) values (n, batch, \*features) of each input, (batch,).

    It is nan where there is none, and the second answer says why. There is no natural break where no feature stands out
    (`stats.prominence`), of which all samples are asked: that can only make fewer marks, so no error becomes
    more likely.
    """
    first = values[: split or None]
    ends = list(ends_of_each(first)) if is_break(rule) else []
    if (found := first_signed(ends)) is not None:
        row, lowest, highest = found
        warn(
            f"the attributions are signed (input {row}: from {lowest:.3g} to {highest:.3g}): natural breaks would "
            "call strong negative evidence unimportant; use the threshold 0 for positive / negative / undecided, or "
            "explain absolute values with `metfa.explainers.heatmap(explainer)`",
            SignedAttributionsWarning,
        )
    units = np.broadcast_to(np.array(unit, dtype=object), values.shape[1])
    found = [
        _of_input(rule, first[:, row], values[:, row], units[row], ends[row] if ends else None)
        for row in range(values.shape[1])
    ]
    flat = [(row, why) for row, (_, why) in enumerate(found) if why not in (None, NONE_FOUND, *EQUAL)]
    if flat:
        warn(
            f"no feature{_where(flat, values)} stands out: {flat[0][1]}. So nothing is decided; a number as "
            "`threshold` asks on which side of it the medians lie",
            DegenerateAttributionsWarning,
        )
    equal = [(row, low) for row, (low, high) in enumerate(ends) if _are_equal(low, high)]
    if equal:
        where = _where(equal, values, f" (all {equal[0][1]})")
        warn(f"no threshold separates the equal values{where}: nothing is decided", DegenerateAttributionsWarning)
    return np.array([number for number, _ in found]), tuple(why for _, why in found)


def _where(rows: list[Any], values: np.ndarray, about: str = "") -> str:
    """The first of these inputs, what is said about it, and how many others there are; one alone is not named."""
    others = f" and of {counted(len(rows) - 1, 'other')}" if len(rows) > 1 else ""
    return f" of input {rows[0][0]}{about}{others}" if values.shape[1] > 1 else about


def _are_equal(low: float, high: float) -> bool:
    return low == high and math.isfinite(low)


def _of_input(
    rule: Callable[[np.ndarray], Any],
    first: np.ndarray,
    values: np.ndarray,
    unit: float | None,
    ends: tuple[float, float] | None,
) -> tuple[float, str | None]:
    if not is_break(rule):
        found = _of_rule(rule, first)
        return found, NONE_FOUND if math.isnan(found) else None
    low, high = ends_of(first) if ends is None else ends
    if _are_equal(low, high):
        return math.nan, f"{CUT[stats.jenks]} are equal"
    differ = low < high and math.isfinite(low) and math.isfinite(high)  # else the rule says what is wrong
    if differ and (why := stats.prominence(values, unit=unit).nothing) is not None:
        return math.nan, why
    found = _of_rule(rule, first)
    return found, f"{CUT[rule if differ else stats.jenks]} are equal" if math.isnan(found) else None


def _of_rule(rule: Callable[[np.ndarray], Any], values: np.ndarray) -> float:
    try:
        returned = rule(values)
    except (TypeError, ValueError) as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
            raise  # from inside a rule of the user's
        raise type(error)(f"`threshold` is no rule, a function values -> number, got {shown(rule)}: {error}") from None
    found = number_of(returned)
    if rule is half or is_break(rule) or math.isnan(found):
        return found
    low, high = float(values.min()), float(values.max())
    if not low <= found <= high:
        warn(
            f"the threshold rule {getattr(rule, '__name__', rule)} returned {found:.6g}, outside all scores ({low:.3g} "
            f"to {high:.3g}): every feature lies on the same side",
            DegenerateAttributionsWarning,
        )
    return found


def number_of(returned: Any) -> float:
    """What a rule returned, as one number, nan if it found none; raises for anything else."""
    try:
        if isinstance(returned, str | bytes | bool | np.bool_):
            raise TypeError
        found = float(returned)
    except (TypeError, ValueError):
        raise TypeError(f"`threshold`: a threshold rule must return one number, got {shown(returned)}") from None
    if math.isinf(found):
        raise ValueError(
            f"`threshold`: a threshold rule must return a finite number, or nan where there is none, got {found}"
        )
    return found
