"""What the `report` and `explore` methods of results take, for type checkers and editors."""

from __future__ import annotations

from typing import Any, TypedDict

__all__ = ["PageSettings", "ReportSettings"]


class PageSettings(TypedDict, total=False):
    """What a page begins with, see `metfa.report.write`."""

    regions: Any
    threshold: Any
    alpha: float | None
    correction: str | None
    split: int | None
    confidence_level: float
    flips_from: float
    kind: Any


class ReportSettings(PageSettings, total=False):
    """Arguments of `metfa.report.write` after the results."""

    title: str
    overwrite: bool
