"""The class probability of each row's target: of the inputs, and of any number of changed copies of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa._arrays import first_not_finite, to_host
from metfa.explainers._probability_model import ProbabilityModel

__all__ = ["TargetProbability"]


@dataclass(frozen=True)
class TargetProbability(ProbabilityModel):
    """A model, asked how probable each row's target is."""

    def asked(self) -> Any:
        """Context in which the model is asked: in evaluation mode, without a graph, and put back afterwards."""
        return self._forward_only()

    def clean(self, inputs: Any, target: Any) -> tuple[list[Any], np.ndarray]:
        """Targets of the inputs (the predicted class where `target` is None), and how probable they are, (batch,)."""
        scores = self._clean_scores(inputs)
        if len(scores) != len(inputs):
            raise ValueError(f"`model` must return one row of scores an input, got {len(scores)} for {len(inputs)}")
        bad = first_not_finite(scores)
        if bad is not None:
            raise ValueError(f"the model's scores of input {bad} are not finite")
        targets = self._targets(target, scores)
        return targets, self._chosen(scores, targets)

    def of_copies(self, n: int, like: Any, make: Callable[[int, int], Any], targets: Sequence[Any]) -> np.ndarray:
        """How probable the targets of n copies are, (n,); ``make(start, stop)`` gives the copies of a batch."""
        found = np.empty(n)

        def ask(start: int, stop: int) -> None:
            found[start:stop] = self._chosen(self._scores(make(start, stop)), targets[start:stop])

        self._in_batches(n, like, ask)
        if not np.isfinite(found).all():
            raise ValueError("the model's scores of changed copies of the inputs are not finite")
        return found

    def probabilities(self, images: Any) -> Any:
        """Class probabilities of images, (n, classes), asked batch by batch."""
        return self._probabilities(self._clean_scores(images))

    def _chosen(self, scores: Any, targets: Sequence[Any]) -> np.ndarray:
        host = to_host(self._probabilities(scores)).astype(np.float64, copy=False)
        rows = [() if target is None else (target,) if isinstance(target, int) else target for target in targets]
        if not all(isinstance(row, tuple) and all(isinstance(index, int) for index in row) for row in rows):
            raise TypeError("`target` must be class indices, or one tuple of indices for each row")
        return host[(np.arange(len(host)), *np.array(rows, dtype=np.int64).reshape(len(rows), -1).T)]
