"""Corrections for many features by name: which there are, which tests they take together, and the checks of both."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa._base.validation import did_you_mean, is_whole, shown

__all__ = [
    "ANY_TIME",
    "BOTH",
    "CORRECTIONS",
    "E_VALUES",
    "STATEMENTS",
    "UNPROVEN",
    "check_alpha",
    "check_correction",
    "check_families",
    "family_wise",
]

E_VALUES = ("e-bh", "closed-e-bh")  # those that always use e-values
CORRECTIONS = (None, "bonferroni", "holm", "bh", "by", *E_VALUES)
ANY_TIME = (None, "bonferroni", *E_VALUES)  # those that hold whenever sampling stops
UNPROVEN = "unproven with a threshold from the same samples"
STATEMENTS, BOTH = "statements", "both"  # each statement is a family of its own; one family for both


def family_wise(correction: str | None) -> bool:
    """Whether a correction bounds the probability of any false mark, not a share of the marks."""
    return correction in ("bonferroni", "holm")


def check_alpha(alpha: float) -> None:
    """Raise unless `alpha` is a level for decisions, in (0, 0.5)."""
    if not (isinstance(alpha, float | np.floating) or is_whole(alpha)):
        raise TypeError(f"`alpha` must be a number, got {shown(alpha)}")
    if not 0 < alpha < 0.5:
        raise ValueError(f"`alpha` must lie between 0 and 0.5, got {alpha}; 0.05 is usual")


def check_correction(correction: Any, *, any_time: bool = False) -> str | None:
    """`correction`, with "none" as None; raises if there is none of that name.

    With `any_time` it must be one that holds whenever sampling stops.
    """
    if not isinstance(correction, str | None):
        raise TypeError(f"`correction` must be a string or None, got {shown(correction)}")
    if correction == "none":
        return None
    if correction not in CORRECTIONS:
        names = ["none", *(name for name in CORRECTIONS if name)]
        raise ValueError(
            f"`correction` must be None or one of {', '.join(map(repr, names))}, got {correction!r}"
            f"{did_you_mean(str(correction), names)}"
        )
    if any_time and correction not in ANY_TIME:
        raise ValueError(
            f"`correction` must hold whenever sampling stops, and {correction!r} is for a number of samples that was "
            "fixed beforehand: write 'closed-e-bh' or 'e-bh' (false discovery rate, any dependence), 'bonferroni' or "
            "'none'"
        )
    return correction


def check_families(families: Any) -> str | None:
    """`families`; raises unless it is None or the name of a rule."""
    if not isinstance(families, str | None):
        raise TypeError(f"`families` must be a string or None, got {shown(families)}")
    if families not in (None, STATEMENTS, BOTH):
        raise ValueError(
            f"`families` must be 'statements' (each statement is a family of its own) or 'both' (one family for both), "
            f"got {families!r}{did_you_mean(families, [STATEMENTS, BOTH])}"
        )
    return families
