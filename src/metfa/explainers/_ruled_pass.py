"""One forward pass of a transformer under the rules of AttnLRP or CP-LRP, and the relevance of its inputs.

The pass watches the functions of torch that the model calls, whatever its classes are. No class is patched, and no
attention is switched to another kernel: each call has its own value, to the last bit, and a bent gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from metfa.calls.functions_as_layers import name_of, tensors_in, works_in_place
from metfa.calls.module_hooks import hooked
from metfa.explainers._attention_rules import (
    ADDITIONS,
    ATTENTION,
    JOINS,
    SOFTMAX,
    Call,
    factor_rule,
    ruled,
    zero_at_zero,
)
from metfa.explainers._bending import Bends
from metfa.explainers._leaves import Leaves
from metfa.explainers._supported_layers import MOVING_FUNCTIONS, refuse_functions
from metfa.explainers._unfolded_attention import unfolded_attention, unfolded_multi_head

__all__ = ["RuledPass"]

MULTI_HEAD = "multi_head_attention_forward"
SCALINGS = ADDITIONS | {
    "mul",
    "imul",
    "rmul",
    "multiply",
    "div",
    "idiv",
    "truediv",
    "itruediv",
    "true_divide",
    "divide",
}
# Modules of these files are one activation function each, some of them written as products (GPT-2's GELU).
CHANGING = {"relu", "max", "amax", "maximum"} | {name for name in MOVING_FUNCTIONS if "max_pool" in name}
MOVES = MOVING_FUNCTIONS - JOINS - CHANGING
ACTIVATIONS = ("transformers.activations", "timm.layers.activations", "timm.layers.activations_me")


class RuledPass(TorchFunctionMode):
    """One forward pass under the rules; with `leaves` it also finds what the model's own constants contribute."""

    def __init__(self, model: nn.Module, *, conservative: bool, leaves: Leaves | None = None) -> None:
        super().__init__()
        self.model, self.conservative, self.leaves = model, conservative, leaves
        self._bends = Bends()
        self._gates: Any = WeakIdKeyDictionary()
        self._raw: Any = WeakIdKeyDictionary()  # scaled or moved pixels -> the moved pixels themselves
        self._entries: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._entered: Any = WeakIdKeyDictionary()
        self._learned: Any = WeakIdKeyDictionary()  # constants made of parameters
        self._softmaxes: Any = WeakIdKeyDictionary()
        self._unruled: dict[tuple[str, str], None] = {}
        self._hooks: list[Any] = []
        self._path: list[str] = []
        self._activation: nn.Module | None = None
        self._slope: float | None = None

    @contextmanager
    def watching(self, inputs: torch.Tensor) -> Iterator[None]:
        """Forward passes of `inputs` inside are watched."""
        self._raw[inputs] = inputs
        with hooked(self.model, self._entering, lambda _: self._leaving), self:
            yield

    def relevance(self, scores: torch.Tensor, inputs: torch.Tensor, *, create_graph: bool) -> torch.Tensor:
        """Relevance of the inputs, from the scores of the rows, (batch,). With `create_graph` it is differentiable."""
        entries = [entry for entry, _ in self._entries]
        leaves = [] if self.leaves is None else self.leaves.tensors()
        try:
            with self._bends.act():
                total = scores.sum()
                found = torch.autograd.grad(
                    total, [*entries, *leaves], create_graph=create_graph, allow_unused=True, materialize_grads=True
                )
        finally:
            self.close()
        if self._unruled:
            refuse_functions(list(self._unruled))
        if self.leaves is not None:
            self.leaves.gradients = list(found[len(entries) :])
        values = entries if create_graph else [entry.detach() for entry in entries]
        parts = [value * gradient for value, gradient in zip(values, found, strict=False)]
        moved = [raw for _, raw in self._entries]
        if all(raw is inputs for raw in moved):
            relevance = sum(parts, torch.zeros_like(inputs))
        else:
            (relevance,) = torch.autograd.grad(moved, inputs, parts, create_graph=create_graph)
        if not relevance.detach().isfinite().all():
            raise ValueError(
                "relevance is not finite: the model's activations are too large for their precision, or a query of "
                "attention sees no key (a mask hides all of them)"
            )
        return relevance

    def close(self) -> None:
        """Remove what watches the backward pass."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    # Modules

    def _entering(self, name: str) -> Callable[..., Any]:
        def enter(module: nn.Module, args: Any) -> None:
            self._path.append(name)
            known = type(module).__module__ in ACTIVATIONS and not getattr(module, "inplace", False)
            if self._activation is None and known and len(args) == 1:
                self._activation = module  # from here on, its functions have no rules of their own
                self._slope = zero_at_zero(module.forward, args[0])
                self._activation = None if self._slope is None else module

        return enter

    def _leaving(self, module: nn.Module, args: Any, output: Any) -> Any:
        self._path.pop()
        if not self._path and isinstance(output, torch.Tensor) and output in self._softmaxes:
            raise ValueError("LRP starts at logits: give the model without its softmax")
        scales_only = not self._path and isinstance(output, torch.Tensor) and output in self._raw
        if self._activation is not module and not scales_only:
            return None
        self._activation = module  # what follows is not watched
        y = None
        if scales_only:
            y = self._entry(output)
        elif self._bends.flows(args[0]):
            assert self._slope is not None
            y = self._bends.ruled(factor_rule(self._slope), self._entry(args[0]), output)
            self._gates[y] = True
        self._activation = None
        return y

    # Functions

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch, under its rule."""
        kwargs = kwargs or {}
        if self._activation is not None:
            return func(*args, **kwargs)
        given = list(tensors_in((args, kwargs)))
        if not any(map(self._bends.flows, given)):
            output = func(*args, **kwargs)
            if any(x.requires_grad for x in given):
                self._bends.mark_cut(output)
            elif any(isinstance(x, nn.Parameter) or x in self._learned for x in given):
                self._learned.update((x, True) for x in tensors_in((output,)))
            if self.leaves is not None:
                self.leaves.derive(output, given)
            return output
        name = name_of(func)
        if name == MULTI_HEAD or (name == ATTENTION and self.leaves is not None):
            with self:
                if name == MULTI_HEAD:
                    return unfolded_multi_head(*args, **kwargs)
                return unfolded_attention(*args, **kwargs)[0]
        if works_in_place(func, kwargs) or name == "setitem":
            return self._in_place(name, func, args, kwargs)
        return self._out_of_place(name, func, args, kwargs)

    def _out_of_place(self, name: str, func: Any, args: Any, kwargs: Any) -> Any:
        call = Call(name, func, args, kwargs, self._bends, self.conservative, self._gates)
        flowing = call.flowing()
        if len(flowing) == 1 and flowing[0] in self._raw:
            scaled = self._scaled_input(call, flowing[0])
            if scaled is not NotImplemented:
                return scaled
        call = call.with_arguments({id(x): self._entry(x) for x in flowing if x in self._raw})
        flowing = call.flowing()
        output = ruled(call)
        if output is NotImplemented:
            output = call.made()
            self._refuse_where_reached(name, output)
        elif name == SOFTMAX:
            self._softmaxes[output] = True
        elif name in MOVES and len(flowing) == 1 and flowing[0] in self._gates:
            self._gates.update((x, True) for x in tensors_in((output,)))
        if self.leaves is not None and name not in MOVING_FUNCTIONS - JOINS:
            output = self.leaves.record(call, flowing, output)
        return output

    def _in_place(self, name: str, func: Any, args: Any, kwargs: Any) -> Any:
        """The rule on copies, so that no value is overwritten that it needs; the result is put in place."""
        target = args[0]
        if "dropout" in name and not kwargs.get("training", args[2:3] == (True,)):
            return target  # in evaluation mode it does nothing, also to the values that a softmax has saved
        if target in self._entered:
            raise ValueError(
                f"{name!r} works in place on a tensor that was used before; relevance needs the value before: write "
                "the model without working in place there"
            )
        if name == "setitem":
            self._unruled[name, self._place()] = None
            return func(*args, **kwargs)
        before = self._bends.same(target.clone(), target)
        for of_tensors in (self._gates, self._raw):
            if target in of_tensors:
                of_tensors[before] = of_tensors.pop(target)
        kwargs = {key: value for key, value in kwargs.items() if key != "inplace"}
        output = self._out_of_place(name, _on_a_copy(func), (before, *args[1:]), kwargs)
        self._bends.same(target.copy_(output), output)
        for of_tensors in (self._gates, self._raw):
            if output in of_tensors:
                of_tensors[target] = of_tensors[output]
        return target

    # The inputs

    def _scaled_input(self, call: Call, x: torch.Tensor) -> Any:
        """A step that moves the inputs, or scales or shifts each of their channels: it passes relevance on unchanged.

        So it does not matter whether a model normalises its inputs itself. NotImplemented for every other step.
        """
        raw, name = self._raw[x], call.name
        others = [other for other in tensors_in((call.args, call.kwargs)) if other is not x]
        if name in SCALINGS and not any(map(self._is_table, others)):
            output = call.made()
            if output.shape != x.shape:
                return NotImplemented
            self._raw[output] = raw
            return output
        if name not in MOVES or others:
            return NotImplemented
        output = call.made()
        sources = call.made({id(x): raw})  # apart from the output, which may be overwritten
        for one, source in zip(tensors_in((output,)), tensors_in((sources,)), strict=True):
            self._raw[one] = source
        return output

    def _is_table(self, other: torch.Tensor) -> bool:
        """Whether a constant holds more than one number a channel, as positions do, or was learned."""
        learned = isinstance(other, nn.Parameter) or other in self._learned
        return learned or sum(size > 1 for size in other.shape) > 1

    def _entry(self, x: torch.Tensor) -> torch.Tensor:
        """A tensor at which relevance of the inputs arrives by one use, if it is one; else the tensor itself."""
        if x not in self._raw:
            return x
        entry = x.view_as(x)
        self._entered[x] = True
        self._entries.append((entry, self._raw[x]))
        return entry

    # What has no rule

    def _refuse_where_reached(self, name: str, output: Any) -> None:
        """Note a function without a rule, as soon as relevance reaches it; behind a cut it does no harm."""
        place = (name, self._place())

        def note(gradient: Any) -> None:
            if gradient is not None:
                self._unruled[place] = None

        for x in tensors_in((output,)):
            if x.requires_grad:
                self._hooks.append(x.register_hook(note))

    def _place(self) -> str:
        return self._path[-1] if self._path else ""


def _on_a_copy(func: Any) -> Any:
    """A function that works in place, on a copy of its first argument."""
    return lambda x, *args, **kwargs: func(x.clone(), *args, **kwargs)
