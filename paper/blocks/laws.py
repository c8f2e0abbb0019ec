"""Theorem 5 by simulation."""

from __future__ import annotations

from pathlib import Path

from paper.cells import Part, found, table
from paper.theorem5 import SIZES

__all__ = ["laws"]


def laws(folder: Path) -> Part:
    one = found("theorem5", folder)
    if one is None:
        return Part("0 laws", "")
    rows = [
        [name, *(f"{one[f'{n}, smoothed'][k] / one[f'{n}, mean'][k]:.2f}" for n in SIZES),
         *(f"{one[f'{n}, bias'][k]:+.3f}" for n in (SIZES[0], SIZES[-1]))]
        for k, name in enumerate(one.units)
    ]  # fmt: skip
    header = ["law", *(f"N = {n}" for n in SIZES), *(f"bias, N = {n}" for n in (SIZES[0], SIZES[-1]))]
    by_mean: dict[bool, list[str]] = {}
    for row in rows:
        ratios = [float(value) for value in row[1 : len(SIZES) + 1]]
        by_mean.setdefault(max(ratios) < 1, []).append(row[0])
    lines = [f"- The smoothed median varies {'less' if less else 'more'} than the mean: {', '.join(names)}."
             for less, names in by_mean.items()]  # fmt: skip
    size = f"{len(one)} laws, {one.setting['repetitions']:,} repetitions"
    return Part(size, "\n\n".join([table(header, rows), "\n".join(lines)]))
