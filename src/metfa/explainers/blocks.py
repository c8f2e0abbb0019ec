"""Blocks: segments of equal size, for inputs with any number of axes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metfa._arrays import as_array
from metfa._base.validation import keep, positive_int, shown
from metfa.calls.enlargement import check_grid, grid_sides
from metfa.calls.inputs import MOST_AXES

__all__ = ["Blocks"]


@dataclass(frozen=True)
class Blocks:
    """Segments of equal size: windows of a series, rectangles of an image, cuboids of a volume.

    Parameters
    ----------
    grid : int or tuple of int, optional
        Blocks along each axis, such as 40 windows of a series or ``(4, 8, 8)`` blocks of a volume of thick slices.
    size : int or tuple of int, optional
        Instead of `grid`, the steps, pixels or voxels of a block along each axis. The last ones may be smaller.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa.explainers import Blocks
    >>> Blocks(3)(np.zeros((6, 1)))  # an input with its channels last
    array([0, 0, 1, 1, 2, 2])
    >>> Blocks(size=(2, 3))(np.zeros((3, 4, 1)))
    array([[0, 0, 0, 1],
           [0, 0, 0, 1],
           [2, 2, 2, 3]])
    """

    grid: int | tuple[int, ...] | None = None
    size: int | tuple[int, ...] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if (self.grid is None) == (self.size is None):
            raise TypeError(
                "Blocks needs either `grid`, the number of blocks along each axis, or `size`, the steps of a block: "
                f"got grid={shown(self.grid)} and size={shown(self.size)}"
            )
        if self.grid is not None:
            check_grid(self.grid)
        else:
            sizes = self.size if isinstance(self.size, tuple) else (self.size,)
            if not 1 <= len(sizes) <= MOST_AXES:
                raise ValueError(f"`size` must be an integer, or one for each axis, got {self.size!r}")
            kept = tuple(positive_int(size, "size") for size in sizes)
            keep(self, size=kept if isinstance(self.size, tuple) else kept[0])

    def __call__(self, values: np.ndarray) -> np.ndarray:
        r"""Labels (\*axes) of an input (\*axes, channels), from 0 on."""
        lengths = as_array(values, "values").shape[:-1]
        if not 1 <= len(lengths) <= MOST_AXES or 0 in lengths:
            raise ValueError(
                "`values` must be one input with its channels last, such as (height, width, channels), got shape "
                f"{np.shape(values)}"
            )
        labels: Any = 0
        for axis, (n_blocks, of_step) in enumerate(self._sides(lengths)):
            labels = labels * n_blocks + of_step.reshape(-1, *[1] * (len(lengths) - 1 - axis))
        return np.asarray(labels)

    def _sides(self, lengths: tuple[int, ...]) -> list[tuple[int, np.ndarray]]:
        """Of each axis the number of its blocks, and the block of each step."""
        if self.grid is not None:
            cells = grid_sides(self.grid, len(lengths))
            numbers = [min(n, length) for n, length in zip(cells, lengths, strict=True)]
            return [(n, np.arange(length) * n // length) for n, length in zip(numbers, lengths, strict=True)]
        sizes: Any = self.size if isinstance(self.size, tuple) else (self.size,) * len(lengths)
        if len(sizes) != len(lengths):
            raise ValueError(f"`size` has {len(sizes)} numbers, one for each axis, but the inputs have {len(lengths)}")
        return [(-(-length // size), np.arange(length) // size) for size, length in zip(sizes, lengths, strict=True)]
