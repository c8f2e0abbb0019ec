"""SHAP's explainers, as explainers of one class for each row."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metfa._arrays import as_array, is_array, namespace, to_host
from metfa._base.one_line import one_line
from metfa._frames.columns import is_frame, names_of
from metfa.calls.behind import loaded_torch
from metfa.calls.fitted_names import by_name
from metfa.calls.fixed_batch import explain_fixed_batch
from metfa.calls.guard import model_as_found, model_in_evaluation
from metfa.calls.inputs import OF_SEVERAL, refuse_several
from metfa.calls.no_gradient import gradient_expected
from metfa.calls.targets import row_targets
from metfa.explainers._shap_frames import label_columns, shap_frame
from metfa.sampling.protocol import predict_scores
from metfa.sampling.randomised import seeded

__all__ = ["from_shap"]

# Their values depend on the row alone; all others draw random numbers, or may.
DETERMINISTIC = {
    "AdditiveExplainer",
    "DeepExplainer",
    "ExactExplainer",
    "GPUTreeExplainer",
    "LinearExplainer",
    "TreeExplainer",
}

OF_SHAP = f"{OF_SEVERAL}; SHAP takes one array, which a function of your own may cut into the parts"


@dataclass(frozen=True)
class ShapExplainer:
    """An explainer from one of SHAP's."""

    explainer: Any
    predict: Callable[..., Any] | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return one_line(self)

    rows_independent = True
    signed = True

    @property
    def model(self) -> Any:
        """The function that predicts: given, or found in SHAP's explainer; None where unknown."""
        return _model_behind(self.explainer) if self.predict is None else self.predict

    def __call__(self, inputs: Any, target: Any = None) -> Any:
        """SHAP values of the inputs' shape for each row's target, and the model's scores where it is known."""
        model = asked = self.model
        refuse_several(inputs, OF_SHAP)
        if is_frame(inputs):
            given, places = shap_frame(self.explainer, self.predict, model, inputs)
            asked = model and by_name(model, names_of(inputs))
        else:
            inputs = given = as_array(inputs, "inputs")
            places = None
        shape = tuple(inputs.shape)
        with model_as_found(model), model_in_evaluation(model), _parameters_as_found(model):
            name = "model" if self.predict is None else "predict"
            scores = None if asked is None else predict_scores(asked, inputs, name)
            self._check(model, scores)
            with gradient_expected(model, given if is_array(given) else None), _fixed_batch_named(model, given):
                values = _values(self._explained(given), shape)
        if places is not None:
            values = values[:, np.argsort(places)]
        targets = None
        if target is not None or scores is not None:
            targets = row_targets(target, scores, len(inputs), model)
        maps = _of_each_class(values, len(shape), scores, targets)
        return maps if scores is None else (maps, scores)

    def _check(self, model: Any, scores: Any) -> None:
        torch = loaded_torch()
        network = torch is not None and isinstance(model, torch.nn.Module)
        if network and scores.ndim == 1 and self.predict is None:
            raise ValueError(
                f"SHAP's {type(self.explainer).__name__} takes networks with scores (batch, outputs), got (batch,): "
                "make it for `torch.nn.Sequential(model, torch.nn.Unflatten(0, (-1, 1)))`"
            )

    def _explained(self, inputs: Any) -> Any:
        try:
            with warnings.catch_warnings():  # both forms of this output are understood
                warnings.filterwarnings("ignore", "LightGBM binary classifier with TreeExplainer", UserWarning)
                return _method(_silent(self.explainer, self.settings))(inputs, **self.settings)
        except (TypeError, ValueError) as error:
            labelled = [] if is_array(inputs) else label_columns(inputs)
            if not labelled:
                raise
            raise TypeError(
                f"SHAP's {type(self.explainer).__name__} cannot take the column {labelled[0]!r} of the frame, which "
                f"holds labels ({error!s:.200}): make a kernel, permutation or exact explainer of "
                "`coded = metfa.Coded(predict, table)`, with the background `coded.codes(rows)`"
            ) from error


def from_shap(explainer: Any, predict: Callable[..., Any] | None = None, **settings: Any) -> Any:
    r"""Explainer from one of SHAP's: signed values (batch, \*features) of the class that is explained.

    Parameters
    ----------
    explainer : shap.Explainer
        ``TreeExplainer``, ``KernelExplainer``, ``DeepExplainer`` or any other, made as SHAP's documentation shows.
        Those that draw random numbers are wrapped in `metfa.seeded`: one row a call, each from its own stream.
    predict : callable, optional
        Inputs -> scores (batch, classes), such as ``forest.predict_proba``; for a regression ``model.predict``, where
        ``target=`` must name one of several outputs. It is needed to find the class predicted on the clean input, to
        count flips, and to know what a single SHAP output means. Kernel, permutation, gradient and deep explainers have
        it already; tree and linear explainers do not.
    **settings
        Arguments of ``explainer.shap_values``, such as ``nsamples=200`` or ``check_additivity=False``.

    Returns
    -------
    callable
        Explainer; with ``.model`` if the prediction is known.

    Raises
    ------
    TypeError
        If `explainer` is not one of SHAP's, or does not know a setting.
    ValueError
        When called, if SHAP gives a single value a feature and its class is unknown.

    Notes
    -----
    All forms of SHAP's results are understood: a list with one array a class (before 0.45), an array (batch,
    \*features, classes), or (batch, \*features) for a single output. Some classifiers of two classes (boosted trees,
    linear models) have a single output: the margin or the probability of class 1. Then class 0 gets the values with the
    opposite sign. This is exact: the outputs for the two classes are opposite up to a constant.

    A data frame goes to SHAP as it is, its columns in the order in which the model was fitted: known from `predict`, if
    it is a method of the model, or from SHAP's explainer and its background. For an explainer of a `metfa.Coded` it is
    turned into codes. The values are in the order of the frame.

    With ``noise=None`` the samples of a kernel or permutation explainer show its own randomness alone. For tree and
    deep explainers, noise on the inputs is the only randomness.

    Examples
    --------
    .. code-block:: python

       explainer = from_shap(shap.TreeExplainer(forest), forest.predict_proba)
       explainer = from_shap(shap.KernelExplainer(predict, background), nsamples=200)
       explainer = from_shap(shap.DeepExplainer(network, background))
    """
    names = {kind.__name__ for kind in type(explainer).__mro__}
    if not any(name.endswith("Explainer") for name in names):
        raise TypeError(
            "`explainer` must be one of SHAP's explainers, made for a model, such as shap.TreeExplainer(model), got "
            f"{getattr(explainer, '__name__', type(explainer).__name__)}"
        )
    if predict is not None and not callable(predict):
        raise TypeError(f"`predict` must be a function inputs -> scores, got {type(predict).__name__}")
    parameters = inspect.signature(_method(explainer)).parameters
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    known = list(parameters)[1:]  # the first are the inputs
    for name in settings:
        if not open_ended and name not in known:
            raise TypeError(f"{type(explainer).__name__} has no setting {name!r}; it has {', '.join(known)}")
    if open_ended or "silent" in parameters:
        settings = {"silent": True, **settings}  # no progress bar for every row
    made = ShapExplainer(explainer, predict, settings)
    return made if names & DETERMINISTIC else seeded(made)


@contextmanager
def _fixed_batch_named(model: Any, inputs: Any) -> Iterator[None]:
    """If SHAP fails because the model takes only batches of one size, the error says so."""
    try:
        yield
    except Exception as error:
        if model is not None and is_array(inputs):
            explain_fixed_batch(model, namespace(inputs).concat([inputs[:1], inputs[:1]], axis=0), error)
        raise


@contextmanager
def _parameters_as_found(model: Any) -> Iterator[None]:
    """Drop what DeepExplainer leaves at the layers: in nested modules always, elsewhere after an exception."""
    torch = loaded_torch()
    parts = list(model.modules()) if torch is not None and isinstance(model, torch.nn.Module) else []
    found = [{name for name, _ in part.named_parameters(recurse=False)} for part in parts]
    try:
        yield
    finally:
        for part, names in zip(parts, found, strict=True):
            for name in [name for name, _ in part.named_parameters(recurse=False) if name not in names]:
                delattr(part, name)


def _silent(explainer: Any, settings: dict[str, Any]) -> Any:
    """The same explainer, silent in `shap_values` where that does not pass `silent` on, as of permutations.

    Its progress bar begins where a call takes longer than ten seconds.
    """
    kind = type(explainer)
    if not settings.get("silent") or "PermutationExplainer" not in {one.__name__ for one in kind.__mro__}:
        return explainer

    def called(self: Any, *rows: Any, **given: Any) -> Any:
        return kind.__call__(self, *rows, **{"silent": True, **given})

    found = copy(explainer)
    found.__class__ = type(kind.__name__, (kind,), {"__call__": called})
    return found


def _method(explainer: Any) -> Callable[..., Any]:
    return explainer.shap_values if hasattr(explainer, "shap_values") else explainer


def _model_behind(explainer: Any) -> Any:
    """The caller's own function or module inside SHAP's wrappers."""
    inner = getattr(explainer, "explainer", None)  # deep and gradient explainers wrap one class for each framework
    wrapped = getattr(explainer, "model", None)
    found = (getattr(inner, "model", None), getattr(wrapped, "f", None), getattr(wrapped, "inner_model", None))
    return next((model for model in found if callable(model)), None)


def _values(output: Any, shape: tuple[int, ...]) -> np.ndarray:
    r"""SHAP's result as (batch, \*features), of a single output, or (batch, \*features, classes)."""
    output = getattr(output, "values", output)
    if isinstance(output, list | tuple):
        output = np.stack([to_host(part) if is_array(part) else np.asarray(part) for part in output], axis=-1)
    values = np.asarray(output)
    if values.dtype == object:  # of frames whose columns are numbers and booleans
        values = values.astype(np.float64)
    if values.shape == shape:
        return values
    if values.shape[:-1] != shape:
        raise ValueError(
            f"SHAP returned values of shape {values.shape} for inputs of shape {shape}: one value a feature is needed, "
            "or one a feature and class"
        )
    return values[..., 0] if values.shape[-1] == 1 else values


def _of_each_class(values: np.ndarray, axes: int, scores: np.ndarray | None, targets: list[Any] | None) -> np.ndarray:
    if values.ndim == axes:
        return values * _side_of_each_class(scores, targets, axes)
    n_classes = values.shape[-1]
    targets = row_targets(None, None, len(values)) if targets is None else targets
    for row, target in enumerate(targets):
        if not isinstance(target, int) or target >= n_classes:
            raise ValueError(f"`target` must be a class in 0..{n_classes - 1}, got {target!r} for input {row}")
    return np.stack([row[..., target] for row, target in zip(values, targets, strict=True)])


def _side_of_each_class(scores: np.ndarray | None, targets: list[Any] | None, axes: int) -> np.ndarray | int:
    """1 where the single output speaks for the target, -1 where it speaks for the other one of two classes."""
    n_classes = 1 if scores is None or scores.ndim == 1 else scores.shape[1]
    if targets is None or all(target is None for target in targets):
        return 1
    if scores is None:
        raise ValueError(
            "SHAP gives a single value a feature, and its class is unknown: pass the prediction, as in "
            "from_shap(explainer, model.predict_proba), or from_shap(explainer, model.predict) for a regression, or "
            "from_shap(explainer, model.score_samples) for a model of outliers"
        )
    if n_classes > 2:
        raise ValueError(
            f"SHAP gives a single value a feature, but the model has {n_classes} classes: explain a model with one "
            "output a class"
        )
    if n_classes == 1:
        return 1
    return np.where(np.array(targets) == 1, 1, -1).reshape(-1, *[1] * (axes - 1))
