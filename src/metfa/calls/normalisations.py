"""Right gradients of normalisations on a CPU, whose kernels misread tensors with an axis of one and unusual strides.

torch 2.14 (CPU) takes a tensor of one row in a tokens' layout, ``tokens.transpose(1, 2).reshape(1, c, h, w)``, for one
with channels last. If the input of a batch norm and the gradient of its output differ in this, the gradient that it
hands back is wrong, without an error; so it is with pictures of one row or column of pixels. That of an instance norm
is wrong for every gradient with channels last. LeViT, EfficientFormer and XCiT have such layers: their gradients of one
row correlated at .4 with the right ones.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

__all__ = ["right_gradients"]

KINDS = (
    *(torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d, torch.nn.SyncBatchNorm),
    *(torch.nn.InstanceNorm1d, torch.nn.InstanceNorm2d, torch.nn.InstanceNorm3d),
)
FUNCTIONS: dict[Any, str] = {torch.nn.functional.batch_norm: "batch", torch.nn.functional.instance_norm: "instance"}


def right_gradients(parts: Sequence[Any]) -> AbstractContextManager[Any]:
    """The context in which the modules `parts` have right gradients; nothing of them is changed."""
    compiled = any("_orig_mod" in vars(part).get("_modules", {}) for part in parts)  # it has kernels of its own
    normalises = any(isinstance(part, KINDS) for part in parts)
    return _usual_layouts() if normalises and not compiled else nullcontext()


_open = threading.local()  # as torch's modes are


@contextmanager
def _usual_layouts() -> Iterator[None]:
    """The mode, opened once: it looks at every call of torch, so that each further one costs a hundredth of a pass."""
    if getattr(_open, "already", False):
        yield
        return
    _open.already = True
    try:
        with _UsualLayouts():
            yield
    finally:
        _open.already = False


class _UsualLayouts(TorchFunctionMode):
    """Hand gradients to normalisations in the layout of their inputs, which are copied where they must be."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch, inside which torch has taken this mode away."""
        _open.already = False  # a backward pass, which is one, may ask a model of its own
        try:
            return self._call(func, args, kwargs)
        finally:
            _open.already = True

    def _call(self, func: Any, args: Any, kwargs: Any) -> Any:
        kind, kwargs = FUNCTIONS.get(func), kwargs or {}
        given = args[0] if args else kwargs.get("input")
        may_be_wrong = kind is not None and torch.is_grad_enabled() and isinstance(given, torch.Tensor)
        batch = kind == "batch"
        if may_be_wrong and batch:
            may_be_wrong = 1 in given.shape
        if not may_be_wrong or given.device.type != "cpu":  # without a gradient all is right, and nothing is copied
            return func(*args, **kwargs)
        # A gradient that is laid out as the input is read as the input is: so also where a checkpoint asks again, out
        # of this mode. An instance norm misreads channels last in any case.
        as_it_is = _dense(given) if batch else given.is_contiguous() and 1 not in given.shape
        kept = given if as_it_is else given.clone(memory_format=torch.contiguous_format)
        found = func(kept, *args[1:], **kwargs) if args else func(**{**kwargs, "input": kept})
        if found.requires_grad:
            strides = kept.stride()
            found.register_hook(lambda gradient: None if gradient is None else _laid_out(gradient, strides))
        return found


def _laid_out(tensor: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """The tensor, or a copy with these strides."""
    if tensor.stride() == strides:
        return tensor
    made = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device)
    return made.copy_(tensor)


def _dense(tensor: torch.Tensor) -> bool:
    """Whether the numbers lie in memory without gaps, in any order of the axes, each once."""
    axes = sorted(zip(tensor.stride(), tensor.shape, strict=True))
    return all(
        stride == math.prod(size for _, size in axes[:place]) for place, (stride, size) in enumerate(axes) if size > 1
    )
