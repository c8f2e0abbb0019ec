"""Checks of arguments: a wrong kind is a TypeError, a wrong value a ValueError."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from metfa._arrays import as_array, namespace, to_host
from metfa._base.validation import check_number, digits, is_whole, one_of, shown

__all__ = [
    "as_alternative",
    "as_axis",
    "as_counts",
    "as_level",
    "as_log_e_values",
    "as_pvalues",
    "as_real",
    "as_rows",
    "refuse_nan",
]

ALTERNATIVES = ("two-sided", "greater", "less")


def as_level(value: Any, name: str) -> float:
    """A probability strictly between 0 and 1."""
    level = check_number(value, name, least=-math.inf)
    if not 0 < level < 1:
        hint = f"; for {level:g} % write {level / 100:g}" if 1 < level < 100 else ""
        raise ValueError(f"`{name}` must lie strictly between 0 and 1, got {level}{hint}")
    return level


def as_alternative(value: Any) -> str:
    """One of SciPy's names for the alternative hypothesis."""
    return one_of(value, "alternative", ALTERNATIVES)


def as_axis(axis: Any, ndim: int) -> int:
    """An axis of an array of `ndim` axes, counted from the front."""
    if not is_whole(axis):
        raise TypeError(f"`axis` must be an integer, got {shown(axis)}")
    if not -ndim <= axis < ndim:
        raise ValueError(
            f"`axis` must lie in [{-ndim}, {ndim - 1}] for an array of {ndim} axes, got {digits(int(axis))}"
        )
    return int(axis) % ndim


def as_real(x: Any, name: str) -> Any:
    """An array of real floating-point numbers, integers or booleans, of any library."""
    x = as_array(x, name)
    if not namespace(x).isdtype(x.dtype, ("real floating", "integral", "bool")):
        raise TypeError(f"`{name}` must hold real numbers, got {type(x).__name__} of {x.dtype}")
    return x


def as_rows(samples: Any, axis: Any) -> tuple[Any, int]:
    """A view of `samples` whose last axis runs over the samples, and the number of samples."""
    samples = as_real(samples, "samples")
    if samples.ndim == 0:
        raise ValueError("`samples` must have an axis that runs over the samples, got a single number")
    rows = namespace(samples).moveaxis(samples, as_axis(axis, samples.ndim), -1)
    if rows.shape[-1] == 0:
        raise ValueError(f"`samples` must hold at least one sample along `axis`={axis}, got shape {samples.shape}")
    return rows, rows.shape[-1]


def as_counts(counts: Any, n: int) -> tuple[Any, np.ndarray]:
    """Counts among `n` samples, as an array and as integers on the host."""
    counts = as_array(counts, "counts")
    host = to_host(counts)
    if host.dtype.kind not in "iu":
        raise TypeError(f"`counts` must be integers, got {host.dtype}")
    if host.size and not (host.min() >= 0 and host.max() <= n):
        raise ValueError(f"`counts` must lie in 0..{n}, the number of samples, got {host.min()}..{host.max()}")
    return counts, host


def as_log_e_values(log_e_values: Any) -> tuple[Any, np.ndarray]:
    """Logarithms of e-values, as an array and as float64 on the host; -inf, the e-value 0, is one."""
    log_e_values = as_real(log_e_values, "log_e_values")
    host = to_host(log_e_values).astype(np.float64)
    bad = np.count_nonzero(~(host < np.inf))
    if bad:
        raise ValueError(f"`log_e_values` must be below infinity, got {bad} that are NaN or +inf")
    return log_e_values, host


def as_pvalues(pvalues: Any) -> tuple[Any, np.ndarray]:
    """P-values, as an array and as float64 on the host."""
    pvalues = as_real(pvalues, "pvalues")
    host = to_host(pvalues).astype(np.float64)
    bad = np.count_nonzero(~((host >= 0) & (host <= 1)))
    if bad:
        raise ValueError(f"`pvalues` must lie in [0, 1], got {bad} values that are outside or NaN")
    return pvalues, host


def refuse_nan(counts: Any, name: str, kind: str = "NaN") -> None:
    """Raise if any of `counts`, the bad values per feature, is not zero."""
    total = int(namespace(counts).sum(counts))
    if total:
        raise ValueError(f"`{name}` must be free of {kind}, got {total} such values; drop or replace them beforehand")
