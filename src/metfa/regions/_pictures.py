"""Pictures of any kind, brought to the size of the maps and to values in [0, 1]."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from metfa._arrays import as_array, is_array, to_host
from metfa.regions._planes import COLOURS, channel_axis, feature_shape
from metfa.results.sample import AttributionSample

__all__ = ["pictures_of", "shape_of_maps"]

SMALLEST = 2  # pixels


def pictures_of(image: Any, plane: tuple[int, int] | None) -> list[np.ndarray]:
    """Pictures (height, width, 3) in [0, 1], one for each input; `plane` is the size of the maps, None their own.

    Values are scaled so that the least of a picture is 0 and its largest 1.
    """
    rows = _rows(image)
    if not rows:
        raise ValueError("`image` must hold at least one picture, got none")
    pictures = [_resized(one, plane or one.shape[:2]) for one in map(_channels_last, rows)]
    if len({one.shape[:2] for one in pictures}) > 1:
        raise ValueError(f"`image` must hold pictures of one size, got {[one.shape[:2] for one in pictures]!r:.80}")
    return [_scaled(one) for one in pictures]


def shape_of_maps(image: Any, shape: Any) -> tuple[int, ...] | None:
    """Shape of the maps: the one that is given, else the result's; None where there is neither."""
    if shape is None:
        return image.feature_shape if isinstance(image, AttributionSample) else None
    found = feature_shape(shape, "(224, 224)")
    if isinstance(image, AttributionSample) and found != image.feature_shape:
        raise ValueError(f"`shape` must be that of the result's maps, {image.feature_shape}, got {found}: leave it out")
    return found


def _rows(image: Any) -> list[Any]:
    if isinstance(image, AttributionSample):
        if not is_array(image.inputs):
            raise ValueError(
                f"`image` is a result whose inputs are {type(image.inputs).__name__}, no pictures: give the picture "
                "itself, and `shape=sample.feature_shape`"
            )
        return list(image.inputs)
    if _is_pillow(image):
        return [image]
    if (
        isinstance(image, list | tuple)
        and image
        and all(_is_pillow(one) or getattr(one, "ndim", 0) > 1 for one in image)
    ):
        return list(image)
    array = as_array(image, "image")
    if array.ndim not in (2, 3, 4):
        raise ValueError(
            "`image` must be a picture (channels, height, width), (height, width, channels) or (height, width), or a "
            f"batch of four axes, got shape {tuple(array.shape)}"
        )
    return list(array) if array.ndim == 4 else [array]


def _channels_last(image: Any) -> np.ndarray:
    """One picture as (height, width, channels) in float64, with the values that it came with."""
    if _is_pillow(image):
        array = np.asarray(image if image.mode in GREY_OR_COLOUR else image.convert("RGB"))
    else:
        array = to_host(as_array(image, "image"))
    if array.ndim not in (2, 3):
        raise ValueError(
            "`image` must be a picture (channels, height, width), (height, width, channels) or (height, width), got "
            f"shape {array.shape}"
        )
    if 0 in array.shape:
        raise ValueError(f"`image` has no pixels: shape {array.shape}")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"`image` must hold real numbers, got {array.dtype}")
    channels = channel_axis(array.shape)
    picture = array[..., None] if channels is None else np.moveaxis(array, channels, -1)
    if picture.shape[-1] not in COLOURS:
        hint = "drop the opacity, `image[..., :3]`, or " if array.shape[-1] == 4 else ""
        raise ValueError(
            f"`image` must have 1 or 3 channels, got shape {array.shape}: {hint}{_choice(array.shape)}, "
            "or cut it by `metfa.regions.grid`"
        )
    if not np.isfinite(picture).all():
        raise ValueError("`image` must hold finite numbers, but holds NaN or infinity")
    return picture.astype(np.float64)


def _choice(shape: tuple[int, ...]) -> str:
    """How to choose channels of an image with other numbers of them than colours have."""
    last = shape[-1] <= FEW < shape[0]
    at, n = ("..., ", shape[-1]) if last else ("", shape[0])
    if n < 3:
        return f"choose the channel that shows its parts, such as `image[{at}0]`"
    three = "[3, 2, 1]" if n > 3 else "[0, 1, 2]"
    return f"choose the channels that show its parts, such as `image[{at}{three}]`, or one of them"


FEW = 4  # channels, which an axis that stands for the height does not have
GREY_OR_COLOUR = ("L", "RGB", "I;16", "I", "F")


def _is_pillow(image: Any) -> bool:
    pillow = sys.modules.get("PIL.Image")
    return pillow is not None and isinstance(image, pillow.Image)


def _scaled(picture: np.ndarray) -> np.ndarray:
    low, high = picture.min(), picture.max()
    within = (picture - low) / (high - low) if high > low else np.zeros_like(picture)
    return np.repeat(within, 3, axis=2) if within.shape[2] == 1 else within


def _resized(picture: np.ndarray, plane: tuple[int, int]) -> np.ndarray:
    """Means of the picture over the cells of a map that covers it."""
    for axis, side in enumerate(plane):
        if picture.shape[axis] != side:
            picture = np.moveaxis(np.tensordot(_shares(picture.shape[axis], side), picture, axes=(1, axis)), 0, axis)
    return picture


def _shares(pixels: int, cells: int) -> np.ndarray:
    """Share of each cell that lies in each pixel of a row, (cells, pixels)."""
    cell, pixel = np.arange(cells)[:, None] * pixels, np.arange(pixels) * cells  # their left edges, in whole units
    common = np.minimum(cell + pixels, pixel + cells) - np.maximum(cell, pixel)
    return np.clip(common, 0, None) / pixels
