"""Which explainer fits which model: SHAP's for trees and linear models, else one that only asks for predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa._base.lazy import needs_extra
from metfa._base.percents import counted
from metfa._base.validation import with_article
from metfa._frames.columns import Columns, is_frame, names_of, with_columns
from metfa.calls.coded import Coded
from metfa.calls.fitted_names import fitted_names, in_order_of
from metfa.explainers.shap_adapter import from_shap
from metfa.tables.predictions import OneOutput, Prediction, library_of
from metfa.tables.scales import DoesNotAddUpError, scale_of

__all__ = ["CHECKED_ROWS", "METHODS", "Picked", "picked"]

METHODS = ("auto", "tree", "linear", "exact", "permutation", "kernel")
BOOSTED = ("xgboost", "lightgbm", "catboost")
TREES = {  # of scikit-learn, before Classifier or Regressor
    *("DecisionTree", "ExtraTree", "ExtraTrees", "RandomForest", "GradientBoosting", "HistGradientBoosting"),
}
LINEAR = {
    *("LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "LassoLars", "LassoLarsCV", "ElasticNet"),
    *("ElasticNetCV", "Lars", "LarsCV", "BayesianRidge", "ARDRegression", "HuberRegressor", "SGDRegressor"),
    *("TheilSenRegressor", "QuantileRegressor", "LogisticRegression", "LogisticRegressionCV"),
}
FEW_COLUMNS = 8  # all 2**8 sets of columns are asked about: no more than the draws of the permutation explainer
BACKGROUND_ROWS = 50  # that take the place of columns in a black box; each costs one prediction for each set of columns
CHECKED_ROWS = 20  # whose values are added up
OF_A_REASON = 400  # characters of an error that is not ours


class WrongUnitError(ValueError):
    """Values in another unit than the one that was asked for."""


@dataclass(frozen=True)
class Picked:
    """An explainer for a model.

    Attributes
    ----------
    explainer : callable
        For `metfa.explain`.
    unit : str
        What the values of a row add up to, less that of the background.
    about : str
        In a few words: the explainer, of which model, what for.
    deterministic : bool
        Whether it draws no random numbers, so that many rows go in one call.
    """

    explainer: Any
    unit: str
    about: str
    deterministic: bool


@dataclass(frozen=True)
class OfOutput:
    """Explainer of one output of a model that has several, from one that takes it as a class."""

    explainer: Any
    output: int

    rows_independent = True
    signed = True

    @property
    def model(self) -> OneOutput:
        """The function of this output."""
        return OneOutput(self.explainer.model, self.output)

    def __call__(self, inputs: Any, target: Any = None) -> Any:  # noqa: ARG002 - it has one
        """Attributions of a batch, and the scores of this output."""
        maps, scores = self.explainer(inputs, target=[self.output] * len(inputs))
        return maps, scores[:, self.output]


def picked(
    model: Any, prediction: Prediction, method: str, rows: Any, scores: np.ndarray, background: Any, output: str
) -> Picked:
    """The explainer for a model; `method` "auto" chooses one. `scores` are what `prediction.ask` gives for some rows.

    These are the first rows, at most `CHECKED_ROWS`.
    """
    with needs_extra("`metfa.tables.explain`", "table"):
        import shap
    some = rows[:CHECKED_ROWS]
    given = (shap, model, prediction, background, output)
    own = _structure_of(model) if method == "auto" else method if method in ("tree", "linear") else None
    why = ""
    if own == method:
        _check_single(model, method)
    if own is not None:
        try:
            return _of_structure(*given, own, some, scores)
        except Exception as error:  # SHAP's own, of models that it does not know
            if own == method:
                raise _refused(error, method) from error
            why = f", as SHAP's {own} explainer cannot explain it ({_first_sentence(error)})"
            if background is None:
                raise ValueError(
                    f"`background` is needed, the training table{why}: only predictions can then be asked for"
                ) from error
    if method == "auto":
        method = "exact" if rows.shape[1] <= FEW_COLUMNS else "permutation"
    return _of_predictions(*given, method, why)


def _refused(error: Exception, method: str) -> Exception:
    if isinstance(error, DoesNotAddUpError | WrongUnitError):
        return ValueError(f'{error}: take method="permutation", which only asks for predictions')
    if str(error).startswith("`"):
        return error
    return ValueError(f'`method`="{method}" cannot explain this model: {error!s:.300}')


def _first_sentence(error: Exception) -> str:
    text = " ".join(str(error).split())
    said = text.partition(". ")[0].removesuffix(".")
    return said if len(said) <= OF_A_REASON else f"{said[:OF_A_REASON]} …"


def _structure_of(model: Any) -> str | None:
    """Which of SHAP's explainers reads such a model from inside; None for a black box."""
    library, name = library_of(model), type(model).__name__
    if library in BOOSTED:
        return "tree"
    if library != "sklearn":
        return None
    if name.removesuffix("Classifier").removesuffix("Regressor") in TREES:
        return "tree"
    return "linear" if name in LINEAR else None


def _check_single(model: Any, method: str) -> None:
    if type(model).__name__ in ("Pipeline", "TransformedTargetRegressor") or hasattr(model, "best_estimator_"):
        inner = "model.best_estimator_" if hasattr(model, "best_estimator_") else "model[-1]"
        raise ValueError(
            f'`method`="{method}" reads a model from inside, and {with_article(type(model).__name__)} is several '
            "steps: leave `method` out, which explains the columns of your table, or explain the last step of it on "
            f"purpose, `metfa.tables.explain({inner}, prepared, background=prepared_training_table)`, whose columns "
            "are those that the steps before made"
        )


def _of_structure(
    shap: Any, model: Any, prediction: Prediction, background: Any, output: str, method: str, some: Any, scores: Any
) -> Picked:
    if method == "tree":
        _check_labels(model, prediction, some, output)
    if method == "linear":
        table = _as_fitted(_needed(background, "a linear model"), model)
        inner = shap.LinearExplainer(model, shap.maskers.Independent(table, max_samples=len(table)))
    elif _of_probabilities(model, prediction, output):
        table = _as_fitted(_needed(background, "probabilities of boosted trees"), model)
        inner = shap.TreeExplainer(model, table, model_output="probability", feature_perturbation="interventional")
    else:
        inner = shap.TreeExplainer(model)
    explainer = from_shap(inner, prediction.ask)
    unit = scale_of(explainer, inner, some, scores, prediction.of)
    explainer = explainer if prediction.output is None else OfOutput(explainer, prediction.output)
    if output != "auto" and (output == "probability") != (unit == "probability"):
        raise WrongUnitError(f"values of SHAP's {method} explainer of this model are in units of the {unit}")
    about = f"SHAP's {method} explainer of {type(model).__name__}{prediction.named}"
    return Picked(explainer, unit, about, deterministic=True)


def _of_probabilities(model: Any, prediction: Prediction, output: str) -> bool:
    """Whether probabilities of boosted trees are explained, against the training table."""
    return output == "probability" and prediction.of == "probability" and library_of(model) in BOOSTED


def _check_labels(model: Any, prediction: Prediction, rows: Any, output: str) -> None:
    """Raise for labels that SHAP does not take; asked about them, it also writes to the terminal."""
    of_probabilities = _of_probabilities(model, prediction, output)
    if not is_frame(rows) or not (library_of(model) == "sklearn" or of_probabilities):
        return
    labelled = [column.name for column in Columns.of(rows, "frame")[0].columns if column.kind == "label"]
    if labelled:
        what = "probabilities of boosted trees" if of_probabilities else with_article(type(model).__name__)
        raise ValueError(f"the column {labelled[0]!r} holds labels, which it does not take for {what}")


def _of_predictions(
    shap: Any, model: Any, prediction: Prediction, background: Any, output: str, method: str, why: str
) -> Picked:
    table = _needed(background, f"the {method} explainer")
    if output != "auto" and output != prediction.of:
        raise ValueError(
            f'`output`="{output}" cannot be had of this model{why}: the {method} explainer asks for predictions, in '
            f"units of the {prediction.of}; leave `output` out, or give a function of what you want explained as "
            "`model`"
        )
    some = np.sort(np.random.default_rng(0).permutation(len(table))[:BACKGROUND_ROWS])
    asked, taken = prediction.explained, None
    if is_frame(table):
        asked = Coded(prediction.explained, table)
        taken = asked.codes(table)[some]
    else:
        taken = np.asarray(table, np.float64)[some]
    masker = shap.maskers.Independent(taken, max_samples=len(taken))
    if method == "kernel":
        inner = shap.KernelExplainer(asked, taken)
    else:
        inner = (shap.ExactExplainer if method == "exact" else shap.PermutationExplainer)(asked, masker)
    name = type(model).__name__ if hasattr(model, "predict") else getattr(model, "__name__", type(model).__name__)
    about = (
        f"SHAP's {method} explainer of {name}{prediction.named}, asked only for predictions, against "
        f"{counted(len(taken), 'row')} of `background`"
    )
    return Picked(from_shap(inner, asked), prediction.of, about + why, deterministic=method == "exact")


def _needed(background: Any, what: str) -> Any:
    if background is None:
        raise ValueError(f"`background` is needed by {what}: give the training table, as in `background=train`")
    return background


def _as_fitted(table: Any, model: Any) -> Any:
    """A table with its columns in the order in which the model was fitted."""
    fitted = fitted_names(model) if is_frame(table) else None
    return table if fitted is None else with_columns(table, in_order_of(names_of(table), fitted))
