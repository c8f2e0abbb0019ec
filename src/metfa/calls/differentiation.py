"""Derivatives of class scores by inputs: weights without gradients, and the score of each row's target."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from metfa.calls.guard import model_in_evaluation
from metfa.calls.targets import row_targets, target_indices

__all__ = ["chosen_scores", "graph_kept", "index_of", "of_indices", "require_graph", "weights_frozen"]


@contextmanager
def weights_frozen(model: Any) -> Iterator[None]:
    """The model in evaluation mode, and its weights without gradients, so that the backward pass is spared them."""
    parameters = model.parameters() if isinstance(model, torch.nn.Module) else ()
    trained = [parameter for parameter in parameters if parameter.requires_grad and parameter.is_leaf]
    with model_in_evaluation(model):
        try:
            for parameter in trained:
                parameter.requires_grad_(False)
            yield
        finally:
            for parameter in trained:
                parameter.requires_grad_(True)


def require_graph(scores: torch.Tensor) -> None:
    """Raise where scores have no gradient by what the model was asked, which penalties alone would hide."""
    if not scores.requires_grad:
        raise ValueError(
            "the model's scores have no gradient by its input: it detaches them, runs under `torch.no_grad()`, or "
            "returns labels; explain it without gradients, such as by metfa.explainers.RISE"
        )


def chosen_scores(scores: torch.Tensor, target: Any) -> torch.Tensor:
    """Score of each row's target, (batch,), in the graph of the inputs; the best class where `target` is None."""
    require_graph(scores)
    targets = row_targets(target, scores.detach().float().cpu().numpy(), len(scores))
    if scores.ndim == 1:
        return scores
    return of_indices(scores, index_of(targets, scores.device))


def index_of(targets: list[Any], device: Any) -> torch.Tensor:
    """Targets as indices (batch, axes of a row's scores)."""
    rows = target_indices(targets)
    return torch.tensor(rows, dtype=torch.int64, device=device).reshape(len(rows), len(rows[0]))


def of_indices(scores: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Score of each row's target, (batch,)."""
    return scores[(torch.arange(len(scores), device=scores.device), *index.T)]


class _GraphKept(TorchFunctionMode):
    """Every `torch.autograd.grad` as if it had been called with ``create_graph=True``."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch."""
        kwargs = kwargs or {}
        if func is torch.autograd.grad and kwargs.get("create_graph") is False:  # torch hands on all but two by name
            kwargs = {**kwargs, "create_graph": True}
        return func(*args, **kwargs)


@contextmanager
def graph_kept() -> Iterator[None]:
    """Gradients taken inside are differentiable: libraries such as Captum take theirs out of the graph."""
    with _GraphKept(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The .grad attribute of a Tensor that is not a leaf", UserWarning)
        yield
