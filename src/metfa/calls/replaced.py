"""Modules that a library replaces inside of a model, put back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["modules_as_found"]


@contextmanager
def modules_as_found(model: Any) -> Iterator[None]:
    """Put back the modules inside a model: AblationCAM replaces a layer, and leaves it so after an exception."""
    found = [(module, dict(module._modules)) for module in model.modules()]
    try:
        yield
    finally:
        for module, children in found:
            if module._modules != children:
                module._modules.clear()
                module._modules.update(children)
