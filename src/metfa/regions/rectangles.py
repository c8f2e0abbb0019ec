"""Boxes on an image, as a detector or a person draws them."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa._arrays import as_array, to_host
from metfa.regions._planes import extent, feature_shape, plane_of, spread
from metfa.results.regions import Regions

__all__ = ["boxes"]


def boxes(of: Any, corners: Any, names: Any = None, *, how: str = "mean", against: Any = None) -> Regions:
    """Boxes on an image. They may overlap.

    Parameters
    ----------
    of : AttributionSample or tuple of int
        A result, or the shape of its maps: (height, width), or (channels, height, width), where a region holds all
        channels of its pixels.
    corners : sequence of (left, top, right, bottom), or array of int, (boxes, 4)
        Whole numbers of the map's pixels, in the order of Pillow's ``crop`` and of torchvision's boxes: columns from
        `left` to `right` - 1, rows from `top` to `bottom` - 1.
    names : sequence of str, optional
        Names of the boxes; by default their rows and columns, the last one included.
    how, against
        As for `metfa.Regions`.

    Returns
    -------
    Regions
        One for each box, in their order.

    Raises
    ------
    ValueError
        If a box is empty or not within the map.

    Examples
    --------
    >>> from metfa import regions
    >>> cup_and_spoon = regions.boxes((100, 150), [(20, 10, 80, 60), (90, 40, 110, 41)], ["cup", "spoon"])
    >>> cup_and_spoon.names
    ('cup', 'spoon')
    >>> regions.boxes((100, 150), [(20, 10, 80, 60)]).names
    ('rows 10-59, columns 20-79',)
    """
    shape = feature_shape(of, "(224, 224)")
    height, width = plane_of(shape, "of")
    found = to_host(as_array(corners, "corners"))
    if found.ndim != 2 or found.shape[1] != 4 or not len(found):
        raise ValueError(
            "`corners` must hold (left, top, right, bottom) for each box, such as [(20, 10, 80, 60)], got shape "
            f"{found.shape}"
        )
    if found.dtype.kind not in "iu":
        raise TypeError(
            f"`corners` must be whole numbers of pixels, got {found.dtype}: round a detector's boxes, "
            "`boxes.round().int()` (torch) or `numpy.rint(boxes).astype(int)`"
        )
    for number, box in enumerate(found.tolist()):
        left, top, right, bottom = box
        if min(left, top) < 0 or right > width or bottom > height:
            raise ValueError(
                f"`corners`: box {number}, (left, top, right, bottom) = {tuple(box)}, does not lie within maps of "
                f"{height} rows and {width} columns; boxes count the pixels of the maps, not of a larger picture"
            )
        if left >= right or top >= bottom:
            raise ValueError(
                f"`corners`: box {number}, (left, top, right, bottom) = {tuple(box)}, is empty: `right` must be "
                "larger than `left`, and `bottom` larger than `top`"
            )
    masks = np.zeros((len(found), height, width), bool)
    for mask, (left, top, right, bottom) in zip(masks, found, strict=True):
        mask[top:bottom, left:right] = True
    if names is None:
        names = [extent(rows=(top, bottom), columns=(left, right)) for left, top, right, bottom in found.tolist()]
    return Regions(spread(masks, shape), names, how=how, against=against)
