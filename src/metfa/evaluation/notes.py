"""The notes below a table: why figures are missing, what failed, what cannot be compared."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from textwrap import shorten
from typing import TYPE_CHECKING

from metfa import stats
from metfa._base.percents import percent
from metfa.evaluation.selection import FAILED, Entry
from metfa.evaluation.tables import Cell, Table
from metfa.results.decisions import samples_for_interval
from metfa.sampling.rounds import RoundsUntil

if TYPE_CHECKING:
    from metfa.evaluation.results import Evaluation
    from metfa.results.until import Until

__all__ = ["about_failures", "about_levels", "about_missing", "about_trimming", "counted_inputs"]


def about_missing(table: Table, explainers: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Why figures are missing, apart from failures: each reason once, with its rows and columns.

    `explainers` has one name for each row, and `columns` are those of scores; other columns lack the same figures.
    """
    where: dict[str, dict[str, list[str]]] = {}  # by reason, then by explainer
    for explainer, row, line in zip(explainers, table.rows, table.cells, strict=True):
        why = {
            (column, place): _why(cell)
            for column, cells in zip(columns, line, strict=False)
            for place, cell in enumerate(cells)
        }
        for text in filter(None, dict.fromkeys(why.values())):
            mine = [key for key, found in why.items() if found == text]
            parts = [row]  # all of it, unless columns or maps are named
            if len(mine) < len(why):
                named = list(dict.fromkeys(column for column, _ in mine))
                places = sorted({place for _, place in mine})
                parts += named if len(named) < len(columns) else []
                parts += [table.maps[place] for place in places] if len(places) < len(table.maps) else []
            where.setdefault(text, {}).setdefault(explainer, []).append(", ".join(parts))
    notes = []
    for text, found in where.items():
        rows = [row for explainer, mine in found.items() for row in _shortest(explainer, mine, table, explainers)]
        notes.append(f"{'; '.join(rows)}: {text}")
    return notes


def _shortest(explainer: str, mine: list[str], table: Table, explainers: Sequence[str]) -> list[str]:
    """The explainer alone, if a reason holds for all of its rows."""
    whole = [row for of, row in zip(explainers, table.rows, strict=True) if of == explainer]
    return [explainer] if mine == whole else mine


def _why(cell: Cell) -> str:
    reasons = [(reason, count) for reason, count in cell.reasons if reason != FAILED]
    counted = f"{sum(count for _, count in reasons)} of {cell.n + cell.missing} missing: "
    if len(reasons) == 1:
        return counted + reasons[0][0]
    return counted + ", ".join(f"{reason} ({count})" for reason, count in reasons) if reasons else ""


def about_failures(evaluation: Evaluation, explainers: Sequence[str]) -> list[str]:
    """How many units of each explainer failed, and the error of the first."""
    notes = []
    for explainer in explainers:
        errors = [error for (_, name), error in evaluation.failed.items() if name == explainer]
        if errors:
            first = shorten(errors[0], 200, placeholder="...")
            count = f"{len(errors)} of {counted_inputs(evaluation)} failed"
            notes.append(f"{explainer}: {count}, the first with {first}")
    return notes


def counted_inputs(evaluation: Evaluation) -> str:
    """The number of inputs, in words."""
    n = len(evaluation.inputs)
    return f"{n} {'input' if n == 1 else 'inputs'}"


def about_trimming(entries: Sequence[Entry], rule: Until | None) -> list[str]:
    """The numbers of samples so small for their level that the smoothed map averages all samples."""
    if rule is not None:
        levels = dict.fromkeys(level for name, _, _, level in entries if name == "smoothed" and level is not None)
        return [note for level in levels for note in _trimmed_from(level, RoundsUntil(rule, 1).soonest)]
    whole = []
    for n, level in dict.fromkeys((n, level) for name, _, n, level in entries if name == "smoothed"):
        assert n is not None
        assert level is not None
        ranks = stats.median_ranks(n, level)
        if (ranks.first, ranks.last) == (1, n):
            whole.append(f"N = {n} and {percent(level)}")
    return [f"at {' and at '.join(whole)} no sample is trimmed: smoothed equals mean"] if whole else []


def _trimmed_from(level: float, soonest: int) -> list[str]:
    n = samples_for_interval(level)
    while stats.median_ranks(n, level).first == 1:
        n += 1
    if soonest >= n:
        return []
    return [f"at {percent(level)} no sample is trimmed for inputs with fewer than {n}: there smoothed equals mean"]


def about_levels(evaluation: Evaluation) -> list[str]:
    """Why explainers cannot be compared by mstd, which is in the units of their maps."""
    levels: dict[str, list[float]] = {}
    for (metric, explainer), maps in evaluation.found.items():
        if metric == "mstd":
            rows = [row for found in maps.values() for row in found.values() if row["score"] is not None]
            known = [row["level"] for row in rows if row["level"] is not None]
            if known:
                levels[explainer] = known
    signed = [explainer for explainer, known in levels.items() if min(known) < 0]
    if signed:
        names = ", ".join(signed)
        return [f"{names}: a map's level, its mean, does not show its size if it has both signs; mstd is in its units"]
    means = {explainer: fmean(known) for explainer, known in levels.items()}
    if not means or max(means.values()) <= 10 * min(means.values()):
        return []
    low, high = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    return [
        "mstd is in the units of the map, and the explainers' levels differ by more than a factor of 10, from "
        f"{means[low]:.3g} ({low}) to {means[high]:.3g} ({high}): compare mstd / level"
    ]
