"""Discs in the middle of images, windows of series and balls in volumes, with soft edges: masks to start from."""

from __future__ import annotations

import numpy as np
import torch

from metfa.calls.blur import Blur

__all__ = ["discs", "discs_on_grid", "radii_of"]

SOFTNESS = 10 / 224  # width of the edges; the input's longest side is 1


def radii_of(n_axes: int) -> np.ndarray:
    """Radii to try, of which the last covers the whole input; the input's longest side is 1."""
    return np.arange(0, 175 if n_axes < 3 else 200, 5) / 224


def discs(radii: np.ndarray, images: torch.Tensor) -> torch.Tensor:
    r"""Masks (radius, \*axes) which are 0 in the middle."""
    sizes = images.shape[2:]
    longest = max(sizes)
    away = sum(places**2 for places in np.ogrid[tuple(slice(-(size // 2), size - size // 2) for size in sizes)])
    reach = (radii * longest).reshape(-1, *[1] * len(sizes)) ** 2
    full = torch.as_tensor(away <= reach, device=images.device).to(images.dtype)
    return 1 - Blur(SOFTNESS * longest)(full[:, None])[:, 0]


def discs_on_grid(radii: np.ndarray, images: torch.Tensor, grid: tuple[int, ...]) -> torch.Tensor:
    r"""The same masks at the middles of the cells of a grid, (radius, \*cells)."""
    found = discs(radii, images)
    for axis, (cells, size) in enumerate(zip(grid, images.shape[2:], strict=True), 1):
        middles = ((np.arange(cells) + 0.5) * size // cells).astype(int)
        found = found.index_select(axis, torch.as_tensor(middles, device=found.device))
    return found
