"""A threshold for each input of a sample, by a rule applied to that input's own values, also to values on file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from metfa import stats
from metfa._base.warnings import SignedAttributionsWarning, warn

__all__ = ["number_of", "sample_thresholds"]

SORTED_IN_MEMORY = 2**25  # bytes of samples on file that may be sorted in memory; more are sorted on file


def sample_thresholds(rule: Callable[[np.ndarray], Any], values: np.ndarray) -> np.ndarray:
    r"""What `rule` makes of the values (n, batch, \*features) of each input, (batch,) float64."""
    if rule is stats.jenks:
        _warn_if_signed(values)
    return np.array([_of_input(rule, values[:, row]) for row in range(values.shape[1])], dtype=np.float64)


def _warn_if_signed(values: np.ndarray) -> None:
    for row in range(values.shape[1]):
        lowest, highest = float(values[:, row].min()), float(values[:, row].max())
        if lowest < 0 and -lowest > 0.05 * highest:
            warn(
                f"the attributions are signed (input {row}: from {lowest:.3g} to {highest:.3g}): natural breaks would "
                "call strong negative evidence unimportant; use `.test(0)` for positive / negative / undecided, or "
                "explain absolute values with `metfa.explainers.heatmap(explainer)`",
                SignedAttributionsWarning,
            )
            return


def _of_input(rule: Callable[[np.ndarray], Any], values: np.ndarray) -> float:
    if rule is stats.jenks and values.nbytes > SORTED_IN_MEMORY and isinstance(values, np.memmap) and values.filename:
        return _jenks_on_file(values, Path(values.filename).parent)
    return number_of(rule(values))


def number_of(returned: Any) -> float:
    """What a rule returned, which must be one number."""
    try:
        if isinstance(returned, str | bytes):
            raise TypeError
        return float(returned)
    except (TypeError, ValueError):
        raise TypeError(
            f"a threshold rule must return one number, got {type(returned).__name__}: {returned!r:.200}"
        ) from None


def _jenks_on_file(values: np.ndarray, folder: Path) -> float:
    """`stats.jenks` of samples on file, sorted in a file beside them: the process's own memory stays flat."""
    with tempfile.TemporaryFile(dir=folder if os.access(folder, os.W_OK) else None) as file:
        for sample in values:
            file.write(np.ascontiguousarray(sample).data)
        file.flush()
        on_disk = np.memmap(file, dtype=values.dtype, mode="r+")
        on_disk.sort()
        return stats.jenks_sorted(on_disk)
