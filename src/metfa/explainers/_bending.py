"""Gradients that are bent into relevance while it is handed back, and straight again for its own derivative.

With the right gradient g at every tensor, z * g is the relevance of z: no rule divides by an activation, and sums share
relevance in proportion by themselves. A bend changes no value of the forward pass. It acts only while relevance is
handed back, so that maps can be differentiated: their derivative follows the model's own graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from metfa.calls.functions_as_layers import tensors_in

__all__ = ["Bends"]

Rule = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


class Bends:
    """The bends of one forward pass, and which of its tensors relevance passes."""

    def __init__(self) -> None:
        self.acting = False
        self._cut: Any = WeakIdKeyDictionary()

    @contextmanager
    def act(self) -> Iterator[None]:
        """Gradients taken inside are bent."""
        self.acting = True
        try:
            yield
        finally:
            self.acting = False

    def flows(self, x: torch.Tensor) -> bool:
        """Whether relevance passes a tensor; to the others the rules look as to constants."""
        return x.requires_grad and x not in self._cut

    def scaled(self, x: torch.Tensor, factor: float) -> torch.Tensor:
        """The same values; their gradient is multiplied by `factor`."""
        return x if factor == 1 else _Scaled.apply(self, factor, x)  # pyright: ignore[reportReturnType]

    def cut(self, x: torch.Tensor) -> torch.Tensor:
        """The same values; no relevance passes."""
        return self.mark_cut(_Scaled.apply(self, 0, x)) if x.requires_grad else x

    def mark_cut(self, output: Any) -> Any:
        """The output of a call of which no argument has relevance, so that it has none."""
        for x in tensors_in((output,)):
            if x.requires_grad:
                self._cut[x] = True
        return output

    def same(self, x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """`x`, which has the values of another tensor: relevance passes it where it passes that one."""
        self._cut.pop(x, None)
        return x if self.flows(like) else self.mark_cut(x)

    def ruled(self, rule: Rule, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The values of `y`, made of `x`: the gradient of x is ``rule(gradient of y, x, y)``."""
        return _Ruled.apply(self, rule, x, y)  # pyright: ignore[reportReturnType]


class _Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, bends: Bends, factor: float, x: torch.Tensor) -> torch.Tensor:
        ctx.bends, ctx.factor = bends, factor
        ctx.set_materialize_grads(False)
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        (gradient,) = grad_outputs
        if gradient is not None and ctx.bends.acting:
            gradient = gradient * ctx.factor if ctx.factor else None
        return None, None, gradient


class _Ruled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, bends: Bends, rule: Rule, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        ctx.bends, ctx.rule = bends, rule
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, y)
        return y.clone()  # which the model may overwrite

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        (gradient,) = grad_outputs
        if gradient is None or not ctx.bends.acting:
            return None, None, None, gradient
        return None, None, ctx.rule(gradient, *ctx.saved_tensors), None
