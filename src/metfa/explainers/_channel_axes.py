"""Where the channels of a layer's output lie: (batch, channels, height, width), channels last, or tokens.

The same for series and volumes: `n_axes` is the number of axes beside batch and channels, 1 to 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

from metfa.calls.functions_as_layers import name_of

__all__ = ["MOVES", "NORMS", "STAYS", "ChannelAxes", "channels_first", "clearly_other_aspect", "on_axis_1"]

# Functions that take and give channels on axis 1; an "N" is the number of the other axes.
AXIS_1 = {
    "convNd", "conv_transposeNd", "batch_norm", "group_norm", "instance_norm", "local_response_norm",
    "max_poolNd", "max_poolNd_with_indices", "avg_poolNd", "lp_poolNd", "adaptive_avg_poolNd", "adaptive_max_poolNd",
    "interpolate", "grid_sample", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "deform_convNd",
}  # fmt: skip
NORMS = {"layer_norm", "rms_norm"}
PRODUCTS = {"linear", "matmul"}  # along the last axis, if the other factor is a matrix
MOVES = {"permute", "transpose", "swapaxes", "swapdims", "movedim", "moveaxis"}
# Functions whose output has its axes where the input has them.
STAYS = {
    "relu", "relu6", "prelu", "leaky_relu", "rrelu", "elu", "celu", "selu", "gelu", "silu", "mish", "hardswish",
    "hardsigmoid", "hardtanh", "sigmoid", "logsigmoid", "tanh", "softplus", "softsign", "threshold", "clamp", "clip",
    "clamp_min", "clamp_max", "add", "iadd", "radd", "sub", "isub", "rsub", "subtract", "mul", "imul", "rmul",
    "multiply", "div", "idiv", "truediv", "itruediv", "rtruediv", "divide", "true_divide", "pow", "ipow", "rpow",
    "square", "sqrt", "rsqrt", "exp", "log", "abs", "neg", "negative", "positive", "maximum", "minimum", "where",
    "lerp", "addcmul", "addcdiv", "nan_to_num", "masked_fill", "dropout", "dropout2d", "alpha_dropout", "softmax",
    "normalize", "clone", "contiguous", "detach", "to", "type", "float", "double", "half", "bfloat16", "type_as",
    "requires_grad", "copy", "cat", "concat", "concatenate", "chunk", "split", "tensor_split", "narrow", "roll", "flip",
    "pad", "layer_norm", "rms_norm",
}  # fmt: skip
MOST_EXTRA_TOKENS = 8  # class tokens, registers
CLEARLY_OTHER = 1.5  # ratio of two aspects, beyond any that strides and paddings give


def on_axis_1(n_axes: int) -> set[str]:
    """Names of the functions that take and give channels on axis 1, and `n_axes` others behind it."""
    return {name.replace("Nd", f"{n_axes}d") for name in AXIS_1}


def channels_first(features: torch.Tensor) -> torch.Tensor:
    """A feature map with channels last, such as (batch, height, width, channels), with channels on axis 1."""
    return features.movedim(-1, 1)


@dataclass(eq=False)
class Seen:
    """What is seen of the channels in tensors that differ by the order of their axes alone."""

    axes: set[int] = field(default_factory=set)


class ChannelAxes(TorchFunctionMode):
    """Follows feature maps through one forward pass, and sees which functions work along which axis.

    A feature map has `n_axes` axes beside batch and channels.

    Functions such as convolutions show where the channels of their inputs and outputs are. What is seen of a tensor
    holds for those that are made of it by functions that keep or exchange its axes, and for those it was made of.
    """

    def __init__(self, n_axes: int = 2) -> None:
        super().__init__()
        self.last = n_axes + 1
        self._in_place = tuple(range(n_axes + 2))
        self._on_axis_1 = on_axis_1(n_axes)
        self._convolution = f"conv{n_axes}d"
        self._seen: Any = WeakTensorKeyDictionary()  # of a tensor: what is seen, and its axes as axes of that
        self._grids: list[tuple[int, ...]] = []  # of convolutions
        self.since: tuple[int, ...] | None = None  # last shape with channels last; whoever watches sets it back

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch, and note what it shows."""
        kwargs = kwargs or {}
        output = func(*args, **kwargs)
        name, given = name_of(func), args[0] if args else kwargs.get("input")
        outputs = [one for one in (output if isinstance(output, tuple | list) else [output]) if self._is_map(one)]
        if name in self._on_axis_1:
            for tensor in (given, *outputs):
                if self._is_map(tensor):
                    self._note(tensor, 1)
        elif name in MOVES and self._is_map(given):
            seen, order = self._of(given)
            probe = func(torch.empty(self._in_place, device="meta"), *args[1:], **_without_input(kwargs))
            for tensor in outputs:
                self._seen[tensor] = seen, tuple(order[axis] for axis in probe.shape)
        elif name in STAYS or (name == "getitem" and _keeps_axes(args[1])):
            self._carry(self._maps_in((*args, *kwargs.values())), outputs)
        if name in NORMS or name in PRODUCTS:
            self._note_last(name, given, args, kwargs, outputs)
        if name == self._convolution and outputs:
            self._grids.append(tuple(outputs[0].shape[2:]))
        return output

    def _is_map(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and value.ndim == self.last + 1

    def _maps_in(self, values: Any) -> list[torch.Tensor]:
        """Feature maps among arguments, and in lists of them."""
        found: list[torch.Tensor] = []
        for value in values:
            found += self._maps_in(value) if isinstance(value, tuple | list) else [value] if self._is_map(value) else []
        return found

    def _of(self, tensor: torch.Tensor) -> tuple[Seen, tuple[int, ...]]:
        if tensor not in self._seen:
            self._seen[tensor] = Seen(), self._in_place
        return self._seen[tensor]

    def _note(self, tensor: torch.Tensor, axis: int) -> None:
        seen, order = self._of(tensor)
        seen.axes.add(order[axis])

    def _carry(self, sources: list[torch.Tensor], outputs: list[torch.Tensor]) -> None:
        """What is seen of the first source that shows something, or of the first, holds for the outputs."""
        if not sources or not outputs:
            return
        alike = [source for source in sources if source.shape == outputs[0].shape]  # others are gates, weights, parts
        found = [self._of(source) for source in alike or sources]
        known = [(seen, order) for seen, order in found if seen.axes]
        if len({self._axis(seen, order) for seen, order in known}) > 1:
            known = [(Seen({1, self.last}), self._in_place)]
        for output in outputs:
            if not any(output is source for source in sources):
                self._seen[output] = (known or found)[0]

    def _note_last(self, name: str, given: Any, args: Any, kwargs: Any, outputs: list[torch.Tensor]) -> None:
        if not (self._is_map(given) or (isinstance(given, torch.Tensor) and given.ndim == 3)):
            return
        other = args[1] if len(args) > 1 else kwargs.get("normalized_shape", kwargs.get("other"))
        if name in NORMS and len(other) > 1:
            return  # the whole map is normalised, which shows no axis
        if name == "matmul" and not (isinstance(other, torch.Tensor) and other.ndim == 2):
            return
        for tensor in (given, *outputs):
            if self._is_map(tensor):
                self._note(tensor, self.last)
        if given.shape[1:-1].numel() > 1:
            self.since = tuple(given.shape)

    def shown_axis(self, tensor: torch.Tensor) -> int | None:
        """Axis of the channels in a map as functions show it; None where none does, or where they differ."""
        return self._axis(*self._of(tensor))

    @staticmethod
    def _axis(seen: Seen, order: tuple[int, ...]) -> int | None:
        return order.index(next(iter(seen.axes))) if len(seen.axes) == 1 else None

    def channel_axis(self, tensor: torch.Tensor, size: Any = None) -> int | None:
        """Axis of the channels in a map, 1 or the last one; None where it is not certain.

        Where no function shows it, a map has channels first if it is as large as a convolution's and fits the image of
        that `size` (height, width) so, and does not with channels last. One that is shown to have channels last must
        fit the image: the heads of an attention look alike. Of volumes the last two axes are looked at, as their slices
        may be reduced otherwise. Series have no aspect, so there only what shows axis 1 is certain: what has its
        channels last may begin with a class token (see `Places`).
        """
        seen, order = self._of(tensor)
        if seen.axes:
            axis = self._axis(seen, order)
            other = self.last == 2 or axis != self.last or clearly_other_aspect(tensor.shape[1:-1], size)
            return 1 if axis == 1 else None if other else self.last
        shape = tuple(tensor.shape)
        fits = size and shape[2:] in self._grids and _fits(shape[2:], size) and clearly_other_aspect(shape[1:-1], size)
        return 1 if fits else None

    def reshape_for(self, shape: tuple[int, ...]) -> str:
        """What a caller may write as `reshape_transform=` for an output of this shape."""
        axes = {3: "length", 4: "height, width", 5: "depth, height, width"}[self.last + 1]
        if len(shape) == self.last + 1:
            moved = {3: "movedim(-1, 1)", 4: "permute(0, 3, 1, 2)", 5: "permute(0, 4, 1, 2, 3)"}[len(shape)]
            tokens = "" if len(shape) > 3 else ", with `output[:, 1:]` in place of `output` behind a class token"
            return (
                f"`reshape_transform=lambda output: output.{moved}` if it is (batch, {axes}, channels){tokens}, "
                f"`reshape_transform=lambda output: output` if it is (batch, channels, {axes})"
            )
        for grid in reversed(self._grids):
            extra = shape[1] - math.prod(grid)
            if 0 <= extra <= MOST_EXTRA_TOKENS and math.prod(grid) > 1:
                pixels = f"tokens[:, {extra}:]" if extra else "tokens"
                behind = f" behind {extra} without a place in the image" if extra else ""
                return (
                    f"`reshape_transform=lambda tokens: {pixels}.unflatten(1, {grid}).movedim(-1, 1)` for "
                    f"{' x '.join(map(str, grid))} tokens{behind}"
                )
        return (
            f"`reshape_transform=lambda tokens: tokens.unflatten(1, ({axes})).movedim(-1, 1)` for "
            f"{axes.replace(', ', ' x ')} tokens"
        )


def _keeps_axes(index: Any) -> bool:
    """Whether an index takes a part of a tensor with all its axes."""
    return all(isinstance(one, slice) or one is Ellipsis for one in (index if isinstance(index, tuple) else (index,)))


def _without_input(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in kwargs.items() if name != "input"}


def _fits(grid: Any, size: Any) -> bool:
    """Whether a grid (..., height, width) has the image's aspect, up to a pixel."""
    if len(grid) < 2:
        return False
    grid, size = grid[-2:], size[-2:]
    return abs(grid[0] * size[1] / size[0] - grid[1]) <= max(1.0, size[1] / size[0])


def clearly_other_aspect(grid: Any, size: Any) -> bool:
    """Whether a grid (..., height, width) has clearly another aspect than the image; not where no image is given."""
    if size is None or len(grid) < 2:
        return False
    grid, size = grid[-2:], size[-2:]
    aspect = grid[0] * size[1] / (grid[1] * size[0])
    return max(aspect, 1 / aspect) > CLEARLY_OTHER
