"""Which figure a sample has."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from metfa._base.validation import check_kind
from metfa.plot._bars import bars
from metfa.plot._comparison import comparison
from metfa.plot._regions import regions
from metfa.plot._series import series
from metfa.plot._volume import volume
from metfa.plot.images import figure
from metfa.plot.kinds import Kind, Series, Volume
from metfa.plot.readings import kind_of
from metfa.results.sample import AttributionSample

__all__ = ["drawing_of"]


def drawing_of(sample: AttributionSample, kind: Kind | None = None, settings: Iterable[str] = ()) -> Callable[..., Any]:
    """The function that draws such a sample.

    Series have `series`, volumes `volume`, regions of images `regions`, features without a place `bars`, and images
    `figure`, or as differences `comparison`.

    Parameters
    ----------
    sample : AttributionSample
        What is to be drawn.
    kind : Series, Volume or Image, optional
        What its maps are of. Without it the shapes of inputs and maps decide: maps (time,) of inputs (channels, time)
        are series, maps (depth, height, width) of inputs (channels, depth, height, width) are volumes, maps (height,
        width) are images. Maps along one axis of other inputs are columns of a table.
    settings : iterable of str
        Names of the arguments with which the function will be called.

    Raises
    ------
    TypeError, ValueError
        For a kind that does not fit, for settings that the function does not have, and where the shapes fit two kinds:
        the message says what to write.
    """
    check_kind(sample, "sample", AttributionSample, "`metfa.explain`")
    drawing = _drawing_of(sample, kind)
    inner = drawing.func if isinstance(drawing, partial) else drawing
    known = list(inspect.signature(inner).parameters)[1:]
    unknown = [name for name in settings if name not in known]
    if unknown:
        other = {"ax": "it has several panels: give a subfigure, `fig=`", "fig": "it has one panel: give axes, `ax=`"}
        hint = other.get(unknown[0], f"it has {', '.join(known)}")
        raise TypeError(f"`{unknown[0]}`: `metfa.plot.{inner.__name__}`, which draws this sample, has none; {hint}")
    return drawing


def _drawing_of(sample: AttributionSample, kind: Kind | None) -> Callable[..., Any]:
    found = kind_of(sample, kind)
    if isinstance(found, Series):
        return partial(series, kind=found)
    if isinstance(found, Volume):
        return partial(volume, kind=found)
    if found is None or (sample.regions is not None and sample.sample_noun == "row"):
        return bars
    special = regions if sample.regions is not None else comparison if sample.pair is not None else None
    if special is None:
        return figure if kind is None else partial(figure, kind=found)
    if not found.has_axes:
        return special
    raise ValueError(
        f"`kind`: rows and columns have labels in the figure of plain maps alone, got a sample for "
        f"`metfa.plot.{special.__name__}`: leave `kind` out"
    )
