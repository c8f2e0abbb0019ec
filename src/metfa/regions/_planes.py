"""Maps of images: which of their axes are rows and columns, and labels of pixels as labels of features."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa._arrays import is_array
from metfa._base.validation import as_list, positive_int, shown
from metfa.results.sample import AttributionSample

__all__ = ["channel_axis", "extent", "feature_shape", "plane_of", "spread"]

COLOURS = (1, 3)


def feature_shape(of: Any, example: str) -> tuple[int, ...]:
    """Shape of the maps of a result, or the shape itself; `example` is a shape that could be given."""
    if isinstance(of, AttributionSample):
        return of.feature_shape
    if is_array(of):
        raise TypeError(
            f"`of` must be an AttributionSample or the shape of its maps, such as {example}, got an array of shape "
            f"{tuple(of.shape)}: write its shape without the batch"
        )
    sides = as_list(of, "of", f"an AttributionSample or the shape of its maps, such as {example}, one side for an axis")
    if not sides:
        raise ValueError(f"`of` must have at least one axis, such as {example}, got {shown(of)}")
    return tuple(positive_int(side, "of") for side in sides)


def channel_axis(shape: tuple[int, ...]) -> int | None:
    """The axis of the channels of one image or map: none of two axes; of three the first.

    It is the last of three if only that one has the length 1 or 3.
    """
    if len(shape) == 2:
        return None
    return 2 if shape[2] in COLOURS and shape[0] not in COLOURS else 0


def plane_of(shape: tuple[int, ...], name: str) -> tuple[int, int]:
    """Height and width of maps, which the argument `name` gives; raises unless they are maps of images."""
    if len(shape) not in (2, 3):
        raise ValueError(
            f"`{name}`: an image has maps (height, width) or (channels, height, width), got maps of shape {shape}; "
            "`metfa.regions.windows` cuts a series, `metfa.regions.blocks` a volume"
        )
    channels = channel_axis(shape)
    height, width = (side for axis, side in enumerate(shape) if axis != channels)
    return height, width


def spread(labels: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Labels or masks (..., height, width) for maps of that shape: a region holds all channels of its pixels."""
    channels = channel_axis(shape)
    if channels is None:
        return labels
    axis = -3 if channels == 0 else -1
    leading = labels.shape[:-2]
    return np.broadcast_to(np.expand_dims(labels, axis), (*leading, *shape))


def extent(**places: tuple[int, int]) -> str:
    """Where a part lies in words, from its first position on each axis and the one after its last."""
    return ", ".join(
        f"{name} {start}-{stop - 1}" if stop - start > 1 else f"{name.removesuffix('s')} {start}"
        for name, (start, stop) in places.items()
    )
