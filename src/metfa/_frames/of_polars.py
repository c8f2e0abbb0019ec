"""Columns of polars as codes, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa._frames.column import Column, checked, days, from_days, labelled

__all__ = ["of_polars", "to_polars"]


def of_polars(name: Any, series: Any, where: str) -> tuple[Column, np.ndarray]:
    import polars as pl

    dtype: Any = series.dtype
    if dtype.is_numeric() or dtype == pl.Boolean:
        codes = series.cast(pl.Float64).to_numpy()
        missing = None
        if dtype.is_float() and series.is_nan().any():
            if series.null_count():
                raise ValueError(f"{where} has both null and NaN: write them all in one way, `.fill_nan(None)`")
            missing = np.nan
        kind = "bool" if dtype == pl.Boolean else "integer" if dtype.is_integer() else "number"
        return Column(name, kind, dtype, missing=missing), checked(codes, where, integers=kind == "integer")
    if dtype == pl.Date or dtype == pl.Datetime:
        plain = series.cast(pl.Datetime("us") if dtype == pl.Date else pl.Datetime(dtype.time_unit))
        return Column(name, "date", dtype), days(plain.to_numpy(), where, "datetime64")
    if dtype == pl.Duration:
        return Column(name, "duration", dtype), days(series.to_numpy(), where, "timedelta64")
    if dtype.is_nested() or dtype not in (pl.String, pl.Categorical, pl.Enum, pl.Null):
        raise TypeError(f"{where} must hold numbers, texts or other single values, got {dtype}")
    values = series.to_list()
    labels, codes = labelled(values, [value is None for value in values], where)
    if isinstance(dtype, pl.Enum):
        order = {label: place for place, label in enumerate(dtype.categories.to_list())}
        codes = np.array([np.nan if value is None else order[value] for value in values])
        labels = tuple(order)
    return Column(name, "label", dtype, labels), codes


def to_polars(column: Column, codes: np.ndarray) -> Any:
    import polars as pl

    if column.kind == "label":
        values = [None if np.isnan(code) else column.labels[int(code)] for code in codes]
        return pl.Series(column.name, values, dtype=column.dtype)
    if column.kind == "duration":
        return pl.Series(column.name, from_days(codes, "timedelta64")).cast(column.dtype)
    if column.kind == "date":
        dates = pl.Series(column.name, from_days(codes, "datetime64"))
        zone = getattr(column.dtype, "time_zone", None)
        return (dates if zone is None else dates.dt.replace_time_zone("UTC")).cast(column.dtype)
    numbers = pl.Series(column.name, np.ascontiguousarray(codes), nan_to_null=column.missing is None)
    return (numbers == 1).alias(column.name) if column.kind == "bool" else numbers.cast(column.dtype)
