"""Threshold rules by their names in files and on the command line, and which of them is usual.

Each is a natural break: it cuts any scores in two, also equal ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metfa import stats

__all__ = [
    "CUT",
    "RULES",
    "USUAL",
    "USUAL_ONCE",
    "AfterALook",
    "break_in_words",
    "is_break",
    "saw_tested",
    "use_of_split",
]

RULES = {
    "jenks": stats.jenks,
    "jenks_of_medians": stats.jenks_of_medians,
    "jenks_of_means": stats.jenks_of_means,
}
CUT: dict[Any, str] = dict(zip(RULES.values(), ("all scores", "the medians", "the means"), strict=True))
USUAL = "jenks_of_medians"  # by the evidence of docs/background/truth.rst
USUAL_ONCE = "jenks"  # of results that do not say which rule was usual when they were made


def is_break(threshold: object) -> bool:
    """Whether a threshold is a rule that cuts any scores in two, so that it must be asked whether anything differs."""
    return any(threshold is rule for rule in RULES.values())


def break_in_words(threshold: Any) -> str | None:
    """What such a rule is called in texts, such as "natural break of the medians"; None for other thresholds."""
    return f"natural break of {CUT[threshold]}" if is_break(threshold) else None


@dataclass(frozen=True)
class AfterALook:
    """A number that somebody chose after a look at all samples: a rule, as it depends on them."""

    number: float

    def __call__(self, values: Any) -> float:  # noqa: ARG002
        """The number."""
        return self.number


def saw_tested(threshold: object, split: int) -> bool:
    """Whether a threshold depends on the samples that are tested, all but the first `split`."""
    return callable(threshold) and (not split or isinstance(threshold, AfterALook))


def use_of_split(threshold: object, verb: str = "") -> str:
    """What the first samples that are left out were for, in words."""
    return "not tested" if isinstance(threshold, AfterALook) else f"{verb}for the threshold alone"
