"""Where a result comes from: names, settings and versions, without memory addresses or model dumps."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import platform
import sys
from importlib import metadata
from typing import Any

import numpy as np

__all__ = ["describe", "versions"]


def describe(thing: Any) -> str:
    """Short name of an explainer or a noise with its settings, equal in every process."""
    if isinstance(thing, bool | int | float | str | None):
        return repr(thing)
    if isinstance(thing, functools.partial):
        settings = [*map(describe, thing.args), *(f"{key}={describe(value)}" for key, value in thing.keywords.items())]
        return f"{describe(thing.func)}({', '.join(settings)})"
    if inspect.ismethod(thing):
        return f"{describe(thing.__self__)}.{thing.__name__}"
    if inspect.isroutine(thing) or inspect.isclass(thing):
        return thing.__qualname__.replace(".<locals>", "")
    if isinstance(thing, tuple | list):
        return f"({', '.join(map(describe, thing))})"
    if isinstance(thing, dict):
        return f"{{{', '.join(f'{key}: {describe(value)}' for key, value in thing.items())}}}"
    if dataclasses.is_dataclass(thing):
        shown = [f for f in dataclasses.fields(thing) if f.repr]
        return f"{type(thing).__name__}({', '.join(f'{f.name}={describe(getattr(thing, f.name))}' for f in shown)})"
    own_repr = type(thing).__repr__
    return repr(thing) if own_repr is not object.__repr__ and len(repr(thing)) <= 80 else type(thing).__name__


def versions() -> dict[str, str]:
    """Versions of Python, NumPy, metfa and of the model libraries in use."""
    found = {"python": platform.python_version(), "numpy": np.__version__, "metfa": metadata.version("metfa")}
    for name in ("torch", "jax", "captum", "sklearn", "onnxruntime"):
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "__version__"):
            found[name] = str(module.__version__)
    return found
