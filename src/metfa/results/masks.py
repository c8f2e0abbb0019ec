"""Labels and masks of regions: their checks, and which features each region has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from metfa._arrays import as_array, is_array, to_host
from metfa._base.validation import shown

__all__ = ["blocks_of", "checked_mask", "count_of", "frozen", "members_of", "shape_of"]

BLOCK = 2**22  # scores that are gathered at a time


def checked_mask(mask: Any, name: str) -> np.ndarray:
    """Labels or a stack of masks, read-only; raises for anything else."""
    if not is_array(mask):
        raise TypeError(f"`{name}` must be an array of labels or of bool, got {shown(mask)}")
    host = to_host(as_array(mask, name))
    if host.dtype == bool:
        if host.ndim < 2 or not len(host):
            raise ValueError(f"`{name}` must be a stack of masks (regions, *features), got shape {host.shape}")
        return frozen(host)
    if host.dtype.kind not in "iu":
        raise TypeError(f"`{name}` must hold integers (labels) or bool (masks), got {host.dtype}")
    if not host.ndim or not host.size or host.max() < 0 or host.min() < -1:
        ends = f"from {host.min()} to {host.max()}" if host.size else "none"
        raise ValueError(f"`{name}` must hold labels 0, 1, ..., and -1 for no region, got {ends}")
    if host.max() >= host.size:
        raise ValueError(
            f"`{name}` must number its regions 0, 1, ...: got the label {host.max()} of {host.size} features; "
            f"{renumbered(host)}"
        )
    return frozen(host.astype(np.int32))


def renumbered(labels: np.ndarray) -> str:
    """End of a message: how to number the regions 0, 1, ...; the label -1 stays that of no region."""
    if labels.min() == 1 and labels.max() == len(np.unique(labels)):
        return "labels begin at 0: subtract 1"
    shaped = ".reshape(labels.shape)" if labels.ndim > 1 else ""  # older versions of NumPy answer with one axis
    less = " - 1" if labels.min() == -1 else ""
    return f"write `numpy.unique(labels, return_inverse=True)[1]{shaped}{less}`"


def frozen(array: np.ndarray) -> np.ndarray:
    """A copy that cannot be written to."""
    own = array.copy()
    own.flags.writeable = False
    return own


def count_of(mask: np.ndarray) -> int:
    """Number of regions."""
    return len(mask) if mask.dtype == bool else int(mask.max()) + 1


def shape_of(mask: np.ndarray) -> tuple[int, ...]:
    """Shape of one map."""
    return mask.shape[1:] if mask.dtype == bool else mask.shape


def members_of(mask: np.ndarray) -> list[np.ndarray]:
    """Flat indices of the features of each region."""
    if mask.dtype == bool:
        return [np.flatnonzero(one) for one in mask]
    flat = mask.ravel()
    order = np.argsort(flat, kind="stable")
    return np.split(order, np.searchsorted(flat[order], np.arange(count_of(mask) + 1)))[1:-1]


def blocks_of(n: int, width: int) -> Iterator[slice]:
    """Slices of `n` maps, each of about as many gathered scores; `width` are gathered of one map."""
    step = max(1, BLOCK // max(width, 1))
    return (slice(start, start + step) for start in range(0, n, step))
