"""Counts of the samples of each feature that lie above and below a threshold."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa._arrays import from_host, namespace, real_dtype, to_host
from metfa.stats.blocks import comparable, n_hits, reduce_rows
from metfa.stats.validation import as_real, refuse_nan

__all__ = ["count_sides", "looked_up"]


def count_sides(rows: Any, n: int, threshold: Any) -> tuple[Any, Any]:
    r"""Numbers of samples strictly above and strictly below a threshold, exact, in the library of the samples.

    `rows` are (\*features, n), as of `as_rows`; `threshold` is as for `sign_test`.
    """
    xp = namespace(rows)
    h = _threshold_on_host(threshold, rows.shape[:-1])

    probe = comparable(rows[..., :0])
    lower, upper, all_above, all_below = _neighbours(h, to_host(probe).dtype)
    lower, upper = (xp.broadcast_to(from_host(bound, probe), rows.shape[:-1]) for bound in (lower, upper))
    above, below, missing = reduce_rows(_count, rows, lower, upper)
    refuse_nan(missing, "samples")
    above, below = (
        counts + from_host(n * everything, rows, counts.dtype) if everything.any() else counts
        for counts, everything in ((above, all_above), (below, all_below))
    )
    return above, below


def looked_up(table: np.ndarray, counts: Any) -> Any:
    """Entries of a table at counts, in the library of the counts; float64, or the widest real dtype there is."""
    xp = namespace(counts)
    table = from_host(table, counts, real_dtype(counts))
    found = xp.reshape(xp.take(table, xp.reshape(counts, (-1,)), axis=0), counts.shape)
    return found[()] if isinstance(found, np.ndarray) else found


def _threshold_on_host(threshold: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The threshold in float64, checked to broadcast to the features."""
    given = to_host(as_real(threshold, "threshold"))
    if given.dtype.kind == "b":
        raise TypeError(f"`threshold` must be a number, got {given.dtype}: write 0.0 or 1.0 if that is what you mean")
    h = np.asarray(given, dtype=np.float64)
    if np.isinf(h).any():
        raise ValueError(f"`threshold` must be finite, got {h[np.isinf(h)].flat[0]}: all samples lie on one side of it")
    try:
        np.broadcast_to(h, shape)
    except ValueError:
        raise ValueError(
            f"`threshold` must broadcast to the shape of one sample, {tuple(shape)}, got shape {h.shape}"
        ) from None
    return h


def _neighbours(h: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Largest number of `dtype` that is at most h, and smallest that is at least h.

    Two masks follow: where all numbers of `dtype` lie above h, and where all lie below it. They serve thresholds
    outside an integer's range; a floating-point dtype reaches from -inf to inf.
    """
    if np.issubdtype(dtype, np.floating):
        with np.errstate(over="ignore"):
            nearest = h.astype(dtype)
        lower = np.where(nearest > h, np.nextafter(nearest, dtype.type(-np.inf)), nearest)
        upper = np.where(nearest < h, np.nextafter(nearest, dtype.type(np.inf)), nearest)
        return lower, upper, np.zeros_like(h, bool), np.zeros_like(h, bool)
    info = np.iinfo(dtype)
    floor, ceil, end = np.floor(h), np.ceil(h), 2.0 ** (info.bits - (info.min < 0))

    def cast(bound: np.ndarray, otherwise: int) -> np.ndarray:  # `otherwise` must make the comparison false
        fits = (bound >= info.min) & (bound < end)  # float(info.max) would round up to `end`
        return np.where(fits, np.where(fits, bound, 0).astype(dtype), dtype.type(otherwise))

    return cast(floor, info.max), cast(ceil, info.min), floor < info.min, ceil >= end


def _count(rows: Any, lower: Any, upper: Any) -> tuple[Any, Any, Any]:
    """Numbers of samples above, below, and NaN, for each feature."""
    rows = comparable(rows)
    if isinstance(rows, np.ndarray):
        samples = np.moveaxis(rows, -1, 0)
        above, below = n_hits(samples > lower), n_hits(samples < upper)
        all_seen = (above + below == len(samples)).all()  # a NaN is on neither side
        return above, below, np.zeros_like(above) if all_seen else n_hits(samples != samples)
    xp = namespace(rows)
    hits = (rows > lower[..., None], rows < upper[..., None], rows != rows)  # only NaN differs from itself
    above, below, missing = (xp.count_nonzero(hit, axis=-1) for hit in hits)
    return above, below, missing
