"""The class probability of each row's target: of the inputs, and of any number of changed copies of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa._arrays import first_not_finite, to_host
from metfa.calls.probabilities import ProbabilityModel

__all__ = ["TargetProbability", "about"]


@contextmanager
def about(what: str) -> Iterator[None]:
    """Errors of values within tell what the model was asked about."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"asked about {what}: {error}") from error


@dataclass(frozen=True)
class TargetProbability(ProbabilityModel):
    """A model, asked how probable each row's target is."""

    def asked(self) -> Any:
        """Context in which the model is asked: in evaluation mode, without a graph, and put back afterwards."""
        return self._forward_only()

    def clean(self, inputs: Any, target: Any) -> tuple[list[Any], np.ndarray]:
        """Targets of the inputs (the predicted class where `target` is None), and how probable they are, (batch,)."""
        scores = self._scores_of_all(inputs)
        if len(scores) != len(inputs):
            raise ValueError(f"`model` must return one row of scores an input, got {len(scores)} for {len(inputs)}")
        bad = first_not_finite(scores)
        if bad is not None:
            raise ValueError(f"the model's scores of input {bad} are not finite")
        targets = self._targets(target, scores)
        for row, entry in enumerate(targets):
            if not (entry is None or all(isinstance(index, int) for index in _indices(entry))):
                raise TypeError(
                    "`target` must be class indices, or one tuple of indices for each row, got "
                    f"{type(entry).__name__} for input {row}"
                )
        return targets, self._chosen(scores, targets)

    def of_copies(
        self, rows: Sequence[int], like: Any, make: Callable[[int, int], Any], targets: Sequence[Any]
    ) -> np.ndarray:
        """How probable the targets of copies are, (n,).

        Copy k is one of the input ``rows[k]``, whose target is ``targets[rows[k]]``; ``make(start, stop)`` gives the
        copies of a batch.
        """
        found = np.empty(len(rows))

        def ask(start: int, stop: int) -> None:
            try:
                scores = self._scores(make(start, stop))
            except ValueError:  # of which input, the model tells when it is asked about one copy after the other
                for copy in range(start, stop):
                    with about(f"a changed copy of input {rows[copy]}"):
                        self._scores(make(copy, copy + 1))
                raise
            found[start:stop] = self._chosen(scores, [targets[row] for row in rows[start:stop]])

        self._in_batches(len(rows), like, ask)
        finite = np.isfinite(found)
        if not finite.all():
            raise ValueError(
                f"the model's scores of a changed copy of input {rows[int(finite.argmin())]} are not finite"
            )
        return found

    def probabilities(self, images: Any) -> Any:
        """Class probabilities of images, (n, classes), asked batch by batch."""
        scores = self._clean_scores(images)
        if first_not_finite(scores) is not None:
            raise ValueError("the model's scores are not finite")
        return self._probabilities(scores)

    def _scores_of_all(self, inputs: Any) -> Any:
        """Scores of the inputs; an error that some of them meet and others do not names the first."""
        try:
            return self._clean_scores(inputs)
        except ValueError:
            at_fault = [self._at_fault(inputs[row : row + 1]) for row in range(len(inputs))]
            if not all(at_fault):
                for row in np.flatnonzero(at_fault):
                    with about(f"input {row}"):
                        self._clean_scores(inputs[row : row + 1])
            raise

    def _at_fault(self, inputs: Any) -> bool:
        try:
            self._clean_scores(inputs)
        except ValueError:
            return True
        return False

    def _chosen(self, scores: Any, targets: Sequence[Any]) -> np.ndarray:
        host = to_host(self._probabilities(scores)).astype(np.float64, copy=False)
        rows = np.array([_indices(target) for target in targets], dtype=np.int64)
        return host[(np.arange(len(host)), *rows.reshape(len(rows), -1).T)]


def _indices(target: Any) -> tuple[Any, ...]:
    """A target as indices behind the row; one that is none comes back as it is, and so is no index."""
    if target is None:
        return ()
    return target if isinstance(target, tuple) else (target,)
