"""What a model of tables predicts: the function to ask, what its numbers are, and the names of its classes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metfa._arrays import as_array, to_host
from metfa._base.validation import check_function, shown
from metfa.calls.answers import is_regression, rows_of_scores
from metfa.calls.behind import function_behind, loaded_torch, owner_of
from metfa.calls.fitted_names import fitted_names
from metfa.calls.targets import choose_output
from metfa.tables.targets import are_numbers

__all__ = ["OneOutput", "Prediction", "library_of"]

ROUNDING = 1e-3  # of a sum of probabilities, which may be in single precision


@dataclass(frozen=True)
class Prediction:
    """How a model is asked.

    Attributes
    ----------
    ask : callable
        Rows -> probabilities (batch, classes), or one number a row.
    of : str
        What these numbers are, in words.
    labels : tuple or None
        The model's own labels of its classes, where it has them.
    output : int or None
        The one number of each row that is explained, where the numbers are no probabilities of classes.
    of_many : bool
        Whether the model gives several such numbers.
    """

    ask: Callable[[Any], Any]
    of: str
    labels: tuple[Any, ...] | None = None
    output: int | None = None
    of_many: bool = False

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
            return cls(model.predict_proba, "probability", _labels(model))
        if len(getattr(model, "classes_", ())):  # catboost's regressors have none
            scores = "model.decision_function(rows)"
            if not hasattr(model, "decision_function"):
                scores = "(model.predict(rows) == model.classes_[0]).astype(float)"
            raise TypeError(
                f"`model` must give probabilities, and {type(model).__name__} has no `predict_proba`: give a function "
                f"of its scores, such as `lambda rows: {scores}`"
            )
        if hasattr(model, "predict"):
            return cls(model.predict, "prediction")
        if callable(model):
            check_function(model, "model", "model(rows)", None)
            labels = _labels(owner_of(model)) if _name_of(model) == "predict_proba" else None
            return cls(model, "prediction" if is_regression(model) else "output of the function", labels)
        raise TypeError(f"`model` must be a fitted model or a function of rows, got {shown(model)}")

    @property
    def classes(self) -> tuple[str, ...] | None:
        """Names of the classes; None where they have none, or where their labels are their places."""
        if self.labels is None or list(self.labels) == list(range(len(self.labels))):
            return None
        numbers = are_numbers(self.labels) or any(str(label).isdecimal() for label in self.labels)
        form = "label {}" if numbers else "{}"  # "class 0 (1)" would be read as class 1
        return tuple(map(form.format, self.labels))

    def asked_as(self, model: Any) -> str:
        """How messages call `ask` of a model: "model", or its method, such as "model.predict_proba"."""
        method = owner_of(self.ask) is model and self.ask is not model
        return f"model.{getattr(self.ask, '__name__', 'predict')}" if method else "model"

    @property
    def explained(self) -> Callable[[Any], Any]:
        """The function of what is explained: `ask`, or its one output."""
        return self.ask if self.output is None else OneOutput(self.ask, self.output)

    @property
    def named(self) -> str:
        """Such as " of output 1", where the model has several; else an empty text."""
        return f" of output {self.output}" if self.of_many else ""

    def for_target(self, scores: np.ndarray, target: Any) -> tuple[Prediction, Any]:
        """The same, of one output where the numbers are no probabilities of classes, and the target that is left.

        Raises
        ------
        ValueError, TypeError
            If there are several outputs, and `target` does not name one for all rows.
        """
        if scores.ndim != 2 or (self.of != "prediction" and _are_probabilities(scores)):
            return self, target
        n = scores.shape[1]
        choose = choose_output(n)
        if target is None and n > 1:
            raise ValueError(
                f"`target` is needed: the model gives {n} numbers for each row, which are no probabilities of classes, "
                f"so nothing says which of them to explain: {choose}"
            )
        output = 0 if target is None else target
        if isinstance(output, bool) or not isinstance(output, int | np.integer):
            raise TypeError(
                f"`target` must name one output for all rows, because the model's {n} numbers are no probabilities of "
                f"classes, got {shown(target)}: {choose}"
            )
        if not 0 <= output < n:
            raise ValueError(f"`target` must be an output of the model in 0..{n - 1}, got {output}")
        return replace(self, output=int(output), of_many=n > 1, labels=None), None


def _are_probabilities(scores: np.ndarray) -> bool:
    """Whether the numbers of each row are those of classes of which one is true: none below 0, their sum 1."""
    return bool((scores >= -ROUNDING).all() and (np.abs(scores.sum(axis=1) - 1) <= ROUNDING).all())


@dataclass(frozen=True)
class OneOutput:
    """One of the numbers that a function gives for each row."""

    function: Callable[[Any], Any]
    output: int

    @property
    def feature_names_in_(self) -> list[str] | None:
        """Names of the columns that the model behind it was fitted on."""
        return fitted_names(self.function)

    def __call__(self, rows: Any) -> Any:
        """The number of each row."""
        return rows_of_scores(self.function(rows), len(rows), self.function)[:, self.output]


def library_of(model: Any) -> str:
    """The library that a model's class is from."""
    return type(model).__module__.partition(".")[0]


def _name_of(function: Any) -> str:
    return getattr(function_behind(function), "__name__", "")


def _labels(model: Any) -> tuple[Any, ...] | None:
    """A model's own labels of its classes, numbers and texts as Python has them."""
    try:
        return tuple(getattr(one, "item", lambda one=one: one)() for one in model.classes_)
    except (AttributeError, TypeError, ValueError):  # none, or in a form of its own
        return None


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
