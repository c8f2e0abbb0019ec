"""What decides: threshold rules of tested marks, and thresholds of one map alone to compare them with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from metfa import stats

__all__ = ["CORRECTIONS", "FIXED", "RULES", "SIGN", "UNTESTED"]

RULES: dict[str, Any] = {
    "break of all values": stats.jenks,
    "break of medians": stats.jenks_of_medians,
    "break of means": stats.jenks_of_means,
    "1 x mean": stats.TimesMean(1),
    "2 x mean": stats.TimesMean(2),
    "3 x mean": stats.TimesMean(3),
}
FIXED = 0.05  # for tables, in standard deviations of what is predicted
SIGN = "sign, test(0)"  # for tables: is the median of the signed score on either side of 0?
CORRECTIONS: tuple[str | None, ...] = (None, "by")
UNTESTED: dict[str, Callable[[Any], float]] = {  # of one map, without samples behind it
    "vanilla > its break": stats.jenks,
    "mean > its break": stats.jenks,
}
