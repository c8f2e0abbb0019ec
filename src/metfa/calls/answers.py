"""What a model answers: checked, as probabilities, and the score of each row's target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from metfa._arrays import is_array, is_floating, namespace, to_host
from metfa._base.warnings import ModelOutputWarning, warn

__all__ = ["about", "answered", "checked_scores", "chosen", "one_score", "softmax", "warn_of_probabilities"]


@contextmanager
def about(what: str) -> Iterator[None]:
    """Make a ValueError raised inside say what the model was asked about."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"asked about {what}: {error}") from error


def answered(model: Any, batch: Any) -> Any:
    """What the model returns for a batch; a TypeError if torch refuses it because the weights have another dtype."""
    try:
        return model(batch)
    except RuntimeError as error:
        weights = next((weight.dtype for weight in getattr(model, "parameters", list)() if is_floating(weight)), None)
        if weights is None or weights == batch.dtype or "type" not in str(error):
            raise
        raise TypeError(
            f"`inputs` are {batch.dtype}, but the model's weights {weights}, and torch does not mix them ({error}): "
            f"write `inputs.to({weights})` or `model.to({batch.dtype})`"
        ) from error


def checked_scores(scores: Any, n_rows: int) -> Any:
    """What a model returned, if it is an array with one row of scores an input; raises otherwise."""
    if not is_array(scores):
        part = "[0]" if isinstance(scores, tuple | list) else ""
        if isinstance(scores, Mapping) and scores:
            part = f"[{'logits' if 'logits' in scores else next(iter(scores))!r}]"
        hint = f": wrap it to return scores alone, as in `lambda inputs: model(inputs){part}`" if part else ""
        raise TypeError(f"`model` must return an array of scores (batch, classes), got {type(scores).__name__}{hint}")
    if scores.ndim < 1 or scores.shape[0] != n_rows:
        raise ValueError(
            f"`model` must return one row of scores an input, got shape {tuple(scores.shape)} for {n_rows} inputs"
        )
    if is_floating(scores):
        missing = to_host(namespace(scores).isnan(scores)).reshape(n_rows, -1).any(axis=1)
        if missing.any():
            raise ValueError(
                f"the model's scores are NaN for row {int(missing.argmax())} of {n_rows}: `model` must return numbers"
            )
    return scores


def warn_of_probabilities() -> None:
    """Warn that scores look like probabilities but are used as logits."""
    warn(
        "the model's scores look like probabilities, and a second softmax flattens them: write "
        "`metfa.Called(model, softmax=False)`",
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


def chosen(scores: Any, indices: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Score of each row's own target, given as indices into the scores of a row, (batch,) float64 on the host."""
    host = to_host(scores).astype(np.float64, copy=False)
    rows = np.array(indices, dtype=np.int64)
    return host[(np.arange(len(host)), *rows.reshape(len(rows), -1).T)]
