"""The baseline: what takes the place of the pixels that a perturbation hides."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from metfa._arrays import as_array, first_not_finite, from_host, namespace, widen
from metfa._base.validation import brief
from metfa.calls.inputs import MOST_AXES, shapes_allowed

__all__ = ["baseline_like", "check_baseline", "mean_colour"]


def check_baseline(baseline: Any, name: str = "baseline") -> None:
    """Raise unless `baseline` is a finite number, or one for each channel."""
    numbers = baseline if isinstance(baseline, tuple | list) else [baseline]
    if not all(isinstance(number, Real) and not isinstance(number, bool) for number in numbers):
        raise TypeError(f"`{name}` must be a number or a sequence with one for each channel, got {brief(baseline)}")
    if not numbers or not all(map(math.isfinite, numbers)):
        raise ValueError(f"`{name}` must hold finite numbers, one or one for each channel, got {brief(baseline)}")


def baseline_like(baseline: Any, images: Any, name: str = "baseline") -> Any:
    r"""Baseline as an array (1, channels or 1, 1, ...) beside inputs (batch, channels, \*axes)."""
    numbers = np.atleast_1d(np.asarray(baseline, dtype=np.float64))
    if len(numbers) not in (1, images.shape[1]):
        raise ValueError(
            f"`{name}` must be one number or one for each of the {images.shape[1]} channels, got {len(numbers)}"
        )
    return from_host(numbers.reshape(1, -1, *[1] * (images.ndim - 2)), like=images)


def mean_colour(images: Any) -> Any:
    r"""A baseline: inputs (batch, channels, \*axes) that are their own mean everywhere, such as an image's mean colour.

    Examples
    --------
    >>> import torch
    >>> from metfa.explainers import mean_colour
    >>> mean_colour(torch.tensor([[[[0.0, 1.0]]]]))
    tensor([[[[0.5000, 0.5000]]]])
    """
    images = as_array(images, "images")
    if not 3 <= images.ndim <= 2 + MOST_AXES:
        raise ValueError(f"`images` must be {shapes_allowed()}, got shape {tuple(images.shape)}")
    if first_not_finite(images) is not None:
        raise ValueError("`images` must be finite, but holds NaN or infinity")
    xp = namespace(images)
    return xp.broadcast_to(xp.mean(widen(images), axis=tuple(range(2, images.ndim)), keepdims=True), images.shape)
