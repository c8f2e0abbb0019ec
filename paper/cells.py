"""Figures of kept tables, and cells of tables made of them: means over units, ± 95 % by Student's t."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from metfa.evaluation.tables import Cell
from paper.kept import RESULTS, read

__all__ = ["Found", "cell", "direction", "found", "nothing", "ratio", "size", "stability", "table"]


@dataclass(frozen=True)
class Found:
    """The figures of one table, with nan where one is missing."""

    units: tuple[str, ...]
    columns: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.units)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def of(self, units: Iterable[str]) -> Found:
        """Only these units, in this order."""
        places = [self.units.index(unit) for unit in units]
        return Found(tuple(units), {name: values[places] for name, values in self.columns.items()})


def found(name: str, folder: Path = RESULTS) -> Found | None:
    """The table of that name, if a unit of it is finished."""
    path = folder / f"{name}.csv"
    if not path.exists():
        return None
    kept = read(path)
    names = next(iter(kept.lines.values()))
    values = {what: [one if isinstance(one, float) else np.nan for one in kept.column(what)] for what in names}
    return Found(tuple(kept.lines), {what: np.array(numbers) for what, numbers in values.items()})


def stability(map_: str, outer: str, figure: str = "score", metric: str = "mstd") -> str:
    """Name of a figure of a map, such as "vanilla" or "smoothed, normal, 10"."""
    aggregate, _, rest = map_.partition(", ")
    sampling, _, n = rest.rpartition(", ")
    level = "0.95" if aggregate == "smoothed" else ""
    return "|".join((metric, outer, aggregate, sampling, n, level, figure))


def cell(values: np.ndarray, *, sign: str = "") -> str:
    """Mean ± 95 %, and how many figures are missing."""
    known = values[np.isfinite(values)]
    if len(known) > 1 and np.ptp(known) == 0:  # an error of 0 would say more than so many units can
        return f"{sign * bool(known[0] >= 0)}{known[0]:.4f} in all {len(known)}"
    shown = str(Cell.of([float(value) if np.isfinite(value) else "missing" for value in values]))
    return sign * (not shown.startswith(("-", "–"))) + shown


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    header = list(header)
    lines = [header, ["---"] * len(header), *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def size(n: int, planned: int, what: str) -> str:
    return f"{n} of {planned} {what}".strip() if n < planned else f"{n} {what}".strip()


def direction(values: np.ndarray, low: str = "lower", high: str = "higher") -> str:
    """What a paired difference shows, by its 95 % interval."""
    known = values[np.isfinite(values)]
    if len(known) < 2:
        return "too few to say"
    one = Cell.of([float(value) for value in known])
    return "not shown to differ" if abs(one.mean) <= one.half_width else (low if one.mean < 0 else high)


def nothing(planned: int, what: str) -> str:
    return f"*0 of {planned} {what} are finished; `python -m paper` measures them.*"


def ratio(above: np.ndarray, below: np.ndarray) -> str:
    """Ratio of means, ± 95 % by the delta method."""
    known = np.isfinite(above) & np.isfinite(below)
    above, below = above[known], below[known]
    if not len(above):
        return "–"
    found = above.mean() / below.mean()
    return f"{found:.3f}" + (f" ± {Cell.of(((above - found * below) / below.mean()).tolist()).half_width:.3f}"
                             if len(above) > 1 else "")  # fmt: skip
