"""What figures and pages show of a series: the signal of each channel, the times, and the feature of each step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metfa.plot.kinds import Series
from metfa.plot.readings import map_shape
from metfa.results.masks import count_of
from metfa.results.regions import Regions
from metfa.results.sample import AttributionSample

__all__ = ["OVERLAPPING", "Traces", "cells_of", "is_overlapping", "runs_of"]

OVERLAPPING = "where regions overlap, the smallest is shown"


@dataclass(frozen=True, eq=False)
class Traces:
    """A series of one input.

    Attributes
    ----------
    times : ndarray, (length,)
        When each step is, float64.
    label : str
        What the times are, with their unit.
    names : tuple of str
        Names of the channels.
    signals : tuple of ndarray
        The signal (channels, length) in float64; of changed inputs two, before and after; none where there is no one
        signal, as of a population.
    cells : ndarray of int, (rows, length)
        The feature that each step of a row shows, -1 for none. One row for all channels, or one for each.
    """

    times: np.ndarray
    label: str
    names: tuple[str, ...]
    signals: tuple[np.ndarray, ...]
    cells: np.ndarray

    @classmethod
    def of(cls, sample: AttributionSample, kind: Series) -> Traces:
        """Of a sample of one input; raises where `kind` does not fit its lengths."""
        cells = cells_of(sample)
        cells = cells[None] if cells.ndim == 1 else cells.T if kind.axis == 0 else cells
        length = cells.shape[1]
        parts = [sample]
        if sample.pair is not None and sample.provenance["compared"]["inputs"] == "changed":
            parts = list(sample.pair)
        found = [_signal(part, kind, length, len(cells)) for part in parts]
        signals = tuple(signal for signal in found if signal is not None)
        channels = len(signals[0]) if signals else len(cells)
        return cls(kind.times_of(length), kind.label, kind.names_of(channels), signals, cells)

    @property
    def per_channel(self) -> bool:
        """Whether each channel has scores of its own."""
        return len(self.cells) > 1

    @property
    def edges(self) -> np.ndarray:
        """Where each step begins, and where the last one ends, (length + 1,): half way to its neighbours."""
        if len(self.times) == 1:
            return self.times[0] + np.array([-0.5, 0.5])
        between = (self.times[1:] + self.times[:-1]) / 2
        return np.concatenate([[2 * self.times[0] - between[0]], between, [2 * self.times[-1] - between[-1]]])


def cells_of(sample: AttributionSample) -> np.ndarray:
    """The feature that each place of a map of one input shows; of overlapping regions the smallest, -1 for none."""
    shape = map_shape(sample)
    if sample.regions is None:
        return np.arange(int(np.prod(shape))).reshape(shape)
    return _smallest(sample.regions)


def is_overlapping(sample: AttributionSample) -> bool:
    """Whether the features of one input are regions that hide parts of each other in `cells_of`."""
    mask = None if sample.regions is None else sample.regions.masks[0]
    return mask is not None and mask.dtype == bool and bool((mask.sum(axis=0) > 1).any())


def _smallest(regions: Regions) -> np.ndarray:
    mask = regions.masks[0]
    if mask.dtype != bool:
        return mask.astype(np.intp)
    cells = np.full(regions.feature_shape, -1, np.intp)
    sizes = [int(one.sum()) for one in mask]
    for region in sorted(range(count_of(mask)), key=lambda region: -sizes[region]):
        cells[mask[region]] = region
    return cells


def runs_of(marks: np.ndarray, mark: int) -> list[tuple[int, int]]:
    """First and behind the last of neighbouring steps (length,) that have one mark."""
    inside = np.concatenate([[False], marks == mark, [False]])
    starts, stops = np.flatnonzero(inside[1:] & ~inside[:-1]), np.flatnonzero(~inside[1:] & inside[:-1])
    return list(zip(starts.tolist(), stops.tolist(), strict=True))


def _signal(sample: AttributionSample, kind: Series, length: int, rows: int) -> np.ndarray | None:
    """The signal (channels, length) of the one input; None where the input is no such series."""
    inputs = sample.inputs
    if not isinstance(inputs, np.ndarray) or inputs.dtype.kind not in "biuf" or sample.sample_noun == "row":
        return None
    signal = inputs[0].astype(np.float64)
    signal = signal[None] if signal.ndim == 1 else signal.T if kind.axis == 0 else signal
    if signal.ndim != 2 or signal.shape[1] != length or (rows > 1 and len(signal) != rows):
        if rows == 1 and signal.ndim == 2 and len(signal) == length:
            raise ValueError(
                f"`kind`: time is the {'first' if kind.axis else 'last'} axis of inputs {inputs.shape[1:]} with "
                f"maps of {length:,} steps: write `Series(axis={0 if kind.axis else -1})`"
            )
        return None
    return signal
