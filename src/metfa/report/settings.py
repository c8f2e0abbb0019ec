"""What the `report` methods of results take, for type checkers and editors."""

from __future__ import annotations

from typing import Any, TypedDict

__all__ = ["ReportSettings"]


class ReportSettings(TypedDict, total=False):
    """Arguments of `metfa.report.write` after the results."""

    title: str
    regions: Any
    threshold: Any
    alpha: float | None
    correction: str | None
    split: int | None
    confidence_level: float
    flips_from: float
    kind: Any
    overwrite: bool
