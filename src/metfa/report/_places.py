"""Series and volumes as the page draws them: the signal or the grey values, and the feature of each place."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa.plot.kinds import Image, Kind, Series, Volume
from metfa.plot.readings import kind_of
from metfa.plot.traces import Traces, is_overlapping
from metfa.plot.voxels import NAMES, Voxels
from metfa.report._cells import packed
from metfa.report._layers import colours_of
from metfa.results.sample import AttributionSample
from metfa.text.reading import harmless_text

__all__ = ["placed_kind", "placed_of"]

MOST = 2**21  # places of a page: 1,048,576 voxels and 50 samples take about 10 MB
LEVELS = 2**16 - 1  # of a signal, from its lowest to its highest value


def placed_kind(sample: AttributionSample, kind: Kind | None) -> Series | Volume | None:
    """The series or volume that a sample is of; None for images and for features without a place."""
    found = kind_of(sample, kind)
    if isinstance(found, Image) and found.has_axes:
        raise ValueError("`kind`: a page shows images without labels of rows and columns: leave them out, or `kind`")
    return found if isinstance(found, Series | Volume) else None


def placed_of(sample: AttributionSample, kind: Series | Volume, name: str) -> dict[str, Any]:
    """What the page reads of a series or a volume of one input; raises for more places than a page can hold."""
    found = Traces.of(sample, kind) if isinstance(kind, Series) else Voxels.of(sample, kind)
    cells = found.cells
    if cells.size > MOST:
        what = "voxels" if isinstance(kind, Volume) else "points"
        remedy = (
            "`metfa.plot.volume` draws it; or explain every second slice, row and column, `inputs[..., ::2, ::2, ::2]`"
            if isinstance(kind, Volume)
            else "`metfa.plot.series` draws it; or explain a part of the series by itself"
        )
        raise ValueError(f"`results`: {name!r} has {cells.size:,} {what}, and a page holds at most {MOST:,}: {remedy}")
    data: dict[str, Any] = {}
    if isinstance(found, Voxels):
        grey = np.rint(np.clip(np.nan_to_num(found.picture), 0, 1) * 255).astype(np.uint8)
        data = {"picture": packed(grey), "caption": found.caption, "colours": colours_of(signed=bool(sample.signed))}
    place = _series(found) if isinstance(found, Traces) else _volume(found)
    alone = sample.regions is None and np.array_equal(cells.ravel(), np.arange(cells.size))
    names = None if sample.regions is None else [harmless_text(name) for name in _names(sample)]
    place |= {"shape": list(cells.shape), "cells": None if alone else packed(cells.astype("<i4"))}
    place["overlapping"] = is_overlapping(sample)
    return {**data, "names": names, "located": place}


def _names(sample: AttributionSample) -> tuple[str, ...]:
    return sample.feature_names or (sample.regions.names if sample.regions is not None else ())


def _series(traces: Traces) -> dict[str, Any]:
    times, steps = traces.times, np.diff(traces.times)
    even = len(times) < 2 or np.allclose(steps, steps[0], rtol=1e-9, atol=0)
    grid = {"first": float(times[0]), "step": float(steps[0]) if len(steps) else 1.0}
    return {
        "label": harmless_text(traces.label),
        "times": grid if even else packed(times.astype("<f8")),
        "channels": [harmless_text(name) for name in traces.names],
        "signals": [_levels(signal) for signal in traces.signals],
    }


def _levels(signal: np.ndarray) -> dict[str, Any]:
    """A signal (channels, length) in 65,536 steps from the lowest to the highest value of each channel."""
    low, high = signal.min(axis=1), signal.max(axis=1)
    span = np.where(high > low, high - low, 1.0)
    levels = np.rint((signal - low[:, None]) / span[:, None] * LEVELS).astype("<u2")
    return {"low": low.tolist(), "high": high.tolist(), "levels": packed(levels)}


def _volume(voxels: Voxels) -> dict[str, Any]:
    kind = voxels.kind
    return {
        "spacing": list(kind.spacing),
        "unit": None if kind.unit is None else harmless_text(kind.unit),
        "axis": kind.axis,
        "at": list(kind.at) if kind.at else None,
        "axes": list(NAMES),
    }
