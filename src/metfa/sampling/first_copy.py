"""The first noisy copy of a call: what it changes is kept, and drawn again it must be the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa._base.warnings import ReproducibilityWarning, warn
from metfa.sampling.loop import Job, Loop
from metfa.sampling.streams import content_digest

__all__ = ["FirstCopy", "counted_apart"]

MEANS = 8  # numbers that are kept: of as many parts of the changes
ALIKE = 0.01  # of the largest change, by which the same copy drawn again may differ: a noise may ask a model
OWN_NUMBERS = (
    "`noise` makes another copy each time that it gets the same generator: draw its numbers from the second argument, "
    "as in `lambda x, rng: x + rng.normal(size=x.shape)`"
)


@dataclass(frozen=True)
class FirstCopy:
    """What the first noisy copy changes.

    Attributes
    ----------
    facts : dict or None
        "input", its name, and "changes": means of the changes of its numbers, or a digest of a text; for the provenance
        of results, see `metfa.results.same_copies`. None without noise, and for objects without a digest.
    repeats : bool
        Whether the noise makes the same copy again from the same numbers.
    """

    facts: dict[str, Any] | None = None
    repeats: bool = True

    @classmethod
    def of(cls, loop: Loop, name: str, sample_id: int) -> FirstCopy:
        """The copy of this number of the first row, which has that name."""
        if loop.noise is None:
            return cls()
        row, (copy, again) = loop.rows[0], [loop.noisy([Job(0, sample_id)])[0] for _ in range(2)]
        if loop.rows.kind == "list":
            try:
                digests = content_digest(copy), content_digest(again)
            except TypeError:  # objects of the caller's own
                return cls()
            return cls({"input": name, "changes": digests[0]}, digests[0] == digests[1])
        changes, once_more = _changes(copy, row), _changes(again, row)
        most = max(np.abs(changes).max(initial=0), np.abs(once_more).max(initial=0))
        means = [float((part / max(1, len(part))).sum()) for part in np.array_split(changes, MEANS)]
        return cls({"input": name, "changes": means}, bool(np.abs(changes - once_more).max(initial=0) <= ALIKE * most))

    def warn(self) -> None:
        """Warn of a noise whose copies cannot be made again."""
        if not self.repeats:
            warn(f"{OWN_NUMBERS}; until then results cannot be made again", ReproducibilityWarning)

    def require(self) -> None:
        """Raise where two explainers need the same copies, and the noise does not make them."""
        if not self.repeats:
            raise ValueError(f"{OWN_NUMBERS}; both explainers need the same copies")


def counted_apart(noise: Any) -> Any:
    """The noise; one that counts its copies begins anew, so that a call's count is of its own copies."""
    return noise.afresh() if hasattr(noise, "afresh") else noise


def _changes(copy: Any, row: Any) -> np.ndarray:
    """The differences of all numbers in a row, float64; missing values count as equal."""
    if isinstance(row, Mapping):
        return np.concatenate([_changes(copy[key], part) for key, part in row.items()])
    if isinstance(row, tuple):
        return np.concatenate([_changes(copy[place], part) for place, part in enumerate(row)])
    wide = np.result_type(copy, row, np.float64)  # complex numbers are two
    with np.errstate(over="ignore", invalid="ignore"):
        return np.nan_to_num(np.subtract(copy, row, dtype=wide)).ravel().view(np.float64)
