"""Columns of pandas as codes, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa._frames.column import Column, checked, days, from_days, labelled

__all__ = ["of_pandas", "to_pandas"]


def of_pandas(name: Any, series: Any, where: str) -> tuple[Column, np.ndarray]:
    import pandas as pd

    dtype = series.dtype
    kind = getattr(dtype, "kind", "O")
    if isinstance(dtype, pd.CategoricalDtype):
        codes = series.cat.codes.to_numpy().astype(np.float64)
        codes[codes < 0] = np.nan
        return Column(name, "label", dtype, tuple(dtype.categories.tolist())), codes
    if kind in "fiub":
        codes = np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
        named = {"f": "number", "b": "bool"}.get(kind, "integer")
        return Column(name, named, dtype), checked(codes, where, integers=named == "integer")
    if kind == "M":
        naive = series.dt.tz_convert("UTC").dt.tz_localize(None) if getattr(dtype, "tz", None) else series
        return Column(name, "date", dtype), days(naive.to_numpy(), where, "datetime64")
    if kind == "m":
        return Column(name, "duration", dtype), days(series.to_numpy(), where, "timedelta64")
    if kind == "c":
        raise TypeError(f"{where} must hold real numbers, got {dtype}")
    return _of_objects(name, series, where)


def _of_objects(name: Any, series: Any, where: str) -> tuple[Column, np.ndarray]:
    """A column of Python objects, or of a further type of pandas."""
    import pandas as pd

    dtype, values, missing = series.dtype, series.tolist(), series.isna().tolist()
    of_any_type = is_object(dtype)
    gone = {id(value) if value is None or value is pd.NA else "nan": value for value, none in
            zip(values, missing, strict=True) if none}  # fmt: skip
    if of_any_type and len(gone) > 1:
        raise ValueError(
            f"{where} has missing values of several kinds ({', '.join(map(repr, gone.values()))}): write them all in "
            f"one way, as in `frame[{name!r}].fillna(numpy.nan)`"
        )
    absent = next(iter(gone.values()), np.nan)
    found = pd.api.types.infer_dtype(series, skipna=True) if of_any_type else ""
    kinds = {"integer": "integer", "boolean": "bool", "floating": "number", "mixed-integer-float": "number"}
    if found in kinds:
        codes = np.array([np.nan if none else value for value, none in zip(values, missing, strict=True)], np.float64)
        return Column(name, kinds[found], dtype, missing=absent), checked(codes, where, integers=found == "integer")
    labels, codes = labelled(values, missing, where)
    return Column(name, "label", dtype, labels, absent), codes


def to_pandas(column: Column, codes: np.ndarray) -> Any:
    import pandas as pd

    dtype = column.dtype
    if column.kind == "label":
        none = np.isnan(codes)
        places = np.where(none, -1, codes).astype(np.int64)
        if isinstance(dtype, pd.CategoricalDtype):
            return pd.Categorical.from_codes(places, dtype=dtype)
        values = np.empty(len(column.labels) + 1, object)
        values[:-1], values[-1] = column.labels, column.missing
        return pd.Series(values[places], dtype=dtype)
    if column.kind in ("date", "duration"):
        if column.kind == "duration":
            return pd.Series(from_days(codes, "timedelta64")).astype(dtype)
        dates = pd.Series(from_days(codes, "datetime64"))
        zone = getattr(dtype, "tz", None)
        return dates.astype(dtype) if zone is None else dates.dt.tz_localize("UTC").dt.tz_convert(zone).astype(dtype)
    if is_object(dtype):
        cast = {"integer": int, "bool": bool}.get(column.kind, float)
        values = np.empty(len(codes), object)
        values[:] = [column.missing if np.isnan(code) else cast(code) for code in codes]
        return pd.Series(values, dtype=object)
    return codes.astype(dtype) if isinstance(dtype, np.dtype) else pd.Series(codes).astype(dtype)


def is_object(dtype: Any) -> bool:
    """Whether a column of this type may hold any Python object."""
    return isinstance(dtype, np.dtype) and dtype.kind == "O"
