"""The columns of a frame, which make frames of codes."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from metfa._frames.column import MICROSECONDS, Column, key_of
from metfa._frames.matching import in_order
from metfa._frames.of_pandas import of_pandas, to_pandas
from metfa._frames.of_polars import of_polars, to_polars

__all__ = ["Columns", "is_frame", "is_series", "label_text", "names_of", "row_of", "with_columns"]

KIND_WORDS = {
    "number": "numbers",
    "integer": "whole numbers",
    "bool": "true and false",
    "date": "dates",
    "duration": "durations",
    "label": "labels",
}


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a frame, which make frames of codes."""

    library: str
    columns: tuple[Column, ...]
    index: Any = field(default=None, repr=False)  # the names as pandas keeps them

    @classmethod
    def of(cls, frame: Any, name: str = "inputs") -> tuple[Columns, np.ndarray]:
        """The columns of a frame and its codes (rows, columns); `name` is the argument's in messages.

        Codes are float64, or the frame's own floats where all its columns have the same.

        Raises
        ------
        TypeError, ValueError
            For columns of one name, and for values that codes cannot stand for; the message names the column.
        """
        names = list(frame.columns)
        twice = [one for one, count in Counter(map(str, names)).items() if count > 1]
        if twice:
            raise ValueError(
                f"`{name}` has more than one column {twice[0]!r}: rename one, because columns are matched by name"
            )
        if not names:
            raise ValueError(f"`{name}` has no columns")
        library = type(frame).__module__.partition(".")[0]
        read = of_pandas if library == "pandas" else of_polars
        parts = [frame.iloc[:, place] if library == "pandas" else frame[one] for place, one in enumerate(names)]
        found = [read(one, part, f"column {one!r} of `{name}`") for one, part in zip(names, parts, strict=True)]
        columns, codes = zip(*found, strict=True)
        made = cls(library, columns, frame.columns if library == "pandas" else None)
        return made, np.stack(codes, axis=1).astype(made._one_dtype or np.float64, copy=False)

    def __len__(self) -> int:
        return len(self.columns)

    @cached_property
    def names(self) -> tuple[Any, ...]:
        """Names as the frame has them."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Names as texts."""
        return tuple(map(str, self.names))

    @property
    def labelled(self) -> bool:
        """Whether there are codes that are no numbers to compute with."""
        return any(column.kind == "label" for column in self.columns)

    def frame(self, codes: np.ndarray) -> Any:
        """The frame that codes (rows, columns) stand for."""
        library = sys.modules[self.library]
        if self.library == "pandas":
            dtype = self._one_dtype
            if dtype is not None:
                return library.DataFrame(codes.astype(dtype), columns=self.index, copy=False)
            parts = {place: to_pandas(one, codes[:, place]) for place, one in enumerate(self.columns)}
            made = library.DataFrame(parts, copy=False)
            made.columns = self.index
            return made
        return library.DataFrame([to_polars(one, codes[:, place]) for place, one in enumerate(self.columns)])

    @cached_property
    def _one_dtype(self) -> Any:
        """NumPy's type of floats, if all columns have the same."""
        kinds = {column.dtype for column in self.columns}
        dtype = kinds.pop() if len(kinds) == 1 else None
        return dtype if isinstance(dtype, np.dtype) and dtype.kind == "f" else None

    def coded(self, other: Columns, codes: np.ndarray, order: Sequence[int], name: str) -> np.ndarray:
        """Codes in these columns' own labels, from codes of another frame whose columns `order` they are."""
        found = np.array(codes)
        for place, (own, theirs) in enumerate(zip(self.columns, (other.columns[at] for at in order), strict=True)):
            _check_kinds(theirs, own, "the table", name)
            if own.kind != "label":
                continue
            known = ~np.isnan(found[:, place])
            labels = [theirs.labels[int(code)] for code in found[known, place]]
            unseen = [label for label in labels if key_of(label) not in own.places]
            if unseen:
                raise ValueError(
                    f"column {own.name!r} holds {unseen[0]!r}, which is in no row of the table that the labels are "
                    "taken from (such as `background`): give one with all labels"
                )
            found[known, place] = [own.places[key_of(label)] for label in labels]
        return found

    def recoded(self, codes: np.ndarray, columns: Columns) -> np.ndarray:
        """Codes (rows, columns) in these labels, from codes of the same columns with others, which these hold."""
        found = np.array(codes)
        for place, (own, before) in enumerate(zip(self.columns, columns.columns, strict=True)):
            if own.labels != before.labels:
                known = ~np.isnan(found[:, place])
                places = np.array([own.places[key] for key in before.places], np.float64)
                found[known, place] = places[found[known, place].astype(np.int64)]
        return found

    def nearest(self, codes: np.ndarray) -> np.ndarray:
        """Codes that stand for values: whole where they must be, and within their ends."""
        whole, low, high = self.limits
        return np.clip(np.where(whole, np.rint(codes), codes), low, high)

    @cached_property
    def limits(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Which columns hold whole numbers only, and the least and largest code of each."""
        ends = np.array([column.ends for column in self.columns])
        return np.array([column.whole for column in self.columns]), ends[:, 0], ends[:, 1]

    def fit(self, noisy: np.ndarray, rows: np.ndarray) -> bool:
        """Whether all codes (n, columns) that a noise made of `rows` stand for values."""
        return not any(found.any() for found in self._misfits(noisy, rows))

    def check_row(self, noisy: np.ndarray, row: np.ndarray, where: Any) -> None:
        """Raise unless the codes that a noise made of a `row` stand for values; `where` names the row."""
        bad, wrong = self._misfits(noisy, row)
        if bad.any():
            raise ValueError(f"`noise` made NaN or infinity of column {self.names[bad.argmax()]!r} of {where}")
        if wrong.any():
            place = int(wrong.argmax())
            raise TypeError(self._unfit(self.columns[place], noisy[place], where))

    def _misfits(self, noisy: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which codes are NaN or infinity and should not, and which are no values of their columns."""
        whole, low, high = self.limits
        missing = np.isnan(noisy)
        wrong = whole & ~missing & ((noisy != np.rint(noisy)) | (noisy < low) | (noisy > high))
        return np.isinf(noisy) | (missing & ~np.isnan(rows)), wrong

    def _unfit(self, column: Column, code: float, where: Any) -> str:
        by_name = "take a noise that knows columns, such as `metfa.noise.per_column(table, 0.1)`, which "
        remedy = "leaves it as it is"
        if column.kind == "integer":
            remedy = f"keeps them whole, or make it a column of floats, `frame.astype({{{column.name!r}: float}})`"
        return (
            f"`noise` made {code:.4g} of column {column.name!r} of {where}, which holds {KIND_WORDS[column.kind]}: "
            f"{by_name}{remedy}"
        )

    def contents(self, frame: Any, codes: np.ndarray) -> Iterable[Any]:
        """One object a row whose content is the row's: of numbers alone the array that NumPy makes of the frame."""
        if not any(column.kind in ("date", "duration", "label") for column in self.columns):
            table = np.asarray(frame)
            if table.dtype.kind in "fiub":
                return list(table)
        plain = [[_plain(label) for label in column.labels] for column in self.columns]
        return [
            tuple(
                None if np.isnan(code) else labels[int(code)] if labels else float(code)
                for code, labels in zip(row, plain, strict=True)
            )
            for row in codes
        ]

    def described(self) -> list[dict[str, Any]]:
        """Names, kinds and labels as texts, for files."""
        return [
            {"name": text, "kind": column.kind, "labels": [str(label) for label in column.labels]}
            for text, column in zip(self.texts, self.columns, strict=True)
        ]

    def places_of(self, names: Sequence[Any], needs: str, name: str = "inputs") -> list[int]:
        """Place of each of these names, which must be all columns; see `in_order`."""
        own = {one: place for place, one in enumerate(self.names)}
        return [own[one] for one in in_order(self.names, names, needs, name)]

    def with_labels_of(self, other: Columns, needs: str) -> Columns:
        """The same columns, with the labels of `other`'s columns of the same names, and then their own further ones.

        Nothing changes where they have all of them.

        Raises
        ------
        TypeError, ValueError
            If one holds labels and the other numbers, or if a category of `other` is none of the column's type.
        """
        theirs = {column.name: column for column in other.columns}
        return replace(self, columns=tuple(_with_labels(column, theirs[column.name], needs) for column in self.columns))


def is_frame(x: Any) -> bool:
    """Whether `x` is a data frame of a known library."""
    return _is_of(x, "DataFrame")


def is_series(x: Any) -> bool:
    """Whether `x` is one column, or one row, of a data frame."""
    return _is_of(x, "Series")


def _is_of(x: Any, kind: str) -> bool:
    return any(isinstance(x, getattr(sys.modules.get(name), kind, ())) for name in ("pandas", "polars"))


def row_of(frame: Any, index: int) -> Any:
    """The frame that holds row `index` alone."""
    return frame.iloc[index : index + 1] if hasattr(frame, "iloc") else frame[index : index + 1]


def names_of(frame: Any) -> list[Any]:
    """Names of the columns as the frame has them."""
    return list(frame.columns)


def with_columns(frame: Any, names: Sequence[Any]) -> Any:
    """The frame with these columns in this order."""
    return frame.loc[:, list(names)] if hasattr(frame, "loc") else frame.select(list(names))


def label_text(described: dict[str, Any], code: float) -> str | None:
    """What a code of a column stands for, as a text; None for a number. `described` is an entry of `described()`."""
    kind, labels = described["kind"], described["labels"]
    if np.isnan(code):
        return "missing"
    if kind == "label":
        return labels[int(code)] if 0 <= code < len(labels) else None
    if kind == "bool":
        return "true" if code else "false"
    if kind == "date":
        text = str(np.datetime64(round(code * MICROSECONDS), "us").astype("datetime64[s]"))
        return text.removesuffix("T00:00:00").replace("T", " ")
    return f"{code:.4g} days" if kind == "duration" else None


def _check_kinds(column: Column, other: Column, needs: str, name: str) -> None:
    """Raise if one holds labels or dates, and the other does not."""
    if any((column.kind == kind) != (other.kind == kind) for kind in ("label", "date", "duration")):
        raise TypeError(
            f"column {column.name!r} of `{name}` holds {KIND_WORDS[column.kind]}, but {KIND_WORDS[other.kind]} in the "
            f"table of {needs}: give both the same type, as in `{name}[{column.name!r}].astype(table[{column.name!r}]"
            ".dtype)`"
        )


def _with_labels(column: Column, other: Column, needs: str) -> Column:
    _check_kinds(column, other, needs, "inputs")
    more = [label for label in other.labels if key_of(label) not in column.places]
    if not more:
        return column
    if type(column.dtype).__name__ in ("CategoricalDtype", "Enum"):
        raise ValueError(
            f"column {column.name!r} of `inputs` has no category {more[0]!r}, which is in the table of {needs}: give "
            f"it all categories, `inputs[{column.name!r}].astype(table[{column.name!r}].dtype)`"
        )
    own = tuple(label for label in column.labels if key_of(label) not in other.places)
    return replace(column, labels=other.labels + own)


def _plain(label: Any) -> Any:
    return label if isinstance(label, str | bytes | int | float | complex) else f"{type(label).__name__} {label}"
