"""Heads of a transformer: a linear classifier of scikit-learn as a layer in torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from metfa.calls.answers import softmax

__all__ = ["in_torch"]


def in_torch(head: Any, model: Any) -> Any:
    """A linear classifier of scikit-learn as a layer in the precision and on the device of the model."""
    if head is None or isinstance(head, torch.nn.Module):
        return head
    if not hasattr(head, "predict_proba"):
        if not callable(head):
            raise TypeError(f"`head` must be a module, a function or a fitted classifier, got {type(head).__name__}")
        return head
    if not hasattr(head, "coef_"):
        raise ValueError(f"`head` must be a fitted linear classifier, got {head!r}, which has no `coef_`")
    weights, bias = np.asarray(head.coef_), np.asarray(head.intercept_)
    size = getattr(model.config, "hidden_size", None)
    if size is not None and weights.shape[1] != size:
        raise ValueError(
            f"`head` must be fitted to the {size} numbers of a text that `Transformer.pooled` gives, got one fitted to "
            f"{weights.shape[1]}"
        )
    if len(weights) == 1:  # two classes, and the logit of the second
        weights, bias = np.concatenate([0 * weights, weights]), np.concatenate([0 * bias, bias])
    _check_softmax(head, weights, bias)
    layer = torch.nn.Linear(weights.shape[1], len(weights), device="meta")
    like = next(model.parameters())
    state = {"weight": torch.from_numpy(weights), "bias": torch.from_numpy(bias)}
    layer.load_state_dict(state, assign=True)
    return layer.to(device=like.device, dtype=like.dtype).requires_grad_(False).eval()


def _check_softmax(head: Any, weights: np.ndarray, bias: np.ndarray) -> None:
    """Raise unless the classifier's probabilities are the softmax of its scores, which is what the layer computes."""
    wanted = np.random.default_rng(0).uniform(-2, 2, (32, len(weights)))  # no probability near 0 or 1
    vectors = (wanted - bias) @ np.linalg.pinv(weights.astype(np.float64), rcond=1e-5).T
    ours, theirs = softmax(vectors @ weights.T + bias), head.predict_proba(vectors)
    if ours.shape != theirs.shape or not np.allclose(ours, theirs, atol=1e-4):
        raise ValueError(
            f"`head` must have the softmax of its linear scores as probabilities; {head!r:.80} has others: fit a "
            "LogisticRegression, or give a function in torch from the vectors to logits"
        )
