"""One column of a frame, and codes for its values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

__all__ = ["EXACT", "MICROSECONDS", "Column", "checked", "days", "from_days", "key_of", "labelled"]

EXACT = 2**53  # larger integers are not all numbers of float64
MICROSECONDS = 86_400e6  # of a day


@dataclass(frozen=True, eq=False)
class Column:
    """One column: its name, what its codes mean, and how its library keeps it.

    Attributes
    ----------
    name : object
    kind : {"number", "integer", "bool", "date", "duration", "label"}
    labels : tuple
        What the codes 0, 1, ... stand for, if the kind is "label".
    dtype : object
        The library's type.
    missing : object
        What stands where a value is missing: None, NaN or the library's own.
    """

    name: Any
    kind: str
    dtype: Any = None
    labels: tuple[Any, ...] = ()
    missing: Any = None

    @cached_property
    def places(self) -> dict[Any, int]:
        """The code of each label."""
        return {key_of(label): place for place, label in enumerate(self.labels)}

    @property
    def whole(self) -> bool:
        """Whether its codes are whole numbers."""
        return self.kind in ("integer", "bool", "label")

    @property
    def ends(self) -> tuple[float, float]:
        """Smallest and largest code that it can hold."""
        if self.kind in ("bool", "label"):
            return 0.0, float(len(self.labels) - 1 if self.kind == "label" else 1)
        dtype = getattr(self.dtype, "numpy_dtype", self.dtype)
        if self.kind == "integer" and isinstance(dtype, np.dtype) and dtype.kind in "iu":
            return max(float(np.iinfo(dtype).min), -EXACT), min(float(np.iinfo(dtype).max), EXACT)
        return (-EXACT, EXACT) if self.kind == "integer" else (-np.inf, np.inf)


def key_of(label: Any) -> Any:
    """1, 1.0 and True are three labels."""
    return type(label), label


def checked(codes: np.ndarray, where: str, *, integers: bool = False) -> np.ndarray:
    if np.isinf(codes).any():
        raise ValueError(f"{where} must be finite, but row {int(np.isinf(codes).argmax())} holds infinity")
    if integers and (np.abs(codes) > EXACT).any():
        raise ValueError(
            f"{where} holds integers beyond 2**53, which a float64 cannot tell apart: leave the column out, or make it "
            "texts if they are names"
        )
    return codes


def labelled(values: Sequence[Any], missing: Sequence[bool], where: str) -> tuple[tuple[Any, ...], np.ndarray]:
    """Labels in the order of their texts, and codes."""
    try:
        found = {key_of(value): value for value, none in zip(values, missing, strict=True) if not none}
    except TypeError:
        kinds = ", ".join(sorted({type(value).__name__ for value in values}))
        raise TypeError(f"{where} must hold numbers, texts or other single values, got {kinds}") from None
    labels = sorted(found.values(), key=lambda label: (str(label), type(label).__name__))
    places = {key_of(label): place for place, label in enumerate(labels)}
    codes = [np.nan if none else places[key_of(value)] for value, none in zip(values, missing, strict=True)]
    return tuple(labels), np.array(codes, np.float64)


def days(since: np.ndarray, where: str, unit: str) -> np.ndarray:
    """Days of dates or durations, exact to a microsecond."""
    known = ~np.isnat(since)
    codes = np.full(len(since), np.nan)
    finer = since[known].astype(f"{unit}[us]")
    codes[known] = finer.astype(np.int64) / MICROSECONDS
    again = np.rint(codes[known] * MICROSECONDS).astype(np.int64).astype(f"{unit}[us]")
    if (again != since[known]).any():
        raise ValueError(f"{where} holds times finer than a microsecond: write `.dt.as_unit('us')`")
    return codes


def from_days(codes: np.ndarray, unit: str) -> np.ndarray:
    known = ~np.isnan(codes)
    since = np.full(len(codes), "NaT", dtype=f"{unit}[us]")
    since[known] = np.rint(codes[known] * MICROSECONDS).astype(np.int64).astype(f"{unit}[us]")
    return since
