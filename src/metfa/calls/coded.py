"""`Coded`: a model that takes data frames, as a function of arrays of numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from typing import Any

import numpy as np

from metfa._arrays import as_array, to_host
from metfa._base.validation import check_function, keep, shown
from metfa._frames.columns import Columns, is_frame, names_of
from metfa.calls.behind import PassesOn
from metfa.calls.fitted_names import by_name

__all__ = ["Coded"]


@dataclass(frozen=True, eq=False)
class Coded(PassesOn):
    """A model that takes data frames, as a function of arrays of numbers: for libraries that work on arrays alone.

    SHAP's kernel, permutation and exact explainers and the lime package mix values of several rows in an array, which
    cannot hold texts. Give them codes: numbers as they are, true and false as 1 and 0, dates as days since 1970, texts
    and categories as places in a list of labels, and NaN where a value is missing. The model gets frames with the
    names, labels and types of `table`.

    Parameters
    ----------
    model : callable
        Frame -> scores (batch, classes), such as ``pipeline.predict_proba``. Where it says on which columns it was
        fitted (``feature_names_in_``), it gets them in that order.
    table : data frame
        Rows with all labels that occur, such as the training table.

    Raises
    ------
    TypeError, ValueError
        If `table` is no frame; when called, for a label that it does not hold.

    Examples
    --------
    >>> import pandas as pd, metfa
    >>> table = pd.DataFrame({"age": [30.0, 50.0, 40.0], "town": ["Ulm", "Bonn", "Ulm"]})
    >>> model = lambda frame: frame["age"].to_numpy() * (frame["town"] == "Ulm").to_numpy()
    >>> coded = metfa.Coded(model, table)
    >>> coded.codes(table)
    array([[30.,  1.],
           [50.,  0.],
           [40.,  1.]])
    >>> coded(coded.codes(table))
    array([30.,  0., 40.])
    >>> coded.categorical, coded.labels
    ([1], {1: ['Bonn', 'Ulm']})
    """

    model: Callable[..., Any]
    table: InitVar[Any]
    columns: Columns = field(init=False, repr=False)

    def __post_init__(self, table: Any) -> None:
        check_function(self.model, "model", "model(frame)", None)
        if not is_frame(table):
            raise TypeError(f"`table` must be a data frame of pandas or polars, got {shown(table)}")
        columns, _ = Columns.of(table, "table")
        by_name(self.model, columns.names)  # raises for other columns than the model's
        keep(self, columns=columns)

    @property
    def categorical(self) -> list[int]:
        """Places of the columns whose codes are labels, or true and false; lime's ``categorical_features``."""
        return [place for place, one in enumerate(self.columns.columns) if one.kind in ("label", "bool")]

    @property
    def labels(self) -> dict[int, list[str]]:
        """What the codes of these columns stand for; lime's ``categorical_names``."""
        named = {place: self.columns.columns[place].labels or ("false", "true") for place in self.categorical}
        return {place: list(map(str, labels)) for place, labels in named.items()}

    def codes(self, frame: Any) -> np.ndarray:
        """Codes of a frame's rows, float64 (rows, columns), in the order of the columns of `table`."""
        if not is_frame(frame):
            raise TypeError(f"`frame` must be a data frame of pandas or polars, got {shown(frame)}")
        columns, codes = Columns.of(frame, "frame")
        order = columns.places_of(self.columns.names, "which the table has", "frame")
        return self.columns.coded(columns, codes[:, order], order, "frame")

    def frame(self, codes: Any) -> Any:
        """The frame that codes (rows, columns) stand for."""
        host = np.atleast_2d(to_host(as_array(codes, "codes")).astype(np.float64))
        if host.ndim != 2 or host.shape[1] != len(self.columns):
            raise ValueError(f"`codes` must be (rows, {len(self.columns)}), got shape {host.shape}")
        return self.columns.frame(self.columns.nearest(host))

    def __call__(self, codes: Any) -> Any:
        """The model's scores of the frame that these codes stand for, or of a frame."""
        frame = codes if is_frame(codes) else self.frame(codes)
        return by_name(self.model, names_of(frame))(frame)
