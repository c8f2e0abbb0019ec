"""Paired differences over the same inputs: which ones to take, and the exact sign test of each, corrected together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from metfa import stats
from metfa.evaluation.selection import FAILED
from metfa.results.corrections import E_VALUES, check_correction

__all__ = ["ALPHA", "Verdict", "checked_correction", "minus", "verdicts"]

ALPHA = 0.05  # 1 - the level of the intervals of tables
ROUNDING = 1e-6  # relative; means of float32 differ by less if nothing does


@dataclass(frozen=True)
class Verdict:
    """Of the median of paired differences: is it above or below 0?

    Attributes
    ----------
    above, below, ties : int
        Numbers of inputs with a difference above, below and equal to 0.
    pvalue : float
        Two-sided p-value of the exact sign test; ties count for neither side.
    adjusted : float
        The p-value, corrected over the whole table.
    better : {"higher", "lower", None}
        The direction that is better, if one is.
    needed : int or None
        If so few inputs could not decide anything: the least number that could.
    """

    above: int
    below: int
    ties: int
    pvalue: float
    adjusted: float
    better: str | None = None
    needed: int | None = None

    @property
    def mark(self) -> int:
        """+1: the median difference is above 0; -1: below; 0: not shown to differ, which is not the same as equal."""
        if self.adjusted > ALPHA:
            return 0
        return 1 if self.above > self.below else -1

    def __str__(self) -> str:
        if self.mark:
            side = "higher" if self.mark > 0 else "lower"
            return side if self.better is None else "better" if side == self.better else "worse"
        return "not shown to differ" if self.needed is None else f"too few inputs, at least {self.needed} needed"

    @property
    def text(self) -> str:
        """The verdict with its p-value, and the number of ties if there are any."""
        ties = f", {self.ties} {'tie' if self.ties == 1 else 'ties'}" if self.ties else ""
        return f"{self} (p = {self.adjusted:.2g}{ties})"


def checked_correction(correction: Any) -> str | None:
    """The name of a correction for p-values of a fixed number of inputs; None for none."""
    found = check_correction(correction)
    if found in E_VALUES:
        raise ValueError(
            f"`correction` {found!r} is for sampling that may stop at any time, and the inputs of a study are fixed: "
            "write 'holm', 'bonferroni', 'bh', 'by' or 'none'"
        )
    return found


def minus(
    figures: Mapping[Any, float | str], others: Mapping[Any, float | str], name: str, absent: str
) -> list[float | str]:
    """Differences by input, or the reason why an input has none; those of rounding are 0.

    Parameters
    ----------
    figures, others : mapping
        From the identity of an input to its figure, or to the reason why it is missing.
    name : str
        Of the others, for the reasons.
    absent : str
        The reason for an input that the others do not have at all.
    """
    found: list[float | str] = []
    for key, figure in figures.items():
        other = others.get(key)
        if isinstance(figure, str):
            found.append(figure)
        elif other is None:
            found.append(absent)
        elif isinstance(other, str):
            found.append(other if other == FAILED else f"{other} (of {name})")  # failures have a note of their own
        else:
            least = ROUNDING * max(abs(figure), abs(other))
            found.append(figure - other if abs(figure - other) > least else 0.0)
    return found


def verdicts(
    columns: Sequence[Sequence[float | str]], better: Sequence[str | None], correction: str | None
) -> list[Verdict | None]:
    """The verdict on each column of differences, corrected over all; None for a column without any."""
    known = [np.array([value for value in column if not isinstance(value, str)]) for column in columns]
    places = [place for place, values in enumerate(known) if len(values)]
    tests = [stats.sign_test(known[place], 0.0) for place in places]
    pvalues = np.array([float(test.pvalue) for test in tests])
    adjusted = stats.correct(pvalues, correction) if places else pvalues
    found: list[Verdict | None] = [None] * len(columns)
    for index, (place, test) in enumerate(zip(places, tests, strict=True)):
        above, below = int(test.above), int(test.below)
        needed = None
        if adjusted[index] > ALPHA and _best(pvalues, index, test.n, correction) > ALPHA:
            needed = next(n for n in count(test.n + 1) if _best(pvalues, index, n, correction) <= ALPHA)
        found[place] = Verdict(
            above, below, test.n - above - below, float(pvalues[index]), float(adjusted[index]), better[place], needed
        )
    return found


def _best(pvalues: np.ndarray, index: int, n: int, correction: str | None) -> float:
    """The corrected p-value of one test if all of its n inputs agreed, beside the other tests as they are."""
    best = pvalues.copy()
    best[index] = min(1.0, 2 * 0.5**n)
    return float(stats.correct(best, correction)[index])
