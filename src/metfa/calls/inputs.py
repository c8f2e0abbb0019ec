"""Checks of the inputs that a model is asked about."""

from __future__ import annotations

from typing import Any

from metfa._arrays import as_array, first_not_finite, is_array, is_floating
from metfa.calls.guard import loaded_torch

__all__ = ["batch_of", "check_images", "check_values", "require_tensor"]


def check_images(inputs: Any) -> None:
    """Raise unless `inputs` is a batch of images (batch, channels, height, width) of floating-point numbers."""
    if not is_array(inputs):
        raise TypeError(f"`inputs` must be an array of images, got {type(inputs).__name__}")
    if inputs.ndim != 4:
        raise ValueError(f"`inputs` must be images (batch, channels, height, width), got shape {tuple(inputs.shape)}")
    check_values(inputs)


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
