"""Gradients of class scores with respect to the inputs, of one array or of several."""

from __future__ import annotations

from typing import Any

import torch

from metfa.calls.answers import checked_scores
from metfa.calls.differentiation import chosen_scores, weights_frozen
from metfa.calls.no_gradient import gradient_expected
from metfa.calls.parts import answered_by_parts, each, formed, named, rows_in, with_gradient
from metfa.calls.row_dependence import row_by_row

__all__ = ["gradient_of"]


def gradient_of(called: Any, inputs: Any, target: Any) -> tuple[Any, torch.Tensor]:
    """See `Called.gradient`."""
    floating = with_gradient(inputs)
    differentiable = any(part.requires_grad for part in floating.values()) and torch.is_grad_enabled()
    model = called.model
    with torch.enable_grad(), weights_frozen(model), gradient_expected(model), called.precision(inputs):
        batch = {
            name: called.laid_out(part if differentiable and part.requires_grad else part.detach())
            for name, part in named(inputs).items()
        }
        leaves = {name: batch[name] for name in floating}
        for leaf in leaves.values():
            if not leaf.requires_grad:
                leaf.requires_grad_()
        scores = checked_scores(answered_by_parts(model, formed(batch, inputs)), rows_in(inputs), model)
        targeted = chosen_scores(scores, target, formed(leaves, inputs))
        found = torch.autograd.grad(targeted.sum(), list(leaves.values()), create_graph=differentiable)
        dependent = called.row_look.finds_dependence(each(torch.detach, inputs), scores.detach())
    if dependent:
        return row_by_row(called.gradient, inputs, target)  # pyright: ignore[reportReturnType]
    return formed(dict(zip(leaves, found, strict=True)), inputs), scores.detach()
