"""The rules of AttnLRP and CP-LRP, one for each kind of function, as bends of the gradient.

Achtibat et al. 2024, "AttnLRP: Attention-Aware Layer-Wise Relevance Propagation for Transformers" (arXiv:2402.05602);
Ali et al. 2022, "XAI for Transformers: Better Explanations through Conservative Propagation" (arXiv:2202.07304). The
form by gradients is that of the first paper's own code (rachtibat/LRP-eXplains-Transformers, ``lxt/efficient``), whose
denominators are written here so that none can be 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from metfa.calls.functions_as_layers import tensors_in
from metfa.explainers._bending import Bends, Rule
from metfa.explainers._supported_layers import MOVING_FUNCTIONS

__all__ = [
    "ADDITIONS", "ATTENTION", "CONVOLUTIONS", "DIVISIONS", "ELEMENTWISE", "JOINS", "NORMALISATIONS", "SOFTMAX", "Call",
    "factor_rule", "ruled", "zero_at_zero",
]  # fmt: skip

ADDITIONS = {"add", "iadd", "radd", "sub", "isub", "rsub", "subtract"}
JOINS = {"cat", "concat", "concatenate", "stack", "hstack", "vstack", "where", "masked_fill", "pad"}
CONVOLUTIONS = {
    "linear", "addmm", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
}  # fmt: skip
PRODUCTS = CONVOLUTIONS | {
    "mul", "imul", "rmul", "multiply", "matmul", "rmatmul", "mm", "bmm", "mv", "dot", "einsum", "baddbmm", "addcmul",
}  # fmt: skip
DIVISIONS = {"div", "idiv", "truediv", "itruediv", "true_divide", "divide"}
DIVISORS = {"rsqrt", "reciprocal", "rtruediv", "rdiv"}  # nothing but a divisor comes out
# The gradient is right as it is: linear functions, and those with f(cx) = cf(x) for positive c.
PLAIN = MOVING_FUNCTIONS | ADDITIONS | JOINS | {
    "neg", "negative", "mean", "sum", "avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d",
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "interpolate", "upsample", "unfold", "fold",
    "leaky_relu", "prelu", "abs", "minimum", "amin", "min", "repeat", "repeat_interleave", "tile", "gather",
    "take_along_dim", "cumsum", "tril", "triu", "topk", "sort", "half", "bfloat16", "cpu", "cuda", "diagonal",
    "fft_fftn", "fft_fft", "real",
}  # fmt: skip
ELEMENTWISE = {
    "gelu", "silu", "tanh", "mish", "elu", "selu", "celu", "hardswish", "relu6", "hardtanh", "softsign", "tanhshrink",
    "softshrink", "hardshrink", "clamp", "clip", "clamp_min", "clamp_max",
}  # fmt: skip
NORMALISATIONS = {"layer_norm", "rms_norm", "group_norm", "batch_norm"}
BATCH_NORM = ("running_mean", "running_var", "weight")
SOFTMAX = "softmax"
ATTENTION = "scaled_dot_product_attention"


@dataclass
class Call:
    """One call of a function of torch."""

    name: str
    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    bends: Bends
    conservative: bool  # CP-LRP: nothing passes the weights of attention, and no gate
    gates: Any  # outputs of activation functions, of this pass

    def made(self, swap: dict[int, torch.Tensor] | None = None) -> Any:
        """The function's value, with some arguments (by identity) replaced."""
        if not swap:
            return self.func(*self.args, **self.kwargs)
        args, kwargs = _swapped(self.args, swap), _swapped(self.kwargs, swap)
        output = self.func(*args, **kwargs)
        return output if any(map(self.bends.flows, tensors_in((args, kwargs)))) else self.bends.mark_cut(output)

    def with_arguments(self, swap: dict[int, torch.Tensor]) -> Call:
        """The same call with some arguments (by identity) replaced."""
        return replace(self, args=_swapped(self.args, swap), kwargs=_swapped(self.kwargs, swap)) if swap else self

    def at_zero(self, besides: torch.Tensor | None = None) -> Any:
        """The function's value where all that relevance passes is 0: what its constants contribute, or one of them."""
        zeroed = self.flowing() if besides is None else tensors_in((self.args, self.kwargs))
        with torch.no_grad():
            zeros = {id(x): torch.zeros_like(x) for x in zeroed if x is not besides}
            return self.func(*_swapped(self.args, zeros), **_swapped(self.kwargs, zeros))

    def argument(self, place: int, name: str, default: Any = None) -> Any:
        """An argument given by its place or its name."""
        return self.args[place] if place < len(self.args) else self.kwargs.get(name, default)

    def flowing(self) -> list[torch.Tensor]:
        """The arguments that relevance passes; one that is given twice comes twice."""
        return [x for x in tensors_in((self.args, self.kwargs)) if self.bends.flows(x)]


def ruled(call: Call) -> Any:
    """The value of a call under its rule; NotImplemented where there is none."""
    rule = RULES.get(call.name)
    return call.made() if call.name in PLAIN else NotImplemented if rule is None else rule(call)


# Products, and what divides


def _product(call: Call) -> Any:
    """The uniform rule: each of n factors gets a part of 1 / n. A gate is a factor to AttnLRP, a constant to CP-LRP."""
    added = [call.argument(2, "bias")] if call.name in CONVOLUTIONS - {"addmm"} else []
    added += [call.argument(0, "input")] if call.name in ("addmm", "baddbmm", "addcmul") else []
    factors = [x for x in call.flowing() if all(x is not other for other in added)]
    gates = [x for x in factors if x in call.gates] if call.conservative and len(factors) == 2 else []
    if len(gates) == 1:
        return call.made({id(gates[0]): call.bends.cut(gates[0])})
    return call.made({id(x): call.bends.scaled(x, 1 / len(factors)) for x in factors} if len(factors) > 1 else None)


def _division(call: Call) -> Any:
    divisor = call.argument(1, "other")
    flows = isinstance(divisor, torch.Tensor) and call.bends.flows(divisor)
    return call.made({id(divisor): call.bends.cut(divisor)} if flows else None)


def _divisor(call: Call) -> Any:
    return call.bends.cut(call.made())


def _softmax(call: Call) -> Any:
    return call.bends.cut(call.made()) if call.conservative else call.made()


def _attention(call: Call) -> Any:
    """Softmax(QK + mask)V in one kernel: each factor gets what the single products would leave it."""
    query, key, value = (call.argument(place, name) for place, name in enumerate(("query", "key", "value")))
    mask, bends = call.argument(3, "attn_mask"), call.bends
    both = bends.flows(query) and bends.flows(key)
    inner = bends.flows(query) or bends.flows(key) or (isinstance(mask, torch.Tensor) and bends.flows(mask))
    half = 0.5 if inner and bends.flows(value) and not call.conservative else 1.0
    factors = {"query": half / 2 if both else half, "key": half / 2 if both else half, "value": half, "attn_mask": half}
    args, kwargs = list(call.args), dict(call.kwargs)
    for place, (name, factor) in enumerate(factors.items()):
        x = call.argument(place, name)
        if not isinstance(x, torch.Tensor) or not bends.flows(x):
            continue
        bent = bends.cut(x) if call.conservative and name != "value" else bends.scaled(x, factor)
        if place < len(args):
            args[place] = bent
        else:
            kwargs[name] = bent
    output = call.func(*args, **kwargs)
    return output if any(map(bends.flows, tensors_in((args, kwargs)))) else bends.mark_cut(output)


# Normalisations: their spread is a constant, their mean is not


def _layer_norm(call: Call) -> Any:
    x, shape = call.args[0], call.argument(1, "normalized_shape")
    axes = tuple(range(-len(shape), 0))
    eps = call.argument(4, "eps", 1e-5)
    return _normed(call, x, _norm_rule(axes, call.argument(2, "weight"), eps, centred=True))


def _rms_norm(call: Call) -> Any:
    x, shape = call.args[0], call.argument(1, "normalized_shape")
    eps = call.argument(3, "eps")
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    return _normed(call, x, _norm_rule(tuple(range(-len(shape), 0)), call.argument(2, "weight"), eps, centred=False))


def _group_norm(call: Call) -> Any:
    x, groups, weight = call.args[0], call.argument(1, "num_groups"), call.argument(2, "weight")
    of_groups = _norm_rule((-1,), None, call.argument(4, "eps", 1e-5), centred=True)

    def rule(gradient: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if weight is not None:
            gradient = gradient * weight.reshape(-1, *[1] * (x.ndim - 2))
        grouped = (part.reshape(len(x), groups, -1) for part in (gradient, x, y))
        return of_groups(*grouped).reshape(x.shape)

    return _normed(call, x, rule)


def _batch_norm(call: Call) -> Any:
    """A linear step by running statistics; without them the rows of a batch depend on each other.

    The gradient is written out, because that of torch 2.14 on a CPU is wrong where it comes in another memory layout
    than the values, as behind a reshaping to tokens.
    """
    mean, spread, weight = (call.argument(place, name) for place, name in enumerate(BATCH_NORM, start=1))
    if mean is None or call.argument(5, "training", False):
        return NotImplemented
    scale = torch.rsqrt(spread + call.argument(7, "eps", 1e-5))
    scale = scale if weight is None else scale * weight
    return _normed(call, call.args[0], lambda gradient, x, _: gradient * scale.reshape(-1, *[1] * (x.ndim - 2)))


def _normalize(call: Call) -> Any:
    x, p, dim = call.args[0], call.argument(1, "p", 2.0), call.argument(2, "dim", 1)
    eps = call.argument(3, "eps", 1e-12)
    return _normed(call, x, lambda gradient, x, _: gradient / x.norm(p, dim, keepdim=True).clamp_min(eps))


def _normed(call: Call, x: torch.Tensor, rule: Rule) -> Any:
    return call.bends.ruled(rule, x, call.made())


def _norm_rule(axes: tuple[int, ...], weight: Any, eps: float, *, centred: bool) -> Rule:
    def rule(gradient: torch.Tensor, x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        x = x.to(gradient.dtype)
        shares = gradient if weight is None else gradient * weight
        if centred:
            spread = x.var(axes, unbiased=False, keepdim=True)
            return (shares - shares.mean(axes, keepdim=True)) * torch.rsqrt(spread + eps)
        return shares * torch.rsqrt(x.square().mean(axes, keepdim=True) + eps)

    return rule


# Activation functions: the factor f(x) / x is a constant


def _elementwise(call: Call) -> Any:
    x = call.args[0]
    others = [other for other in call.flowing() if other is not x]
    slope = None if others else zero_at_zero(lambda zero: call.func(zero, *call.args[1:], **call.kwargs), x)
    if slope is None:
        return NotImplemented
    y = call.bends.ruled(factor_rule(slope), x, call.made())
    call.gates[y] = True
    return y


def zero_at_zero(function: Callable[[torch.Tensor], torch.Tensor], like: torch.Tensor) -> float | None:
    """The slope at 0 of a function that is 0 there; None for others, which have no factor f(x) / x at 0."""
    with torch.enable_grad():
        zero = torch.zeros((), dtype=like.dtype, device=like.device, requires_grad=True)
        try:
            value = function(zero.clone())
        except (RuntimeError, IndexError):  # it wants more axes, so it is no function of single numbers
            return None
        if not isinstance(value, torch.Tensor) or value.ndim or float(value.detach()) != 0 or not value.requires_grad:
            return None
        (slope,) = torch.autograd.grad(value, zero)
    return float(slope)


def factor_rule(slope: float) -> Rule:
    """Relevance passes an activation function unchanged: the gradient's factor is f(x) / x, at 0 its limit."""

    def rule(gradient: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        small = x.abs() < torch.finfo(x.dtype).tiny ** 0.5
        return gradient * torch.where(small, slope, y / torch.where(small, 1, x))

    return rule


def _swapped(values: Any, swap: dict[int, torch.Tensor]) -> Any:
    if isinstance(values, torch.Tensor):
        return swap.get(id(values), values)
    if isinstance(values, dict):
        return {key: _swapped(value, swap) for key, value in values.items()}
    if isinstance(values, tuple | list):
        return type(values)([_swapped(value, swap) for value in values]) if type(values) in (tuple, list) else values
    return values


RULES: dict[str, Callable[[Call], Any]] = {
    **dict.fromkeys(PRODUCTS, _product),
    **dict.fromkeys(DIVISIONS, _division),
    **dict.fromkeys(DIVISORS, _divisor),
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    "softmax": _softmax, "scaled_dot_product_attention": _attention, "layer_norm": _layer_norm,
    "batch_norm": _batch_norm, "rms_norm": _rms_norm, "group_norm": _group_norm, "normalize": _normalize,
}  # fmt: skip
