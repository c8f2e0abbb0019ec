"""Segments of an image: the superpixels that LIME hides and shows as wholes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from metfa._arrays import as_array, to_host
from metfa._base.lazy import needs_extra

__all__ = ["check_segmentation", "check_several", "segments_of"]

NAMES = ("quickshift", "slic")
ROUNDING = 1e-3  # pixels may leave [0, 1] by this much, as in a resized 8-bit image


def check_segmentation(segmentation: Any) -> None:
    """Raise unless `segmentation` is a known name, a function, or an array of labels (height, width)."""
    if isinstance(segmentation, str):
        if segmentation not in NAMES:
            raise ValueError(
                f"`segmentation` must be one of {', '.join(map(repr, NAMES))}, labels (height, width), or a function "
                f"of an image (height, width, channels), got {segmentation!r}"
            )
    elif not callable(segmentation):
        _checked_labels(segmentation)


def segments_of(images: np.ndarray, segmentation: Any, rngs: Sequence[np.random.Generator]) -> list[np.ndarray]:
    """Labels (height, width), from 0 to n - 1, of each image of a batch (batch, channels, height, width).

    A named segmentation draws its random choices for row i from ``rngs[i]``, so that no row depends on its neighbours.
    """
    shape = images.shape[2:]
    if isinstance(segmentation, str):
        _check_pixels(images, segmentation)
        pairs = zip(_channels_last(images), rngs, strict=True)
        return [_consecutive(_superpixels(image, segmentation, rng)) for image, rng in pairs]
    if callable(segmentation):
        return [_consecutive(_checked_labels(segmentation(image), shape)) for image in _channels_last(images)]
    return [_consecutive(_checked_labels(segmentation, shape))] * len(images)


def check_several(segments: Sequence[np.ndarray]) -> None:
    """Raise if an image is a single segment, which says nothing about the parts of the image."""
    if any(labels.min() == labels.max() for labels in segments):
        raise ValueError(
            "LIME needs at least two segments, but an image is a single one, which says nothing about its parts "
            "(quickshift does that to small images): write `segmentation='slic'`, or with `from_lime` "
            "`segmentation_fn=skimage.segmentation.slic`, or give labels of your own"
        )


def _channels_last(images: np.ndarray) -> np.ndarray:
    """A copy (batch, height, width, channels) in float64, so that the input's precision decides no tie."""
    return np.array(np.moveaxis(images, 1, -1), dtype=np.float64, order="C")


def _consecutive(labels: np.ndarray) -> np.ndarray:
    """The same segments with labels from 0 on, in the order of their labels."""
    return np.unique(labels, return_inverse=True)[1].reshape(labels.shape)


def _check_pixels(images: np.ndarray, name: str) -> None:
    for row, image in enumerate(images):
        low, high = image.min(), image.max()
        if not (low >= -ROUNDING and high <= 1 + ROUNDING):  # NaN fails, too
            raise ValueError(
                f"`inputs` must be pixels in [0, 1] for the segmentation {name!r}, but row {row} goes from {low:.4g} "
                f"to {high:.4g}: explain `metfa.models.Normalised(model, mean, std)`, which takes pixels; give the "
                "noise `bounds=(0, 1)`; or pass labels or a function as `segmentation`"
            )


def _superpixels(image: np.ndarray, name: str, rng: np.random.Generator) -> np.ndarray:
    """Superpixels of one image (height, width, channels), in Lab colours where it has colours or is grey."""
    with needs_extra(f"`segmentation` {name!r}", "lime"):
        from skimage import segmentation
    image = np.clip(np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image, 0, 1)
    coloured = image.shape[2] == 3
    if name == "slic":  # its compactness is in units of the colours: Lab's reach to 100, others to 1
        compactness = 10.0 if coloured else 0.1
        # without the blur, segments fall to pieces that are then merged into one: with noise of 0.1, a cat's 82
        # segments become 6 without it and 93 with it
        return segmentation.slic(image, compactness=compactness, sigma=1, convert2lab=coloured, start_label=0)
    seed = int(rng.integers(2**31))
    return segmentation.quickshift(image, ratio=0.2, kernel_size=4, max_dist=200, convert2lab=coloured, rng=seed)


def _checked_labels(labels: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
    labels = to_host(as_array(labels, "segmentation"))
    if labels.dtype.kind not in "iu":
        raise TypeError(f"`segmentation` must be (or return) integer labels (height, width), got {labels.dtype}")
    if labels.ndim != 2 or labels.size == 0:
        raise ValueError(f"`segmentation` must be (or return) labels (height, width), got shape {labels.shape}")
    if shape is not None and labels.shape != shape:
        raise ValueError(f"`segmentation` has labels of shape {labels.shape}, but the images have {tuple(shape)}")
    return labels
