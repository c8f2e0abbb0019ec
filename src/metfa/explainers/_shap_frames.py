"""Frames in the form that one of SHAP's explainers takes, their columns in the order that its model knows."""

from __future__ import annotations

import sys
from typing import Any

from metfa._frames.columns import Columns, names_of, with_columns
from metfa.calls.coded import Coded
from metfa.calls.fitted_names import fitted_names, in_order_of

__all__ = ["label_columns", "shap_frame"]


def shap_frame(explainer: Any, predict: Any, model: Any, frame: Any) -> tuple[Any, list[int] | None]:
    """What SHAP's explainer is given for a frame, and the place in the frame of each of its columns.

    Codes for an explainer of a `Coded`; else the frame, with columns in the order in which the model was fitted.

    Raises
    ------
    ValueError
        If the frame has other columns, or nobody knows which columns the model was fitted on.
    """
    columns = names_of(frame)
    coded = next((one for one in (_inside(explainer), model) if isinstance(one, Coded)), None)
    if coded is not None:
        codes = coded.codes(frame)
        return codes, [columns.index(name) for name in coded.columns.names]
    fitted = _fitted(explainer, predict, model)
    if fitted is None and predict is None and model is None:
        raise ValueError(
            f"SHAP's {type(explainer).__name__} takes columns by their place, and does not say on which columns its "
            "model was fitted: pass the model's own method, as in from_shap(explainer, model.predict)"
        )
    order = columns if fitted is None else in_order_of(columns, fitted)
    given = frame if order == columns else with_columns(frame, order)
    return _native(explainer, given), [columns.index(name) for name in order]


def label_columns(frame: Any) -> list[Any]:
    """Names of the columns that hold labels."""
    return [column.name for column in Columns.of(frame)[0].columns if column.kind == "label"]


def _native(explainer: Any, frame: Any) -> Any:
    """A frame of pandas as it is; one of polars as numbers, because SHAP does not know polars.

    A booster of xgboost takes categories only in a matrix of its own, which SHAP does not make of a frame. With a
    background SHAP walks through the trees itself, and takes numbers alone.
    """
    if hasattr(frame, "iloc"):
        trees = getattr(getattr(explainer, "model", None), "original_model", None)
        own = type(trees).__name__ == "Booster" and type(trees).__module__.startswith("xgboost")
        if own and getattr(explainer, "data", None) is None:
            return sys.modules["xgboost"].DMatrix(frame, enable_categorical=True)
        return frame
    columns, codes = Columns.of(frame)
    if columns.labelled:
        raise TypeError(
            "SHAP takes no frames of polars that hold labels: write `frame.to_pandas()`, or make a kernel, permutation "
            "or exact explainer of `metfa.Coded(predict, table)`"
        )
    return codes


def _inside(explainer: Any) -> Any:
    """The function that a kernel, permutation or exact explainer asks."""
    wrapped = getattr(explainer, "model", None)
    return getattr(wrapped, "f", getattr(wrapped, "inner_model", None))


def _fitted(explainer: Any, predict: Any, model: Any) -> list[str] | None:
    """Names of the columns that the model was fitted on, or that the background has; None if nobody knows them."""
    trees = getattr(getattr(explainer, "model", None), "original_model", None)
    for one in (predict, trees, _inside(explainer), model):
        names = None if one is None else fitted_names(one)
        if names is not None:
            return names
    masker = getattr(explainer, "masker", None)
    for names in (getattr(explainer, "data_feature_names", None), getattr(masker, "feature_names", None)):
        if names is not None:
            return list(map(str, names))
    return None
