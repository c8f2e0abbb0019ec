"""A model that mixes the rows of a batch is asked about one row at a time; the first batch shows whether it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from metfa._arrays import copied, is_array, namespace, to_host, widen
from metfa._base.warnings import RowDependenceWarning, warn
from metfa.calls.behind import loaded_torch, modules_behind
from metfa.calls.mixing import SAME, distance, explained_by_rounding, looked_at, mixed

__all__ = ["RowLook", "row_by_row"]


class RowLook:
    """Whether a model has been seen to mix rows: None until it has been asked about a batch of different rows.

    Parameters
    ----------
    ask : callable
        Batch -> scores, in one pass.
    model : Any
        The model as its caller has it, to see in which precision it computes.
    """

    def __init__(self, ask: Callable[[Any], Any], model: Any, mixes: bool | None = None) -> None:
        self._ask, self._model, self.mixes = ask, model, mixes

    def scores(self, batch: Any) -> Any:
        """The model's scores of a batch."""
        if len(batch) < 2 or not is_array(batch):
            return self._ask(batch)
        if self.mixes is None:
            copy = copied(batch)  # the model may overwrite what it is given
            scores = self._ask(batch)
            if not self.seen_to_mix(copy, scores):
                return scores
            batch = copy
        if not self.mixes:
            return self._ask(batch)
        parts = [self._ask(batch[row : row + 1, ...]) for row in range(len(batch))]
        return namespace(*parts).concat(parts, axis=0)

    def seen_to_mix(self, batch: Any, scores: Any) -> bool:
        """Whether the model mixes the rows of this batch; from its scores of it, if that is not known yet.

        Rows that are all equal show nothing, and neither do scores that change from call to call. A model in training
        mode, which nobody guards, mixes rows by design and is not asked again.
        """
        if len(batch) < 2 or self.mixes is not None:
            return len(batch) > 1 and bool(self.mixes)
        rows, xp, torch = looked_at(len(batch)), namespace(batch), loaded_torch()
        if bool(xp.all(batch == batch[rows[0], ...])) or any(
            getattr(part, "training", False) for part in modules_behind(self._model)
        ):
            return False

        def ask(indices: Sequence[int]) -> np.ndarray:
            copies = xp.stack([batch[index, ...] for index in indices])
            with nullcontext() if torch is None else torch.no_grad():
                return to_host(widen(self._ask(copies)))

        alone = {row: ask([row])[0] for row in rows}
        apart = mixed(ask, to_host(widen(scores)), alone, loose=explained_by_rounding(self._model))
        random = apart and any(distance(ask([row])[0], one) > SAME for row, one in alone.items())
        self.mixes = bool(apart) and not random
        if self.mixes:
            warn(
                "the model lets the rows of a batch depend on each other: beside others, the scores of a row move by "
                f"{apart:.2g} of their size, so the model is asked about one row at a time",
                RowDependenceWarning,
            )
        return self.mixes


def row_by_row(ask: Callable[[Any, Any], tuple[Any, ...]], inputs: Any, target: Any) -> tuple[Any, ...]:
    """What ``ask(inputs, target)`` returns, a tuple of arrays with the batch axis first, from one call for each row."""
    of_rows = isinstance(target, list | tuple) or getattr(target, "ndim", 0) > 0
    rows = [slice(row, row + 1) for row in range(len(inputs))]
    parts = [ask(inputs[row], target[row] if of_rows else target) for row in rows]
    return tuple(namespace(*of_one_kind).concat(of_one_kind, axis=0) for of_one_kind in zip(*parts, strict=True))
