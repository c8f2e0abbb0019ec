"""Labels and values of the rows and columns of images, as of a spectrogram."""

from __future__ import annotations

import numpy as np

from metfa.plot.kinds import Image

__all__ = ["draw_axes"]


def draw_axes(axes: np.ndarray, kind: Image, shape: tuple[int, ...]) -> None:
    """Write what rows and columns are beside the panels, and draw rising rows upwards."""
    ends = []
    for axis, side in zip((kind.rows, kind.columns), shape, strict=True):
        _, first, last = axis or ("", 0.0, max(side - 1.0, 1.0))
        half = (last - first) / max(side - 1, 1) / 2  # cells have their values in the middle
        ends.append((first - half, last + half))
    (top, bottom), (left, right) = ends
    for place, ax in enumerate(axes):
        if not ax.images:
            continue
        ax.images[0].set_extent((left, right, bottom, top))
        rises = kind.rows is not None and kind.rows[1] < kind.rows[2]
        ax.set(xlim=(left, right), ylim=(top, bottom) if rises else (bottom, top), aspect="auto")
        ax.set_axis_on()
        ax.tick_params(labelsize="small", labelleft=place % 3 == 0, labelbottom=place >= len(axes) - 3)
        if place % 3 == 0:
            ax.set_ylabel(kind.rows[0] if kind.rows else "row", fontsize="small")
        if place >= len(axes) - 3:
            ax.set_xlabel(kind.columns[0] if kind.columns else "column", fontsize="small")
