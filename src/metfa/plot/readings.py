"""Which kind of map a sample has: as somebody says, or as the shapes say where one kind alone fits them."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np

from metfa._base.validation import shown
from metfa.plot.kinds import Image, Kind, Series, Volume
from metfa.results.sample import AttributionSample

__all__ = ["kind_of", "map_shape", "place_noun", "said_to_be"]

STRIP = 4  # longer or flatter maps of inputs without a channel axis may as well be series
Given = TypeVar("Given", Series, Volume, Image)
HELP = "write `kind=metfa.plot.{}()`"


def map_shape(sample: AttributionSample) -> tuple[int, ...]:
    """Shape of the maps of a sample, also where its features are regions of them."""
    return sample.feature_shape if sample.regions is None else sample.regions.feature_shape


def kind_of(sample: AttributionSample, kind: Kind | None = None) -> Kind | None:
    """What the maps of a sample are of; None for features that have no place, such as the columns of a table.

    A given `kind` must fit. Without one, the shapes of inputs and maps decide where only one kind fits.

    Raises
    ------
    TypeError, ValueError
        For a kind that does not fit, and for shapes that two kinds fit: the message says what to write.
    """
    shape = map_shape(sample)
    if kind is not None:
        return _checked(kind, shape)
    inputs = _shape_of_input(sample)
    if sample.pairs_of is not None:
        return None
    if len(shape) == 1:
        return _of_steps(shape, inputs) if sample.feature_names is None or sample.regions is not None else None
    if len(shape) == 2:
        _check_image(shape, inputs)
        return Image()
    if inputs is not None and len(inputs) == 4 and (inputs[1:] == shape or (shape == inputs and shape[0] == 1)):
        return Volume()
    return None if sample.regions is not None else _refused(shape, inputs)


def said_to_be(wanted: type[Given], sample: AttributionSample, kind: Any) -> Given:
    """The kind of a sample that somebody draws as that kind; raises for another one, and where it does not fit."""
    known = wanted() if kind is None else kind
    if isinstance(known, Series | Volume | Image) and not isinstance(known, wanted):
        raise TypeError(f"`kind` must be a metfa.plot.{wanted.__name__}, got {known!r}: `sample.plot` takes the others")
    return cast("Given", _checked(known, map_shape(sample)))


def place_noun(sample: AttributionSample, kind: Series | Volume) -> str:
    """What a feature is called: a region; a step of all channels, or a point of one; a voxel."""
    if sample.regions is not None:
        return sample.noun
    if isinstance(kind, Volume):
        return "voxel"
    shape = sample.feature_shape
    channels = 1 if len(shape) == 1 else shape[1 if kind.axis == 0 else 0]
    return "step" if channels == 1 else "point"


def _shape_of_input(sample: AttributionSample) -> tuple[int, ...] | None:
    """Shape of one input; None where inputs are no arrays."""
    if not isinstance(sample.inputs, np.ndarray):
        return None
    return sample.inputs.shape[2 if sample.sample_noun == "row" else 1 :]  # rows of a data set are one input


def _checked(kind: Any, shape: tuple[int, ...]) -> Kind:
    if isinstance(kind, type) and issubclass(kind, Series | Volume | Image):
        raise TypeError(f"`kind` must be an object, got the class {kind.__name__}: {HELP.format(kind.__name__)}")
    if not isinstance(kind, Series | Volume | Image):
        raise TypeError(f"`kind` must be a metfa.plot.Series, Volume or Image, got {shown(kind)}")
    fits, wanted = {
        Series: (len(shape) in (1, 2), "(time,) or (channels, time)"),
        Image: (len(shape) == 2, "(height, width)"),
        Volume: (len(shape) == 3 or (len(shape) == 4 and shape[0] == 1), "(depth, height, width)"),
    }[type(kind)]
    if not fits:
        several = len(shape) == 4 or (len(shape) == 3 and not isinstance(kind, Volume))
        remedy = "; `metfa.explainers.heatmap(explainer)` reduces channels" * several
        one = f"{'an' if isinstance(kind, Image) else 'a'} {type(kind).__name__}"
        raise ValueError(f"`kind`: {one} has maps {wanted}, got maps of shape {shape}{remedy}")
    return kind


def _of_steps(shape: tuple[int, ...], inputs: tuple[int, ...] | None) -> Series | None:
    """A series, where the inputs are (channels, time) and the map is (time,); else columns of a table."""
    if inputs is None or len(inputs) != 2 or shape[0] != inputs[1]:
        return None
    if inputs[0] == inputs[1]:
        raise ValueError(
            f"two readings fit inputs {inputs} and maps {shape}: time may be their last axis, "
            f"{HELP.format('Series')}, or their first, write `kind=metfa.plot.Series(axis=0)`; `metfa.plot.bars` "
            "draws one bar for each"
        )
    return Series()


def _check_image(shape: tuple[int, ...], inputs: tuple[int, ...] | None) -> None:
    """Raise where the inputs have no channel axis and are so long or flat that they may be series."""
    height, width = shape
    if inputs == shape and not 1 / STRIP <= height / width <= STRIP:
        raise ValueError(
            f"two readings fit inputs {shape} with maps of the same shape: a series of {height} channels, "
            f"{HELP.format('Series')}, or a picture without a channel axis, {HELP.format('Image')}"
        )


def _refused(shape: tuple[int, ...], inputs: tuple[int, ...] | None) -> Any:
    if len(shape) == 3 and inputs == shape:
        raise ValueError(
            f"two readings fit inputs {shape} with maps of the same shape: a volume of {shape[0]} slices without a "
            f"channel axis, {HELP.format('Volume')}, or an image with a map for each of {shape[0]} channels, of which "
            "`metfa.explainers.heatmap(explainer)` makes one map"
        )
    volume = f"; of a volume {HELP.format('Volume')}" if len(shape) == 3 else ""
    raise ValueError(
        f"`sample` must hold maps (height, width) of images, (time,) or (channels, time) of series, or (depth, height, "
        f"width) of volumes, got features of shape {shape}; `metfa.explainers.heatmap(explainer)` reduces "
        f"channels{volume}"
    )
