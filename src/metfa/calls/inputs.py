"""Checks of the inputs that a model is asked about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metfa._arrays import as_array, first_not_finite, is_array, is_floating
from metfa._base.percents import counted
from metfa._base.validation import with_article
from metfa.calls.behind import loaded_torch

__all__ = [
    "MOST_AXES",
    "OF_SEVERAL",
    "SHAPES",
    "batch_of",
    "channels_last_message",
    "check_channels_first",
    "check_images",
    "check_spatial",
    "check_values",
    "convolved_axes",
    "refuse_lists",
    "refuse_ragged",
    "refuse_several",
    "require_tensor",
    "shapes_allowed",
    "what_convolutions_take",
]

MOST_AXES = 3  # beside batch and channels
SHAPES = {
    1: "series (batch, channels, length)",
    2: "images (batch, channels, height, width)",
    3: "volumes (batch, channels, depth, height, width)",
}

OF_SEVERAL = (
    "a model of several inputs is explained by `Gradient(model, channel_axis=...)`, by `SmoothGrad`, and by methods of "
    "Captum"
)
COLOURS = (1, 3, 4)
SMALLEST_SIDE = 8  # pixels; smaller arrays may be anything


def check_images(inputs: Any) -> None:
    """Raise unless `inputs` is a batch of images (batch, channels, height, width) of floating-point numbers."""
    if not is_array(inputs):
        raise TypeError(f"`inputs` must be an array of images, got {type(inputs).__name__}")
    as_array(inputs, "inputs")
    if inputs.ndim != 4:
        raise ValueError(f"`inputs` must be images (batch, channels, height, width), got shape {tuple(inputs.shape)}")
    check_channels_first(inputs)
    check_values(inputs)


def shapes_allowed() -> str:
    """The shapes that inputs with channels have, for messages."""
    *first, last = SHAPES.values()
    return f"{', '.join(first)} or {last}"


def check_spatial(inputs: Any, model: Any = None) -> None:
    """Raise unless `inputs` is a batch of series, images or volumes, with channels, of floating-point numbers.

    A `model` whose convolutions all work on volumes is given none without a channel axis, which look like images.
    """
    if not is_array(inputs):
        refuse_several(inputs)
        refuse_lists(inputs)
        raise TypeError(f"`inputs` must be an array of series, images or volumes, got {type(inputs).__name__}")
    as_array(inputs, "inputs")
    shape = tuple(inputs.shape)
    if not 3 <= len(shape) <= 2 + MOST_AXES:
        missing = (
            "; for series of one channel without the channel axis write `inputs[:, None]`" if len(shape) == 2 else ""
        )
        raise ValueError(f"`inputs` must be {shapes_allowed()}, got shape {shape}{missing}")
    if len(shape) == 4 and convolved_axes(model) == {3}:
        raise ValueError(
            f"`inputs` of shape {shape} have 4 axes, but the model's convolutions work on {SHAPES[3]}: for volumes of "
            "one channel write `inputs[:, None]`; if the model adds that axis itself, also "
            "`torch.nn.Sequential(torch.nn.Flatten(1, 2), model)`, which takes it away again"
        )
    check_channels_first(inputs, model)
    check_values(inputs)


def what_convolutions_take(model: Any, shape: tuple[int, ...]) -> str:
    """What the convolutions of a model say about inputs that it fails on; empty if they say nothing."""
    axes = convolved_axes(model)
    if len(axes) != 1 or not 2 <= len(shape) <= 2 + MOST_AXES:
        return ""
    (n_axes,) = axes
    says = f"its convolutions take {SHAPES[n_axes]}"
    if len(shape) == n_axes + 1:
        return (
            f"{says}: for a single one without the batch axis write `inputs[None]`, for ones without the channel axis "
            "`inputs[:, None]`; "
        )
    convolution = next(module for module in model.modules() if hasattr(module, "in_channels"))
    n_channels = int(getattr(convolution, "in_channels", 0))
    if len(shape) == n_axes + 2 and shape[-1] == n_channels != shape[1]:
        last = counted(n_channels, "channel")
        return f"{says}, and these seem to have their {last} last: write `inputs.movedim(-1, 1)`; "
    return f"{says}; " if len(shape) != n_axes + 2 else ""


def convolved_axes(model: Any) -> set[int]:
    """Along how many axes, of 1 to 3, the convolutions of a torch module work; none for any other model."""
    torch = loaded_torch()
    if torch is None or not isinstance(model, torch.nn.Module):
        return set()
    kinds = enumerate((torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d), 1)
    modules = list(model.modules())
    return {n for n, kind in kinds if any(isinstance(module, kind) for module in modules)}


def check_channels_first(inputs: Any, model: Any = None, name: str = "inputs") -> None:
    """Raise if a batch has its channels last, such as (batch, height, width, colours): they would be misread.

    The channels of series may be of any number; those that a `model` with recurrent layers reads last are known.
    """
    shape = tuple(inputs.shape)
    few_last = 3 <= len(shape) <= 2 + MOST_AXES and shape[-1] in COLOURS and min(shape[1:-1]) >= SMALLEST_SIDE
    if few_last or (len(shape) == 3 and _recurrent_channels(model) == shape[2] != shape[1]):
        raise ValueError(channels_last_message(shape, name))


def _recurrent_channels(model: Any) -> int | None:
    """Channels that the first recurrent layer of a torch module reads from the last axis; None without one."""
    torch = loaded_torch()
    if torch is None or not isinstance(model, torch.nn.Module) or convolved_axes(model):
        return None
    first = next((module for module in model.modules() if isinstance(module, torch.nn.RNNBase)), None)
    return first.input_size if first is not None and first.batch_first else None


def channels_last_message(shape: tuple[int, ...], name: str = "inputs") -> str:
    """What to say of a batch of series, images or volumes with channels last."""
    n_axes = len(shape) - 2
    kind, _, axes = SHAPES[n_axes].removesuffix(")").partition(" (batch, channels, ")
    if n_axes == 1:
        how = (
            f"`{name}.swapaxes(1, 2)`; for a model that takes channels last give `lambda series: "
            "model(series.swapaxes(1, 2))`; explainers with a `channel_axis` also take `channel_axis=2`"
        )
    else:
        first, last = (0, n_axes + 1, *range(1, n_axes + 1)), (0, *range(2, n_axes + 2), 1)
        how = (
            f"`{name}.permute{first}` (torch) or `{name}.transpose{first}` (NumPy); for a function that takes channels "
            f"last give `lambda {kind}: model({kind}.transpose{last})`"
        )
    return (
        f"`{name}` of shape {shape} look like {kind} (batch, {axes}, channels), but the channels must come first, "
        f"(batch, channels, {axes}): write {how}"
    )


def check_values(inputs: Any, name: str = "inputs") -> None:
    """Raise unless a batch holds finite numbers: rectifiers turn NaN and infinity into maps that look sound."""
    if 0 in inputs.shape:
        raise ValueError(f"`{name}` has no rows or no pixels: shape {tuple(inputs.shape)}")
    if not is_floating(inputs):
        raise TypeError(
            f"`{name}` must be floating point, got {inputs.dtype}: scale 8-bit images by `images / 255` first"
        )
    bad = first_not_finite(inputs)
    if bad is not None:
        raise ValueError(f"`{name}` must be finite, but input {bad} holds NaN or infinity")


def batch_of(inputs: Any, name: str = "inputs") -> Any:
    """`inputs` as an array; raises unless it has a batch axis."""
    refuse_lists(inputs)
    inputs = as_array(inputs, name)
    if inputs.ndim == 0 or len(inputs) == 0:
        raise ValueError(f"`{name}` must have a batch axis with at least one row, got shape {tuple(inputs.shape)}")
    return inputs


def require_tensor(inputs: Any, name: str = "inputs") -> None:
    """Raise unless `inputs` is a torch tensor with numbers, which explainers by gradients and layers need."""
    torch = loaded_torch()
    if torch is None or not isinstance(inputs, torch.Tensor):
        refuse_several(inputs)
        refuse_lists(inputs)
        raise TypeError(f"`{name}` must be a torch.Tensor, got {type(inputs).__name__}")
    as_array(inputs, name)


def refuse_several(inputs: Any, remedy: str = OF_SEVERAL) -> None:
    """Raise for a tuple or dict of inputs, where one array is needed."""
    if isinstance(inputs, tuple | Mapping):
        came = with_article(type(inputs).__name__)
        raise TypeError(f"`inputs` must be one array for this explainer, got {came} of {len(inputs)}: {remedy}")


def refuse_lists(inputs: Any) -> None:
    """Raise if `inputs` is a list of arrays, where one array is needed."""
    refuse_ragged(inputs)
    if isinstance(inputs, list) and inputs and all(map(is_array, inputs)):
        stack = "torch.stack" if type(inputs[0]).__module__ == "torch" else "numpy.stack"
        of_one = " for a list of rows, `inputs[0]` for one of a batch" if len(inputs) == 1 else ""
        raise TypeError(
            f"`inputs` is a list of {counted(len(inputs), 'array')} of shape {tuple(inputs[0].shape)}, and a batch is "
            f"one array: write `{stack}(inputs)`{of_one}, or a tuple if the model has several inputs"
        )


def refuse_ragged(inputs: Any) -> None:
    """Raise if `inputs` is a list of arrays of different shapes, such as series of different lengths."""
    if not isinstance(inputs, list) or not all(map(is_array, inputs)):
        return
    shapes = sorted({tuple(row.shape) for row in inputs})
    if len(shapes) > 1:
        raise ValueError(
            f"`inputs` is a list of {len(inputs)} arrays of different shapes, from {shapes[0]} to {shapes[-1]}, but "
            "rows of one call have one shape: explain each by a call of its own, `inputs=series[None]`, or bring them "
            "to one length before"
        )
