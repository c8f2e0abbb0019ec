"""Rectifiers that are smooth at their kink, so that maps made of gradients have useful derivatives.

A network of ReLUs is linear piece by piece: the gradient of its score is constant nearby, and no small step changes it.
Here functions of torch are intercepted while a context is open. The model is never touched, so there is nothing to put
back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from metfa.calls.functions_as_layers import name_of, works_in_place

__all__ = ["soft_backward", "softplus"]

TAU = 1e-4  # alps-lab/adv2, ia_utils/model_utils.py, SoftReLUFunc


class Softened(TorchFunctionMode):
    """While it is open, another function replaces the rectifier max(x, 0), and all functions made of it.

    Rectifiers are ReLU, ReLU6, hardtanh and leaky ReLU: modules, functions and methods, in place or not. A ``clamp``
    stays as it is, for it may mean anything. So do scripted, compiled and traced modules, which do not call torch by
    name.
    """

    def __init__(self, rectified: Callable[[torch.Tensor], torch.Tensor], *, keeps_values: bool) -> None:
        super().__init__()
        self._rectified = rectified
        self._keeps_values = keeps_values

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch, or the soft one instead."""
        kwargs = kwargs or {}
        pieces = _pieces(name_of(func), args[1:], kwargs) if args else None
        if pieces is None or not args[0].is_floating_point():
            return func(*args, **kwargs)
        x = args[0]
        if self._keeps_values and not (x.requires_grad and torch.is_grad_enabled()):
            return func(*args, **kwargs)
        in_place = works_in_place(func, kwargs)
        given = x.clone() if in_place else x  # the backward pass needs the old values
        soft = self._made_of(pieces, given)
        if self._keeps_values:  # the difference is 0 exactly, and carries the derivative
            soft = func(given.detach().clone(), *args[1:], **kwargs) + (soft - soft.detach())
        return x.copy_(soft) if in_place else soft

    def _made_of(self, pieces: tuple[float, float, float], x: torch.Tensor) -> torch.Tensor:
        """Soft form of ``slope * x + (1 - slope) * min(max(x, low), high)``."""
        low, high, slope = pieces
        soft = self._rectified(x - low) + low if low else self._rectified(x)
        if high < float("inf"):
            soft = soft - self._rectified(x - high)
        return soft if slope == 0 else slope * x + (1 - slope) * soft


def softplus(beta: float) -> Softened:
    r"""Context in which max(x, 0) is :math:`\log(1 + e^{\beta x}) / \beta` (Dombrowski et al. 2019).

    ReLU6 is softplus(x) - softplus(x - 6). All values change: the larger `beta`, the less.
    """
    return Softened(lambda x: functional.softplus(x, beta=beta), keeps_values=False)


def soft_backward() -> Softened:
    r"""Context in which max(x, 0) keeps its value, and has the derivative of ADV² (Zhang et al. 2020).

    That is :math:`x / \sqrt{x^2 + 10^{-4}}` for x at least 0, and the same plus 1 below: ``SoftReLUFunc`` of
    ``alps-lab/adv2``, ``ia_utils/model_utils.py``. It jumps from 1 to 0 at 0 and is close to the step function
    elsewhere. It is used because it has a derivative of its own.
    """
    return Softened(lambda x: (x * x + TAU).sqrt() + x.clamp(max=0), keeps_values=True)


def _pieces(name: str, more: Any, kwargs: Any) -> tuple[float, float, float] | None:
    """(low, high, slope outside) of a rectifier by its name; None for any other function."""
    if name == "relu":
        return 0.0, float("inf"), 0.0
    if name == "relu6":
        return 0.0, 6.0, 0.0
    if name == "hardtanh":
        low, high = (
            more[place] if len(more) > place else kwargs.get(key, default)
            for place, (key, default) in enumerate((("min_val", -1.0), ("max_val", 1.0)))
        )
        return float(low), float(high), 0.0
    if name == "leaky_relu":
        return 0.0, float("inf"), float(more[0] if more else kwargs.get("negative_slope", 0.01))
    return None
