"""The coarse grid of cells that masks are made on."""

from __future__ import annotations

from typing import Any

from metfa._base.validation import positive_int

__all__ = ["grid_sides"]


def grid_sides(grid: Any) -> tuple[int, int]:
    """Cells along (rows, columns) of `grid`, an integer or a pair; TypeError or ValueError otherwise."""
    sides = grid if isinstance(grid, tuple) else (grid, grid)
    if len(sides) != 2:
        raise ValueError(f"`grid` must be an integer or a pair (rows, columns), got {grid!r}")
    return positive_int(sides[0], "grid"), positive_int(sides[1], "grid")
