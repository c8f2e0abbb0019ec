"""Gradients of class scores with respect to the inputs, of one array or of several."""

from __future__ import annotations

from typing import Any

import torch

from metfa.calls.differentiation import chosen_scores, weights_frozen
from metfa.calls.no_gradient import gradient_expected
from metfa.calls.parts import asked_scores, each, formed, named, with_gradient
from metfa.calls.row_dependence import row_by_row

__all__ = ["gradient_of"]


def gradient_of(called: Any, inputs: Any, target: Any) -> tuple[Any, torch.Tensor]:
    """See `Called.gradient`."""
    floating = with_gradient(inputs)
    differentiable = any(part.requires_grad for part in floating.values()) and torch.is_grad_enabled()
    model = called.model

    def ask() -> tuple[Any, torch.Tensor]:
        batch = called.laid_out(
            each(lambda part: part if differentiable and part.requires_grad else part.detach(), inputs)
        )
        leaves = {name: named(batch)[name] for name in floating}
        for leaf in leaves.values():
            if not leaf.requires_grad:
                leaf.requires_grad_()
        scores = asked_scores(model, batch)
        targeted = chosen_scores(scores, target, formed(leaves, inputs))
        found = torch.autograd.grad(targeted.sum(), list(leaves.values()), create_graph=differentiable)
        return formed(dict(zip(leaves, found, strict=True)), inputs), scores.detach()

    with torch.enable_grad(), weights_frozen(model), gradient_expected(model), called.precision(inputs):
        gradient, scores = called.layouts.asked_first(inputs, ask)
        dependent = called.row_look.finds_dependence(each(torch.detach, inputs), scores)
    if dependent:
        return row_by_row(called.gradient, inputs, target)  # pyright: ignore[reportReturnType]
    return gradient, scores
