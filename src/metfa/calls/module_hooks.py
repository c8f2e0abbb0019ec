"""Hooks before and behind each module of a model, for as long as a forward pass is watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

__all__ = ["hooked"]


@contextmanager
def hooked(model: Any, entering: Callable[[str], Any], leaving: Callable[[str], Any]) -> Iterator[None]:
    """Inside, each module has the two hooks that are made of its name; a model that is no module has none."""
    handles = []
    try:
        for name, module in model.named_modules() if isinstance(model, nn.Module) else ():
            handles.append(module.register_forward_pre_hook(entering(name)))
            handles.append(module.register_forward_hook(leaving(name)))
        yield
    finally:
        for handle in handles:
            handle.remove()
