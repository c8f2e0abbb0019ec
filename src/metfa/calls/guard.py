"""Leave things as found: the caller's model and the process's global random generators."""

from __future__ import annotations

import functools
import inspect
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from metfa._base.warnings import ModelStateWarning, ReproducibilityWarning, warn

__all__ = [
    "left_as_found",
    "loaded_torch",
    "model_as_found",
    "model_in_evaluation",
    "normalises_by_batch",
    "owner_of",
    "random_state_as_found",
    "seed_global_generators",
]

_MODULE_HOOKS = (
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_backward_hooks",
    "_backward_pre_hooks",
)
_TENSOR_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")


def loaded_torch() -> Any:
    """The torch module if the process has loaded it; metfa's own layers below `models` never load it."""
    return sys.modules.get("torch")


def owner_of(function: Any) -> Any:
    """`function` itself, or the object whose method it is, without partial applications."""
    while isinstance(function, functools.partial):
        function = function.func
    return function.__self__ if inspect.ismethod(function) else function


def _module_of(model: Any) -> Any:
    """The torch module that `model` is or is a method of; None where there is none."""
    torch, owner = loaded_torch(), owner_of(model)
    return owner if torch is not None and isinstance(owner, torch.nn.Module) else None


def normalises_by_batch(model: Any) -> bool:
    """Whether a torch module has batch normalisation without running statistics, which mixes the rows of a batch."""
    module, torch = _module_of(model), loaded_torch()
    if module is None:
        return False
    batch_norm = torch.nn.modules.batchnorm._BatchNorm
    return any(isinstance(part, batch_norm) and part.running_mean is None for part in module.modules())


@contextmanager
def model_as_found(model: Any) -> Iterator[None]:
    """Restore a torch module's modes, gradients and hooks on leaving, also after an exception.

    Gradients of the parameters are removed inside and put back later, so that a backward pass cannot add to them.
    Other functions and objects are not touched; a method of a module counts as the module.
    """
    model = _module_of(model)
    if model is None:
        yield
        return
    modules = [(m, m.training, m._is_full_backward_hook, _hooks(m, _MODULE_HOOKS)) for m in model.modules()]
    parameters = [(p, p.requires_grad, p.grad, _hooks(p, _TENSOR_HOOKS)) for p in model.parameters()]
    for parameter, _, gradient, _ in parameters:
        if gradient is not None:
            parameter.grad = None
    try:
        yield
    finally:
        for module, training, full_backward, hooks in modules:
            module.training = training
            module._is_full_backward_hook = full_backward
            _restore_hooks(module, _MODULE_HOOKS, hooks)
        for parameter, requires_grad, gradient, hooks in parameters:
            if parameter.requires_grad != requires_grad:
                parameter.requires_grad_(requires_grad)
            parameter.grad = gradient
            _restore_hooks(parameter, _TENSOR_HOOKS, hooks)


def _hooks(owner: Any, kinds: tuple[str, ...]) -> dict[str, dict[int, Any]]:
    """The kinds of hooks that are not empty: a large network has thousands of kinds, and most are empty."""
    return {kind: dict(hooks) for kind in kinds if (hooks := getattr(owner, kind, None))}


def _restore_hooks(owner: Any, kinds: tuple[str, ...], found: dict[str, dict[int, Any]]) -> None:
    for kind in kinds:
        current = getattr(owner, kind, None)
        if current is not None and (current or kind in found) and dict(current) != found.get(kind, {}):
            current.clear()
            current.update(found.get(kind, {}))


@contextmanager
def model_in_evaluation(model: Any) -> Iterator[None]:
    """A torch module in evaluation mode; warns if the caller left it in training mode."""
    module = _module_of(model)
    exported = module is not None and "train" in vars(module)  # such a program has no modes, and forbids `eval()`
    training = [] if module is None or exported else [m for m in module.modules() if m.training]
    if training:
        warn(
            "the model is in training mode: it is explained in evaluation mode and put back afterwards; call "
            "`model.eval()` first to silence this",
            ModelStateWarning,
        )
    try:
        for found in training:
            found.training = False
        yield
    finally:
        for found in training:
            found.training = True


def _same(a: Any, b: Any) -> bool:
    return all(_same(a[key], b[key]) for key in a) if isinstance(a, dict) else bool(np.array_equal(a, b))


def _torch_generators() -> list[Any]:
    """Global generators of torch's devices in use; `torch.manual_seed` would also reach those started later."""
    torch = loaded_torch()
    return [] if torch is None else [torch.default_generator, *torch.cuda.default_generators]


@contextmanager
def random_state_as_found() -> Iterator[Callable[[], bool]]:
    """Restore the global generators of Python, NumPy and torch on leaving.

    Yields a function. It returns whether somebody has drawn from them, or seeded them, since.
    """
    python, numpy = random.getstate(), np.random.get_state(legacy=False)  # noqa: NPY002
    of_torch = [(generator, generator.get_state()) for generator in _torch_generators()]

    def drawn() -> bool:
        return not (
            random.getstate() == python
            and _same(np.random.get_state(legacy=False), numpy)  # noqa: NPY002
            and all(generator.get_state().equal(state) for generator, state in of_torch)
        )

    try:
        yield drawn
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
        for generator, state in of_torch:
            generator.set_state(state)


def seed_global_generators(rng: np.random.Generator) -> None:
    """Seed the global generators of Python, NumPy and, where loaded, torch from one stream."""
    seeds = [int(seed) for seed in rng.integers(0, 2**32, size=3, dtype=np.uint32)]
    random.seed(seeds[0])
    np.random.seed(seeds[1])  # noqa: NPY002
    for generator in _torch_generators():
        generator.manual_seed(seeds[2])


@contextmanager
def left_as_found(*models: Any) -> Iterator[Callable[[], bool]]:
    """The context of every sampling: models in evaluation mode, everything restored on leaving.

    Yields the function of `random_state_as_found`. At the end it warns if the global generators were drawn from: `rng`
    does not govern those numbers. Gradients work even inside the caller's inference mode.
    """
    torch = loaded_torch()
    with ExitStack() as stack:
        drawn = stack.enter_context(random_state_as_found())
        if torch is not None and torch.is_inference_mode_enabled():
            stack.enter_context(torch.inference_mode(False))
        for model in {id(model): model for model in models}.values():
            stack.enter_context(model_as_found(model))
            stack.enter_context(model_in_evaluation(model))
        yield drawn
        if drawn():
            warn(
                "`explainer` (or `predict`, or `noise`) draws from global random generators, so `rng` does not govern "
                "it: wrap the explainer as `metfa.seeded(explainer)` to get the same samples every time (where a "
                "function of the model is expected, write `lambda model: metfa.seeded(function(model))`)",
                ReproducibilityWarning,
            )
