"""Leave things as found: the caller's model and the process's global random generators."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from metfa._warnings import ModelStateWarning, warn

__all__ = [
    "loaded_torch",
    "model_as_found",
    "model_in_evaluation",
    "random_state",
    "random_state_as_found",
    "seed_global_generators",
]

_HOOKS = (
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_backward_hooks",
    "_backward_pre_hooks",
)


def loaded_torch() -> Any:
    """The torch module if the process has loaded it; metfa's own layers below `models` never load it."""
    return sys.modules.get("torch")


@contextmanager
def model_as_found(model: Any) -> Iterator[None]:
    """Restore a torch module's modes, gradients and hooks on leaving, also after an exception.

    Gradients that the parameters hold are set aside meanwhile, so that a backward pass inside cannot add to them.
    Anything that is not a torch module passes through.
    """
    torch = loaded_torch()
    if torch is None or not isinstance(model, torch.nn.Module):
        yield
        return
    modules = [(m, m.training, {n: dict(getattr(m, n)) for n in _HOOKS if hasattr(m, n)}) for m in model.modules()]
    parameters = [(p, p.requires_grad, p.grad) for p in model.parameters()]
    for parameter, _, gradient in parameters:
        if gradient is not None:
            parameter.grad = None
    try:
        yield
    finally:
        for module, training, hooks in modules:
            module.training = training
            for name, found in hooks.items():
                current = getattr(module, name)
                if dict(current) != found:
                    current.clear()
                    current.update(found)
        for parameter, requires_grad, gradient in parameters:
            if parameter.requires_grad != requires_grad:
                parameter.requires_grad_(requires_grad)
            parameter.grad = gradient


@contextmanager
def model_in_evaluation(model: Any) -> Iterator[None]:
    """`model_as_found`, in evaluation mode meanwhile; warns where the caller's model is in training mode."""
    torch = loaded_torch()
    with model_as_found(model):
        if torch is not None and isinstance(model, torch.nn.Module) and any(m.training for m in model.modules()):
            warn(
                "the model is in training mode: it is explained in evaluation mode and put back afterwards; call "
                "`model.eval()` first to silence this",
                ModelStateWarning,
            )
            model.eval()
        yield


def random_state() -> dict[str, Any]:
    """States of the global generators of Python, NumPy and, where loaded, torch."""
    state: dict[str, Any] = {"python": random.getstate(), "numpy": np.random.get_state(legacy=False)}  # noqa: NPY002
    torch = loaded_torch()
    if torch is not None:
        state["torch"] = torch.get_rng_state()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return all(map(_same, a, b))
    return bool((a == b).all()) if hasattr(a, "all") else a == b


@contextmanager
def random_state_as_found() -> Iterator[Any]:
    """Restore the global generators on leaving; yields a function that tells whether they have been drawn from."""
    found = random_state()

    def drawn() -> bool:
        now = random_state()
        return not all(_same(found[name], now[name]) for name in found)

    try:
        yield drawn
    finally:
        random.setstate(found["python"])
        np.random.set_state(found["numpy"])  # noqa: NPY002
        if "torch" in found:
            torch = loaded_torch()
            torch.set_rng_state(found["torch"])
            if "cuda" in found:
                torch.cuda.set_rng_state_all(found["cuda"])


def seed_global_generators(rng: np.random.Generator) -> None:
    """Seed the global generators of Python, NumPy and, where loaded, torch from one stream."""
    seeds = [int(seed) for seed in rng.integers(0, 2**32, size=3, dtype=np.uint32)]
    random.seed(seeds[0])
    np.random.seed(seeds[1])  # noqa: NPY002
    torch = loaded_torch()
    if torch is not None:
        torch.manual_seed(seeds[2])
