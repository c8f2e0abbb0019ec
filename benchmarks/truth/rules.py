"""What decides: threshold rules of tested marks, and thresholds of one map alone to compare them with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import metfa
from metfa import stats

__all__ = [
    "AGAINST_REST", "CORRECTIONS", "DEFAULT", "FIXED", "OF_GIVEN_THRESHOLDS", "RULES", "SIGN", "UNTESTED",
    "corrections",
]  # fmt: skip

RULES: dict[str, Any] = {
    "break of all values": stats.jenks,
    "break of medians": stats.jenks_of_medians,
    "break of means": stats.jenks_of_means,
    "1 x mean": stats.TimesMean(1),
    "2 x mean": stats.TimesMean(2),
    "3 x mean": stats.TimesMean(3),
}
DEFAULT = next(name for name, rule in RULES.items() if rule == metfa.Terms().threshold)  # the library's own
FIXED = 0.05  # for tables, in standard deviations of what is predicted
SIGN = "sign, test(0)"  # for tables: is the median of the signed score on either side of 0?
CORRECTIONS = ("none", "bonferroni", "holm", "bh", "by", "e-bh")
OF_GIVEN_THRESHOLDS = (*CORRECTIONS, "closed-e-bh")  # e-BH decides in its place where the tested samples gave them
AGAINST_REST = "against the rest"  # for regions: do they get more than the rest of the image, or less?
UNTESTED: dict[str, Callable[[Any], float]] = {  # of one map, without samples behind it
    "vanilla > its break": stats.jenks,
    "mean > its break": stats.jenks,
}


def corrections(rule: str) -> tuple[str, ...]:
    """All of them of the library's rule and the paper's; none and BY of those that these are compared with."""
    if rule == AGAINST_REST or rule.startswith(">"):
        return OF_GIVEN_THRESHOLDS
    return CORRECTIONS if rule in (DEFAULT, "break of all values") else ("none", "by")
