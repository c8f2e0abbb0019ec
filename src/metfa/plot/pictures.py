"""The picture below the maps of an input: the input itself where it is one, or one that somebody gave."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa._arrays import as_array, to_host
from metfa.results.sample import AttributionSample

__all__ = ["checked_picture", "picture_of"]


def picture_of(
    sample: AttributionSample, plane: tuple[int, int] | None = None, *, larger: bool = False
) -> tuple[np.ndarray, str]:
    """Picture of the one input, (height, width) or (height, width, 3) in [0, 1], and its caption.

    It has the shape of the maps, or of their `plane` where these have channels; with `larger`, and over regions, it may
    be larger.
    """
    regions = sample.regions
    shape = plane or (sample.feature_shape if regions is None else regions.feature_shape)
    larger = larger or regions is not None
    numbers = isinstance(sample.inputs, np.ndarray) and sample.inputs.dtype.kind in "biuf"
    numbers = numbers and sample.sample_noun != "row"  # whose inputs are a data set
    image = np.asarray(sample.inputs[0], np.float64) if numbers else np.zeros(0)
    if image.ndim == 2:
        image = image[None]
    fits = image.ndim == 3 and image.shape[0] in (1, 3)
    if not fits or (image.shape[1:] != shape and not (larger and np.greater_equal(image.shape[1:], shape).all())):
        return np.ones(shape), "no picture"
    caption = "picture"
    if image.min() < -1e-6 or image.max() > 1 + 1e-6:
        image = (image - image.min()) / (np.ptp(image) or 1.0)
        caption = "input, rescaled to be shown"
    return (np.moveaxis(image, 0, -1) if image.shape[0] == 3 else image[0]), caption


def checked_picture(picture: Any, sample: AttributionSample) -> np.ndarray:
    """A picture that somebody gave, in float64; it may be larger than the maps."""
    image = to_host(as_array(picture, "picture")).astype(np.float64)
    height, width = (sample.regions or sample).feature_shape
    like = image.ndim in (2, 3) and image.shape[2:] in ((), (3,))
    if not like or image.shape[0] < height or image.shape[1] < width:
        raise ValueError(
            f"`picture` must be of shape {(height, width)} or {(height, width, 3)}, like the maps, or larger, got "
            f"{image.shape}"
        )
    if not (image.min() >= -1e-6 and image.max() <= 1 + 1e-6):
        raise ValueError(
            f"`picture` must lie in [0, 1], got {image.min():.4g} to {image.max():.4g}; divide 8-bit pixels by 255"
        )
    return image
