"""Where regions lie in a picture: their outlines, a point inside each, and maps enlarged to the picture."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["enlarged", "fine", "inner_point", "outline"]

FINEST = 160  # pixels: the corners of maps with fewer would be cut off visibly


def enlarged(array: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """An array (height, width, ...) at another size, each place with the value of the cell that it lies in."""
    rows, columns = (np.arange(new) * old // new for new, old in zip(shape, array.shape[:2], strict=True))
    return array[rows[:, None], columns]


def fine(picture: np.ndarray) -> np.ndarray:
    """The picture with so many pixels that outlines follow the edges of its cells."""
    height, width = picture.shape[:2]
    times = -(-FINEST // max(height, width))
    return enlarged(picture, (times * height, times * width))


def outline(mask: np.ndarray) -> list[np.ndarray]:
    """Closed lines (points, x and y) around a mask (height, width), with the corners of its pixels cut off.

    Coordinates are those of `Axes.imshow`, where pixels have their centres at whole numbers.
    """
    from contourpy import contour_generator

    (first, _), (left, _) = ends = _ends(mask)
    part = np.pad(mask[tuple(slice(low, high) for low, high in ends)], 1).astype(np.float64)
    lines: Any = contour_generator(z=part, line_type="Separate").lines(0.5)
    return [np.add(line, (left - 1, first - 1)) for line in lines]


def _ends(mask: np.ndarray) -> list[tuple[int, int]]:
    """First row and one after the last of a mask that is True somewhere, and columns likewise."""
    found = [np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0)]
    return [(int(places[0]), int(places[-1]) + 1) for places in found]


def inner_point(mask: np.ndarray) -> tuple[int, int]:
    """Row and column of the point of a mask (height, width) that lies furthest inside it."""
    (top, bottom), (left, right) = _ends(mask)
    rest = np.pad(mask[top:bottom, left:right], 1)
    while True:
        smaller = rest[1:-1, 1:-1] & rest[:-2, 1:-1] & rest[2:, 1:-1] & rest[1:-1, :-2] & rest[1:-1, 2:]
        if not smaller.any():
            break
        rest = np.pad(smaller, 1)
    points = np.argwhere(rest[1:-1, 1:-1])
    best = points[((points - points.mean(axis=0)) ** 2).sum(axis=1).argmin()]
    return int(top + best[0]), int(left + best[1])
