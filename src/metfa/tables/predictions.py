"""What a model of tables predicts: the function to ask, what its numbers are, and the names of its classes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa._arrays import as_array, to_host
from metfa._base.validation import check_function, shown
from metfa.calls.behind import loaded_torch

__all__ = ["Prediction", "library_of"]


@dataclass(frozen=True)
class Prediction:
    """How a model is asked.

    Attributes
    ----------
    ask : callable
        Rows -> probabilities (batch, classes), or one number a row.
    of : str
        What these numbers are, in words.
    classes : tuple of str or None
        Names of the classes, where the model knows them.
    """

    ask: Callable[[Any], Any]
    of: str
    classes: tuple[str, ...] | None = None

    @classmethod
    def by(cls, model: Any) -> Prediction:
        """Of a model or a function.

        Raises
        ------
        TypeError
            For what is neither, for networks, and for classifiers without probabilities.
        """
        torch = loaded_torch()
        if torch is not None and isinstance(model, torch.nn.Module):
            raise TypeError(
                "`model` must take rows of a table, got a torch module: explain arrays by "
                "`metfa.explain(metfa.explainers.Gradient(model), tensor, noise=...)`, or give a function of frames, "
                "such as `lambda frame: model(torch.tensor(frame.to_numpy('float32'))).detach()`"
            )
        if isinstance(model, type):
            raise TypeError(f"`model` must be a fitted model, got the class {model.__name__}")
        if type(model).__name__ == "Booster" and library_of(model) in ("xgboost", "lightgbm"):
            asked = BoosterScores(model)
            return cls(asked, "probability" if asked.binary else "output of the booster")
        if hasattr(model, "predict_proba"):
            return cls(model.predict_proba, "probability", _class_names(model))
        if len(getattr(model, "classes_", ())):  # catboost's regressors have none
            raise TypeError(
                f"`model` must give probabilities, and {type(model).__name__} has no `predict_proba`: give a function "
                "of its scores, such as `lambda rows: model.decision_function(rows)`"
            )
        if hasattr(model, "predict"):
            return cls(model.predict, "prediction")
        if callable(model):
            check_function(model, "model", "model(rows)", None)
            return cls(model, "output of the function")
        raise TypeError(f"`model` must be a fitted model or a function of rows, got {shown(model)}")


def library_of(model: Any) -> str:
    """The library that a model's class is from."""
    return type(model).__module__.partition(".")[0]


def _class_names(model: Any) -> tuple[str, ...] | None:
    """Names of a model's classes; None where they are their own places."""
    try:
        classes = [getattr(one, "item", lambda one=one: one)() for one in model.classes_]
    except (AttributeError, TypeError, ValueError):  # none, or in a form of its own
        return None
    return None if classes == list(range(len(classes))) else tuple(map(str, classes))


@dataclass(frozen=True, eq=False)
class BoosterScores:
    """A booster of xgboost or lightgbm as a function of rows; the two classes of a binary one both get a column."""

    booster: Any

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the columns that it was trained on."""
        known = getattr(self.booster, "feature_names", None)
        return self.booster.feature_name() if library_of(self.booster) == "lightgbm" else known

    @property
    def binary(self) -> bool:
        """Whether its prediction is the probability of class 1."""
        if library_of(self.booster) == "lightgbm":
            return self.booster.params.get("objective") in ("binary", "cross_entropy")
        objective = json.loads(self.booster.save_config())["learner"]["objective"]["name"]
        return objective == "binary:logistic"

    def __call__(self, rows: Any) -> np.ndarray:
        """Scores of rows."""
        if library_of(self.booster) == "xgboost":
            rows = sys.modules["xgboost"].DMatrix(rows, enable_categorical=True)
        scores = to_host(as_array(self.booster.predict(rows), "scores"))
        return np.stack([1 - scores, scores], axis=1) if self.binary and scores.ndim == 1 else scores
