"""Noise for the rows of a table: a fraction of each column's standard deviation; categories stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import compress
from typing import Any

import numpy as np

from metfa._base.percents import counted
from metfa._base.validation import as_list, as_names, check_function, check_number, did_you_mean, positive_int, shown
from metfa._frames.columns import is_frame
from metfa.noise.laws import Gaussian, Noise
from metfa.noise.many import many_of
from metfa.noise.table_rows import Table, TableNoise, groups_of

__all__ = ["per_column"]


def per_column(
    data: Any,
    fraction: float,
    *,
    law: Callable[[Sequence[float]], Noise] = Gaussian,
    categorical: Sequence[int | str] = (),
    feature_names: Sequence[str] | None = None,
    resample: float = 0.0,
    together: Sequence[Sequence[int | str]] = (),
    derived: Mapping[Any, Callable[[dict[Any, Any]], Any]] | None = None,
) -> Any:
    """Noise for one row of a table: the same fraction of each column's own standard deviation.

    Categorical columns are left exactly as they are, and so are constant ones.

    Made from a data frame, it is matched by name to the frame that is explained. Whole numbers stay whole, values stay
    in the range of their column (or of the row, where it lies outside), missing values stay missing, and columns of
    labels or of true and false are categorical.

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
        Columns whose numbers are codes of categories, by position or by name. In an array only these may hold missing
        values.
    feature_names : sequence of str, optional
        Names of the columns; by default those of the data frame.
    resample : float
        Probability that a categorical column gets the value of a random row of `data` in which it is not missing, so
        that categories come with their frequencies; may be the old one. 0 leaves them as they are.
    together : sequence of sequences of int or str
        Columns that are one category, such as those of a one-hot code: all are left, or drawn from one row.
    derived : dict of functions, optional
        Columns that others give, by name: ``{"ratio": lambda row: row["debt"] / row["income"]}``. The function gets a
        dict of the noisy row's values. It must give the values of `data`, too.

    Returns
    -------
    Gaussian, Uniform or Laplace, or a noise that knows columns
        With absolute numbers, one for each column: look at them before use. For data frames, and for `resample`,
        `together` and `derived`, it knows the columns; its `law` is one of the three.

    Raises
    ------
    TypeError
        If a column of an array that is not categorical holds no numbers.
    ValueError
        If such a column holds NaN or infinity (the message names it), if the table has no such column, or if no column
        varies. When used, if the frame that is explained has other columns.

    Notes
    -----
    A column of whole numbers whose noise is far below 1 hardly ever changes, because it is rounded.

    Examples
    --------
    >>> import metfa
    >>> table = [[1.0, 20.0, 0], [3.0, 60.0, 1], [1.0, 20.0, 2], [3.0, 60.0, 1]]
    >>> metfa.noise.per_column(table, 0.25, categorical=[2])
    Gaussian(std=(0.25, 5.0, 0.0), bounds=None)
    >>> import pandas as pd
    >>> metfa.noise.per_column(pd.DataFrame({"age": [30, 50], "town": ["Ulm", "Bonn"]}), 0.2, resample=0.1)
    per_column(Gaussian, {'age': 2, 'town': 0}, resample=0.1, table ...)
    """
    fraction = check_number(fraction, "fraction")
    check_function(law, "law", "law(strengths)", [])
    known = is_frame(data) or resample or len(together) or derived is not None
    if known:
        return _by_name(data, fraction, law, (categorical, together), feature_names, resample, derived)
    made = law([fraction * std for std in _column_stds(data, categorical, feature_names)])
    check_function(made, "law(strengths)", "noise(x, rng)", None, None)
    return made


class ColumnNoise(TableNoise):
    """Noise of `per_column` whose columns have names.

    Attributes
    ----------
    law : Gaussian, Uniform, Laplace or another
        The noise of the numbers, with one strength for each column of the table.
    resample : float
        Probability that a category is drawn anew.
    """

    law: Noise
    resample: float

    def __init__(
        self, table: Table, law: Noise, fixed: np.ndarray, groups: list[np.ndarray], resample: float, derived: Any
    ) -> None:
        super().__init__(table, fixed, derived)
        self.law, self.resample = law, resample
        rows = [table.codes[:, group] for group in groups]
        pools = [part[~np.isnan(part).any(axis=1)] for part in rows]
        self._pools = [(group, pool) for group, pool in zip(groups, pools, strict=True) if len(pool)]

    def moved(self, rows: np.ndarray, rngs: Iterable[np.random.Generator]) -> np.ndarray:
        """See `TableNoise`."""
        many, rngs = many_of(self.law), list(rngs)
        found = many(rows, rngs) if many else np.array([self.law(*each) for each in zip(rows, rngs, strict=True)])
        if self.resample and self._pools:
            for row, rng in zip(found, rngs, strict=True):
                drawn = rng.random(len(self._pools)) < self.resample
                for group, pool in compress(self._pools, drawn):
                    row[group] = pool[rng.integers(len(pool))]
        return found

    def __repr__(self) -> str:
        resampled = f", resample={self.resample:g}" if self.resample else ""
        derived = f", derived={[self.columns.names[place] for place, _ in self._derived]}" if self._derived else ""
        return f"per_column({self._strengths()}{resampled}{derived}, table {self.table.digest})"

    def _strengths(self) -> str:
        first = (
            next((getattr(self.law, one.name) for one in fields(self.law)), None) if is_dataclass(self.law) else None
        )
        if not isinstance(first, tuple) or len(first) != len(self.columns):
            return repr(self.law)
        each = ", ".join(f"{name!r}: {value:.4g}" for name, value in zip(self.columns.names, first, strict=True))
        return f"{type(self.law).__name__}, {{{each}}}"


def _by_name(
    data: Any, fraction: float, law: Any, left: tuple[Any, Any], names: Any, resample: float, derived: Any
) -> ColumnNoise:
    table = Table.of(data, names)
    categorical, together = left
    resample = check_number(resample, "resample", most=1.0)
    groups = groups_of(table, together, _entries(categorical))
    fixed = np.zeros(len(table.columns), bool)
    for group in groups:
        fixed[group] = True
    stds = np.zeros(len(table.columns))
    for place in np.flatnonzero(~fixed):
        values = table.codes[~np.isnan(table.codes[:, place]), place]
        if len(values) and values.min() < values.max():
            stds[place] = fraction * values.std()
    if not stds.any() and not (resample and groups) and fraction:
        raise ValueError(
            f"`data` has no column to put noise on: {fixed.sum()} of its {len(fixed)} columns are categorical, and no "
            f"other varies over its {counted(len(table.codes), 'row')}"
        )
    made = law(stds.tolist())
    check_function(made, "law(strengths)", "noise(x, rng)", None, None)
    return ColumnNoise(table, made, fixed, groups, resample, derived)


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
        raise ValueError(f"`feature_names` has {counted(len(names), 'name')}, but `data` has {n_columns} columns")
    left_alone = {_position(entry, names, n_columns) for entry in _entries(categorical)}
    stds = [0.0] * n_columns
    for index in sorted(set(range(n_columns)) - left_alone):
        stds[index] = _std(table[:, index], f"column {index}" + (f" ({names[index]!r})" if names else ""))
    if not any(stds):
        raise ValueError(
            f"`data` has no column to put noise on: {len(left_alone)} of its {n_columns} columns are categorical, and "
            f"no other varies over its {counted(len(table), 'row')}"
        )
    return stds


def _std(column: np.ndarray, named: str) -> float:
    numbers = _numbers(column)
    if numbers is None:
        raise TypeError(f"{named} of `data` holds no numbers, such as {column[0]!r}: name it in `categorical`")
    missing = int((~np.isfinite(numbers)).sum())
    if missing:
        raise ValueError(
            f"{named} of `data` holds NaN or infinity in {missing} of {counted(len(numbers), 'row')}: leave those rows "
            "out, or fill them as for the model"
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
