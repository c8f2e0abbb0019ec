"""Inputs whose samples are one map N times, of which nothing can be tested."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["ROUNDING", "is_noisy", "of_one_map"]

ROUNDING = 1e-5  # of the largest score: maps of equal inputs differ so much at most, by the kernels of other batches


def is_noisy(provenance: dict[str, Any]) -> bool:
    """Whether a noise made copies of the inputs; else the samples hold the explainer's own randomness alone."""
    return provenance.get("noise") not in (None, "None")


def of_one_map(rows: Iterable[int], values: np.ndarray, *, noisy: bool) -> list[int]:
    r"""Those of the rows whose samples (n, batch, \*features) are all the same; one sample says nothing.

    Copies that are all the same have maps that differ by `ROUNDING` at most. Without noise, only equal numbers show
    that the explainer draws nothing: the draws of one that fits a linear model may move its maps by rounding alone.
    """
    share = ROUNDING if noisy else 0.0
    return [row for row in rows if len(values) > 1 and _all_same(values[:, row], share)]


def _all_same(maps: np.ndarray, share: float) -> bool:
    allowed = share * np.abs(maps[0]).max(initial=0)
    return all(np.abs(one - maps[0]).max(initial=0) <= allowed for one in maps[1:])
