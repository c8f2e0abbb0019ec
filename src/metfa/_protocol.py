"""An explainer seen from outside: how to call it, where its model is, whether its rows are independent.

An explainer is any callable ``explainer(inputs, target=target)`` that returns attributions with the batch axis first,
or the pair (attributions, scores). It may also

- take a keyword ``rngs``: a list with one :class:`numpy.random.Generator` for each row (see :func:`metfa.randomised`);
- have an attribute ``model`` (inputs -> scores), which serves the clean prediction;
- have an attribute ``rows_independent = True``, the promise that a row's attributions do not depend on its neighbours.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from metfa._arrays import as_array, to_host
from metfa._guard import loaded_torch
from metfa._warnings import RowDependenceWarning, warn

__all__ = [
    "call_explainer",
    "explained_model",
    "known_independent",
    "predict_scores",
    "prediction_of",
    "probe_rows",
    "takes_rngs",
]


def explained_model(explainer: Any) -> Any:
    """The model behind an explainer: `.model`, or a bound Captum method's `forward_func`; None where unknown."""
    while isinstance(explainer, functools.partial):
        explainer = explainer.func
    owner = getattr(explainer, "__self__", explainer)
    for name in ("model", "forward_func"):
        model = getattr(owner, name, None)
        if callable(model):
            bound_to = getattr(model, "__self__", None)  # Captum given `model.forward`
            torch = loaded_torch()
            return bound_to if torch is not None and isinstance(bound_to, torch.nn.Module) else model
    return None


def prediction_of(explainer: Any) -> Callable[[Any], Any] | None:
    """Inputs -> scores by the explainer's own model, None where unknown; Captum's takes a tuple's parts one by one."""
    model = explained_model(explainer)
    if model is None or getattr(explainer, "__self__", None) is None:
        return model
    return lambda inputs: model(*inputs) if isinstance(inputs, tuple) else model(inputs)


def takes_rngs(explainer: Any) -> bool:
    """Whether the explainer draws its randomness from one generator a row, given as the keyword `rngs`."""
    try:
        return "rngs" in inspect.signature(explainer).parameters
    except (TypeError, ValueError):
        return False


def known_independent(explainer: Any) -> bool:
    """Whether the explainer promises that its rows do not depend on each other."""
    return bool(getattr(explainer, "rows_independent", False))


def call_explainer(
    explainer: Callable[..., Any], batch: Any, target: Any, n_rows: int, rngs: Any, row_args: dict[str, Any]
) -> tuple[Any, Any]:
    """Attributions and scores (None where the explainer gives none) of one batch, still on the model's device."""
    arguments = {**row_args, "rngs": rngs} if takes_rngs(explainer) else row_args
    output = explainer(batch, target=target, **arguments)
    scores = None
    if isinstance(output, tuple):
        if isinstance(batch, tuple) or len(output) != 2:
            raise TypeError(
                f"`explainer` returned a tuple of {len(output)}, one array is needed: choose the attributions of one "
                "input, as in `lambda inputs, target: explainer(inputs, target=target)[0]`"
            )
        output, scores = output
    attributions = as_array(output, "attributions")
    if attributions.ndim < 1 or attributions.shape[0] != n_rows:
        raise ValueError(
            f"`explainer` must return one map for each row, got shape {tuple(attributions.shape)} for {n_rows} rows; "
            "where it explains a single row a call, write `batch_size=1`"
        )
    if attributions.ndim == 1:
        raise ValueError(
            f"`explainer` must return attributions (batch, *features), got shape {tuple(attributions.shape)}: one "
            "number a row leaves no features to test"
        )
    return attributions, scores


def predict_scores(predict: Callable[[Any], Any], batch: Any) -> np.ndarray:
    """Scores of one batch on the host, without a graph."""
    torch = loaded_torch()
    with torch.no_grad() if torch is not None else nullcontext():
        scores = predict(batch)
    return to_host(as_array(scores, "predict"))


def _alike(a: np.ndarray, b: np.ndarray, tolerance: float) -> bool:
    a, b = a.astype(np.float64), b.astype(np.float64)
    return bool(np.abs(a - b).sum() <= tolerance * max(np.abs(a).sum(), np.abs(b).sum()))


def _flat(a: np.ndarray) -> bool:
    return bool(a.size == 0 or a.min() == a.max())


def probe_rows(run: Callable[[list[int]], np.ndarray]) -> bool:
    """Find out whether a batch's rows are explained independently, from at most four small calls.

    ``run(indices)`` explains the two probe rows 0 and 1 in any combination. A deterministic explainer must give a row
    the same map in company and alone (to the rounding of the model's kernels); a random one must not give two equal
    rows of one call the same map, since then they share their draws and the samples are not independent.

    Raises
    ------
    ValueError
        If a row alone has a constant map and in company has not: it is explained by means of its neighbours.
    """
    together, alone, again = run([0, 1])[0], run([0])[0], run([0])[0]
    if _flat(alone) and not _flat(together):
        raise ValueError(
            "`explainer` explains a row by means of the other rows of its batch (one row alone gets a constant map), "
            "so its samples cannot be independent: use a method that perturbs each row by itself, such as feature "
            "ablation"
        )
    if _alike(alone, again, 1e-3):
        independent = _alike(together, alone, 2e-2)
    else:
        twins = run([0, 0])
        independent = not _alike(twins[0], twins[1], 1e-3)
    if not independent:
        warn(
            "`explainer` lets the rows of a batch depend on each other (shared random draws or statistics), which "
            "would void the intervals: going on with one row a call; pass `batch_size=1` to silence this",
            RowDependenceWarning,
        )
    return independent
