"""What every noise made from a table shares: its columns are matched by name, and values stay of their kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import product
from typing import Any

import numpy as np

from metfa._arrays import from_host, is_array, is_floating, to_host
from metfa._base.percents import counted
from metfa._base.validation import as_list, as_names, check_function, did_you_mean, positive_int, shown
from metfa._frames.column import Column
from metfa._frames.columns import Columns, is_frame
from metfa.noise.many import OfMany

__all__ = ["Table", "TableNoise", "groups_of"]

CHECKED_ROWS = 200  # of a table, by a function of `derived`
NAMES_SHOWN = 12  # in a message
TOLERANCE = 0.05  # of a column's standard deviation, for values that a table has rounded


@dataclass(frozen=True, eq=False)
class Table:
    """A table as codes, float64 (rows, columns), with what is known of its columns."""

    columns: Columns
    codes: np.ndarray

    @classmethod
    def of(cls, data: Any, feature_names: Sequence[str] | None = None, name: str = "data") -> Table:
        """A frame, or an array of numbers (rows, columns) whose columns have names or are called 0, 1, ..."""
        if is_frame(data):
            if not len(data):
                raise ValueError(f"`{name}` must be a table (rows, columns), got a frame without rows")
            return cls(*Columns.of(data, name))
        try:
            array = np.asarray(to_host(data) if is_array(data) else data)
            codes = array.astype(np.float64)
        except Exception as error:  # the object's own, whatever it may be
            raise TypeError(
                f"`{name}` must be a table of numbers (rows, columns), got {shown(data)}: {error}"
            ) from None
        if array.ndim != 2 or 0 in array.shape:
            raise ValueError(f"`{name}` must be a table (rows, columns), got {type(data).__name__} of {array.shape}")
        if np.isinf(codes).any():
            raise ValueError(f"`{name}` must hold finite numbers, or NaN where a value is missing")
        names: Sequence[Any] = range(array.shape[1])
        if feature_names is not None:
            names = as_names(feature_names, "feature_names")
        if len(names) != array.shape[1]:
            raise ValueError(
                f"`feature_names` has {counted(len(names), 'name')}, but `{name}` has {array.shape[1]} columns"
            )
        kind = "integer" if array.dtype.kind in "iub" else "number"
        return cls(Columns("numpy", tuple(Column(one, kind) for one in names)), codes)

    @property
    def digest(self) -> str:
        """Digest of its content."""
        about = repr([(str(one.name), one.kind, one.labels) for one in self.columns.columns])
        return blake2b(about.encode() + self.codes.tobytes(), digest_size=4).hexdigest()

    def place(self, entry: Any, argument: str) -> int:
        """Place of a column that is given by name, or by place where names are texts."""
        names = self.columns.names
        if entry in names:
            return names.index(entry)
        if isinstance(entry, str):
            hint = did_you_mean(entry, self.columns.texts)
            raise ValueError(
                f"`{argument}` names {entry!r}, which is no column of the table{hint}; it has {_names_of(self.columns)}"
            )
        place = positive_int(entry, argument, minimum=0)
        if place >= len(names) or any(isinstance(name, int) for name in names):
            raise ValueError(
                f"`{argument}` names {entry!r}, which is no column of the table; it has {_names_of(self.columns)}"
            )
        return place

    @property
    def labelled(self) -> np.ndarray:
        """Which columns hold labels, or true and false."""
        return np.array([one.kind in ("label", "bool") for one in self.columns.columns])


def groups_of(table: Table, together: Any, categorical: Any) -> list[np.ndarray]:
    """Places of columns whose values are drawn as one: those given together, and each category by itself."""
    groups = []
    for group in as_list(together, "together", "a list of lists of columns, such as [['red', 'green']]"):
        names = as_list(group, "together", "a list of lists of columns, such as [['red', 'green']]")
        groups.append([table.place(entry, "together") for entry in names])
    alone = set(np.flatnonzero(table.labelled))
    alone |= {table.place(entry, "categorical") for entry in as_list(categorical, "categorical", "a list of columns")}
    grouped = [place for group in groups for place in group]
    if len(grouped) != len(set(grouped)):
        twice = next(place for place in grouped if grouped.count(place) > 1)
        raise ValueError(f"`together` must name each column once, got {table.columns.names[twice]!r} twice")
    groups += [[place] for place in sorted(alone - set(grouped))]
    return [np.array(group) for group in groups]


class TableNoise(OfMany):
    """Noise for the rows of a table: `moved` of a subclass changes their codes, and what does not fit is put right.

    Whole numbers are rounded. Values stay in the range of their column in the table, or of the row itself where that
    lies outside. What is missing stays missing. Columns in `derived` are computed from the others.
    """

    table: Table
    columns: Columns

    def __init__(self, table: Table, fixed: np.ndarray, derived: Any) -> None:
        self.table = table
        self.columns = table.columns
        self._whole = np.array([one.whole for one in table.columns.columns])
        with np.errstate(all="ignore"):
            known = ~np.isnan(table.codes)
            self._low = np.where(known, table.codes, np.inf).min(axis=0)
            self._high = np.where(known, table.codes, -np.inf).max(axis=0)
        self._low[fixed], self._high[fixed] = -np.inf, np.inf
        self._derived = _checked_derived(derived, table)

    def moved(self, rows: np.ndarray, rngs: Iterable[np.random.Generator]) -> np.ndarray:
        """Codes (n, columns) of noisy rows, in the order of the table's columns."""
        raise NotImplementedError

    def noisy(self, rows: np.ndarray, rngs: Iterable[np.random.Generator]) -> np.ndarray:
        """Codes (n, columns) of noisy rows that stand for values of the table's kinds."""
        found, missing = self.moved(rows, rngs), np.isnan(rows)
        found = np.where(self._whole, np.rint(found), found)
        found = np.minimum(np.maximum(found, np.fmin(self._low, rows)), np.fmax(self._high, rows))
        found[missing] = np.nan
        if self._derived:
            moved = ((found != rows) & ~missing).any(axis=1)  # other rows keep the table's own rounding
            for row, (place, function) in product(np.flatnonzero(moved), self._derived):
                if not missing[row, place]:
                    found[row, place] = _computed(self.columns, place, function, found[row])
        return found

    def many(self, rows: Any, rngs: Iterable[np.random.Generator]) -> Any:
        """Noisy copies of rows (n, columns), an array with the table's columns in their order."""
        if not is_array(rows) or tuple(rows.shape[1:]) != (len(self.columns),):
            got = f"shape {tuple(rows.shape[1:])}" if is_array(rows) else type(rows).__name__
            raise ValueError(f"the noise is for rows of {len(self.columns)} columns, one input has {got}")
        if self.columns.labelled and self.columns.library != "numpy":
            raise TypeError("the noise was made from a frame with labels: give `metfa.explain` a frame as well")
        if not is_floating(rows):
            raise TypeError(
                f"the noise needs rows of floats, got {rows.dtype}: write `table.astype(float)`, or give a frame"
            )
        return from_host(self.noisy(to_host(rows).astype(np.float64), rngs), like=rows)

    def for_columns(self, columns: Columns) -> tuple[Columns, Callable[..., Any]]:
        """The columns of a frame, which may have other labels and another order, and the noise for its codes."""
        order = columns.places_of(self.columns.names, "which the noise was made for")
        joined = columns.with_labels_of(self.columns, "the noise")
        return joined, _Matched(self, joined, np.array(order))


class _Matched(OfMany):
    """A noise of a table for the codes of a frame."""

    def __init__(self, noise: TableNoise, columns: Columns, order: np.ndarray) -> None:
        self._noise, self._order = noise, order
        self._whole = np.array([one.whole for one in columns.columns])
        self._codes = []
        for place, (own, at) in enumerate(zip(noise.columns.columns, order, strict=True)):
            if own.kind != "label":
                continue
            theirs = columns.columns[at]
            unseen = (n for n in range(len(own.labels), len(own.labels) + len(theirs.labels)))
            inward = np.array([own.places.get(key, None) if key in own.places else next(unseen)
                               for key in theirs.places], np.float64)  # fmt: skip
            outward = np.full(int(inward.max(initial=-1)) + 1, np.nan)
            outward[inward.astype(np.int64)] = np.arange(len(inward))
            self._codes.append((place, inward, outward))

    def many(self, rows: np.ndarray, rngs: Iterable[np.random.Generator]) -> np.ndarray:
        own = rows.take(self._order, axis=1)
        for place, inward, _ in self._codes:
            _translate(own[:, place], inward)
        noisy = self._noise.noisy(own, rngs)
        for place, _, outward in self._codes:
            _translate(noisy[:, place], outward)
        found = np.empty_like(rows)
        found[:, self._order] = noisy
        return np.where(self._whole, np.rint(found), found)

    def __repr__(self) -> str:
        return repr(self._noise)


def _translate(codes: np.ndarray, others: np.ndarray) -> None:
    """Replace codes in place; what is missing stays missing."""
    known = ~np.isnan(codes)
    codes[known] = others[codes[known].astype(np.int64)]


def _values(columns: Columns, codes: np.ndarray) -> dict[Any, Any]:
    """Values of one row by name: numbers and labels; a missing value is NaN."""
    return {
        one.name: one.labels[int(code)] if one.labels and 0 <= code < len(one.labels) else float(code)
        for one, code in zip(columns.columns, codes, strict=True)
    }


def _computed(columns: Columns, place: int, function: Callable[..., Any], codes: np.ndarray) -> float:
    """Code of a derived column, from those of a row."""
    column, values = columns.columns[place], _values(columns, codes)
    try:
        value = function(values)
    except KeyError as error:
        wanted = error.args[0] if error.args else None
        if wanted in values:  # an error of the function's own, about something else
            raise
        raise ValueError(
            f"`derived[{column.name!r}]` asks for the column {wanted!r}, which the table does not have"
            f"{did_you_mean(wanted, columns.texts)}; it has {_names_of(columns)}"
        ) from error
    return _code_of(column, value)


def _names_of(columns: Columns) -> str:
    more = len(columns) - NAMES_SHOWN
    return ", ".join(map(repr, columns.names[:NAMES_SHOWN])) + (f" and {more} more" if more > 0 else "")


def _code_of(column: Column, value: Any) -> float:
    if column.kind == "label" and (type(value), value) in column.places:
        return float(column.places[type(value), value])
    try:
        code = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"`derived[{column.name!r}]` must return a value of its column, got {shown(value)}") from None
    return float(np.rint(code)) if column.whole else code


def _checked_derived(derived: Any, table: Table) -> list[tuple[int, Callable[..., Any]]]:
    """Places and functions of derived columns; raises unless they give the table's own values."""
    if derived is None:
        return []
    if not isinstance(derived, Mapping):
        raise TypeError(
            f"`derived` must be a dict of functions, one for each column that others give, got {shown(derived)}"
        )
    found = []
    for name, function in derived.items():
        place = table.place(name, "derived")
        check_function(function, f"derived[{name!r}]", "function(row)", None)
        own = table.codes[:CHECKED_ROWS, place]
        spread = TOLERANCE * float(np.nanstd(own)) if not np.isnan(own).all() else 0.0
        for number, (row, value) in enumerate(zip(table.codes[:CHECKED_ROWS], own, strict=True)):
            made = _computed(table.columns, place, function, row)
            if not np.isnan(value) and not abs(made - value) <= spread + 1e-9 * abs(value):
                raise ValueError(
                    f"`derived[{name!r}]` gives {made:.5g} for row {number} of the table, which holds {value:.5g}: the "
                    "function must give the table's own values, in their units"
                )
        found.append((place, function))
    return found
