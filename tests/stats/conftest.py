"""Every array library and dtype that the statistics must work on, as one fixture."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest


@dataclass(frozen=True)
class Backend:
    """One library and dtype: `make` turns a float64 NumPy array into its arrays, `host` turns them back."""

    name: str
    make: Callable[[np.ndarray], Any]
    host: Callable[[Any], np.ndarray]

    @property
    def library(self) -> str:
        return self.name.partition("-")[0]

    @property
    def is_floating(self) -> bool:
        return "float" in self.name


def _numpy(dtype: str, read_only: bool = False) -> Backend:
    def make(values):
        array = np.array(values, dtype=dtype)
        array.flags.writeable = not read_only
        return array

    return Backend(f"numpy-{dtype}" + "-read-only" * read_only, make, np.asarray)


def _torch(dtype: str, requires_grad: bool = False) -> Backend:
    torch = pytest.importorskip("torch")

    def make(values):
        return torch.tensor(np.array(values), dtype=getattr(torch, dtype)).requires_grad_(requires_grad)

    def host(tensor):
        tensor = tensor.detach()
        return (tensor.double() if tensor.is_floating_point() else tensor).numpy()

    return Backend(f"torch-{dtype}" + "-with-grad" * requires_grad, make, host)


def _module(name: str, module: str, dtype: str) -> Backend:
    xp = pytest.importorskip(module, reason=f"{module} is not installed")
    return Backend(f"{name}-{dtype}", lambda values: xp.asarray(np.array(values), dtype=getattr(xp, dtype)), np.asarray)


BACKENDS = {
    **{f"numpy-{dtype}": (_numpy, dtype) for dtype in ("float16", "float32", "float64", "int8", "int64")},
    "numpy-read-only": (_numpy, "float32", True),
    **{f"torch-{dtype}": (_torch, dtype) for dtype in ("float16", "bfloat16", "float32", "float64", "int64")},
    "torch-with-grad": (_torch, "float32", True),
    **{f"strict-{dtype}": (_module, "strict", "array_api_strict", dtype) for dtype in ("float32", "float64", "int32")},
    **{f"jax-{dtype}": (_module, "jax", "jax.numpy", dtype) for dtype in ("bfloat16", "float32", "int32")},
}


@pytest.fixture(params=BACKENDS)
def backend(request) -> Backend:
    build, *arguments = BACKENDS[request.param]
    return build(*arguments)


@pytest.fixture(scope="session")
def optional():
    """Import a module, or skip the test."""
    return lambda name: (pytest.importorskip(name, reason=f"{name} is not installed"), importlib.import_module(name))[1]
