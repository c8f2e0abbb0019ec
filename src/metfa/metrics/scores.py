"""One score for each input, or a reason why it has none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from metfa._base.warnings import DegenerateAttributionsWarning, MetfaWarning, ModelOutputWarning, warn

__all__ = ["NOT_FINITE", "Scores", "divisor", "faults_of", "warn_of_missing"]

NOT_FINITE = "attributions with NaN or infinity"
CONSTANT = "constant attributions"

SMALLEST_CLEAN = 1e-6  # the smallest class probability that a score is divided by


@dataclass(frozen=True, eq=False)
class Scores:
    """A metric's scores, one for each input of a batch; they are not averaged over inputs.

    Attributes
    ----------
    raw : numpy.ndarray, (batch,)
        The score before it is divided; NaN where `degenerate` gives a reason.
    clean : numpy.ndarray, (batch,)
        The model's score of the clean input; `score` divides by it. Ones for metrics that divide by nothing.
    degenerate : tuple of (str or None), one an input
        Why the attributions of an input have no score, such as a constant map; None where they have one.
    """

    raw: np.ndarray
    clean: np.ndarray
    degenerate: tuple[str | None, ...]

    @cached_property
    def score(self) -> np.ndarray:
        """Raw over clean score, (batch,): NaN if there is none, or if the clean score is below 1e-6."""
        return self.raw / divisor(self.clean)

    def __len__(self) -> int:
        return len(self.raw)

    def __repr__(self) -> str:
        shown = ", ".join(f"{score:.4g}" for score in self.score[:6]) + (", ..." if len(self) > 6 else "")
        return f"{type(self).__name__}({shown})"


def divisor(clean: np.ndarray) -> np.ndarray:
    """Clean scores to divide by: NaN where they are too small for that."""
    return np.where(clean < SMALLEST_CLEAN, np.nan, clean)


def faults_of(attributions: np.ndarray) -> tuple[str | None, ...]:
    """What is wrong with the attributions of each input, None where nothing is."""
    return tuple(map(_fault, attributions))


def _fault(scores: np.ndarray) -> str | None:
    if not np.isfinite(scores).all():
        return NOT_FINITE
    return CONSTANT if scores.min() == scores.max() else None


def warn_of_missing(degenerate: Sequence[str | None], clean: np.ndarray) -> None:
    """Say which inputs have no score, and why."""
    found: dict[tuple[str, type[MetfaWarning]], list[int]] = {}
    for row, reason in enumerate(degenerate):
        if reason is not None:
            found.setdefault((reason, DegenerateAttributionsWarning), []).append(row)
        elif clean[row] < SMALLEST_CLEAN:
            reason = f"a clean score below {SMALLEST_CLEAN:g}, so no normalised score (`raw` has one)"
            found.setdefault((reason, ModelOutputWarning), []).append(row)
    for (reason, category), rows in found.items():
        shown = ", ".join(map(str, rows[:10])) + (", ..." if len(rows) > 10 else "")
        warn(f"{len(rows)} of {len(clean)} inputs have {reason}: {shown}", category)
