"""Noise that changes nothing: all copies of an input are the input, so N samples are one explanation N times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from metfa._base.percents import counted
from metfa._base.warnings import DegenerateAttributionsWarning, warn
from metfa.sampling.loop import Job, Loop

__all__ = ["not_moved", "of_one_map", "warn_of_unmoved"]

ROUNDING = 1e-5  # of the largest score: maps of equal inputs differ so much at most, by the kernels of other batches


def not_moved(loop: Loop, rows: Iterable[int], sample_ids: Iterable[int]) -> list[int]:
    """Those of the rows whose noisy copies of these ids all equal the row.

    Copies are drawn again, up to the first that differs: one of each row, if the noise is any good. Without a noise
    the explainer's own randomness is what is asked about, and there are no such rows.
    """
    left = [] if loop.noise is None else list(rows)
    for number in sample_ids if left else ():
        chunks = (left[start : start + loop.batch_size] for start in range(0, len(left), loop.batch_size))
        pairs = ((row, copy) for part in chunks for row, copy in zip(part, _copies(loop, part, number), strict=True))
        left = [row for row, copy in pairs if _equal(copy, loop.rows[row])]
        if not left:
            break
    return left


def of_one_map(rows: Iterable[int], values: np.ndarray) -> list[int]:
    r"""Those of the rows whose samples (n, batch, \*features) are all the same to rounding; one sample says nothing."""
    return [row for row in rows if len(values) > 1 and _all_same(values[:, row])]


def warn_of_unmoved(rows: Sequence[int], same: Sequence[int], shape: tuple[int, ...]) -> None:
    r"""Warn of the rows that no copy moves, of which `same` have one map; `shape` (n, batch, \*features)."""
    found = f"of {counted(shape[1], 'input')} ({'1 copy' if shape[0] == 1 else f'{shape[0]:,} copies'} each)"
    advice = (
        "take a noise that changes it (for texts, the `coverage` of `metfa.text.SenseSynonyms` and of "
        "`metfa.text.Synonyms` says what has synonyms), or write `noise=None` to sample the explainer's own randomness"
    )
    if same:
        warn(
            f"no noisy copy differs from the input for {len(same)} {found}, and the maps are all the same: they say "
            f"nothing about uncertainty, and all features stay undecided; {advice}",
            DegenerateAttributionsWarning,
        )
    if len(rows) > len(same):
        warn(
            f"no noisy copy differs from the input for {len(rows) - len(same)} {found}: the samples hold only the "
            f"explainer's own randomness; {advice}",
            DegenerateAttributionsWarning,
        )


def _copies(loop: Loop, rows: Sequence[int], sample_id: int) -> Sequence[Any]:
    return loop.noisy([Job(row, sample_id) for row in rows])


def _all_same(maps: np.ndarray) -> bool:
    allowed = ROUNDING * np.abs(maps[0]).max(initial=0)
    return all(np.abs(one - maps[0]).max(initial=0) <= allowed for one in maps[1:])


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, dict):
        return all(_equal(a[key], b[key]) for key in a)
    floats = isinstance(a, np.ndarray) and a.dtype.kind == "f"
    return bool(np.array_equal(a, b, equal_nan=floats))
