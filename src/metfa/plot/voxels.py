"""What figures and pages show of a volume: its grey values, and the feature of each voxel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metfa.plot.kinds import Volume
from metfa.plot.traces import cells_of
from metfa.results.sample import AttributionSample

__all__ = ["NAMES", "Voxels"]

NAMES = ("slice", "row", "column")


@dataclass(frozen=True, eq=False)
class Voxels:
    """A volume of one input.

    Attributes
    ----------
    picture : ndarray, (depth, height, width)
        Grey values in [0, 1]; white where there is no picture.
    caption : str
        What they are.
    cells : ndarray of int, (depth, height, width)
        The feature that each voxel shows, -1 for none.
    kind : Volume
        Distances of the voxels.
    """

    picture: np.ndarray
    caption: str
    cells: np.ndarray
    kind: Volume

    @classmethod
    def of(cls, sample: AttributionSample, kind: Volume) -> Voxels:
        """Of a sample of one input; raises where `kind` does not fit its shape."""
        cells = cells_of(sample)
        cells = cells[0] if cells.ndim == 4 else cells
        kind.check_at(cells.shape)
        return cls(*_grey(sample, cells.shape), cells, kind)

    @property
    def aspects(self) -> tuple[float, float, float]:
        """Height of a pixel over its width, in the planes across slices, across rows and across columns."""
        slices, rows, columns = self.kind.spacing
        return rows / columns, slices / columns, slices / rows

    def place(self, axis: int, number: int) -> str:
        """Where a slice along an axis lies, in words, with its distance from the first one where there is a unit."""
        unit = self.kind.unit
        distance = f" ({number * self.kind.spacing[axis]:.4g} {unit})" if unit else ""
        return f"{NAMES[axis]} {number}{distance}"


def _grey(sample: AttributionSample, shape: tuple[int, ...]) -> tuple[np.ndarray, str]:
    inputs = sample.inputs
    numbers = isinstance(inputs, np.ndarray) and inputs.dtype.kind in "biuf" and sample.sample_noun != "row"
    values = np.asarray(inputs[0], np.float64) if numbers else np.zeros(0)
    values = values[None] if values.ndim == 3 else values
    if values.shape[1:] != shape:
        return np.ones(shape), "no picture"
    caption = "picture" if len(values) == 1 else f"mean of {len(values)} channels"
    grey = values.mean(axis=0)
    low, high = float(grey.min()), float(grey.max())
    if low < -1e-6 or high > 1 + 1e-6:
        return (grey - low) / ((high - low) or 1.0), f"{caption}, rescaled to be shown"
    return grey, caption
