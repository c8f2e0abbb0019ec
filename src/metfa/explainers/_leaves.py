"""What a model's own constants contribute to a score.

A rule hands on all the relevance of a function's value: to arguments that depend on the inputs, and to its constants
b, which keep b * g. They are the leaves, beside the inputs, at which relevance ends: biases, tokens that are joined,
tables that are added. A softmax keeps the relevance of its weights less that of its scores. Together with the inputs'
relevance, they are the score.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

from metfa.calls.functions_as_layers import tensors_in
from metfa.explainers._attention_rules import CONVOLUTIONS, DIVISIONS, ELEMENTWISE, JOINS, NORMALISATIONS, SOFTMAX, Call

__all__ = ["Leaves"]

WITHOUT = ELEMENTWISE | DIVISIONS  # no constant is added there
SIDE_BY_SIDE = {"cat", "concat", "concatenate", "stack", "hstack", "vstack"}
WINNERS = {"max", "maximum", "min", "minimum"}


class Leaf(NamedTuple):
    """A constant of one kind; its contribution is that of `value` times the gradient of `output`."""

    kind: str
    name: str
    value: torch.Tensor
    output: torch.Tensor


class Leaves:
    """The constants that one forward pass meets, and then the gradients of what they were put into."""

    def __init__(self, model: nn.Module) -> None:
        self.gradients: list[torch.Tensor] = []
        self._leaves: list[Leaf] = []
        self._names: Any = WeakIdKeyDictionary()  # of the parameters that a constant was made of
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            if tensor.is_floating_point():  # an index of places names nothing
                self._names[tensor] = {name}

    def tensors(self) -> list[torch.Tensor]:
        """The tensors whose gradients are needed."""
        return [leaf.output for leaf in self._leaves]

    def derive(self, output: Any, given: list[torch.Tensor]) -> None:
        """A constant was made of others."""
        names = set().union(*(self._names.get(x, ()) for x in given))
        for x in tensors_in((output,)):
            self._names[x] = names | set(self._names.get(x, ()))

    def record(self, call: Call, flowing: list[torch.Tensor], output: Any) -> Any:
        """Note the constants of a call; the model goes on with a copy of its output, which it may overwrite."""
        if not isinstance(output, torch.Tensor) or not call.bends.flows(output) or call.name in WITHOUT:
            return output
        if call.name == SOFTMAX:
            scores = flowing[0]
            self._leaves.append(Leaf("softmax", "", output.detach(), output))
            self._leaves.append(Leaf("softmax", "", -scores.detach(), scores))
            return output.clone()
        constants = [x for x in tensors_in((call.args, call.kwargs)) if not call.bends.flows(x)]
        if call.name in WINNERS:
            apart = [(constants, torch.where(output == flowing[0], 0, output).detach())] if constants else []
        elif call.name in SIDE_BY_SIDE:
            apart = [([x], call.at_zero(besides=x)) for x in constants]
        else:
            apart = [(constants, call.at_zero())]
        apart = [(made_of, offset) for made_of, offset in apart if offset.any()]
        for made_of, offset in apart:
            names = set().union(*(self._names.get(x, ()) for x in made_of))
            self._leaves.append(Leaf(_kind(call.name, made_of), ", ".join(sorted(names)), offset, output))
        return output.clone() if apart else output

    def contributions(self) -> dict[tuple[str, str], float]:
        """The sum of value times gradient of each kind and name."""
        found: dict[tuple[str, str], float] = defaultdict(float)
        for leaf, gradient in zip(self._leaves, self.gradients, strict=True):
            part = torch.where(gradient == 0, 0, leaf.value * gradient)  # a mask may be minus infinity
            found[leaf.kind, leaf.name] += float(part.double().sum())
        return dict(found)


def _kind(name: str, constants: list[torch.Tensor]) -> str:
    if name in CONVOLUTIONS | NORMALISATIONS:
        return "biases"
    if name in JOINS:
        return "tokens"
    return "positions" if any(sum(size > 1 for size in x.shape) > 1 for x in constants) else "biases"
