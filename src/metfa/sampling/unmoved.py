"""Noise that makes one copy again and again, or no noise and no draws: N samples are one explanation N times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from metfa._base.percents import counted
from metfa._base.warnings import DegenerateAttributionsWarning, warn
from metfa.calls.generators import seeds_from
from metfa.sampling.loop import Job, Loop
from metfa.sampling.streams import MAX_SAMPLE_ID

__all__ = ["alike", "unchanged", "unchanging", "undrawn", "warn_of_undrawn", "warn_of_unmoved"]

FURTHER = 20  # copies that are drawn where all are alike


def alike(loop: Loop, rows: Iterable[int], sample_ids: Iterable[int], first: int) -> list[int]:
    """Those of the rows whose noisy copies of these ids all equal the copy of the `first` id.

    Copies are drawn again, up to the first that differs: the second of each row, if the noise is any good. Copies are
    compared in the dtype that the explainer gets.
    """
    left = list(rows)
    for number in sample_ids if left else ():
        left = _equal_copies(loop, left, first, number)
        if not left:
            break
    return left


def unchanging(loop: Loop, rows: Sequence[int], first: int) -> list[int]:
    """Those of the rows, whose copies are alike, that their copies equal; and those that no further copy differs from.

    A few copies may be alike by chance, where a text has few synonyms.
    """
    still = unchanged(loop, rows, first)
    return sorted(
        still + alike(loop, set(rows).difference(still), range(MAX_SAMPLE_ID - FURTHER, MAX_SAMPLE_ID), first)
    )


def unchanged(loop: Loop, rows: Sequence[int], sample_id: int) -> list[int]:
    """Those of the rows that their copy of this id equals."""
    copies = _copies(loop, rows, sample_id)
    return [row for row, copy in zip(rows, copies, strict=True) if _equal(copy, loop.rows.as_given(loop.rows[row]))]


def warn_of_unmoved(rows: Sequence[int], same: Sequence[int], shape: tuple[int, ...]) -> None:
    r"""Warn of the rows that no copy moves, of which `same` have one map; `shape` (n, batch, \*features)."""
    found = f"of {counted(shape[1], 'input')} ({'1 copy' if shape[0] == 1 else f'{shape[0]:,} copies'} each)"
    advice = (
        "take a noise that changes it, each time by other numbers of its generator (for texts, the `coverage` of "
        "`metfa.text.SenseSynonyms` and of `metfa.text.Synonyms` says what has synonyms), or write `noise=None` to "
        "sample the explainer's own randomness"
    )
    if same:
        warn(
            f"the noisy copies are all the same for {len(same)} {found}, and so are the maps: they say nothing about "
            f"uncertainty, and all features stay undecided; {advice}",
            DegenerateAttributionsWarning,
        )
    if len(rows) > len(same):
        warn(
            f"the noisy copies are all the same for {len(rows) - len(same)} {found}: the samples hold only the "
            f"explainer's own randomness; {advice}",
            DegenerateAttributionsWarning,
        )


def undrawn(loop: Loop, rows: Iterable[int], sample_id: int) -> list[int]:
    """Those of the rows for which an explainer without noise draws nothing, or nothing that is known to differ.

    Draws that agree are a finding, as where a mask has few values. So each row is explained once more, and its
    generator shows whether it was used. What an explainer makes of seeds, see `metfa.seeded`, is not known.
    """
    return [row for row in rows if not _draws(replace(loop, predict=None), Job(row, sample_id))]


def _draws(loop: Loop, job: Job) -> bool:
    """Whether the explainer draws from the generator of a row, other than seeds."""
    used, unused, seeding = (np.random.default_rng(0) for _ in range(3))
    loop.explained([job], loop.batch([job]), [used])
    seeds_from(seeding)
    return used.bit_generator.state not in (unused.bit_generator.state, seeding.bit_generator.state)


def warn_of_undrawn(rows: Sequence[int], shape: tuple[int, ...]) -> None:
    r"""Warn of the rows that have one map without noise, because nothing is drawn; `shape` (n, batch, \*features)."""
    if rows:
        warn(
            f"without noise, the {shape[0]:,} maps are all the same for {len(rows)} of {counted(shape[1], 'input')}: "
            "the explainer draws no random numbers there, or the same ones each time. They are one map, of which "
            "nothing can be tested, and all features stay undecided; give a noise, or let the explainer draw from its "
            "`rngs` (see `metfa.randomised` and `metfa.seeded`)",
            DegenerateAttributionsWarning,
        )


def _equal_copies(loop: Loop, rows: Sequence[int], first: int, second: int) -> list[int]:
    """Those of the rows whose copies of two ids are equal."""
    found = []
    for start in range(0, len(rows), loop.batch_size):
        part = rows[start : start + loop.batch_size]
        pairs = zip(part, _copies(loop, part, first), _copies(loop, part, second), strict=True)
        found += [row for row, one, other in pairs if _equal(one, other)]
    return found


def _copies(loop: Loop, rows: Sequence[int], sample_id: int) -> Sequence[Any]:
    return [loop.rows.as_given(copy) for copy in loop.noisy([Job(row, sample_id) for row in rows])]


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, dict):
        return all(_equal(a[key], b[key]) for key in a)
    floats = isinstance(a, np.ndarray) and a.dtype.kind == "f"
    return bool(np.array_equal(a, b, equal_nan=floats))
