"""Checks of the inputs that a model is asked about."""

from __future__ import annotations

from typing import Any

from metfa._arrays import as_array, first_not_finite, is_array, is_floating
from metfa.calls.behind import loaded_torch

__all__ = [
    "batch_of",
    "channels_last_message",
    "check_channels_first",
    "check_images",
    "check_values",
    "require_tensor",
]

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


def check_channels_first(inputs: Any) -> None:
    """Raise if a batch of images is (batch, height, width, colours): its height would be read as channels."""
    shape = tuple(inputs.shape)
    if len(shape) == 4 and shape[3] in COLOURS and min(shape[1:3]) >= SMALLEST_SIDE:
        raise ValueError(channels_last_message(shape))


def channels_last_message(shape: tuple[int, ...]) -> str:
    """What to say of a batch of images with channels last."""
    return (
        f"`inputs` of shape {shape} look like images (batch, height, width, channels), but the channels must come "
        "first, (batch, channels, height, width): write `inputs.permute(0, 3, 1, 2)` (torch) or "
        "`inputs.transpose(0, 3, 1, 2)` (NumPy); for a function that takes channels last give `lambda images: "
        "model(images.transpose(0, 2, 3, 1))`"
    )


def check_values(inputs: Any) -> None:
    """Raise unless a batch holds finite numbers: rectifiers turn NaN and infinity into maps that look sound."""
    if 0 in inputs.shape:
        raise ValueError(f"`inputs` has no rows or no pixels: shape {tuple(inputs.shape)}")
    if not is_floating(inputs):
        raise TypeError(
            f"`inputs` must be floating point, got {inputs.dtype}: scale 8-bit images by `images / 255` first"
        )
    bad = first_not_finite(inputs)
    if bad is not None:
        raise ValueError(f"`inputs` must be finite, but input {bad} holds NaN or infinity")


def batch_of(inputs: Any) -> Any:
    """`inputs` as an array; raises unless it has a batch axis."""
    inputs = as_array(inputs, "inputs")
    if inputs.ndim == 0 or len(inputs) == 0:
        raise ValueError(f"`inputs` must have a batch axis with at least one row, got shape {tuple(inputs.shape)}")
    return inputs


def require_tensor(inputs: Any) -> None:
    """Raise unless `inputs` is a torch tensor with numbers, which explainers by gradients and layers need."""
    torch = loaded_torch()
    if torch is None or not isinstance(inputs, torch.Tensor):
        raise TypeError(f"`inputs` must be a torch.Tensor, got {type(inputs).__name__}")
    as_array(inputs, "inputs")
