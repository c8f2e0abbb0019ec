"""Segments of an input: the superpixels, windows or blocks that LIME hides and shows as wholes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from metfa._arrays import as_array, to_host
from metfa._base.lazy import needs_extra
from metfa.calls.inputs import MOST_AXES, SHAPES
from metfa.explainers.blocks import Blocks

__all__ = ["check_segmentation", "check_several", "segments_of"]

NAMES = ("auto", "quickshift", "slic")
ROUNDING = 1e-3  # pixels may leave [0, 1] by this much, as in a resized 8-bit image
OF_AXES = {1: Blocks(40), 2: "quickshift", 3: Blocks(5)}  # what "auto" is for series, images and volumes


def check_segmentation(segmentation: Any) -> None:
    """Raise unless `segmentation` is a known name, a function, or an array of labels such as (height, width)."""
    if isinstance(segmentation, str):
        if segmentation not in NAMES:
            raise ValueError(
                f"`segmentation` must be one of {', '.join(map(repr, NAMES))}, metfa.explainers.Blocks(...), labels "
                "such as (height, width), or a function of an input such as (height, width, channels), got "
                f"{segmentation!r}"
            )
    elif not callable(segmentation):
        _checked_labels(segmentation)


def segments_of(images: np.ndarray, segmentation: Any, rngs: Sequence[np.random.Generator]) -> list[np.ndarray]:
    r"""Labels (\*axes), from 0 to n - 1, of each input of a batch (batch, channels, \*axes).

    A named segmentation draws its random choices for row i from ``rngs[i]``, so that no row depends on its neighbours.
    """
    shape = images.shape[2:]
    if isinstance(segmentation, str) and segmentation == "auto":
        segmentation = OF_AXES[len(shape)]
    if isinstance(segmentation, str):
        _check_kind(len(shape), segmentation)
        _check_pixels(images, segmentation)
        pairs = zip(_channels_last(images), rngs, strict=True)
        return [_consecutive(_superpixels(image, segmentation, rng)) for image, rng in pairs]
    if isinstance(segmentation, Blocks):
        return [segmentation(np.moveaxis(images[0], 0, -1))] * len(images)
    if callable(segmentation):
        return [_consecutive(_checked_labels(segmentation(image), shape)) for image in _channels_last(images)]
    return [_consecutive(_checked_labels(segmentation, shape))] * len(images)


def check_several(segments: Sequence[np.ndarray]) -> None:
    """Raise if an input is a single segment, which says nothing about its parts."""
    if any(labels.min() == labels.max() for labels in segments):
        raise ValueError(
            "LIME needs at least two segments, but an input is a single one, which says nothing about its parts "
            "(quickshift does that to small images): write `segmentation='slic'`, or with `from_lime` "
            "`segmentation_fn=skimage.segmentation.slic`, or give labels of your own"
        )


def _channels_last(images: np.ndarray) -> np.ndarray:
    r"""A copy (batch, \*axes, channels) in float64, so that the input's precision decides no tie."""
    return np.array(np.moveaxis(images, 1, -1), dtype=np.float64, order="C")


def _consecutive(labels: np.ndarray) -> np.ndarray:
    """The same segments with labels from 0 on, in the order of their labels."""
    return np.unique(labels, return_inverse=True)[1].reshape(labels.shape)


def _check_kind(n_axes: int, name: str) -> None:
    if n_axes == 2 or (n_axes == 3 and name == "slic"):
        return
    instead = "`segmentation=metfa.explainers.Blocks(40)` for windows of equal length"
    if n_axes == 3:
        instead = "`segmentation='slic'` for supervoxels, or `segmentation=metfa.explainers.Blocks(5)` for blocks"
    raise ValueError(
        f"`segmentation` {name!r} cuts {SHAPES[2]}{' and volumes' if name == 'slic' else ''}, but `inputs` are "
        f"{SHAPES[n_axes]}: write {instead}"
    )


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
    """Superpixels of one image (height, width, channels) or volume, in Lab colours where it has colours or is grey."""
    with needs_extra(f"`segmentation` {name!r}", "lime"):
        from skimage import segmentation
    image = np.clip(np.repeat(image, 3, axis=-1) if image.shape[-1] == 1 else image, 0, 1)
    coloured = image.shape[-1] == 3
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
    if not 1 <= labels.ndim <= MOST_AXES or labels.size == 0:
        raise ValueError(
            "`segmentation` must be (or return) labels such as (height, width), without batch and channels, got shape "
            f"{labels.shape}"
        )
    if shape is not None and labels.shape != shape:
        raise ValueError(f"`segmentation` has labels of shape {labels.shape}, but the inputs have {tuple(shape)}")
    return labels
