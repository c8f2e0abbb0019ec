"""Zennit's rules on everything that a model calls: its modules, and the plain functions between them.

Zennit puts hooks on modules. A network also computes between modules (``x + body(x)``, a functional ReLU, a
normalisation of the pixels). There zennit uses the gradient, which doubles the relevance at every addition and rescales
it at every division. A module that is called twice gets the relevance of its last call. Batch normalisations are merged
by changing the model's weights, in the order in which modules are registered.

Here one forward pass is watched, call by call. Each call of a module for which the composite has a rule gets a zennit
hook of its own, on a copy of the module that shares its weights. A function gets the rule of the module that computes
the same: an addition of two activations has the rule of `zennit.layer.Sum`, which splits relevance in proportion. If
only a batch normalisation uses a layer's output, it is merged into that layer's copy. So the scores are the model's own
to the last bit, and its weights are never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.modules import batchnorm
from torch.nn.utils.fusion import fuse_conv_bn_weights, fuse_linear_bn_weights
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from metfa.calls.functions_as_layers import as_layer, name_of, tensors_in, works_in_place
from metfa.calls.module_hooks import hooked
from metfa.explainers._supported_layers import MOVING_FUNCTIONS, distributes, linear_types, refuse

__all__ = ["RelevancePass"]


@dataclass
class RuledCall:
    """One call of a layer that has a rule."""

    name: str
    hook: Any
    layer: nn.Module
    uses: int = 0  # of its output


class RelevancePass(TorchFunctionMode):
    """One forward pass of a model under a composite's rules, and the relevance of its inputs."""

    def __init__(self, model: nn.Module, composite: Any, precision: Callable[[], Any]) -> None:
        super().__init__()
        self.model = model
        self.composite = composite
        self._precision = precision
        self._checked = distributes(composite)
        self._unsupported: list[tuple[str, str]] = []
        self._context: dict[Any, Any] = {}
        self._path: list[str] = []
        self._open: list[RuledCall | None] = []
        self._calls: list[RuledCall] = []
        self._merges: list[tuple[RuledCall, nn.Module]] = []
        self._made: Any = WeakIdKeyDictionary()
        self._overwritten: Any = WeakIdKeyDictionary()
        self._totals: list[tuple[str, torch.Tensor]] = []

    @contextmanager
    def watching(self, _: torch.Tensor) -> Iterator[None]:
        """Forward passes of these inputs inside are watched."""
        with hooked(self.model, self._entering, lambda _: self._leaving), self:
            yield

    def relevance(self, scores: torch.Tensor, inputs: torch.Tensor, *, create_graph: bool) -> torch.Tensor:
        """Relevance of the inputs. It starts as the scores of the rows, (batch,), and goes back layer by layer.

        With `create_graph` it is differentiable in the inputs.
        """
        self._check()
        for call, norm in self._merges:
            if call.uses == 1:
                _merge(call.layer, norm)
        try:
            start = scores if create_graph else scores.detach()
            (relevance,) = torch.autograd.grad(scores, inputs, start, create_graph=create_graph)
        finally:
            self.close()
        if not relevance.detach().isfinite().all():
            bad = next((name for name, total in self._totals if not total.isfinite()), "the model's input")
            raise ValueError(
                f"relevance is not finite from layer {bad!r} on (counted from the output): its activations are too "
                "large for their precision, or the composite divides without a stabiliser"
            )
        return relevance

    def close(self) -> None:
        """Remove the hooks from the graph; they would change its own derivative."""
        for call in self._calls:
            call.hook.remove()
            call.hook.__dict__.pop("backward", None)
        self._calls.clear()

    def _check(self) -> None:
        refuse(self._unsupported)
        if self._checked and not any(isinstance(call.layer, linear_types()) for call in self._calls):
            raise ValueError(
                "no layer of `model` was called as a module, so no rule was applied: give the plain torch.nn.Module, "
                "not a scripted or compiled one"
            )

    # Modules

    def _entering(self, name: str) -> Callable[..., Any]:
        def enter(module: nn.Module, args: Any) -> Any:
            self._path.append(name)
            template = None if self._inside() else self._rule(module)
            if template is None:
                self._open.append(None)
                return None
            if not args:
                raise ValueError(f"LRP needs the input of layer {name!r} as positional argument, not by keyword")
            before = self._made.get(args[0])
            self._use(tensors_in(args))
            if before is not None and _can_merge(before.layer, module, template):
                self._merges.append((before, module))
            if getattr(module, "inplace", False):
                self._overwritten[args[0]] = name
            call = self._called(template, name, _twin(module))
            self._open.append(call)
            return call.hook.pre_forward(call.layer, args)

        return enter

    def _leaving(self, _: nn.Module, args: Any, output: Any) -> Any:
        call = self._open[-1]
        if call is not None:
            output = call.hook.post_forward(call.layer, args, output)
            call.hook.forward(call.layer, args, output)
            if isinstance(output, torch.Tensor):
                self._made[output] = call
        self._open.pop()
        self._path.pop()
        return None if call is None else output

    def _inside(self) -> bool:
        """Whether a module that has a rule is running; its rule covers all that it calls."""
        return any(call is not None for call in self._open)

    def _rule(self, module: nn.Module) -> Any:
        template = self.composite.module_map(self._context, self._place(), module)
        if template is None and self._checked and isinstance(module, batchnorm._BatchNorm):
            from zennit.rules import Pass

            return Pass()  # each output has one input, which gets all its relevance
        return template

    def _place(self) -> str:
        """Dotted name of the module that is running."""
        return self._path[-1] if self._path else ""

    def _called(self, template: Any, name: str, layer: nn.Module) -> RuledCall:
        hook = template.copy()
        backward, precision = hook.backward, self._precision

        def watched(module: nn.Module, grad_input: Any, grad_output: Any) -> Any:
            with precision():  # a GPU's backward pass runs in a thread of its own, without autocast
                handed_on = backward(module, grad_input, grad_output)
            self._totals += [(name, part.detach().sum()) for part in handed_on or () if part is not None]
            return handed_on

        hook.backward = watched
        self._calls.append(RuledCall(name, hook, layer))
        return self._calls[-1]

    def _use(self, tensors: Any) -> None:
        for tensor in tensors:
            if tensor in self._overwritten:
                raise ValueError(
                    f"{self._overwritten[tensor]!r} works in place on a tensor that is used again afterwards; rules "
                    "need the value before: write the model without `inplace=True` there"
                )
            if tensor in self._made:
                self._made[tensor].uses += 1

    # Functions

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch, under the rule of the module that does the same."""
        kwargs = kwargs or {}
        activations = [] if self._inside() else [x for x in tensors_in((args, kwargs)) if x.requires_grad]
        if not activations:
            return func(*args, **kwargs)
        name = name_of(func)
        like, layer, inputs = as_layer(func, args, kwargs, activations)
        template = None if like is None else self._rule(like)
        if template is None:
            output = func(*args, **kwargs)
            if any(x.requires_grad for x in tensors_in((output,))):
                self._use(activations)
                if self._checked and name not in MOVING_FUNCTIONS:
                    self._unsupported.append((f"function {name}", self._place()))
            return output
        self._use(activations)
        if works_in_place(func, kwargs):
            self._overwritten[args[0]] = name
        call = self._called(template, f"{self._place()}.{name}".strip("."), layer)
        inputs = call.hook.pre_forward(call.layer, inputs)
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        output = call.hook.post_forward(call.layer, inputs, call.layer.forward(*inputs))
        call.hook.forward(call.layer, inputs, output)
        return output


def _twin(module: nn.Module) -> nn.Module:
    """Copy that shares weights and children; weights can be replaced in it."""
    twin = module.__new__(type(module))
    twin.__dict__ = {**module.__dict__, "_parameters": dict(module._parameters)}
    return twin


def _can_merge(layer: nn.Module, norm: nn.Module, template: Any) -> bool:
    from zennit.rules import Pass

    linear = isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Conv3d | nn.Linear)
    frozen = isinstance(norm, batchnorm._BatchNorm) and norm.running_mean is not None
    return linear and frozen and isinstance(template, Pass)


def _merge(layer: Any, norm: Any) -> None:
    fuse = fuse_linear_bn_weights if isinstance(layer, nn.Linear) else fuse_conv_bn_weights
    layer.weight, layer.bias = fuse(
        layer.weight, layer.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias
    )
