"""Figures of kept tables, and cells of the pages' tables made of them: means over units, ± 95 % by Student's t."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import ttest_1samp

from metfa import stats
from metfa.evaluation.tables import Cell
from paper.kept import RESULTS, VERSION, read

__all__ = [
    "FEWEST", "HOLM", "Found", "Part", "at_least", "beside", "cell", "found", "how", "ratio", "share", "size",
    "stability", "table", "verdicts",
]  # fmt: skip

FEWEST = 4  # units from which on an error is shown and a difference judged: of fewer Student's t is too wide to help
LEVEL = 0.05
HOLM = "by paired t-tests at 5 % with Holm's correction for all comparisons of the table"


class Part(NamedTuple):
    """What stands in brackets in the heading, and what stands below it."""

    size: str
    text: str


@dataclass(frozen=True)
class Found:
    """The figures of one table, with nan where one is missing, and the settings that they were measured with."""

    units: tuple[str, ...]
    columns: dict[str, np.ndarray]
    setting: dict[str, Any]

    def __len__(self) -> int:
        return len(self.units)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def of(self, units: Iterable[str]) -> Found:
        """Only these units, in this order."""
        places = [self.units.index(unit) for unit in units]
        return Found(tuple(units), {name: values[places] for name, values in self.columns.items()}, self.setting)


def found(name: str, folder: Path = RESULTS) -> Found | None:
    """The table of that name, if a unit of it is finished.

    Raises
    ------
    ValueError
        For a file that is damaged, or of another version.
    """
    path = folder / f"{name}.csv"
    if not path.exists():
        return None
    kept = read(path)
    if kept.setting.get("version") != VERSION:
        raise ValueError(
            f"{path} is of version {kept.setting.get('version')}, and pages are made from version {VERSION}: it was "
            "left as it is; move it away"
        )
    names = next(iter(kept.lines.values()))
    values = {what: [one if isinstance(one, float) else np.nan for one in kept.column(what)] for what in names}
    columns = {what: np.array(numbers) for what, numbers in values.items()}
    return Found(tuple(kept.lines), columns, kept.setting)


def beside(tables: Mapping[str, Found | None]) -> Found | None:
    """The units that all of these tables have, and their figures behind the tables' names."""
    known = {name: one for name, one in tables.items() if one is not None}
    if len(known) < len(tables):
        return None
    first, *others = known.values()
    units = [unit for unit in first.units if all(unit in one.units for one in others)]
    columns = {
        f"{name}: {what}": values for name, one in known.items() for what, values in one.of(units).columns.items()
    }
    return Found(tuple(units), columns, first.setting) if units else None


def how(one: Found) -> str:
    """Number of samples and of draws of O_n, as the table says them."""
    sizes = one.setting["n_samples"]
    shown = ", ".join(map(str, sizes)) if isinstance(sizes, list) else sizes
    return f"N = {shown}, {one.setting['n_outer']} draws"


def stability(map_: str, outer: str, figure: str = "score", metric: str = "mstd") -> str:
    """Name of a figure of a map, such as "vanilla" or "smoothed, normal, 10"."""
    aggregate, _, rest = map_.partition(", ")
    sampling, _, n = rest.rpartition(", ")
    level = "0.95" if aggregate == "smoothed" else ""
    return "|".join((metric, outer, aggregate, sampling, n, level, figure))


def cell(values: np.ndarray, *, sign: str = "") -> str:
    """Mean, ± 95 % of `FEWEST` units and more, and how many figures are missing."""
    known = values[np.isfinite(values)]
    if not len(known):
        return "–"
    plus = sign * bool(known.mean() >= 0)
    missing = f" ({len(values) - len(known)} of {len(values)} missing)" if len(known) < len(values) else ""
    if len(known) > 1 and np.ptp(known) == 0:  # an error of 0 would say more than so many units can
        return f"{plus}{known[0]:.4f} in all {len(known)}{missing}"
    error = f" ± {_error(known, 4)}" if len(known) >= FEWEST else ""
    return f"{plus}{known.mean():.4f}{error}{missing}"


def _error(values: np.ndarray, digits: int) -> str:
    """Half the width of the 95 % interval; never 0."""
    half, least = Cell.of(values.tolist()).half_width, 10.0**-digits
    return f"<{least:g}" if half < least / 2 else f"{half:.{digits}f}"


def ratio(above: np.ndarray, below: np.ndarray) -> str:
    """Ratio of means, ± 95 % by the delta method; none where the denominator is not clearly apart from 0."""
    known = np.isfinite(above) & np.isfinite(below)
    missing = f" ({(~known).sum()} of {len(known)} missing)" if not known.all() else ""
    above, below = above[known], below[known]
    if not len(above) or below.mean() == 0:
        return "–"
    if len(below) >= FEWEST and abs(below.mean()) <= Cell.of(below.tolist()).half_width:
        return "–"
    whole, apart = _of_ratio(above, below)
    if len(above) > 1 and np.ptp(apart) <= 1e-9 * abs(whole):
        return f"{whole:.3f} in all {len(above)}{missing}"
    return f"{whole:.3f}" + (f" ± {_error(apart, 3)}" if len(above) >= FEWEST else "") + missing


def at_least(above: np.ndarray, below: np.ndarray, least: float) -> str:
    """Whether the ratio of means is shown to be at least, or to be less than `least`, by its 95 % limits."""
    known = np.isfinite(above) & np.isfinite(below)
    above, below = above[known], below[known]
    if len(above) < FEWEST:
        return "too few to say"
    whole, apart = _of_ratio(above, below)
    half = Cell.of(apart.tolist()).half_width
    return "at least" if whole - half >= least else "less" if whole + half < least else "not shown"


def _of_ratio(above: np.ndarray, below: np.ndarray) -> tuple[float, np.ndarray]:
    """The ratio, and what each unit adds to its error."""
    whole = above.mean() / below.mean()
    return whole, (above - whole * below) / below.mean()


def verdicts(differences: Sequence[np.ndarray], words: Sequence[tuple[str, str]]) -> list[str]:
    """What paired differences show, with the words for "below 0" and "above 0" of each."""
    known = [values[np.isfinite(values)] for values in differences]
    judged = [k for k, values in enumerate(known) if len(values) >= FEWEST]
    pvalues = [_pvalue(known[k]) for k in judged]
    adjusted = dict(zip(judged, np.atleast_1d(stats.holm(pvalues)) if judged else (), strict=True))
    return [
        "too few to say" if k not in adjusted
        else "not shown to differ" if adjusted[k] > LEVEL
        else words[k][int(values.mean() > 0)]
        for k, values in enumerate(known)
    ]  # fmt: skip


def _pvalue(differences: np.ndarray) -> float:
    if np.ptp(differences) == 0:  # Student's t knows no spread of 0
        return float(differences[0] == 0)
    return float(ttest_1samp(differences, 0).pvalue)


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    header = list(header)
    lines = [header, ["---"] * len(header), *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def size(one: Found | None, planned: int, what: str = "") -> str:
    """How many of the planned units there are."""
    n = 0 if one is None else len(one)
    return f"{n} of {planned} {what}".strip() if n < planned else f"{n} {what}".strip()


def share(values: np.ndarray) -> str:
    """Of units of which something is so, in percent."""
    return f"{100 * np.nanmean(values):.0f} %"
