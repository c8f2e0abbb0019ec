"""What a model answers: checked, as probabilities, and the score of each row's target."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np

from metfa._arrays import copied, is_array, is_floating, namespace, to_host
from metfa._base.warnings import ModelOutputWarning, warn
from metfa.calls.behind import function_behind, loaded_torch, owner_of
from metfa.calls.fixed_batch import explain_fixed_batch
from metfa.calls.inputs import channels_last_message, refuse_lists, refuse_ragged, what_convolutions_take

__all__ = [
    "about",
    "answered",
    "check_logits",
    "checked_scores",
    "chosen",
    "is_regression",
    "one_score",
    "rows_of_scores",
    "softmax",
    "warn_of_probabilities",
]

NAMES_SHOWN = 6
ROUNDING = 1e-3  # of a sum of probabilities, which may be in half precision
FEWEST_IN_RANGE = 8  # scores that look like sigmoids; fewer logits lie there by chance too often
SCORES = ("score_samples", "decision_function")  # of models of scikit-learn without probabilities
ABOUT_SHAPES = re.compile(
    r"cannot be multiplied|channels|size of tensor|sizes? .*match|invalid for input|expected .*(shape|size|input)"
    r"|kernel size|dimension",
    re.IGNORECASE,
)

OF_BATCH_NORM = re.compile(r"^expected .*\dD.* input \(got \dD input\)")  # a ValueError, where others are RuntimeErrors


@contextmanager
def about(what: str) -> Iterator[None]:
    """Make a ValueError raised inside say what the model was asked about."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"asked about {what}: {error}") from error


def answered(model: Any, batch: Any) -> Any:
    """What the model returns for a batch.

    Raises
    ------
    TypeError
        If torch refuses the batch because the weights have another dtype.
    ValueError
        If the batch has its channels last and torch's convolutions want them first, or if the model takes only batches
        of one size, see `metfa.FixedBatch`, or if torch says that shapes do not fit.
    """
    try:
        return model(batch)
    except Exception as error:
        if isinstance(error, RuntimeError):
            _explain_dtypes(model, batch, error)
            _explain_channels(batch, error)
        explain_fixed_batch(model, batch, error)
        if isinstance(error, RuntimeError) or (type(error) is ValueError and OF_BATCH_NORM.search(str(error))):
            _explain_shape(model, batch, error)
        torch = loaded_torch()
        if torch is not None and isinstance(model, torch.nn.Module):  # functions may take lists
            refuse_lists(batch)
        refuse_ragged(batch)
        raise


def _explain_dtypes(model: Any, batch: Any, error: RuntimeError) -> None:
    weights = next((weight.dtype for weight in getattr(model, "parameters", list)() if is_floating(weight)), None)
    if weights is not None and weights != getattr(batch, "dtype", weights) and "type" in str(error):
        raise TypeError(
            f"`inputs` are {batch.dtype}, but the model's weights {weights}, and torch does not mix them ({error}): "
            f"write `inputs.to({weights})` or `model.to({batch.dtype})`"
        ) from error


def _explain_channels(batch: Any, error: RuntimeError) -> None:
    shape = tuple(getattr(batch, "shape", ()))
    if "channels" in str(error) and len(shape) == 4 and shape[1] > 4 >= shape[3]:
        raise ValueError(channels_last_message(shape)) from error


def _explain_shape(model: Any, batch: Any, error: Exception) -> None:
    """Of errors that a caller who forgets the batch axis, or turns the axes, gets from torch."""
    said = " ".join(str(error).split())
    if is_array(batch) and "out of memory" not in said and ABOUT_SHAPES.search(said):
        raise ValueError(
            f"the model fails on inputs of shape {tuple(batch.shape)}: `inputs` must be (batch, ...), as the model "
            f"takes them; {what_convolutions_take(model, tuple(batch.shape))}it says: {said[:300]}"
        ) from error


def checked_scores(scores: Any, n_rows: int, model: Any = None, name: str = "model") -> Any:
    """`rows_of_scores`, of which none is NaN."""
    scores = rows_of_scores(scores, n_rows, model, name)
    if is_floating(scores):
        missing = to_host(namespace(scores).isnan(scores)).reshape(n_rows, -1).any(axis=1)
        if missing.any():
            raise ValueError(
                f"the model's scores are NaN for row {int(missing.argmax())} of {n_rows}: `{name}` must return numbers"
            )
    return scores


def rows_of_scores(scores: Any, n_rows: int, model: Any = None, name: str = "model") -> Any:
    """What a model returned, if it is one row of scores an input, as an array; raises otherwise.

    Nested lists of numbers and what NumPy can read, such as a data frame, become NumPy arrays. Several arrays do not:
    which of them holds the scores, the caller must say. One integer a row is a class label and no score. `model` is the
    one that was asked, `name` the argument that gave it.
    """
    if not is_array(scores):
        scores = _as_array(scores, n_rows, model, name)
    elif getattr(scores.dtype, "kind", "f") in "USO" and scores.size and isinstance(scores.flat[0], str | bytes):
        raise TypeError(
            f"`{name}` must return numbers (batch, classes), got text such as {str(scores.flat[0])!r}, like labels: "
            "pass the function that gives probabilities, such as `predict_proba`"
        )
    if scores.ndim < 1 or scores.shape[0] != n_rows:
        dropped = ": keep the batch axis, which `[0]` and `.squeeze()` take away" if scores.ndim < 2 else ""
        raise ValueError(
            f"`{name}` must return one row of scores an input, got shape {tuple(scores.shape)} for {n_rows} inputs"
            f"{dropped}"
        )
    if namespace(scores).isdtype(scores.dtype, "complex floating"):
        raise TypeError(f"`{name}` must return real scores, got {scores.dtype}: return their sizes or one part")
    if scores.ndim == 1 and namespace(scores).isdtype(scores.dtype, ("bool", "integral")):
        raise TypeError(
            f"`{name}` must return scores (batch, classes), got one {scores.dtype} a row, like class labels: "
            f"{_scores_of(model)}"
        )
    return copied(scores)  # models with an output of their own, such as captured graphs, write the next answer there


def _scores_of(function: Any) -> str:
    """Advice where a model answers by labels: the methods that give scores, of those that its object has."""
    owner = owner_of(function)
    if owner is function or owner is None or hasattr(owner, "predict_proba"):
        return "pass the function that gives probabilities, such as `predict_proba`, or return the scores themselves"
    has = [f"`{type(owner).__name__}.{method}`" for method in SCORES if hasattr(owner, method)]
    if has:
        return f"pass a method that gives scores, {' or '.join(has)}"
    return f"{type(owner).__name__} has no method that gives scores, so return scores by a function of your own"


def is_regression(function: Any) -> bool:
    """Whether a function is `predict` of a fitted estimator without classes, whose numbers are outputs of a regression.

    Networks and functions of a caller's own are none.
    """
    asked = function_behind(function)
    estimator = getattr(asked, "__self__", None)
    return (
        getattr(asked, "__name__", "") == "predict"
        and hasattr(estimator, "get_params")  # of scikit-learn and libraries like it, not of Keras
        and not hasattr(estimator, "predict_proba")
        and not len(getattr(estimator, "classes_", ()))  # catboost's regressors have none
    )


def _as_array(answer: Any, n_rows: int, model: Any, name: str) -> np.ndarray:
    if hasattr(answer, "__array__") or (isinstance(answer, list) and all(map(_of_numbers, answer))):
        found = np.asarray(answer)
        if found.dtype.kind in "fiub":
            return found
    got = type(answer).__name__
    if isinstance(answer, Mapping):
        got += f" with {', '.join(map(repr, list(answer)[:NAMES_SHOWN]))}"
    elif isinstance(answer, tuple | list):
        got += f" of {len(answer)}"
    how = _how_to_select(answer, n_rows, model, name)
    raise TypeError(f"`{name}` must return an array of scores (batch, classes), got {got}{how}")


def _of_numbers(row: Any) -> bool:
    return all(isinstance(value, Real) for value in row) if isinstance(row, list | tuple) else isinstance(row, Real)


def _how_to_select(answer: Any, n_rows: int, model: Any, name: str) -> str:
    """End of a message: how to write a model that returns one of several outputs alone."""
    parts: dict[Any, Any] = dict(answer) if isinstance(answer, Mapping) else {}
    if isinstance(answer, tuple | list):
        parts = dict(enumerate(answer))
    elif not parts:
        parts = {"logits": getattr(answer, "logits", None)}
    fitting = [key for key, part in parts.items() if is_array(part) and tuple(part.shape[:1]) == (n_rows,)]
    if not fitting:
        return ""
    key = "logits" if "logits" in fitting else fitting[0]
    torch = loaded_torch()
    if torch is not None and isinstance(model, torch.nn.Module):
        return f": write `metfa.models.Selected({name}, {key!r})`"
    item = f"[{key!r}]" if isinstance(answer, Mapping | tuple | list) else f".{key}"
    return f": write a function that returns the scores alone, such as `lambda inputs: {name}(inputs){item}`"


def check_logits(scores: Any) -> None:
    """Warn of scores (batch, classes, ...) that a softmax is about to take, and that are no logits.

    Logits may lie in [0, 1] by chance, the more likely the fewer there are: one of two classes, beside a 0, often does.
    """
    host = to_host(scores)
    if host.ndim < 2 or host.shape[1] < 2 or host.min() < -ROUNDING or host.max() > 1 + ROUNDING:
        return
    if np.allclose(host.sum(axis=1), 1, atol=ROUNDING):
        warn_of_probabilities()
    elif host.size >= FEWEST_IN_RANGE and host.min() < host.max() and (host.shape[1] > 2 or host[:, 0].any()):
        warn(
            "the model's scores all lie between 0 and 1 and do not add up to 1, so they look like sigmoids of a "
            "multi-label network, and a softmax would mix its labels: write `metfa.Called(model, softmax=False)` "
            "unless they are logits",
            ModelOutputWarning,
        )


def warn_of_probabilities() -> None:
    """Warn that scores look like probabilities but are used as logits."""
    warn(
        "the model's scores look like probabilities, and a second softmax flattens them: write "
        "`metfa.Called(model, softmax=False)`",
        ModelOutputWarning,
    )


def softmax(scores: Any) -> Any:
    """Probabilities of the classes, axis 1; raises where there is only one score."""
    if scores.ndim < 2 or scores.shape[1] < 2:
        raise ValueError(
            f"the model gives scores of shape {tuple(scores.shape)}, so no softmax over classes is possible: write "
            "`metfa.Called(model, softmax=False)` (or `softmax=False` of from_lime) to use them as they are (a "
            "regression, a probability), or, where it is one logit for two classes, `metfa.models.TwoClasses(model)`"
        )
    xp = namespace(scores)
    weights = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
    return weights / xp.sum(weights, axis=1, keepdims=True)


def one_score(scores: Any, target: Any) -> Any:
    """Score of one target in every row, (batch,)."""
    if target is None:
        return scores
    return scores[:, target] if isinstance(target, int) else scores[(slice(None), *target)]


def chosen(scores: Any, indices: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Score of each row's own target, given as indices into the scores of a row, (batch,) float64 on the host."""
    host = to_host(scores).astype(np.float64, copy=False)
    rows = np.array(indices, dtype=np.int64)
    return host[(np.arange(len(host)), *rows.reshape(len(rows), -1).T)]
