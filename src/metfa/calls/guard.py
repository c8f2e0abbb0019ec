"""Leave things as found: the caller's model, and with it the global random generators."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

from metfa._base.warnings import ModelStateWarning, ReproducibilityWarning, warn
from metfa.allocator import freed_memory_kept
from metfa.calls.behind import is_surrogate, loaded_torch, modules_behind, variation_of
from metfa.calls.generators import DRAWS, random_state_as_found
from metfa.calls.ownership import owned

__all__ = [
    "left_as_found",
    "model_as_found",
    "model_in_evaluation",
    "normalises_by_batch",
    "training_noticed",
]

DEVICES = ("cpu", "cuda", "mps", "xpu")  # whose autocast is looked at
_MODULE_HOOKS = (
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_backward_hooks",
    "_backward_pre_hooks",
)
LEFT_BY_LRP = ("rule", "activations", "activation")  # what Captum's LRP sets on modules, and leaves after a failure
_TENSOR_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")


def normalises_by_batch(model: Any) -> bool:
    """Whether a torch module has batch normalisation without running statistics, which mixes the rows of a batch."""
    torch = loaded_torch()
    if torch is None:
        return False
    batch_norm = torch.nn.modules.batchnorm._BatchNorm
    return any(isinstance(part, batch_norm) and part.running_mean is None for part in modules_behind(model))


@contextmanager
def model_as_found(*models: Any) -> Iterator[None]:
    """Own the torch modules behind the models; restore their modes, gradients and hooks on leaving, also after an
    exception.

    Gradients of the parameters are removed inside and put back later, so that a backward pass cannot add to them. A
    model may be a function or an object: see `modules_behind`.
    """
    parts = modules_behind(*models)
    with owned([id(part) for part in parts]):
        modules = [(m, _modes(m), _rules(m), _hooks(m, _MODULE_HOOKS)) for m in parts]
        parameters = [(p, p.requires_grad, p.grad, _hooks(p, _TENSOR_HOOKS)) for p in _parameters(parts)]
        for parameter, _, gradient, _ in parameters:
            if gradient is not None:
                parameter.grad = None
        try:
            yield
        finally:
            for module, modes, rules, hooks in modules:
                for name, mode in modes.items():
                    setattr(module, name, mode)
                for name in LEFT_BY_LRP:
                    vars(module).pop(name, None)
                vars(module).update(rules)
                _restore_hooks(module, _MODULE_HOOKS, hooks)
            for parameter, requires_grad, gradient, hooks in parameters:
                if parameter.requires_grad != requires_grad:
                    parameter.requires_grad_(requires_grad)
                parameter.grad = gradient
                _restore_hooks(parameter, _TENSOR_HOOKS, hooks)


def _modes(module: Any) -> dict[str, Any]:
    """A frozen program of TorchScript has no `training`."""
    return {name: getattr(module, name) for name in ("training", "_is_full_backward_hook") if hasattr(module, name)}


def _rules(module: Any) -> dict[str, Any]:
    return {name: vars(module)[name] for name in LEFT_BY_LRP if name in vars(module)}


def _parameters(modules: list[Any]) -> list[Any]:
    found = {id(p): p for module in modules for p in module.parameters(recurse=False)}
    return list(found.values())


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
def model_in_evaluation(*models: Any) -> Iterator[None]:
    """Own the torch modules behind the models, in evaluation mode; warns if the caller left one in training mode."""
    parts = modules_behind(*models)
    with owned([id(part) for part in parts]):
        exported = [part for part in parts if "train" in vars(part)]  # it has no modes, and forbids `eval()`
        modeless = {id(part) for program in exported for part in program.modules()}
        training = [part for part in parts if getattr(part, "training", False) and id(part) not in modeless]
        if training:
            warn(
                "the model is in training mode: it is explained in evaluation mode and put back afterwards; call "
                "`model.eval()` first to silence this",
                ModelStateWarning,
            )
        try:
            for found in training:
                found.training = False
            with _right_gradients_of(parts):
                yield
        finally:
            for found in training:
                found.training = True


def _right_gradients_of(parts: list[Any]) -> AbstractContextManager[Any]:
    if not parts:
        return nullcontext()
    from metfa.calls.normalisations import right_gradients  # which needs torch

    return right_gradients(parts)


@contextmanager
def training_noticed(*models: Any) -> Iterator[None]:
    """Warn of a torch module in training mode that is asked inside, where `modules_behind` finds none.

    It is in evaluation mode inside, so that nothing changes before the warning. Only this thread is watched.
    """
    torch, me = loaded_torch(), threading.get_ident()
    if torch is None or modules_behind(*models):
        yield
        return
    found: dict[int, Any] = {}

    def see(module: Any, _: Any) -> None:
        if threading.get_ident() == me and getattr(module, "training", False) and not is_surrogate(module):
            for part in module.modules():
                if getattr(part, "training", False):
                    found[id(part)] = part
                    part.training = False

    hook = torch.nn.modules.module.register_module_forward_pre_hook(see)
    try:
        yield
    finally:
        hook.remove()
        for part in found.values():
            part.training = True
    if found:
        warn(
            f"a torch module in training mode ({type(next(iter(found.values()))).__name__}) is asked by a function in "
            "which metfa does not find it, so that dropout and batch statistics act and change: call `.eval()` on it "
            "first",
            ModelStateWarning,
        )


@contextmanager
def _gradients_and_precision_as_usual() -> Iterator[None]:
    """Without the caller's inference mode, which allows no gradient, and autocast, which changes every number."""
    torch = loaded_torch()
    with ExitStack() as stack:
        if torch is not None:
            if torch.is_inference_mode_enabled():
                stack.enter_context(torch.inference_mode(False))
            casting = [kind for kind in DEVICES if torch.is_autocast_enabled(kind)]
            if casting:
                warn(
                    "`torch.autocast` around this call is switched off inside, because it would change the result "
                    "without a trace: write `metfa.Called(model, fast='bfloat16')` to run the model in lower precision",
                    ModelStateWarning,
                )
            for kind in casting:
                stack.enter_context(torch.autocast(kind, enabled=False))
        yield


def _on_a_cpu(models: tuple[Any, ...]) -> bool:
    """Whether one of the torch modules behind the models has weights on a CPU."""
    weights = (next(part.parameters(), None) for part in modules_behind(*models))
    return any(weight is not None and weight.device.type == "cpu" for weight in weights)


@contextmanager
def left_as_found(*models: Any) -> Iterator[Callable[[], bool]]:
    """The context of every sampling: models in evaluation mode, everything restored on leaving.

    `models` may be explainers and functions too: the torch modules behind all of them are guarded, and other threads
    that guard one of them wait. Yields the function of `random_state_as_found`. At the end it warns if the global
    generators were drawn from: `rng` does not govern those numbers. Gradients work even inside the caller's inference
    mode, and the caller's autocast changes nothing. Memory that a network on a CPU frees is reused inside.
    """
    with (
        freed_memory_kept() if _on_a_cpu(models) else nullcontext(),
        _gradients_and_precision_as_usual(),
        model_as_found(*models),
        model_in_evaluation(*models),
        random_state_as_found() as drawn,
    ):
        yield drawn
        if drawn():
            warn(next(filter(None, map(variation_of, models)), DRAWS), ReproducibilityWarning)
