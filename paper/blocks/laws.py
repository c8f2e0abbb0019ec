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
    rows, shown = [], {"less at every N": [], "more at every N": [], "less or as much": []}
    for k, name in enumerate(one.units):
        spread, ratios = ([one[f"{n}, {what}"][k] for n in SIZES] for what in ("smoothed", "ratio"))
        errors = [one[f"{n}, error of ratio"][k] for n in SIZES]
        cells = [f"{value:.2f} ± {1.96 * error:.3f}" for value, error in zip(ratios, errors, strict=True)]
        if not one["mean has a variance"][k]:
            cells = ["–"] * len(SIZES)
        biases = [f"{one[f'{n}, bias'][k]:+.3f}" for n in (SIZES[0], SIZES[-1])]
        rows.append([name, *(f"{value:.2f}" for value in spread), *cells, *biases])
        low, high = (max(side * (1 - r) + 1.96 * e for r, e in zip(ratios, errors, strict=True)) for side in (-1, 1))
        always_less = low < 0 or not one["mean has a variance"][k]
        kind = "less at every N" if always_less else "more at every N" if high < 0 else "less or as much"
        shown[kind].append(name)
    header = ["law", *(f"N var, N = {n}" for n in SIZES), *(f"/ mean's, N = {n}" for n in SIZES)]
    header += [f"bias, N = {n}" for n in (SIZES[0], SIZES[-1])]
    lines = [f"- The smoothed median varies {kind} than the mean: {', '.join(names)}." if kind != "less or as much" else
             f"- It varies less at some N and is not shown to differ at others: {', '.join(names)}."
             for kind, names in shown.items() if names]  # fmt: skip
    size = f"{len(one)} laws, {one.setting['repetitions']:,} repetitions"
    return Part(size, "\n\n".join([table(header, rows), "\n".join(lines)]))
