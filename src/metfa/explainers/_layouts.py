"""Where the channels of a layer's output lie: (batch, channels, height, width), channels last, or tokens."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from metfa.calls.functions_as_layers import name_of

__all__ = ["Layouts", "channels_first"]

# Functions that know where channels are. An output of the same shape has them in the same place.
AXIS_1 = {
    "conv2d", "conv_transpose2d", "batch_norm", "group_norm", "instance_norm", "max_pool2d", "avg_pool2d",
    "max_pool2d_with_indices", "adaptive_avg_pool2d", "adaptive_max_pool2d", "interpolate", "pixel_shuffle",
}  # fmt: skip
NORMS = {"layer_norm", "rms_norm"}
MOST_EXTRA_TOKENS = 8  # class tokens, registers


def channels_first(features: torch.Tensor) -> torch.Tensor:
    """A feature map (batch, height, width, channels) as (batch, channels, height, width)."""
    return features.permute(0, 3, 1, 2)


class Layouts(TorchFunctionMode):
    """Sees, in one forward pass, which functions work on tensors of which shape, and so where channels are."""

    def __init__(self) -> None:
        super().__init__()
        self._axes: dict[tuple[int, ...], set[int]] = {}
        self._grids: list[tuple[int, int]] = []
        self._channels_last = False  # whether anything works along the last axis of a map or of tokens
        self.since: tuple[int, ...] | None = None  # shape of the last such thing; whoever watches sets it back

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch, and note the shapes."""
        kwargs = kwargs or {}
        output = func(*args, **kwargs)
        name, given = name_of(func), args[0] if args else kwargs.get("input")
        for tensor in (given, output):
            if isinstance(tensor, torch.Tensor) and tensor.ndim in (3, 4):
                self._note(name, tuple(tensor.shape), args, kwargs)
        if name == "conv2d" and isinstance(output, torch.Tensor) and output.ndim == 4:
            self._grids.append((output.shape[2], output.shape[3]))
        return output

    def _note(self, name: str, shape: tuple[int, ...], args: Any, kwargs: Any) -> None:
        if name in AXIS_1 and len(shape) == 4:
            self._axes.setdefault(shape, set()).add(1)
        elif name in NORMS or name == "linear":
            normalised = args[1] if len(args) > 1 else kwargs.get("normalized_shape")
            if name in NORMS and len(normalised) > 1:
                self._axes.setdefault(shape, set()).add(1)  # the whole map is normalised: channels are where they were
                return
            if name in NORMS:
                self._axes.setdefault(shape, set()).add(len(shape) - 1)
            if torch.Size(shape[1:-1]).numel() > 1:
                self._channels_last, self.since = True, shape

    def channel_axis(self, shape: tuple[int, ...]) -> int | None:
        """Axis of the channels, 1 or 3, in a map (batch, ., ., .); None where it is not certain.

        In a model that never works along the last axis it is 1, the convention of torch.
        """
        axes = self._axes.get(shape, set())
        if len(axes) == 1:
            return next(iter(axes))
        return None if axes or self._channels_last else 1

    def reshape_for(self, shape: tuple[int, ...]) -> str:
        """What a caller may write as `reshape_transform=` for an output of this shape."""
        if len(shape) == 4:
            return (
                "`reshape_transform=lambda output: output.permute(0, 3, 1, 2)` if it is (batch, height, width, "
                "channels), `reshape_transform=lambda output: output` if it is (batch, channels, height, width)"
            )
        for height, width in reversed(self._grids):
            extra = shape[1] - height * width
            if 0 <= extra <= MOST_EXTRA_TOKENS and height * width > 1:
                pixels = f"tokens[:, {extra}:]" if extra else "tokens"
                behind = f" behind {extra} without a place in the image" if extra else ""
                return (
                    f"`reshape_transform=lambda tokens: {pixels}.unflatten(1, ({height}, {width})).movedim(-1, 1)` for "
                    f"{height} x {width} tokens{behind}"
                )
        return (
            "`reshape_transform=lambda tokens: tokens.unflatten(1, (height, width)).movedim(-1, 1)` for height x width "
            "tokens"
        )
