"""Noise on the pixels of normalised images, and the standard deviation of Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa._arrays import as_array, from_host, to_host
from metfa._base.validation import check_function, check_number, shown
from metfa.noise.draws import clamped, draw_dtype, is_number, range_outside
from metfa.noise.laws import Gaussian, Noise

__all__ = ["PixelSpaceNoise", "gaussian_std", "in_pixel_space"]


@dataclass(frozen=True)
class PixelSpaceNoise:
    """What :func:`in_pixel_space` returns."""

    noise: Noise
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __call__(self, x: Any, rng: np.random.Generator) -> Any:
        """Noisy copy of the normalised input `x`, with numbers from `rng`."""
        draw_dtype(x)
        if x.ndim < 1 or x.shape[0] != len(self.mean):
            raise ValueError(
                f"`mean` and `std` have {len(self.mean)} channels, but the input has shape {tuple(x.shape)}: the first "
                "axis of one input must be its channels"
            )
        column = (-1, *[1] * (x.ndim - 1))
        mean = from_host(np.reshape(self.mean, column), like=x)
        std = from_host(np.reshape(self.std, column), like=x)
        pixels = x * std + mean
        outside = range_outside(pixels, (0.0, 1.0), slack=1e-2)
        if outside:
            raise ValueError(
                f"with `mean` {self.mean} and `std` {self.std} the input has pixels {outside}, outside [0, 1]: it was "
                "normalised in another way, or not at all"
            )
        return (clamped(self.noise(clamped(pixels, (0.0, 1.0)), rng), (0.0, 1.0)) - mean) / std


def in_pixel_space(noise: Noise, mean: Sequence[float], std: Sequence[float]) -> Noise:
    """Noise in [0, 1] pixel space for a model that takes normalised images.

    The input ``(pixels - mean) / std`` is turned back into pixels, `noise` is applied, the result clamped to [0, 1]
    and normalised again (paper, section on the sampling noise).

    Parameters
    ----------
    noise : callable
        Noise on pixels, such as ``Uniform(0.1)``.
    mean, std : sequence of float
        The model's normalisation, one number for each channel (the first axis of one input); `std` is positive.

    Returns
    -------
    callable
        A noise ``f(x, rng) -> x`` on normalised images.

    Raises
    ------
    ValueError
        If `mean` and `std` differ in length or a `std` is not positive; when called, if the image does not become
        pixels in [0, 1] (it was normalised in another way, or not at all).
    """
    check_function(noise, "noise", "noise(x, rng)", None, None)
    means, stds = _channel_numbers("mean", mean), _channel_numbers("std", std)
    if len(means) != len(stds):
        raise ValueError(f"`mean` and `std` must have one number a channel, got {len(means)} and {len(stds)} numbers")
    if not all(s > 0 for s in stds):
        raise ValueError(f"`std` must be positive, got {stds}")
    return PixelSpaceNoise(noise, means, stds)


def gaussian_std(noise: Any) -> float | None:
    """Standard deviation of Gaussian noise that is the same for all parts of an input; None for any other noise.

    For noise in pixel space it is in units of pixels. A class that inherits from one of these may have another law, so
    it counts as any other noise.
    """
    if type(noise) is PixelSpaceNoise:
        return gaussian_std(noise.noise)
    if type(noise) is not Gaussian or not is_number(noise.std):
        return None
    return float(noise.std)  # pyright: ignore[reportArgumentType]


def _channel_numbers(name: str, values: Any) -> tuple[float, ...]:
    if isinstance(values, str) or not hasattr(values, "__len__"):
        raise TypeError(f"`{name}` must be a sequence with one number for each channel, got {shown(values)}")
    given = to_host(as_array(values, name))
    if given.ndim != 1 or not len(given):
        raise ValueError(f"`{name}` must hold finite numbers, one for each channel, got shape {given.shape}")
    return tuple(check_number(number, name, least=-math.inf) for number in given.tolist())
