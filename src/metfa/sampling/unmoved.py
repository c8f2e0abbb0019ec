"""Noise that changes nothing: all copies of an input are the input, so N samples are one explanation N times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from metfa._base.warnings import DegenerateAttributionsWarning, warn
from metfa.sampling.loop import Loop
from metfa.sampling.streams import Purpose, stream

__all__ = ["unmoved_rows"]

ROUNDING = 1e-5  # of the largest score: maps of equal inputs differ so much at most, by the kernels of other batches


def unmoved_rows(loop: Loop, sample_ids: Sequence[int], values: np.ndarray) -> list[int]:
    r"""Rows whose samples are all the same, because every noisy copy equals the row; warns of every such noise.

    Parameters
    ----------
    loop : Loop
        It draws the copies again, up to the first that differs: one copy of each row, if the noise is any good.
    sample_ids : sequence of int
        Ids of the samples.
    values : ndarray, (n_samples, batch, \*features)
        Their maps.
    """
    if loop.noise is None:
        return []  # the explainer's own randomness is what is asked about
    n_rows = len(loop.rows)
    kept = [row for row in range(n_rows) if not _moved(loop, row, sample_ids)]
    same = [row for row in kept if _all_same(values[:, row])]
    found = f"of {n_rows} inputs ({len(sample_ids)} copies each)"
    advice = (
        "take a noise that changes it (for texts, `metfa.text.Synonyms.coverage` says what has synonyms), or write "
        "`noise=None` to sample the explainer's own randomness"
    )
    if same:
        warn(
            f"no noisy copy differs from the input for {len(same)} {found}, and the maps are all the same: they say "
            f"nothing about uncertainty, and all features stay undecided; {advice}",
            DegenerateAttributionsWarning,
        )
    if len(kept) > len(same):
        warn(
            f"no noisy copy differs from the input for {len(kept) - len(same)} {found}: the samples hold only the "
            f"explainer's own randomness; {advice}",
            DegenerateAttributionsWarning,
        )
    return same


def _moved(loop: Loop, row: int, sample_ids: Sequence[int]) -> bool:
    """Whether a noisy copy of the row differs from it."""
    draws = (stream(*loop.addresses[row], number, Purpose.NOISE) for number in sample_ids)
    copies = (loop.rows.noisy(row, loop.noise, rng, f"input {row}") for rng in draws)
    return any(not _equal(copy, loop.rows[row]) for copy in copies)


def _all_same(maps: np.ndarray) -> bool:
    """Whether maps (n, ...) of equal inputs are equal to rounding; a single one says nothing."""
    allowed = ROUNDING * np.abs(maps[0]).max(initial=0)
    return len(maps) > 1 and all(np.abs(one - maps[0]).max(initial=0) <= allowed for one in maps[1:])


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, dict):
        return all(_equal(a[key], b[key]) for key in a)
    return bool(np.array_equal(a, b))
