"""Coarse masks on a grid of cells, and their enlargement to series, images and volumes: one matrix for each axis."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from metfa._arrays import from_host, namespace
from metfa._base.validation import positive_int

__all__ = [
    "LONG",
    "Enlargement",
    "along",
    "check_grid",
    "enlargement",
    "enlargements",
    "grid_sides",
    "interpolated",
    "places_of_cells",
    "resized",
    "stretched",
]

Enlargement = Literal["nearest", "corners", "centres", "mirrored"]
LONG = 4096  # steps of an axis; a square matrix for a longer one would fill the memory


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
        matrix = np.clip(1 - np.abs(places_of_cells(cells, pixels, how)[:, None] - np.arange(cells)), 0, 1)
    return matrix if blur is None else blur.blurred(matrix, 0)


def places_of_cells(cells: int, pixels: int, how: Enlargement) -> np.ndarray:
    """Where the pixels lie among the cells for a bilinear `how`, in cells from 0 to cells - 1."""
    centres = (np.arange(pixels) + 0.5) * cells / pixels - 0.5
    mirrored = cells - 1 - np.abs(cells - 1 - np.abs(centres))
    places = np.linspace(0, cells - 1, pixels) if how == "corners" else mirrored if how == "mirrored" else centres
    return places.clip(0, cells - 1)


def enlargements(grid: Any, size: Any, how: Enlargement, blur: Any = None) -> list[np.ndarray]:
    """Matrices that enlarge a mask on a grid to an input of `size`, such as (height, width): one for each axis."""
    blurs = [None] * len(size) if blur is None else blur.of_axes(len(size))
    sides = zip(grid_sides(grid, len(size)), size, blurs, strict=True)
    return [enlargement(cells, pixels, how, one) for cells, pixels, one in sides]


def resized(images: Any, matrices: list[np.ndarray]) -> Any:
    """The last axes of images (..., height, width), or of series or volumes, mapped by one matrix each."""
    for axis, matrix in enumerate(matrices, images.ndim - len(matrices)):
        images = along(axis, from_host(matrix, like=images), images)
    return images


def along(axis: int, matrix: Any, values: Any) -> Any:
    """One axis of an array mapped by a matrix (to, from), or by one for each row, (rows, to, from)."""
    xp = namespace(values)
    before, behind = tuple(values.shape[:axis]), tuple(values.shape[axis + 1 :])
    n_to, n_from = matrix.shape[-2:]
    if not behind:
        rows = values if matrix.ndim == 2 else xp.reshape(values, (before[0], math.prod(before[1:]), n_from))
        return xp.reshape(rows @ xp.matrix_transpose(matrix), (*before, n_to))
    if matrix.ndim > 2:
        matrix = xp.reshape(matrix, (before[0], *[1] * (axis - 1), n_to, n_from))
    mapped = matrix @ xp.reshape(values, (*before, n_from, math.prod(behind)))
    return xp.reshape(mapped, (*before, n_to, *behind))


def stretched(images: Any, size: Any) -> Any:
    """Images enlarged a little, to `size`, with the centres of the outer pixels matched as in "centres"."""
    for axis, pixels in enumerate(size, images.ndim - len(size)):
        cells = images.shape[axis]
        if pixels <= LONG:
            images = along(axis, from_host(enlargement(cells, pixels, "centres"), like=images), images)
        else:
            images = interpolated(images, places_of_cells(cells, pixels, "centres"), axis)
    return images


def interpolated(values: Any, places: np.ndarray, axis: int) -> Any:
    """An array at `places` along one axis, from 0 to its length - 1: linear between neighbours."""
    xp = namespace(values)
    low = np.floor(places).astype(np.int64).clip(0, max(values.shape[axis] - 2, 0))
    high = np.minimum(low + 1, values.shape[axis] - 1)
    share = (places - low).reshape(-1, *[1] * (values.ndim - 1 - axis % values.ndim))
    below, above = (xp.take(values, from_host(index, values, xp.int32), axis=axis) for index in (low, high))
    return below + (above - below) * from_host(share, like=values)


def check_grid(grid: Any) -> None:
    """Raise unless `grid` is a number of cells, or one for each axis of series, images or volumes."""
    sides = grid if isinstance(grid, tuple) else (grid,)
    if not 1 <= len(sides) <= 3:
        raise ValueError(f"`grid` must be an integer, or one for each axis such as (rows, columns), got {grid!r}")
    for side in sides:
        positive_int(side, "grid")


def grid_sides(grid: Any, n_axes: int = 2) -> tuple[int, ...]:
    """Cells along each axis of `grid`, an integer or one for each axis; TypeError or ValueError otherwise."""
    sides = grid if isinstance(grid, tuple) else (grid,) * n_axes
    if len(sides) != n_axes:
        wanted = {1: "one number for series", 2: "a pair (rows, columns) for images", 3: "three numbers for volumes"}
        raise ValueError(f"`grid` must be an integer, or {wanted[n_axes]}, got {grid!r}")
    return tuple(positive_int(side, "grid") for side in sides)
