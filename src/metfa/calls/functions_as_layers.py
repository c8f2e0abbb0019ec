"""Functions of torch as the layers that compute the same, so that they can have a layer's rule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

__all__ = ["as_layer", "name_of", "tensors_in", "works_in_place"]

SUMS = {"add", "iadd", "radd"}
AFFINE = SUMS | {
    "sub", "isub", "rsub", "subtract", "mul", "imul", "rmul", "multiply", "div", "idiv", "truediv", "itruediv",
    "true_divide", "divide", "neg", "negative", "batch_norm",
}  # fmt: skip
PRODUCTS = {"matmul", "mm", "linear"}
AVERAGE = nn.AdaptiveAvgPool2d(1)
LIKE_LAYER: dict[str, nn.Module] = {
    "relu": nn.ReLU(), "relu6": nn.ReLU6(), "leaky_relu": nn.LeakyReLU(), "elu": nn.ELU(), "celu": nn.CELU(),
    "selu": nn.SELU(), "softplus": nn.Softplus(), "hardtanh": nn.Hardtanh(), "clamp": nn.Hardtanh(),
    "clip": nn.Hardtanh(), "clamp_min": nn.Hardtanh(), "tanh": nn.Tanh(), "sigmoid": nn.Sigmoid(), "gelu": nn.GELU(),
    "silu": nn.SiLU(), "hardswish": nn.Hardswish(), "hardsigmoid": nn.Hardsigmoid(),
    "avg_pool1d": AVERAGE, "avg_pool2d": AVERAGE, "avg_pool3d": AVERAGE, "adaptive_avg_pool1d": AVERAGE,
    "adaptive_avg_pool2d": AVERAGE, "adaptive_avg_pool3d": AVERAGE, "mean": AVERAGE, "sum": AVERAGE,
}  # fmt: skip
AFFINE_LAYER = nn.BatchNorm2d(1)


def name_of(func: Any) -> str:
    """Name of a function, method or operator, without outer underscores (``__iadd__`` is iadd, ``relu_`` is relu)."""
    return getattr(func, "__name__", "").strip("_")


def works_in_place(func: Any, kwargs: Any) -> bool:
    """Whether a call overwrites its first argument."""
    name = getattr(func, "__name__", "")
    return name.startswith("__i") or (name.endswith("_") and name[0] != "_") or bool(kwargs.get("inplace"))


def as_layer(func: Any, args: Any, kwargs: Any, activations: list[torch.Tensor]) -> Any:
    """The layer whose rule a call takes, the one that does its work, and its inputs; None where there is no such layer.

    No relevance passes a call without activations (tensors with a gradient) among its arguments.
    """
    from zennit.layer import Sum

    name, first = name_of(func), args[0] if args else None
    if name in SUMS and len(activations) == 2 and not kwargs:
        return Sum(), Sum(), (torch.stack(torch.broadcast_tensors(*args), dim=-1),)
    if len(activations) != 1:
        return None, None, ()
    (x,) = activations
    if name in PRODUCTS and x is first and _is_matrix(args[1]):
        product = _product(name, *args, **kwargs)
        return product, product, (x,)
    if name in AFFINE and _keeps_shape(name, x, args) and (x is first or "div" not in name):
        return AFFINE_LAYER, Function(func, args, kwargs, x), (x,)
    if name in LIKE_LAYER and x is first:
        return LIKE_LAYER[name], Function(func, args, kwargs, x), (x,)
    return None, None, ()


class Function(nn.Module):
    """A function of torch as a module whose input is one of the arguments."""

    function: Any
    args: list[Any]
    kwargs: Any
    place: int

    def __init__(self, function: Any, args: Any, kwargs: Any, free: torch.Tensor) -> None:
        super().__init__()
        self.function, self.kwargs = function, kwargs
        self.args = [None if arg is free else arg for arg in args]
        self.place = next(place for place, arg in enumerate(args) if arg is free)

    def forward(self, x: torch.Tensor) -> Any:
        """Value of the function at `x`."""
        return self.function(*self.args[: self.place], x, *self.args[self.place + 1 :], **self.kwargs)


def tensors_in(values: Any) -> Iterator[torch.Tensor]:
    """All tensors in nested tuples, lists and dictionaries."""
    for value in values.values() if isinstance(values, dict) else values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, tuple | list | dict):
            yield from tensors_in(value)


def _is_matrix(weight: Any) -> bool:
    return isinstance(weight, torch.Tensor) and weight.ndim == 2


def _product(name: str, _: Any, weight: torch.Tensor, bias: torch.Tensor | None = None) -> nn.Linear:
    layer = nn.Linear(1, 1, device="meta")  # draws no weights
    layer.weight = nn.Parameter((weight if name == "linear" else weight.T).detach())
    layer.register_parameter("bias", None if bias is None else nn.Parameter(bias.detach()))
    return layer


def _keeps_shape(name: str, x: torch.Tensor, args: Any) -> bool:
    if name == "batch_norm":  # its other tensors lie along the channels
        return True
    shapes = [arg.shape for arg in args[:2] if isinstance(arg, torch.Tensor)]
    return torch.broadcast_shapes(*shapes) == x.shape
