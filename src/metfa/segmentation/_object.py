"""The pixels of an object, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa._arrays import as_array, to_host

__all__ = ["check_size", "checked_region"]


def checked_region(region: Any) -> np.ndarray:
    """`region` as pixels (height, width) bool on the host; raises unless it has pixels, and leaves some outside."""
    host = to_host(as_array(region, "region"))
    if host.dtype != bool:
        raise TypeError(f"`region` must be boolean, got {host.dtype}: for the pixels of a class write `labels == 8`")
    if host.ndim != 2:
        raise ValueError(f"`region` must be pixels (height, width), got shape {host.shape}")
    if not host.any() or host.all():
        what = "no pixel" if not host.any() else "all pixels, which leaves no context"
        raise ValueError(f"`region` must hold some pixels of the image and not others, but it holds {what}")
    return host.copy()


def check_size(region: np.ndarray, images: Any) -> None:
    """Raise unless images (batch, channels, height, width) have the region's height and width."""
    if images.ndim != 4:
        raise ValueError(f"images must have the shape (batch, channels, height, width), got {tuple(images.shape)}")
    if tuple(images.shape[2:]) != region.shape:
        raise ValueError(
            f"`region` must have the height and width of the images, {tuple(images.shape[2:])}, got {region.shape}"
        )
