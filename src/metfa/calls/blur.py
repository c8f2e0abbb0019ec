"""Blurs of series, images and volumes: they serve as baselines and soften masks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch

from metfa._arrays import from_host, namespace, widen
from metfa._base.validation import check_number, keep, one_of, positive_int
from metfa.calls.enlargement import LONG, along
from metfa.calls.inputs import MOST_AXES

__all__ = ["Blur", "blur_and_median"]


@dataclass(frozen=True)
class Blur:
    r"""Gaussian blur of inputs (batch, channels, \*axes), as a baseline or to soften a mask.

    Parameters
    ----------
    sigma : float or sequence of float
        Standard deviation in pixels, above 0: one for all axes, or one for each. Voxels of 3 x 1 x 1 mm are blurred by
        6 mm with ``sigma=(2, 6, 6)``.
    kernel : int, optional
        Width of the kernel in pixels, odd. None: four standard deviations to each side.
    border : {"replicate", "reflect"}
        What lies beyond the input: its outermost pixels repeated (Pillow), or the image mirrored about them (OpenCV's
        default).

    Examples
    --------
    >>> import torch
    >>> from metfa.explainers import Blur
    >>> point = torch.zeros(1, 1, 1, 5)
    >>> point[..., 2] = 1
    >>> [round(value, 3) for value in Blur(1.0, kernel=3)(point).flatten().tolist()]
    [0.0, 0.274, 0.452, 0.274, 0.0]
    """

    sigma: float | Sequence[float]
    kernel: int | None = field(default=None, kw_only=True)
    border: Literal["replicate", "reflect"] = field(default="replicate", kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.sigma, tuple | list):
            if not 1 <= len(self.sigma) <= MOST_AXES:
                raise ValueError(f"`sigma` must be one number, or one for each axis, got {len(self.sigma)} numbers")
            keep(self, sigma=tuple(check_number(sigma, "sigma", above=0) for sigma in self.sigma))
        else:
            keep(self, sigma=check_number(self.sigma, "sigma", above=0))
        if self.kernel is not None and positive_int(self.kernel, "kernel") % 2 == 0:
            raise ValueError(f"`kernel` must be odd, got {self.kernel}")
        one_of(self.border, "border", ("replicate", "reflect"))

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        r"""Inputs (batch, channels, \*axes) blurred, of the same shape; differentiable."""
        for axis, blur in enumerate(self.of_axes(images.ndim - 2), 2):
            images = blur.blurred(images, axis)
        return images

    def of_axes(self, n_axes: int) -> list[Blur]:
        """The blur of each axis, with one `sigma`."""
        if not isinstance(self.sigma, tuple):
            return [self] * n_axes
        if len(self.sigma) != n_axes:
            raise ValueError(
                f"`sigma` has {len(self.sigma)} numbers, one for each axis, but the inputs have {n_axes} beside batch "
                "and channels"
            )
        return [replace(self, sigma=sigma) for sigma in self.sigma]

    def blurred(self, values: Any, axis: int) -> Any:
        """One axis of an array blurred; `sigma` is one number."""
        pixels = values.shape[axis]
        if pixels <= LONG:
            return along(axis, from_host(self.matrix(pixels), like=values), values)
        return self._by_fourier(values, axis)

    def matrix(self, pixels: int) -> np.ndarray:
        """The blur of a row of pixels as a matrix (pixels, pixels): any kernel fits any image."""
        taps, weights = self._kernel()
        matrix = np.zeros((pixels, pixels))
        np.add.at(
            matrix, (np.arange(pixels)[:, None], self._inside(np.arange(pixels)[:, None] + taps, pixels)), weights
        )
        return matrix

    def _by_fourier(self, values: Any, axis: int) -> Any:
        """The same for a long axis, in the time of a Fourier transform."""
        xp, wide, pixels = namespace(values), widen(values), values.shape[axis]
        taps, weights = self._kernel()
        places = self._inside(np.arange(pixels + len(taps) - 1) + taps[0], pixels)
        padded = xp.moveaxis(xp.take(wide, from_host(places, wide, xp.int32), axis=axis), axis, -1)
        spectrum = xp.fft.rfft(padded) * xp.fft.rfft(from_host(weights, like=wide), n=len(places))
        blurred = xp.fft.irfft(spectrum, n=len(places))[..., len(taps) - 1 :]  # before it, the end wraps round
        return xp.astype(xp.moveaxis(blurred, -1, axis), values.dtype)

    def _kernel(self) -> tuple[np.ndarray, np.ndarray]:
        """Places of the kernel's taps about the pixel, and their weights."""
        sigma: Any = self.sigma
        reach = math.ceil(4 * sigma) if self.kernel is None else self.kernel // 2
        taps = np.arange(-reach, reach + 1)
        weights = np.exp(-0.5 * (taps / sigma) ** 2)
        return taps, weights / weights.sum()

    def _inside(self, places: np.ndarray, pixels: int) -> np.ndarray:
        """The pixels that stand for places beyond the border."""
        if self.border == "replicate":
            return places.clip(0, pixels - 1)
        period = max(2 * (pixels - 1), 1)
        places = np.abs(places) % period
        return np.minimum(places, period - places) if pixels > 1 else places * 0


def blur_and_median(images: torch.Tensor) -> torch.Tensor:
    """Mean of a Gaussian blur (sigma 5) and the median, both of 11 pixels a side: the baseline of `gildenblat`."""
    padded = torch.nn.functional.pad(images, (5, 5) * (images.ndim - 2), mode="replicate")
    medians = [_medians(channel) for row in padded for channel in row]
    return (Blur(5.0, kernel=11, border="reflect")(images) + torch.stack(medians).reshape(images.shape)) / 2


def _medians(padded: torch.Tensor) -> torch.Tensor:
    """Median of the 11 pixels to each side about each pixel; of a volume, a slice at a time."""
    if padded.ndim > 2 and len(padded) > 11:
        return torch.cat([_medians(padded[start : start + 11]) for start in range(len(padded) - 10)])
    windows = padded
    for axis in range(padded.ndim):
        windows = windows.unfold(axis, 11, 1)
    return windows.flatten(padded.ndim).median(padded.ndim).values
