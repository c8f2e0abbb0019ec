"""Columns of a table: their standard deviations, their names, and which of them are categories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from metfa._base.validation import did_you_mean, positive_int

__all__ = ["column_stds"]


def column_stds(data: Any, categorical: Any, feature_names: Sequence[str] | None) -> list[float]:
    """Standard deviation of each column of `data`, 0 for categorical and for constant ones."""
    table = np.asarray(data)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"`data` must be a table (rows, columns), got {type(data).__name__} of shape {table.shape}")
    n_columns = table.shape[1]
    names = list(getattr(data, "columns", ()) if feature_names is None else feature_names)
    if names and len(names) != n_columns:
        raise ValueError(f"`feature_names` has {len(names)} names, but `data` has {n_columns} columns")
    left_alone = {_position(entry, names, n_columns) for entry in _entries(categorical)}
    stds = [0.0] * n_columns
    for index in sorted(set(range(n_columns)) - left_alone):
        stds[index] = _std(table[:, index], f"column {index}" + (f" ({names[index]!r})" if names else ""))
    if not any(stds):
        raise ValueError(
            f"`data` has no column to put noise on: {len(left_alone)} of its {n_columns} columns are categorical, and "
            f"no other varies over its {len(table)} rows"
        )
    return stds


def _std(column: np.ndarray, named: str) -> float:
    numbers = _numbers(column)
    if numbers is None:
        raise TypeError(f"{named} of `data` holds no numbers, such as {column[0]!r}: name it in `categorical`")
    missing = int((~np.isfinite(numbers)).sum())
    if missing:
        raise ValueError(
            f"{named} of `data` holds NaN or infinity in {missing} of {len(numbers)} rows: leave those rows out, or "
            "fill them as for the model"
        )
    if numbers.min() == numbers.max():
        return 0.0  # exactly: the rounded mean would leave a trace of a standard deviation
    return float(numbers.std())


def _numbers(column: np.ndarray) -> np.ndarray | None:
    """A column as floats; None where it holds anything else, true and false included."""
    plain = column.dtype.kind != "O" or not any(isinstance(entry, str | bool | np.bool_) for entry in column)
    if column.dtype.kind not in "fiuO" or not plain:
        return None
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError):
        return None


def _entries(categorical: Any) -> list[Any]:
    if isinstance(categorical, str) or not hasattr(categorical, "__iter__"):
        raise TypeError(f"`categorical` must be a list of columns, got {categorical!r}: write [{categorical!r}]")
    entries = list(categorical)
    if any(isinstance(entry, bool | np.bool_) for entry in entries):
        raise TypeError("`categorical` must name columns, got true and false: write `np.flatnonzero(mask)`")
    return entries


def _position(entry: Any, names: list[Any], n_columns: int) -> int:
    """Position of a column that is given by position or by name."""
    if isinstance(entry, str):
        if entry in names:
            return names.index(entry)
        hint = did_you_mean(entry, map(str, names)) if names else ": its columns have no names"
        raise ValueError(f"`categorical` names {entry!r}, which is no column of `data`{hint}")
    position = positive_int(entry, "categorical", minimum=0)
    if position >= n_columns:
        raise ValueError(f"`categorical` must lie in 0..{n_columns - 1}, got {position}")
    return position
