"""One forward pass of a model in which the weights of every attention are seen.

The pass is a mode of torch's functions, so nothing of the model is patched or switched: the attention implementation,
flags for fused kernels, hooks and modes stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from metfa.calls.attention import attention, multi_head_attention
from metfa.calls.functions_as_layers import name_of
from metfa.calls.module_hooks import hooked

__all__ = ["AttentionCall", "AttentionPass", "first_of"]

# Behind a softmax, these give the same weights.
SAME_WEIGHTS = {
    "dropout", "to", "type", "type_as", "float", "double", "half", "bfloat16", "contiguous", "clone", "nan_to_num",
}  # fmt: skip
PRODUCTS = {"matmul", "bmm"}


@dataclass(frozen=True)
class AttentionCall:
    """One attention: its weights (batch, heads, queries, keys), in the graph, and the module that computed it."""

    weights: torch.Tensor
    place: str  # dotted name; empty for the model itself, or where the model is no module

    def __str__(self) -> str:
        """Name and shape, for messages."""
        return f"{self.place or 'the model'!r} of shape {tuple(self.weights.shape)}"


class AttentionPass(TorchFunctionMode):
    """The attention of a forward pass, in the order of execution, and the outputs of modules that are sequences.

    Seen are `torch.nn.functional.scaled_dot_product_attention`, `torch.nn.MultiheadAttention`, and a softmax over the
    last axis whose output is multiplied by values (``matmul``, ``bmm``, ``einsum``), which is how eager implementations
    are written. Kernels of other packages are not seen.

    Parameters
    ----------
    model : torch.nn.Module or callable
        The model that is asked inside.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.calls: list[AttentionCall] = []
        self.outputs: dict[str, list[torch.Tensor]] = {}  # (batch, tokens, features), of each call of a module
        self._path: list[str] = []
        self._softmaxes: Any = WeakIdKeyDictionary()  # of weights: which softmax they come from
        self._unused: dict[int, AttentionCall] = {}
        self._n_softmaxes = 0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Forward passes inside are watched; hooks are removed afterwards."""
        with hooked(self.model, self._entering, self._leaving), self:
            yield

    def unread(self) -> AttentionCall | None:
        """A square softmax that is multiplied by nothing that was recognised, so that its use is unknown."""
        return next(iter(self._unused.values()), None)

    def _entering(self, name: str) -> Callable[..., None]:
        def enter(*_: Any) -> None:
            self._path.append(name)

        return enter

    def _leaving(self, name: str) -> Callable[..., None]:
        def leave(_: nn.Module, __: Any, output: Any) -> None:
            self._path.pop()
            sequence = first_of(output)
            if isinstance(sequence, torch.Tensor) and sequence.ndim == 3:
                self.outputs.setdefault(name, []).append(sequence)

        return leave

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch; attention is computed with its weights."""
        kwargs = kwargs or {}
        name = name_of(func)
        if name in ("scaled_dot_product_attention", "multi_head_attention_forward"):
            compute = attention if name == "scaled_dot_product_attention" else multi_head_attention
            output, weights = compute(*args, **kwargs)
            self._record(weights)
            return output
        output = func(*args, **kwargs)
        given = args[0] if args else kwargs.get("input")
        if name == "softmax":
            self._note_softmax(output, _argument(args, kwargs, 1, "dim"))
        elif name in SAME_WEIGHTS and isinstance(given, torch.Tensor) and given in self._softmaxes:
            if isinstance(output, torch.Tensor) and output is not given:
                self._softmaxes[output] = self._softmaxes[given]
        elif name in PRODUCTS and isinstance(given, torch.Tensor) and given in self._softmaxes:
            self._record(given)
        elif name == "einsum":
            self._note_einsum(*args)
        return output

    def _record(self, weights: torch.Tensor) -> None:
        self._unused.pop(self._softmaxes.get(weights, 0), None)
        self.calls.append(AttentionCall(weights, self._place()))

    def _place(self) -> str:
        return self._path[-1] if self._path else ""

    def _note_softmax(self, output: torch.Tensor, axis: Any) -> None:
        if output.ndim < 3 or axis not in (-1, output.ndim - 1):
            return
        self._n_softmaxes += 1
        self._softmaxes[output] = self._n_softmaxes
        if output.shape[-1] == output.shape[-2] > 1:
            self._unused[self._n_softmaxes] = AttentionCall(output, self._place())

    def _note_einsum(self, equation: Any, *operands: Any) -> None:
        """A sum over the last index of a softmax is an attention."""
        listed = operands[0] if len(operands) == 1 and isinstance(operands[0], tuple | list) else operands
        if not isinstance(equation, str) or "->" not in equation:
            return
        indices, summed = equation.replace(" ", "").split("->")
        for one, names in zip(listed, indices.split(","), strict=False):
            if isinstance(one, torch.Tensor) and one in self._softmaxes and names[-1] not in summed:
                self._record(one)


def first_of(output: Any) -> Any:
    """What a module gives, or the first of several things that it gives."""
    return output[0] if isinstance(output, tuple | list) and output else output


def _argument(args: Any, kwargs: Any, place: int, name: str) -> Any:
    return args[place] if len(args) > place else kwargs.get(name)
