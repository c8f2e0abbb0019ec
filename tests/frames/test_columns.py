"""Frames as codes and back: every type of column, missing values, names, and what cannot be coded."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import polars.testing
import pytest

from metfa._frames.columns import Columns, is_frame, is_series, label_text, row_of
from metfa._frames.matching import in_order

TIMES = ["2024-01-05", "2024-01-06 12:34:56.123456", None]
PANDAS = pd.DataFrame(
    {
        "float32": np.array([1.5, np.nan, 3], "float32"),
        "int": [1, 2, 3],
        "uint8": np.array([1, 2, 255], "uint8"),
        "bool": [True, False, True],
        "Float64": pd.array([1.5, None, 2], dtype="Float64"),
        "Int64": pd.array([1, None, 3], dtype="Int64"),
        "boolean": pd.array([True, None, False], dtype="boolean"),
        "str": ["x", None, "y"],
        "object": pd.Series(["a", None, "b"], dtype=object),
        "numbers": pd.Series([1, None, 2], dtype=object),
        "truths": pd.Series([True, np.nan, False], dtype=object),
        "mixed": pd.Series([1, "1", True], dtype=object),
        "category": pd.Categorical(["u", "v", None], categories=["v", "u", "w"]),
        "codes": pd.Categorical([3, 1, 3]),
        "date": pd.to_datetime(TIMES, format="ISO8601"),
        "nanoseconds": pd.Series(pd.to_datetime(TIMES, format="ISO8601")).astype("datetime64[ns]"),
        "zone": pd.to_datetime(TIMES, format="ISO8601").tz_localize("Europe/Berlin"),
        "duration": pd.to_timedelta(["1D", "2h", None]),
        "period": pd.PeriodIndex(["2024-01", "2024-02", None], freq="M"),
        "empty": pd.Series([None] * 3, dtype=object),
        "missing": [np.nan] * 3,
        "sparse": pd.arrays.SparseArray([0.0, 1.0, 0.0]),
        7: [1, 1, 1],
        ("a", "b"): [1.0, 2, 3],
    }
)
POLARS = pl.DataFrame(
    {
        "float": [1.5, None],
        "nan": [1.5, float("nan")],
        "int": [1, None],
        "bool": [True, None],
        "str": ["x", None],
        "category": pl.Series(["x", None], dtype=pl.Categorical),
        "enum": pl.Series(["x", None], dtype=pl.Enum(["y", "x"])),
        "date": [dt.date(2024, 1, 5), None],
        "time": [dt.datetime(2024, 1, 5, 10, 11, 12, 345), None],
        "zone": pl.Series([dt.datetime(2024, 1, 5, 10), None]).dt.replace_time_zone("Europe/Berlin"),
        "duration": [dt.timedelta(hours=5), None],
        "uint8": pl.Series([3, 255], dtype=pl.UInt8),
        "missing": [None, None],
    }
)


def test_every_type_of_pandas_comes_back():
    columns, codes = Columns.of(PANDAS)
    pd.testing.assert_frame_equal(columns.frame(codes), PANDAS)
    assert [type(value) for value in columns.frame(codes)["mixed"]] == [int, str, bool]
    assert codes.dtype == np.float64


def test_every_type_of_polars_comes_back():
    columns, codes = Columns.of(POLARS)
    polars.testing.assert_frame_equal(columns.frame(codes), POLARS)
    assert columns.frame(codes).schema == POLARS.schema


def test_frames_of_one_type_come_back():
    for frame in (pd.DataFrame(np.arange(6.0).reshape(2, 3)), pd.DataFrame({"a": [1.5, np.nan]}, dtype="float32")):
        columns, codes = Columns.of(frame)
        pd.testing.assert_frame_equal(columns.frame(codes), frame)


def test_a_batch_belongs_to_the_explainer():
    columns, codes = Columns.of(PANDAS[["float32"]].astype(float))
    made = columns.frame(codes)
    made.loc[0, "float32"] = 99.0
    assert codes[0, 0] == 1.5


@pytest.mark.parametrize(
    ("frame", "error", "message"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "more than one column 'a'"),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), ValueError, "more than one column '1'"),
        (pd.DataFrame(index=[0]), ValueError, "has no columns"),
        (pd.DataFrame({"a": [2**60]}), ValueError, r"column 'a' of `inputs` holds integers beyond 2\*\*53"),
        (pd.DataFrame({"a": [[1]]}), TypeError, "column 'a' of `inputs` must hold numbers, texts .* got list"),
        (pd.DataFrame({"a": [1.0, np.inf]}), ValueError, "column 'a' of `inputs` must be finite, but row 1"),
        (pd.DataFrame({"a": [1j]}), TypeError, "must hold real numbers, got complex128"),
        (pd.DataFrame({"a": pd.Series(["x", None, np.nan], dtype=object)}), ValueError, r"several kinds \(None, nan\)"),
        (
            pd.DataFrame({"a": pd.to_datetime(["2024-01-05 00:00:00.000000123"])}),
            ValueError,
            "finer than a microsecond",
        ),
        (pl.DataFrame({"a": [1.0, None, float("nan")]}), ValueError, "both null and NaN"),
        (pl.DataFrame({"a": [[1]]}), TypeError, "column 'a' of `inputs` must hold numbers, texts .* got List"),
    ],
)
def test_what_cannot_be_coded(frame, error, message):
    with pytest.raises(error, match=message):
        Columns.of(frame)


def test_the_remedies_are_remedies():
    mixed = pd.DataFrame({"a": pd.Series(["x", None, np.nan], dtype=object)})
    assert Columns.of(mixed.assign(a=mixed["a"].fillna(np.nan)))[0].columns[0].labels == ("x",)
    fine = pd.DataFrame({"a": pd.to_datetime(["2024-01-05 00:00:00.000000123"])})
    assert Columns.of(fine.assign(a=fine["a"].dt.as_unit("us")))[0].columns[0].kind == "date"
    assert Columns.of(pl.DataFrame({"a": [1.0, None, float("nan")]}).with_columns(pl.col("a").fill_nan(None)))


def test_codes_are_called_by_their_labels():
    columns, codes = Columns.of(PANDAS)
    described = {one["name"]: one for one in columns.described()}
    rows = dict(zip(columns.texts, codes.T, strict=True))
    shown = {name: [label_text(described[name], code) for code in rows[name]] for name in rows}
    assert shown["category"] == ["u", "v", "missing"]
    assert shown["boolean"] == ["true", "missing", "false"]
    assert shown["date"] == ["2024-01-05", "2024-01-06 12:34:56", "missing"]
    assert shown["int"] == [None, None, None]
    assert shown["duration"][0] == "1 days"


def test_kinds_of_objects():
    assert is_frame(PANDAS) and is_frame(POLARS) and is_series(PANDAS["int"]) and is_series(POLARS["int"])  # noqa: PT018
    assert not is_frame(np.ones((2, 2))) and not is_series([1])  # noqa: PT018
    assert row_of(PANDAS, 1)["int"].tolist() == [2]
    assert row_of(PANDAS.set_axis([2.5, 1.5, 0.5]), 1)["int"].tolist() == [2]
    assert row_of(POLARS, 1).height == 1


class TestOfMatching:
    def test_order(self):
        assert in_order([1, "b", "a"], ["a", "1", "b"], "which") == ["a", 1, "b"]

    def test_missing(self):
        message = r"no column 'age', which x, did you mean 'Age'\?: write `inputs\.rename\(columns=\{'Age': 'age'\}\)`"
        with pytest.raises(ValueError, match=message):
            in_order(["Age", "b"], ["age", "b"], "which x")

    def test_more(self):
        with pytest.raises(ValueError, match=r"has columns 'c', 'd', not among .*drop\(columns=\['c', 'd'\]\)`"):
            in_order(list("abcd"), list("ab"), "which x")
