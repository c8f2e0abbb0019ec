"""The protocol of explainers: how to call one, where its model is, whether its rows are independent.

An explainer is any callable ``explainer(inputs, target=target)`` that returns attributions with the batch axis first,
or the pair (attributions, scores). It may also

- take a keyword ``rngs``: a list with one :class:`numpy.random.Generator` for each row (see :func:`metfa.randomised`);
- have an attribute ``model`` (inputs -> scores; the parts of a tuple one by one), which gives the clean prediction;
- have an attribute ``rows_independent = True``, which promises that a row's attributions do not depend on its
  neighbours;
- have an attribute ``differentiable = True``, if its maps are in the graph of inputs that require a gradient (otherwise
  attacks keep the graph of every gradient that it takes);
- have an attribute ``signed``, True if scores above 0 speak for the target and scores below 0 against it, False if 0
  has no such meaning. Without it, the scores of the samples decide.

The target is an integer array in the inputs' library with one entry for each row (a list, if entries are not integers).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from metfa._arrays import as_array, is_array, to_host
from metfa._base.warnings import ReproducibilityWarning, RowDependenceWarning, warn
from metfa.calls.answers import answered, rows_of_scores
from metfa.calls.called import Called
from metfa.calls.guard import loaded_torch, normalises_by_batch, owner_of
from metfa.calls.no_gradient import gradient_expected
from metfa.sampling.foreign import adapter_for
from metfa.sampling.rows import count_rows

__all__ = [
    "call_explainer",
    "check_explainer",
    "explained_model",
    "known_independent",
    "known_signed",
    "predict_scores",
    "prediction_of",
    "safe_batch_size",
    "takes_rngs",
]


def explained_model(explainer: Any) -> Any:
    """The model behind an explainer: `.model`, or a bound Captum method's `forward_func`; None where unknown."""
    owner = owner_of(explainer)
    for name in ("model", "forward_func"):
        model = getattr(owner, name, None)
        if callable(model):
            return model
    return None


def prediction_of(explainer: Any) -> Callable[[Any], Any] | None:
    """Inputs -> scores by the explainer's own model; None if unknown."""
    model, called = explained_model(explainer), getattr(owner_of(explainer), "called", None)
    if model is None:
        return None
    name = "predict" if getattr(owner_of(explainer), "predict", None) is model else "model"

    def predict(inputs: Any) -> Any:
        if isinstance(called, Called) and is_array(inputs):
            return called.scores(inputs)  # in the batches that the caller has set
        scores = model(*inputs) if isinstance(inputs, tuple) else answered(model, inputs)
        return rows_of_scores(scores, count_rows(inputs), model, name)

    return predict


def takes_rngs(explainer: Any) -> bool:
    """Whether the explainer draws its randomness from one generator for each row, the keyword `rngs`."""
    try:
        return "rngs" in inspect.signature(explainer).parameters
    except (TypeError, ValueError):
        return False


def known_independent(explainer: Any) -> bool:
    """Whether the explainer promises that its rows do not depend on each other."""
    return bool(getattr(owner_of(explainer), "rows_independent", False))


def known_signed(explainer: Any) -> bool | None:
    """Whether the explainer, or the one that it wraps, says that its scores are signed; None: it does not say."""
    owner = owner_of(explainer)
    while not hasattr(owner, "signed") and hasattr(owner, "explainer"):
        owner = owner_of(owner.explainer)
    signed = getattr(owner, "signed", None)
    return signed if isinstance(signed, bool) else None


def check_explainer(explainer: Any) -> None:
    """Raise unless the explainer is callable, and no method of another library that needs an adapter."""
    adapter = adapter_for(explainer)
    if adapter is not None:
        raise TypeError(f"`explainer` is {adapter}")
    if not callable(explainer):
        hint = "; pass its method, as in `Saliency(model).attribute`" if hasattr(explainer, "attribute") else ""
        raise TypeError(f"`explainer` must be callable, got {type(explainer).__name__}{hint}")


def call_explainer(
    explainer: Callable[..., Any], batch: Any, target: Any, n_rows: int, rngs: Any, row_args: dict[str, Any]
) -> tuple[Any, Any]:
    """Attributions and scores (None if the explainer gives none) of one batch, still on the model's device."""
    arguments = {**row_args, "rngs": rngs} if takes_rngs(explainer) else row_args
    with gradient_expected(explained_model(explainer), batch):
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
            "if it explains a single row a call, write `batch_size=1`"
        )
    if attributions.ndim == 1 or 0 in attributions.shape:
        raise ValueError(
            f"`explainer` must return attributions (batch, *features), got shape {tuple(attributions.shape)}, which "
            "leaves no features to test"
        )
    if scores is not None:
        scores = as_array(scores, "scores")
        if scores.ndim < 1 or scores.shape[0] != n_rows:
            raise ValueError(
                f"`explainer` must return scores (batch, classes) beside its attributions, got shape "
                f"{tuple(scores.shape)} for {n_rows} rows"
            )
    return attributions, scores


def predict_scores(predict: Callable[[Any], Any], batch: Any, name: str = "predict") -> np.ndarray:
    """Scores of one batch on the host, without a graph; `name` is the argument that gave the function."""
    torch = loaded_torch()
    with torch.no_grad() if torch is not None else nullcontext():
        scores = rows_of_scores(answered(predict, batch), count_rows(batch), predict, name)
    host = to_host(scores)
    if host.ndim == 1 and host.dtype.kind in "biu":
        raise TypeError(
            f"`predict` must return scores (batch, classes), got one {host.dtype} a row, like class labels: pass the "
            "function that gives probabilities, such as `predict_proba`"
        )
    return host


ROUNDS = (0, 1, 0, 1, 0, 1)  # probe rows that are explained again, until one map decides


def safe_batch_size(
    explainer: Callable[..., Any],
    batch_size: int,
    n_jobs: int,
    run: Callable[[list[int]], np.ndarray],
    drawn: Callable[[], bool],
) -> int:
    """`batch_size`, or 1 if the explainer lets the rows of a batch depend on each other.

    A few small calls find out, unless the explainer promises that rows are independent. ``run(indices)`` explains the
    two probe rows 0 and 1 in any combination; ``drawn()`` returns whether the global generators have been drawn from.
    If a row alone has the same map each time, it must have the same map beside another row too (to the rounding of the
    model's kernels). Otherwise the explainer is random: two equal rows of one call must then differ, or they share
    their draws. Sparse random maps are often zero, so there are several rounds.

    Raises
    ------
    ValueError
        If a row's map is constant when it is alone, and not beside others: it is explained by means of its neighbours.
    """
    if min(batch_size, n_jobs) < 2 or known_independent(explainer):
        return batch_size
    if normalises_by_batch(explained_model(explainer)):
        return _one_row_a_call()
    together, alone = run([0, 1]), [run([0])[0], run([1])[0]]
    if _needs_company(together, alone, run):
        raise ValueError(
            "`explainer` explains a row by means of the other rows of its batch (one row alone gets a constant map), "
            "so its samples cannot be independent: use a method that perturbs each row by itself, such as feature "
            "ablation"
        )
    same_in_company = all(_alike(a, b, 2e-2) for a, b in zip(together, alone, strict=True))
    rounds = ROUNDS[:1] if same_in_company else ROUNDS
    if all(_alike(alone[index], run([index])[0], 1e-3) for index in rounds):
        independent = same_in_company
    else:
        if not drawn():
            warn(
                "`explainer` gives another map each time from a random generator of its own, which `rng` does not "
                "govern: let it take the generators that metfa gives it, see `metfa.randomised`",
                ReproducibilityWarning,
            )
        twins = (run([0, 0]) for _ in ROUNDS)
        independent = not all(_alike(first, second, 1e-3) for first, second in twins)
    return batch_size if independent else _one_row_a_call()


def _one_row_a_call() -> int:
    warn(
        "`explainer` lets the rows of a batch depend on each other (shared random draws or statistics), which would "
        "void the intervals: going on with one row a call; pass `batch_size=1` to silence this",
        RowDependenceWarning,
    )
    return 1


def _alike(a: np.ndarray, b: np.ndarray, tolerance: float) -> bool:
    if a.shape != b.shape:
        return False
    a, b = a.astype(np.float64), b.astype(np.float64)
    return bool(np.abs(a - b).sum() <= tolerance * max(np.abs(a).sum(), np.abs(b).sum()))


def _flat(a: np.ndarray) -> bool:
    return bool(a.size == 0 or a.min() == a.max())


def _needs_company(together: np.ndarray, alone: list[np.ndarray], run: Callable[[list[int]], np.ndarray]) -> bool:
    """Whether maps are constant alone and never beside others; tried often enough to rule out sparse random maps."""
    if any(map(_flat, together)) or not all(map(_flat, alone)):
        return False
    return all(_flat(run([attempt % 2])[0]) for attempt in range(20))
