"""Parts of an object's context: regions of the scene without the object's own pixels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from metfa.results.regions import Regions

__all__ = ["in_the_context", "objects_around"]


def objects_around(classes: np.ndarray | None, region: np.ndarray, names: Mapping[int, str] | None = None) -> Regions:
    """What a network finds around an object: all pixels of one class are one region.

    Parameters
    ----------
    classes : ndarray of int, (height, width)
        The network's class of each pixel, see `ContextExplanation.classes`.
    region : ndarray of bool, (height, width)
        The object's pixels.
    names : mapping, optional
        Names of classes; by default "class 7".

    Raises
    ------
    ValueError
        If the classes are not known.
    """
    if classes is None:
        raise ValueError(
            "`regions` must be given: this result does not know the network's classes of the pixels around the object, "
            "as results from before they were kept; see `metfa.regions`"
        )
    there = np.unique(classes[~region])
    labels = np.where(region, -1, np.searchsorted(there, classes).clip(max=len(there) - 1))
    return Regions(labels, [(names or {}).get(int(index), f"class {index}") for index in there])


def in_the_context(regions: Regions, region: np.ndarray) -> Regions:
    """The regions on the context's pixels, in the order of ``~region``; those without any are left out.

    Raises
    ------
    ValueError
        If no region has a pixel of the context, or for regions of another size.
    """
    regions.check_fits(region.shape, 1)
    context = ~region
    masks = regions.as_masks()[:, context]
    kept = np.flatnonzero(masks.any(axis=1))
    if not len(kept):
        raise ValueError("`regions` must hold pixels outside of the object, and these hold none: they lie within it")
    against = regions.against[context] if isinstance(regions.against, np.ndarray) else regions.against
    return replace(regions, masks=masks[kept], names=[regions.names[i] for i in kept], against=against)
