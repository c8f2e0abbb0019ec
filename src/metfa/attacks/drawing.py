"""Maps to draw: plain shapes that nobody mistakes for an explanation."""

from __future__ import annotations

import numpy as np

from metfa._base.validation import one_of, positive_int

__all__ = ["SHAPES", "drawn"]

MOST_SIDE = 2**14  # pixels; a map of more would be gigabytes
SHAPES = ("circle", "square", "cross", "frame", "left", "corner")


def drawn(shape: str, height: int, width: int) -> np.ndarray:
    """A target map in [0, 1]: 1 within a shape, 0 outside.

    Parameters
    ----------
    shape : {"circle", "square", "cross", "frame", "left", "corner"}
        A disc, a square or a cross in the middle, the outermost pixels, the left half, or the upper left quarter.
    height, width : int
        Size of the map.

    Returns
    -------
    ndarray of float32, (height, width)

    Examples
    --------
    >>> from metfa import attacks
    >>> attacks.drawn("square", 4, 6).astype(int).tolist()
    [[0, 0, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0]]
    """
    one_of(shape, "shape", SHAPES)
    height, width = (positive_int(side, name, 1, MOST_SIDE) for side, name in ((height, "height"), (width, "width")))
    side = min(height, width)
    rows = np.abs(np.arange(height) + 0.5 - height / 2)[:, None]
    columns = np.abs(np.arange(width) + 0.5 - width / 2)[None]
    inside = {
        "circle": rows**2 + columns**2 <= (0.35 * side) ** 2,
        "square": (rows <= 0.3 * side) & (columns <= 0.3 * side),
        "cross": ((rows <= 0.1 * side) | (columns <= 0.1 * side)) & (rows <= 0.4 * side) & (columns <= 0.4 * side),
        "frame": (rows > 0.4 * height) | (columns > 0.4 * width),
        "left": np.arange(width)[None] < width / 2 + 0 * rows,
        "corner": (np.arange(height)[:, None] < height / 2) & (np.arange(width)[None] < width / 2),
    }[shape]
    return inside.astype(np.float32)
