"""What methods take of `Terms` besides a threshold, for type checkers and editors."""

from __future__ import annotations

from typing import TypedDict

__all__ = ["TermSettings"]


class TermSettings(TypedDict, total=False):
    """Arguments of `AttributionSample.terms` after the threshold."""

    alpha: float | None
    correction: str | None
    split: int | None
