"""Noise for the rows of a table: a fraction of each column's standard deviation; categories stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metfa._base.validation import as_list, as_names, check_function, check_number, did_you_mean, positive_int, shown
from metfa.noise.laws import Gaussian, Noise

__all__ = ["per_column"]


def per_column(
    data: Any,
    fraction: float,
    *,
    law: Callable[[Sequence[float]], Noise] = Gaussian,
    categorical: Sequence[int | str] = (),
    feature_names: Sequence[str] | None = None,
) -> Any:
    """Noise for one row of a table: the same fraction of each column's own standard deviation.

    Categorical columns are left exactly as they are, and so are constant ones.

    Parameters
    ----------
    data : array or data frame, (rows, columns)
        Data with the same columns as the rows to be explained, such as the training table. The columns' standard
        deviations are computed from it (with n, not n - 1, as `StandardScaler` does).
    fraction : float
        The setting of the law is this multiple of the standard deviation; not negative.
    law : {Gaussian, Uniform, Laplace}
        Law with one setting for each column: the standard deviation of `Gaussian`, the radius of `Uniform`, the scale
        of `Laplace`.
    categorical : sequence of int or str
        Columns that stay as they are, by position or by name. Only these may hold texts or missing values.
    feature_names : sequence of str, optional
        Names of the columns; by default those of the data frame.

    Returns
    -------
    Gaussian, Uniform or Laplace
        With absolute numbers, one for each column: look at them before use.

    Raises
    ------
    TypeError
        If a column that is not categorical holds no numbers.
    ValueError
        If a column that is not categorical holds NaN or infinity (the message names it), if the table has no such
        column, or if no column varies.

    Examples
    --------
    >>> import metfa
    >>> table = [[1.0, 20.0, 0], [3.0, 60.0, 1], [1.0, 20.0, 2], [3.0, 60.0, 1]]
    >>> metfa.noise.per_column(table, 0.25, categorical=[2])
    Gaussian(std=(0.25, 5.0, 0.0), bounds=None)
    """
    fraction = check_number(fraction, "fraction")
    check_function(law, "law", "law(strengths)", [])
    made = law([fraction * std for std in _column_stds(data, categorical, feature_names)])
    check_function(made, "law(strengths)", "noise(x, rng)", None, None)
    return made


def _column_stds(data: Any, categorical: Any, feature_names: Sequence[str] | None) -> list[float]:
    """Standard deviation of each column of `data`, 0 for categorical and for constant ones."""
    try:
        table = np.asarray(data)
    except Exception as error:  # the object's own, whatever it may be
        raise TypeError(f"`data` must be a table (rows, columns), got {shown(data)}: {error}") from None
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"`data` must be a table (rows, columns), got {type(data).__name__} of shape {table.shape}")
    n_columns = table.shape[1]
    names = list(getattr(data, "columns", ()) if feature_names is None else as_names(feature_names, "feature_names"))
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
        return 0.0  # exactly: with the rounded mean it would be a tiny number
    return float(numbers.std())


def _numbers(column: np.ndarray) -> np.ndarray | None:
    """A column as floats; None if it holds anything else, such as true and false."""
    plain = column.dtype.kind != "O" or not any(isinstance(entry, str | bool | np.bool_) for entry in column)
    if column.dtype.kind not in "fiuO" or not plain:
        return None
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError):
        return None


def _entries(categorical: Any) -> list[Any]:
    entries = as_list(categorical, "categorical", "a list of columns, such as [2]")
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
