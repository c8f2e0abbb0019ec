"""The protocol of explainers: how to call one, where its model is, whether its rows are independent.

An explainer is any callable ``explainer(inputs, target=target)`` that returns attributions with the batch axis first,
or the pair (attributions, scores). For a model of several inputs, attributions are a tuple with one array for each of a
tuple of inputs, or a dict of arrays with names of the inputs. It may also

- take a keyword ``rngs``: a list with one :class:`numpy.random.Generator` for each row (see :func:`metfa.randomised`);
- have an attribute ``model`` (inputs -> scores; the parts of several inputs as its arguments), which gives the clean
  prediction;
- have an attribute ``rows_independent = True``, which promises that a row's attributions do not depend on its
  neighbours: it is believed where maps are random, and looked at where they are not;
- have an attribute ``rows_apart = True``, which promises that its model never reads two rows together, though rows
  beside others may be asked about in other batches, so that rounding moves them;
- have an attribute ``differentiable = True``, if its maps are in the graph of inputs that require a gradient (otherwise
  attacks keep the graph of every gradient that it takes);
- have the attributes ``signed``, ``unit``, ``default_terms`` and ``notes``, see `metfa.sampling.explainer_attributes`.

The target is an integer array in the inputs' library with one entry for each row (a list, if entries are not integers).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa._arrays import is_array, to_host
from metfa._base.validation import check_function
from metfa._base.warnings import ReproducibilityWarning, RowDependenceWarning, warn
from metfa.calls.answers import answered, rows_of_scores
from metfa.calls.behind import PassesOn, loaded_torch, owner_of, variation_of
from metfa.calls.called import Called
from metfa.calls.no_gradient import gradient_expected
from metfa.calls.parts import answered_by_parts, are_parts
from metfa.calls.row_dependence import SAME, dependence, distance, explained_by_rounding, looked_at, same_but_rounding
from metfa.sampling.entries import count_rows
from metfa.sampling.explainer_attributes import maps_are_draws
from metfa.sampling.foreign import adapter_for
from metfa.sampling.outputs import read_output

__all__ = [
    "call_explainer",
    "check_explainer",
    "explained_model",
    "known_independent",
    "predict_scores",
    "prediction_of",
    "safe_batch_size",
    "takes_rngs",
]


PREDICTIONS = ("predict", "predict_proba", "predict_log_proba", "decision_function")  # of models of tables
OF_A_TABLE = "`metfa.tables.explain(model, inputs, background=train)` explains a fitted model of tables"


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
    return Predict(model, called if isinstance(called, Called) else None, name)


@dataclass(frozen=True)
class Predict(PassesOn):
    """Inputs -> scores by an explainer's own model."""

    model: Callable[..., Any]
    called: Called | None
    name: str  # of the argument that gave the model

    def __call__(self, inputs: Any) -> Any:
        """Scores of the inputs."""
        if self.called is not None and (is_array(inputs) or are_parts(inputs)):
            return self.called.scores(inputs)  # in the batches that the caller has set
        scores = answered_by_parts(self.model, inputs)
        return rows_of_scores(scores, count_rows(inputs), self.model, self.name)


def takes_rngs(explainer: Any) -> bool:
    """Whether the explainer draws its randomness from one generator for each row, the keyword `rngs`."""
    try:
        return "rngs" in inspect.signature(explainer).parameters
    except (TypeError, ValueError):
        return False


def known_independent(explainer: Any) -> bool:
    """Whether the explainer promises that its rows do not depend on each other."""
    return bool(getattr(owner_of(explainer), "rows_independent", False))


def check_explainer(explainer: Any, row_args: Iterable[str] | None = None) -> None:
    """Raise unless the explainer is callable, and no method of another library that needs an adapter.

    `row_args` are the further arguments that it will get; None: any that it needs.
    """
    adapter = adapter_for(explainer)
    if adapter is not None:
        raise TypeError(f"`explainer` is {adapter}")
    if not callable(explainer):
        hint = "; pass its method, as in `Saliency(model).attribute`" if hasattr(explainer, "attribute") else ""
        hint = f"; {OF_A_TABLE}" if hasattr(explainer, "predict") else hint
        raise TypeError(f"`explainer` must be callable, got {type(explainer).__name__}{hint}")
    if isinstance(explainer, type):
        raise TypeError(f"`explainer` must be an explainer, got the class {explainer.__name__}: make one of a model")
    if _is_model(explainer):
        raise TypeError(
            f"`explainer` must be an explainer, got the model itself ({type(explainer).__name__}): make an explainer "
            "of it, such as `metfa.explainers.Gradient(model)`"
        )
    if getattr(explainer, "__name__", "") in PREDICTIONS and hasattr(owner_of(explainer), "predict"):
        raise TypeError(
            f"`explainer` must be an explainer, got `{type(owner_of(explainer)).__name__}.{explainer.__name__}`, the "
            f"model's own predictions; {OF_A_TABLE}"
        )
    needed = _needed(explainer)
    further = {name: None for name in needed if row_args is None or name == "rngs" or name in row_args}
    check_function(explainer, "explainer", "explainer(inputs, target=target)", None, **{**further, "target": None})


def _is_model(explainer: Any) -> bool:
    """Whether this is a `Called`, or a torch module that takes no `target`."""
    torch = loaded_torch()
    if isinstance(explainer, Called):
        return True
    if torch is None or not isinstance(explainer, torch.nn.Module):
        return False
    try:
        after = list(inspect.signature(explainer.forward).parameters.values())
    except (TypeError, ValueError):
        return False
    return not any(each.name == "target" or each.kind is each.VAR_KEYWORD for each in after)


def _needed(explainer: Any) -> list[str]:
    """Names of the arguments after the first that have no default."""
    try:
        after = list(inspect.signature(explainer).parameters.values())[1:]
    except (TypeError, ValueError):
        return []
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [each.name for each in after if each.kind in named and each.default is each.empty]


def call_explainer(
    explainer: Callable[..., Any], batch: Any, target: Any, n_rows: int, rngs: Any, row_args: dict[str, Any]
) -> tuple[Any, Any]:
    """Attributions and scores (None if the explainer gives none) of one batch, still on the model's device.

    Attributions are a dict of arrays where they are those of several inputs.
    """
    arguments = {**row_args, "rngs": rngs} if rngs is not None and takes_rngs(explainer) else row_args
    with gradient_expected(explained_model(explainer), batch):
        output = explainer(batch, target=target, **arguments)
    return read_output(output, batch, n_rows)


def predict_scores(predict: Callable[[Any], Any], batch: Any, name: str = "predict") -> np.ndarray:
    """Scores of one batch on the host, without a graph; `name` is the argument that gave the function."""
    torch = loaded_torch()
    with torch.no_grad() if torch is not None else nullcontext():
        scores = rows_of_scores(answered(predict, batch), count_rows(batch), predict, name)
    return to_host(scores)


REPEATS = 5  # looks at a row whose map is constant: random maps that are often zero look like this, too


def safe_batch_size(
    explainer: Callable[..., Any],
    batch_size: int,
    n_rows: int,
    run: Callable[[Sequence[int]], np.ndarray],
    drawn: Callable[[], bool],
) -> int:
    """`batch_size`, or 1 if the explainer lets the rows of a batch depend on each other.

    Every explainer is looked at, whatever it promises: a batch is explained, then one or two of its rows alone. If the
    maps differ by more than the rounding of kernels, see `dependence`, then rows go one a call. So do those of an
    explainer that draws random numbers for itself, because the rows of one call may share them. Here a promise is
    believed, because such maps cannot be compared.

    Parameters
    ----------
    explainer : callable
        The explainer.
    batch_size : int
        Rows in one call that are wished.
    n_rows : int
        Number of rows of the batch to look at.
    run : callable
        Indices of rows -> their maps in one call.
    drawn : callable
        Returns whether the global generators have been drawn from meanwhile.

    Raises
    ------
    ValueError
        If a row's map is constant when it is alone, and not beside others: it is explained by means of its neighbours.
    """
    if min(batch_size, n_rows) < 2:  # no two rows will be in one call
        return batch_size
    together = run(range(n_rows))
    believed = known_independent(explainer)  # ours look at two rows of their model besides
    alone = {row: run([row])[0] for row in looked_at(n_rows, one=believed)}
    moved = not all(same_but_rounding(together[row], one) for row, one in alone.items())
    if moved and _needs_company(together, alone, run):
        raise ValueError(
            "`explainer` explains a row by means of the other rows of its batch (one row alone gets a constant map), "
            "so its samples cannot be independent: use a method that perturbs each row by itself, such as feature "
            "ablation"
        )
    if_flat = 0 if maps_are_draws(explainer) else REPEATS
    if drawn() or _draws(alone, run, moved=moved, if_flat=if_flat):
        if not drawn():
            warn(
                variation_of(explainer)
                or "`explainer` gives another map each time (by a random generator or a state of its own), which `rng` "
                "does not govern: let it keep no state, and take the generators that metfa gives it, see "
                "`metfa.randomised`",
                ReproducibilityWarning,
            )
        seen = "" if believed else "draws random numbers, which the rows of a batch may share"
    else:
        loose = explained_by_rounding(explainer)
        apart = dependence(run, together, alone, loose=loose) if moved else 0.0
        if apart <= loose and getattr(owner_of(explainer), "rows_apart", False):
            apart = 0.0
        by = "takes another shape" if apart == float("inf") else f"moves by {apart:.2g} of its size"
        seen = f"lets the rows of a batch depend on each other: beside others, the map of a row {by}" if apart else ""
    if not seen:
        return batch_size
    warn(
        f"`explainer` {seen}, which would void the intervals: going on with one row a call; pass `batch_size=1` to "
        "silence this",
        RowDependenceWarning,
    )
    return 1


def _draws(
    alone: dict[int, np.ndarray], run: Callable[[Sequence[int]], np.ndarray], *, moved: bool, if_flat: int
) -> bool:
    """Whether a row alone gets another map when it is explained again, `if_flat` times where the map is constant."""
    return any(
        distance(run([row])[0], one) > SAME
        for row, one in alone.items()
        for _ in range(max(int(moved), if_flat if _flat(one) else 0))
    )


def _flat(a: np.ndarray) -> bool:
    return bool(a.size == 0 or a.min() == a.max())


def _needs_company(
    together: np.ndarray, alone: dict[int, np.ndarray], run: Callable[[Sequence[int]], np.ndarray]
) -> bool:
    """Whether maps are constant alone and never beside others; tried often enough to rule out sparse random maps."""
    if any(_flat(together[row]) for row in alone) or not all(map(_flat, alone.values())):
        return False
    rows = list(alone)
    return all(_flat(run([rows[attempt % len(rows)]])[0]) for attempt in range(20))
