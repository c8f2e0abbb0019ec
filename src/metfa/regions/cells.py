"""Cells of equal size: a grid over an image, blocks of a volume, windows of a series."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from metfa._base.validation import as_list, check_flag, is_whole, positive_int, shown
from metfa.regions._planes import extent, feature_shape, plane_of, spread
from metfa.results.regions import Regions

__all__ = ["blocks", "grid", "windows"]


def grid(of: Any, cells: int | tuple[int, int] = 14, *, how: str = "mean", against: Any = None) -> Regions:
    """An image cut into boxes of equal size, in rows and columns. It needs no other library.

    Parameters
    ----------
    of : AttributionSample or tuple of int
        A result, or the shape of its maps: (height, width), or (channels, height, width), where a region holds all
        channels of its pixels.
    cells : int or (int, int)
        Number of rows and columns of the grid. Where they do not divide the height or width, sides differ by one pixel.
    how, against
        As for `metfa.Regions`.

    Returns
    -------
    Regions
        Row by row; names say which pixels, the last one included.

    Raises
    ------
    ValueError
        If there are more rows or columns than the map has.

    Examples
    --------
    >>> from metfa import regions
    >>> regions.grid((5, 8), (2, 2)).names
    ('rows 0-1, columns 0-3', 'rows 0-1, columns 4-7', 'rows 2-4, columns 0-3', 'rows 2-4, columns 4-7')
    """
    shape = feature_shape(of, "(224, 224)")
    labels, names = _cut(plane_of(shape, "of"), cells, ("rows", "columns"))
    return Regions(spread(labels, shape), names, how=how, against=against)


def blocks(of: Any, cells: int | tuple[int, int, int] = 4, *, how: str = "mean", against: Any = None) -> Regions:
    """A volume cut into blocks of equal size.

    Parameters
    ----------
    of : AttributionSample or tuple of int
        A result, or the shape of its maps: (depth, height, width), or (channels, depth, height, width), where a region
        holds all channels of its voxels.
    cells : int or (int, int, int)
        Number of blocks along depth, height and width. Where they do not divide a side, lengths differ by one voxel.
    how, against
        As for `metfa.Regions`.

    Returns
    -------
    Regions
        In the order of the voxels; names say which slices, rows and columns, the last one included.

    Raises
    ------
    ValueError
        If there are more blocks along an axis than voxels.

    Examples
    --------
    >>> from metfa import regions
    >>> regions.blocks((32, 64, 64), (2, 1, 1)).names
    ('slices 0-15, rows 0-63, columns 0-63', 'slices 16-31, rows 0-63, columns 0-63')
    """
    shape = feature_shape(of, "(32, 64, 64)")
    if len(shape) not in (3, 4):
        raise ValueError(
            "`of`: a volume has maps (depth, height, width) or (channels, depth, height, width), got maps of shape "
            f"{shape}"
        )
    labels, names = _cut(shape[-3:], cells, ("slices", "rows", "columns"))
    return Regions(np.broadcast_to(labels, shape), names, how=how, against=against)


def windows(
    of: Any, length: int, *, axis: int = -1, together: bool = True, how: str = "mean", against: Any = None
) -> Regions:
    """A series cut into windows of a length.

    Parameters
    ----------
    of : AttributionSample or tuple of int
        A result, or the shape of its maps: (time,), (channels, time), or (time, channels) with `axis=0`.
    length : int
        Steps of a window. If it does not divide the series, the last window is shorter, and its name says so.
    axis : int
        Which axis is time.
    together : bool
        Whether a window holds its steps of all channels; False: a window for each channel.
    how, against
        As for `metfa.Regions`.

    Returns
    -------
    Regions
        In the order of time, channel after channel; names say which steps, the last one included.

    Raises
    ------
    ValueError
        If a window is longer than the series.

    Examples
    --------
    >>> from metfa import regions
    >>> regions.windows((250,), 100).names
    ('steps 0-99', 'steps 100-199', 'steps 200-249 (shorter)')
    >>> regions.windows((2, 200), 100, together=False).names
    ('channel 0, steps 0-99', 'channel 0, steps 100-199', 'channel 1, steps 0-99', 'channel 1, steps 100-199')
    """
    shape = feature_shape(of, "(1000,)")
    if len(shape) not in (1, 2):
        raise ValueError(f"`of`: a series has maps (time,) or (channels, time), got maps of shape {shape}")
    if not is_whole(axis):
        raise TypeError(f"`axis` must be an integer, got {shown(axis)}")
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"`axis` must be an axis of maps of shape {shape}, got {axis}")
    steps, together = shape[axis], check_flag(together, "together")
    length = positive_int(length, "length")
    if length > steps:
        raise ValueError(f"`length` must be at most {steps}, the length of the series, got {length}")
    edges = [*range(0, steps, length), steps]
    labels = np.arange(steps) // length
    names = [extent(steps=piece) + " (shorter)" * (piece[1] - piece[0] < length) for piece in pairwise(edges)]
    if len(shape) == 2:
        channels = shape[1 - axis % 2]
        labels = np.tile(labels, (channels, 1))
        if not together:
            labels = labels + len(names) * np.arange(channels)[:, None]
            names = [f"channel {channel}, {name}" for channel in range(channels) for name in names]
        labels = labels.T if axis % 2 == 0 else labels
    return Regions(labels, names, how=how, against=against)


def _cut(sides: tuple[int, ...], cells: Any, words: tuple[str, ...]) -> tuple[np.ndarray, list[str]]:
    """Labels of shape `sides`, a number of cells along each axis, and the names of the cells in the same order."""
    counts = [cells] * len(sides) if is_whole(cells) else as_list(cells, "cells", "an integer, or one for each axis")
    if len(counts) != len(sides):
        raise ValueError(f"`cells` must be an integer or one for each of {', '.join(words)}, got {shown(cells)}")
    labels, places = np.zeros((1,) * len(sides), np.intp), [{}]
    for axis, (side, count, word) in enumerate(zip(sides, counts, words, strict=True)):
        count = positive_int(count, "cells")
        if count > side:
            raise ValueError(f"`cells` must be at most the number of {word}, {side}, got {count}")
        edges = [cell * side // count for cell in range(count + 1)]
        along = np.repeat(np.arange(count), np.diff(edges))
        labels = labels * count + along.reshape(-1, *[1] * (len(sides) - axis - 1))
        places = [{**place, word: piece} for place in places for piece in pairwise(edges)]
    return labels, [extent(**place) for place in places]
