"""Blurs of images: they serve as baselines and soften masks."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch

from metfa._base.validation import check_number, keep, one_of, positive_int
from metfa.calls.enlargement import resized

__all__ = ["Blur", "blur_and_median"]


@dataclass(frozen=True)
class Blur:
    """Gaussian blur of images (batch, channels, height, width), as a baseline or to soften a mask.

    Parameters
    ----------
    sigma : float
        Standard deviation in pixels, above 0.
    kernel : int, optional
        Width of the kernel in pixels, odd. None: four standard deviations to each side.
    border : {"replicate", "reflect"}
        What lies beyond the image: its outermost pixels repeated (Pillow), or the image mirrored about them (OpenCV's
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

    sigma: float
    kernel: int | None = field(default=None, kw_only=True)
    border: Literal["replicate", "reflect"] = field(default="replicate", kw_only=True)

    def __post_init__(self) -> None:
        keep(self, sigma=check_number(self.sigma, "sigma", above=0))
        if self.kernel is not None and positive_int(self.kernel, "kernel") % 2 == 0:
            raise ValueError(f"`kernel` must be odd, got {self.kernel}")
        one_of(self.border, "border", ("replicate", "reflect"))

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        """Images blurred, of the same shape; differentiable."""
        return resized(images, [self.matrix(pixels) for pixels in images.shape[2:]])

    def matrix(self, pixels: int) -> np.ndarray:
        """The blur of a row of pixels as a matrix (pixels, pixels): any kernel fits any image."""
        reach = math.ceil(4 * self.sigma) if self.kernel is None else self.kernel // 2
        taps = np.arange(-reach, reach + 1)
        weights = np.exp(-0.5 * (taps / self.sigma) ** 2)
        places = np.arange(pixels)[:, None] + taps
        if self.border == "replicate":
            places = places.clip(0, pixels - 1)
        else:
            period = max(2 * (pixels - 1), 1)
            places = np.abs(places) % period
            places = np.minimum(places, period - places) if pixels > 1 else places * 0
        matrix = np.zeros((pixels, pixels))
        np.add.at(matrix, (np.arange(pixels)[:, None], places), weights / weights.sum())
        return matrix


def blur_and_median(images: torch.Tensor) -> torch.Tensor:
    """Mean of a Gaussian blur (11 pixels, sigma 5) and the median of 11 x 11 pixels: the baseline of `gildenblat`."""
    padded = torch.nn.functional.pad(images, (5, 5, 5, 5), mode="replicate")
    medians = [
        channel.unfold(0, 11, 1).unfold(1, 11, 1).flatten(2).median(2).values for row in padded for channel in row
    ]
    return (Blur(5.0, kernel=11, border="reflect")(images) + torch.stack(medians).reshape(images.shape)) / 2
