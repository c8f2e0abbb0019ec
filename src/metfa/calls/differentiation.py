"""Derivatives of class scores with respect to inputs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from metfa.calls.guard import model_in_evaluation
from metfa.calls.no_gradient import reaches, why_no_gradient
from metfa.calls.parts import name_in_words, named
from metfa.calls.targets import row_targets, target_indices

__all__ = [
    "chosen_scores",
    "graph_kept",
    "index_of",
    "of_indices",
    "require_graph",
    "weights_frozen",
]


@contextmanager
def weights_frozen(model: Any) -> Iterator[None]:
    """The model in evaluation mode; its weights get no gradients, which saves work in the backward pass."""
    with model_in_evaluation(model):  # from here on, no other thread changes it
        parameters = model.parameters() if isinstance(model, torch.nn.Module) else ()
        trained = [p for p in parameters if p.requires_grad and p.is_leaf and not p.is_inference()]
        try:
            for parameter in trained:
                parameter.requires_grad_(False)
            yield
        finally:
            for parameter in trained:
                parameter.requires_grad_(True)


def require_graph(scores: torch.Tensor, inputs: Any) -> None:
    """Raise if scores have no gradient with respect to the inputs; penalties added to them would hide that.

    So each of several inputs must have one.
    """
    if not isinstance(scores, torch.Tensor):  # such as an array of NumPy
        raise ValueError(why_no_gradient())
    parts = named(inputs)
    without = [
        name for name, part in parts.items() if not (scores.requires_grad and reaches(scores.grad_fn, part))
    ]  # fmt: skip
    if len(without) == len(parts):
        raise ValueError(why_no_gradient())
    if without:
        own = name_in_words(without[0])
        raise ValueError(
            f"the model's scores have no gradient by `{own}`: if it is not to be explained, as a mask is not, make it "
            f"one of integers or booleans, such as `{own}.bool()`, which have no gradient"
        )


def chosen_scores(scores: torch.Tensor, target: Any, inputs: Any) -> torch.Tensor:
    """Score of each row's target, (batch,), in the graph of the inputs; the best class where `target` is None."""
    require_graph(scores, inputs)
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
    """Make every `torch.autograd.grad` act as with ``create_graph=True``."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch."""
        kwargs = kwargs or {}
        if func is torch.autograd.grad and kwargs.get("create_graph") is False:  # torch passes all but two by name
            kwargs = {**kwargs, "create_graph": True}
        return func(*args, **kwargs)


@contextmanager
def graph_kept() -> Iterator[None]:
    """Make gradients taken inside differentiable; libraries such as Captum ask for gradients without a graph."""
    with _GraphKept(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The .grad attribute of a Tensor that is not a leaf", UserWarning)
        yield
