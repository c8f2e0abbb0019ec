"""Whether the rows of a batch depend on each other, and models of which they do, asked about one row at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from metfa._arrays import copied, is_array, namespace, to_host, widen
from metfa._base.warnings import ReproducibilityWarning, RowDependenceWarning, warn
from metfa.calls.behind import loaded_torch, modules_behind, owner_of
from metfa.calls.parts import are_parts, each, joined, named, of_rows, rows_in

__all__ = [
    "SAME",
    "RowLook",
    "dependence",
    "distance",
    "explained_by_rounding",
    "looked_at",
    "row_by_row",
    "same_but_rounding",
]

# Distances of a row alone from the same row beside others. Kernels round otherwise for another number of rows: scores
# of float32 move by about 1e-7, gradients by up to 1e-4 and, where a rectifier flips, by more.
STRICT = {8: 1e-9, 4: 1e-5}  # by bytes of a number: below, rounding explains it and no further call is made
LOOSE = 2e-2  # above, rounding cannot explain it
LOOSE_IN_HALF_PRECISION = 0.3  # the same where the model computes in float16 or bfloat16
SAME = 1e-3  # above, two equal calls differ by more than kernels whose rounding changes: by random numbers


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """Sum of the absolute differences, divided by that of the larger one; infinite for different shapes."""
    if a.shape != b.shape:
        return float("inf")
    a, b = (np.nan_to_num(x.astype(np.float64), posinf=1.0, neginf=-1.0) for x in (a, b))  # refused elsewhere
    largest = max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0))
    if largest == 0:
        return 0.0
    a, b = a / largest, b / largest
    return float(np.abs(a - b).sum() / max(np.abs(a).sum(), np.abs(b).sum()))


def same_but_rounding(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two results differ by no more than what the rounding of kernels always explains."""
    return distance(a, b) <= STRICT.get(a.dtype.itemsize, STRICT[4])


def explained_by_rounding(asked: Any) -> float:
    """Largest distance that the rounding of kernels may explain, for a model, an explainer or a `Called`."""
    torch, owner = loaded_torch(), owner_of(asked)
    if torch is None:
        return LOOSE
    while not hasattr(owner, "called") and hasattr(owner, "explainer"):
        owner = owner_of(owner.explainer)
    halves = (torch.float16, torch.bfloat16)
    cast = getattr(getattr(owner, "called", owner), "fast", None) == "bfloat16"
    weights = (weight.dtype for module in modules_behind(asked) for weight in module.parameters(recurse=False))
    return LOOSE_IN_HALF_PRECISION if cast or any(dtype in halves for dtype in weights) else LOOSE


def looked_at(n: int, *, one: bool = False) -> tuple[int, ...]:
    """The rows of a batch of `n` that are also asked about alone: the middle one and the last, or the middle one only.

    The middle one has rows before and after it. Two, because a batch that is scaled by its largest value moves all rows
    but the one that has it.
    """
    return (n // 2,) if one and n > 2 else tuple(sorted({n // 2, n - 1})) if n > 2 else tuple(range(n))


def dependence(
    ask: Callable[[Sequence[int]], np.ndarray],
    together: np.ndarray,
    alone: dict[int, np.ndarray],
    *,
    loose: float,
) -> float:
    r"""How far the other rows of a batch move a row, as a `distance`; 0 if they do not.

    Parameters
    ----------
    ask : callable
        Indices of rows -> the results of a batch of these rows, in that order.
    together : numpy.ndarray, (n, \*features)
        Results of all rows in one batch.
    alone : dict of int to numpy.ndarray, (\*features)
        Results of some rows alone, those of `looked_at`.
    loose : float
        Largest distance that rounding may explain.

    Notes
    -----
    A distance that is larger than that of float32's rounding and still below `loose` may be either. Then the row is
    asked about beside the other rows, and beside as many copies of itself. The number of rows is the same, so the
    kernels and their rounding are, too: what differs then comes from the other rows. Kernels that differ from call to
    call are allowed three times the distance of two equal calls.
    """
    n = len(together)
    for k, one in alone.items():
        if same_but_rounding(together[k], one):
            continue
        apart = distance(together[k], one)
        if apart > loose:
            return apart
        among_others, among_copies = ask(range(n))[k], ask([k] * n)[k]
        by_content = distance(among_others, among_copies)
        if by_content > STRICT[8] and by_content > 3 * distance(among_others, ask(range(n))[k]):
            return apart
    return 0.0


class RowLook:
    """Finds out whether rows depend on each other; `dependent` is None until a batch of different rows has come.

    A model may mix rows only where there are many, so each batch that is larger than all before is looked at.

    Parameters
    ----------
    ask : callable
        Batch -> scores, in one pass.
    model : Any
        The model as its caller has it, to see in which precision it computes.
    """

    def __init__(self, ask: Callable[[Any], Any], model: Any, dependent: bool | None = None) -> None:
        self._ask, self._model, self.dependent = ask, model, dependent
        self._looked_at = 1  # rows of the largest batch that has been looked at

    def scores(self, batch: Any) -> Any:
        """The model's scores of a batch."""
        if not (is_array(batch) or are_parts(batch)) or rows_in(batch) < 2:
            return self._ask(batch)
        if not self.dependent:
            if rows_in(batch) <= self._looked_at:
                return self._ask(batch)
            copy = each(copied, batch)  # the model may overwrite what it is given
            scores = self._ask(batch)
            if not self.finds_dependence(copy, scores):
                return scores
            batch = copy
        return joined([self._ask(of_rows(batch, row, row + 1)) for row in range(rows_in(batch))])

    def finds_dependence(self, batch: Any, scores: Any) -> bool:
        """Whether the rows of this batch depend on each other; from its scores, if that is not known yet.

        Rows that are all equal show nothing, and neither do scores that change from call to call. A model in training
        mode, which nobody guards, mixes rows by design and is not asked again.
        """
        n_rows = rows_in(batch)
        if self.dependent or n_rows <= self._looked_at:
            return n_rows > 1 and bool(self.dependent)
        rows, torch = looked_at(n_rows), loaded_torch()
        equal = all(bool(namespace(part).all(part == part[rows[0], ...])) for part in named(batch).values())
        if equal or any(getattr(part, "training", False) for part in modules_behind(self._model)):
            return False

        def ask(indices: Sequence[int]) -> np.ndarray:
            copies = each(lambda part: namespace(part).stack([part[index, ...] for index in indices]), batch)
            with nullcontext() if torch is None else torch.no_grad():  # the copies are in no graph
                return to_host(widen(self._ask(copies)))

        alone = {row: ask([row])[0] for row in rows}
        apart = dependence(ask, to_host(widen(scores)), alone, loose=explained_by_rounding(self._model))
        random = apart and any(distance(ask([row])[0], one) > SAME for row, one in alone.items())
        self.dependent, self._looked_at = bool(apart) and not random, n_rows
        if random:
            self._looked_at = sys.maxsize  # no batch will show anything
            warn(
                "the model gives other scores each time that it is asked about the same row (random numbers or a state "
                "of its own), so results change from call to call unless these are seeded",
                ReproducibilityWarning,
            )
        if self.dependent:
            warn(
                "the model lets the rows of a batch depend on each other: beside others, the scores of a row move by "
                f"{apart:.2g} of their size, so the model is asked about one row at a time",
                RowDependenceWarning,
            )
        return self.dependent


def row_by_row(ask: Callable[[Any, Any], tuple[Any, ...]], inputs: Any, target: Any) -> tuple[Any, ...]:
    """What ``ask(inputs, target)`` returns, a tuple of arrays with the batch axis first, or of the arrays of several
    inputs, from one call for each row.
    """
    one_each = isinstance(target, list | tuple) or getattr(target, "ndim", 0) > 0
    answers = [
        ask(of_rows(inputs, row, row + 1), target[row : row + 1] if one_each else target)
        for row in range(rows_in(inputs))
    ]
    return tuple(map(joined, zip(*answers, strict=True)))
