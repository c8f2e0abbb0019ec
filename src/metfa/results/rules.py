"""Threshold rules by their names in files and on the command line. Each cuts any scores in two, also equal ones."""

from __future__ import annotations

from metfa import stats

__all__ = ["RULES"]

RULES = {
    "jenks": stats.jenks,
    "jenks_of_medians": stats.jenks_of_medians,
    "jenks_of_means": stats.jenks_of_means,
}
