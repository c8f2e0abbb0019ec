"""A model that is asked about many changed copies of an input, in batches that fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metfa._arrays import namespace, to_host, widen
from metfa._base.validation import positive_int
from metfa._base.warnings import ModelOutputWarning, warn
from metfa.calls.batches import in_batches
from metfa.calls.called import CalledModel
from metfa.calls.guard import loaded_torch, model_in_evaluation
from metfa.calls.targets import row_targets

__all__ = ["ProbabilityModel", "one_score", "softmax", "warn_of_probabilities"]


@dataclass(frozen=True)
class ProbabilityModel(CalledModel):
    """A model asked for the class probabilities of many changed copies of an input, in batches that fit."""

    batch_size: int | None = field(default=None, kw_only=True)
    softmax: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_size is not None:
            positive_int(self.batch_size, "batch_size")
        if not isinstance(self.softmax, bool):
            raise TypeError(f"`softmax` must be True or False, got {type(self.softmax).__name__}: {self.softmax!r}")

    @contextmanager
    def _forward_only(self) -> Iterator[None]:
        """The model in evaluation mode, without a graph."""
        torch = loaded_torch()
        with model_in_evaluation(self.model), nullcontext() if torch is None else torch.no_grad(), self._casts_kept():
            yield

    def _casts_kept(self) -> Any:
        """A context around many forward passes that casts the weights to `autocast` once, not in each.

        torch forgets what it cast when the outermost autocast ends, even one that is switched off and so casts nothing.
        """
        return nullcontext() if self.autocast is None else loaded_torch().autocast("cpu", enabled=False)

    def _scores(self, images: Any) -> Any:
        """The model's scores of a batch, (batch, classes), at least float32."""
        return widen(self._called(images))

    def _clean_scores(self, inputs: Any) -> Any:
        """Scores of the inputs themselves, (batch, classes), of copies: a model may work in place on what it gets."""
        parts, xp = [], namespace(inputs)

        def ask(start: int, stop: int) -> None:
            parts.append(self._scores(xp.asarray(inputs[start:stop], copy=True)))

        self._in_batches(len(inputs), inputs, ask)
        return namespace(*parts).concat(parts, axis=0)

    def _probabilities(self, scores: Any) -> Any:
        """Scores by which perturbed copies are weighted: probabilities, or the scores as they are (`softmax=False`)."""
        if not self.softmax:
            return scores
        if scores.ndim < 2 or scores.shape[1] < 2:
            raise ValueError(
                f"the model gives scores of shape {tuple(scores.shape)}, of which there is no softmax over classes: "
                "write `softmax=False` to use them as they are"
            )
        return softmax(scores)

    def _targets(self, target: Any, scores: Any) -> list[Any]:
        """One target a row: those asked for, or the best class of the clean scores."""
        host = to_host(scores)
        if self.softmax and host.ndim > 1 and host.min() >= 0 and np.allclose(host.sum(axis=1), 1, atol=1e-3):
            warn_of_probabilities()
        return row_targets(target, host, len(host))

    def _in_batches(self, n: int, like: Any, work: Callable[[int, int], None]) -> None:
        in_batches(n, self.batch_size, like, work)


def warn_of_probabilities() -> None:
    """Say that scores are taken for logits that look like none."""
    warn(
        "the model's scores look like probabilities, and a second softmax flattens them: write `softmax=False`",
        ModelOutputWarning,
    )


def softmax(scores: Any) -> Any:
    """Probabilities of the classes, axis 1."""
    xp = namespace(scores)
    weights = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
    return weights / xp.sum(weights, axis=1, keepdims=True)


def one_score(scores: Any, target: Any) -> Any:
    """Score of one target in every row, (batch,)."""
    if target is None:
        return scores
    return scores[:, target] if isinstance(target, int) else scores[(slice(None), *target)]
