"""Zennit's rules on everything that a model calls: its modules, and the plain functions between them.

Zennit hooks modules. What a network computes between them (``x + body(x)``, a functional ReLU, a normalisation of the
pixels) it leaves to the gradient, which doubles the relevance at every addition and rescales it at every division; a
module that is called twice gets the relevance of its last call; batch normalisations are merged by changing the model's
weights, in the order in which modules are registered.

Here one forward pass is watched, call by call. Each call of a module for which the composite has a rule gets a zennit
hook of its own, on a copy of the module that shares its weights. Functions get the rule of the module that does the
same: an addition of two activations that of `zennit.layer.Sum`, so that relevance is split in proportion. A batch
normalisation that alone takes a layer's output is merged into that layer's copy. So the scores are the model's own to
the last bit, and its weights are never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.modules import batchnorm, dropout, padding
from torch.nn.utils.fusion import fuse_conv_bn_weights, fuse_linear_bn_weights
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

__all__ = ["RelevancePass", "check_layers", "linear_types"]

CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)
# Relevance follows the gradient through what only selects, moves or copies values.
MOVING = (
    nn.Identity, nn.ReLU, nn.Flatten, nn.Unflatten, nn.PixelShuffle, nn.PixelUnshuffle, nn.ChannelShuffle,
    nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d,
    dropout._DropoutNd, padding._ConstantPadNd, padding._ReflectionPadNd, padding._ReplicationPadNd,
)  # fmt: skip
MOVING_FUNCTIONS = {
    "relu", "reshape", "view", "view_as", "reshape_as", "flatten", "unflatten", "ravel", "permute", "transpose",
    "swapaxes", "swapdims", "movedim", "moveaxis", "t", "squeeze", "unsqueeze", "cat", "concat", "concatenate", "stack", "hstack",
    "vstack", "chunk", "split", "split_with_sizes", "tensor_split", "unbind", "getitem", "narrow", "select",
    "index_select", "pad", "contiguous", "clone", "to", "type", "type_as", "float", "double", "get", "expand",
    "expand_as", "broadcast_to", "broadcast_tensors", "flip", "roll", "pixel_shuffle", "pixel_unshuffle",
    "channel_shuffle", "max", "amax", "maximum", "max_pool1d", "max_pool2d", "max_pool3d", "max_pool1d_with_indices",
    "max_pool2d_with_indices", "max_pool3d_with_indices", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout",
}  # fmt: skip
SUMS = {"add", "iadd", "radd"}
AFFINE = SUMS | {
    "sub", "isub", "rsub", "subtract", "mul", "imul", "rmul", "multiply", "div", "idiv", "truediv", "itruediv",
    "true_divide", "divide", "neg", "negative", "batch_norm",
}  # fmt: skip
PRODUCTS = {"matmul", "mm", "linear"}
_AVERAGE = nn.AdaptiveAvgPool2d(1)
LIKE_MODULE: dict[str, nn.Module] = {
    "relu": nn.ReLU(), "relu6": nn.ReLU6(), "leaky_relu": nn.LeakyReLU(), "elu": nn.ELU(), "celu": nn.CELU(),
    "selu": nn.SELU(), "softplus": nn.Softplus(), "hardtanh": nn.Hardtanh(), "clamp": nn.Hardtanh(),
    "clip": nn.Hardtanh(), "clamp_min": nn.Hardtanh(), "tanh": nn.Tanh(), "sigmoid": nn.Sigmoid(), "gelu": nn.GELU(),
    "silu": nn.SiLU(), "hardswish": nn.Hardswish(), "hardsigmoid": nn.Hardsigmoid(),
    "avg_pool1d": _AVERAGE, "avg_pool2d": _AVERAGE, "avg_pool3d": _AVERAGE, "adaptive_avg_pool1d": _AVERAGE,
    "adaptive_avg_pool2d": _AVERAGE, "adaptive_avg_pool3d": _AVERAGE, "mean": _AVERAGE, "sum": _AVERAGE,
}  # fmt: skip
AFFINE_MODULE = nn.BatchNorm2d(1)


@dataclass
class RuledCall:
    """One call of a layer that has a rule."""

    name: str
    hook: Any
    layer: nn.Module
    uses: int = 0  # of its output


class RelevancePass(TorchFunctionMode):
    """One forward pass of a model under a composite's rules, and the relevance of its inputs."""

    def __init__(self, model: nn.Module, composite: Any) -> None:
        super().__init__()
        self.model = model
        self.composite = composite
        self._checked = distributes(composite)
        self._unsupported: list[tuple[str, str]] = []
        self._context: dict[Any, Any] = {}
        self._templates: dict[int, Any] = {}
        self._path: list[str] = []
        self._open: list[RuledCall | None] = []
        self._calls: list[RuledCall] = []
        self._merges: list[tuple[RuledCall, nn.Module]] = []
        self._made: Any = WeakIdKeyDictionary()
        self._overwritten: Any = WeakIdKeyDictionary()
        self._totals: list[tuple[str, torch.Tensor]] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Forward passes inside are watched."""
        handles = []
        try:
            for name, module in self.model.named_modules():
                handles.append(module.register_forward_pre_hook(self._entering(name)))
                handles.append(module.register_forward_hook(self._leaving))
            with self:
                yield
        finally:
            for handle in handles:
                handle.remove()

    def relevance(self, scores: torch.Tensor, inputs: torch.Tensor, *, create_graph: bool) -> torch.Tensor:
        """Relevance of the inputs, which starts as the scores of the rows, (batch,), and is handed back layer by layer.

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
        """Take the hooks off the graph, whose own derivative they would bend."""
        for call in self._calls:
            call.hook.remove()
            call.hook.__dict__.pop("backward", None)
        self._calls.clear()

    def _check(self) -> None:
        _refuse(self._unsupported)
        if self._checked and not any(isinstance(call.layer, linear_types()) for call in self._calls):
            raise ValueError(
                "no layer of `model` was called as a module, so no rule was applied: give the plain torch.nn.Module, "
                "not a scripted or compiled one"
            )

    # Modules

    def _entering(self, name: str) -> Callable[..., Any]:
        def enter(module: nn.Module, args: Any) -> Any:
            self._path.append(name)
            template = None if self._inside() else self._template(module)
            if template is None:
                self._open.append(None)
                return None
            if not args:
                raise ValueError(f"LRP needs the input of layer {name!r} as positional argument, not by keyword")
            before = self._made.get(args[0])
            self._use(_tensors(args))
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
        """Whether a module that has a rule is running: what it calls is its own business."""
        return any(call is not None for call in self._open)

    def _template(self, module: nn.Module) -> Any:
        if (
            id(module) not in self._templates
        ):  # the first layer of all is the first called, and stays it if called again
            self._templates[id(module)] = self._rule(module)
        return self._templates[id(module)]

    def _rule(self, module: nn.Module) -> Any:
        return self.composite.module_map(self._context, self._place(), module)

    def _place(self) -> str:
        """Dotted name of the module that is running."""
        return self._path[-1] if self._path else ""

    def _called(self, template: Any, name: str, layer: nn.Module) -> RuledCall:
        hook = template.copy()
        backward = hook.backward

        def watched(module: nn.Module, grad_input: Any, grad_output: Any) -> Any:
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
        activations = [] if self._inside() else [x for x in _tensors((args, kwargs)) if x.requires_grad]
        if not activations:
            return func(*args, **kwargs)
        written = getattr(func, "__name__", "")
        name = written.strip("_")
        like, layer, inputs = self._as_layer(name, func, args, kwargs, activations)
        template = None if like is None else self._rule(like)
        if template is None:
            output = func(*args, **kwargs)
            if any(x.requires_grad for x in _tensors((output,))):
                self._use(activations)
                if self._checked and name not in MOVING_FUNCTIONS:
                    self._unsupported.append((f"function {name}", self._place()))
            return output
        self._use(activations)
        if (
            written.startswith("__i")
            or (written.endswith("_") and not written.startswith("_"))
            or kwargs.get("inplace")
        ):
            self._overwritten[args[0]] = name
        call = self._called(template, f"{self._place()}.{name}".strip("."), layer)
        inputs = call.hook.pre_forward(call.layer, inputs)
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        output = call.hook.post_forward(call.layer, inputs, call.layer.forward(*inputs))
        call.hook.forward(call.layer, inputs, output)
        return output

    def _as_layer(self, name: str, func: Any, args: Any, kwargs: Any, activations: list[torch.Tensor]) -> Any:
        """The module whose rule a function takes, the one that does its work, its inputs; None where there is none."""
        from zennit.layer import Sum

        first = args[0] if args else None
        if name in SUMS and len(activations) == 2 and not kwargs:
            return Sum(), Sum(), (torch.stack(torch.broadcast_tensors(*args), dim=-1),)
        if len(activations) != 1:
            return None, None, ()
        (x,) = activations
        if name in PRODUCTS and x is first and _is_matrix(args[1]):
            product = _product(name, *args, **kwargs)
            return product, product, (x,)
        if name in AFFINE and _keeps_shape(x, args) and (x is first or "div" not in name):
            return AFFINE_MODULE, Function(func, args, kwargs, x), (x,)
        if name in LIKE_MODULE and x is first:
            return LIKE_MODULE[name], Function(func, args, kwargs, x), (x,)
        return None, None, ()


class Function(nn.Module):
    """A function of torch as a module of one of its arguments."""

    def __init__(self, function: Any, args: Any, kwargs: Any, free: torch.Tensor) -> None:
        super().__init__()
        self.function, self.kwargs = function, kwargs
        self.args = [None if arg is free else arg for arg in args]
        self.place = next(place for place, arg in enumerate(args) if arg is free)

    def forward(self, x: torch.Tensor) -> Any:
        """Value of the function at `x`."""
        return self.function(*self.args[: self.place], x, *self.args[self.place + 1 :], **self.kwargs)


def distributes(composite: Any) -> bool:
    """Whether a composite hands relevance on by rules for layers; some only bend the gradient at ReLUs."""
    return composite.module_map({}, "", nn.Linear(1, 1, device="meta")) is not None


def check_layers(model: nn.Module, composite: Any) -> None:
    """Raise where relevance finds no way through layers, naming each."""
    if not distributes(composite):
        return
    context: dict[Any, Any] = {}
    found = []
    for name, module in model.named_modules():
        kind = type(module).__name__
        ruled = composite.module_map(context, name, module) is not None
        if isinstance(module, torch.jit.ScriptModule):
            found.append(("scripted module", name))
        elif isinstance(module, linear_types()) and "weight" not in module._parameters:
            found.append((f"{kind} with a computed weight (remove the parametrisation)", name))
        elif not ruled and _is_of_torch(module) and not isinstance(module, (*CONTAINERS, *MOVING)):
            found.append((kind, name))
    _refuse(found)


def _refuse(found: list[tuple[str, str]]) -> None:
    """Raise if there is any (kind, dotted name of the place) that has no rule."""
    if not found:
        return
    places: dict[str, list[str]] = {}
    for kind, name in dict.fromkeys(found):
        places.setdefault(kind, []).append(repr(name) if name else "the model itself")
    shown = "; ".join(f"{kind} in {_shortened(names)}" for kind, names in places.items())
    hint = " (LRP starts at logits: give the model without its softmax)" if "softmax" in shown.lower() else ""
    raise ValueError(
        f"`model` has parts for which the composite has no rule: {shown}{hint}. Convolutions, linear layers, batch "
        "normalisation, monotone activations such as ReLU, pooling, dropout, padding, reshaping and additions work; "
        "for others pass a zennit composite that has a rule for them"
    )


def _shortened(names: list[str], shown: int = 8) -> str:
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


def linear_types() -> Any:
    """Zennit's type of convolutions and linear layers."""
    from zennit.types import Linear

    return Linear


def _is_of_torch(module: nn.Module) -> bool:
    """Whether a class of torch itself does the work; other modules are seen through."""
    return any(kind.__module__.startswith("torch.nn.") and kind is not nn.Module for kind in type(module).__mro__)


def _twin(module: nn.Module) -> nn.Module:
    """Copy that shares weights and children, in which weights can be replaced."""
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


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    for value in values.values() if isinstance(values, dict) else values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, tuple | list | dict):
            yield from _tensors(value)


def _is_matrix(weight: Any) -> bool:
    return isinstance(weight, torch.Tensor) and weight.ndim == 2


def _product(name: str, _: Any, weight: torch.Tensor, bias: torch.Tensor | None = None) -> nn.Linear:
    layer = nn.Linear(1, 1, device="meta")  # draws no weights
    layer.weight = nn.Parameter((weight if name == "linear" else weight.T).detach())
    layer.register_parameter("bias", None if bias is None else nn.Parameter(bias.detach()))
    return layer


def _keeps_shape(x: torch.Tensor, args: Any) -> bool:
    shapes = [arg.shape for arg in args[:2] if isinstance(arg, torch.Tensor)]
    return torch.broadcast_shapes(*shapes) == x.shape
