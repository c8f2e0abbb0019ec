"""The last call of a module of some kind, such as the linear layer that classifies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import nn

from metfa.calls.behind import owner_of

__all__ = ["LastUse", "last_use"]


@dataclass
class LastUse:
    """The module that was called last, and its input; None before the first call."""

    module: Any = None
    input: Any = None


@contextmanager
def last_use(model: Any, kinds: tuple[type[nn.Module], ...]) -> Iterator[LastUse]:
    """The last call of a module of these kinds."""
    use = LastUse()

    def see(module: nn.Module, arguments: Any) -> None:
        use.module, use.input = module, arguments[0]

    hooks = [m.register_forward_pre_hook(see) for m in owner_of(model).modules() if isinstance(m, kinds)]
    try:
        yield use
    finally:
        for hook in hooks:
            hook.remove()
