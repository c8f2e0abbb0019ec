"""Coarse masks on a grid of cells, and their enlargement to images: one matrix for rows, one for columns."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import numpy as np

from metfa._arrays import from_host, namespace
from metfa._base.validation import positive_int

__all__ = ["Enlargement", "enlargement", "enlargements", "grid_sides", "resized"]

Enlargement = Literal["nearest", "corners", "centres", "mirrored"]


@lru_cache(maxsize=32)  # an optimisation needs the same ones at every step
def enlargement(cells: int, pixels: int, how: Enlargement, blur: Any = None) -> np.ndarray:
    """The matrix (pixels, cells) that enlarges a row of cells, and then blurs it if `blur` is given.

    "nearest" repeats cells; the bilinear ones match the outer "corners" (torch's ``align_corners=True``), or the
    centres of the cells' extents. Beyond the centres of the outer cells, these cells are repeated ("centres", torch's
    ``align_corners=False``), or the row is mirrored there ("mirrored", scikit-image's ``resize(order=1,
    mode="reflect", anti_aliasing=False)``).
    """
    if how == "nearest":
        matrix = np.eye(cells)[np.arange(pixels) * cells // pixels]
    else:
        centres = (np.arange(pixels) + 0.5) * cells / pixels - 0.5
        mirrored = cells - 1 - np.abs(cells - 1 - np.abs(centres))
        places = np.linspace(0, cells - 1, pixels) if how == "corners" else mirrored if how == "mirrored" else centres
        places = places.clip(0, cells - 1)
        matrix = np.clip(1 - np.abs(places[:, None] - np.arange(cells)), 0, 1)
    return matrix if blur is None else blur.matrix(pixels) @ matrix


def enlargements(grid: Any, size: Any, how: Enlargement, blur: Any = None) -> list[np.ndarray]:
    """Matrices that enlarge a mask on a grid to an image of `size` (height, width): one for rows, one for columns."""
    return [enlargement(cells, pixels, how, blur) for cells, pixels in zip(grid_sides(grid), size, strict=True)]


def resized(images: Any, matrices: list[np.ndarray]) -> Any:
    """Rows and columns of images (..., height, width) mapped by one matrix each."""
    down, across = (from_host(matrix, like=images) for matrix in matrices)
    return down @ images @ namespace(images).matrix_transpose(across)


def grid_sides(grid: Any) -> tuple[int, int]:
    """Cells along (rows, columns) of `grid`, an integer or a pair; TypeError or ValueError otherwise."""
    sides = grid if isinstance(grid, tuple) else (grid, grid)
    if len(sides) != 2:
        raise ValueError(f"`grid` must be an integer or a pair (rows, columns), got {grid!r}")
    return positive_int(sides[0], "grid"), positive_int(sides[1], "grid")
