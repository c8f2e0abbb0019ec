"""What the axes of a map are: rows and columns of an image, time of a series, slices of a volume."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa._arrays import as_array, to_host
from metfa._base.validation import as_list, as_names, check_number, is_whole, keep, shown

__all__ = ["Image", "Kind", "Series", "Volume"]


@dataclass(frozen=True, eq=False)
class Series:
    """Inputs are series, of one or several channels: what the axes of their maps mean.

    Maps are (time,), one score for a step of all channels, or (channels, time).

    Parameters
    ----------
    sampling_rate : float, optional
        Steps in a unit of time: 500 for 500 Hz. Without it and `times` the axis counts steps from 0.
    times : array, (time,), optional
        When each step is, ascending; instead of `sampling_rate`. Steps need not lie equally far apart.
    unit : str, optional
        Unit of time: by default "s" with a `sampling_rate`, and none with `times`.
    channels : sequence of str, optional
        Names of the channels, such as the leads of an ECG; by default "channel 0" and so on.
    axis : int
        Which axis of a map and of an input (both without the batch) is time: -1 for (channels, time), 0 for (time,
        channels).

    Raises
    ------
    TypeError, ValueError
        For times that do not ascend, and for settings that exclude each other.

    Examples
    --------
    >>> import metfa
    >>> metfa.plot.Series(sampling_rate=500, channels=["I", "II"])
    Series(sampling_rate=500.0, channels=('I', 'II'))
    """

    sampling_rate: float | None = None
    times: Any = None
    unit: str | None = None
    channels: Any = None
    axis: int = -1

    def __post_init__(self) -> None:
        if self.sampling_rate is not None and self.times is not None:
            raise ValueError("`sampling_rate` and `times` say the same: give only one of the two")
        if self.unit is not None and not isinstance(self.unit, str):
            raise TypeError(f"`unit` must be a text such as 's', got {shown(self.unit)}")
        if self.unit is not None and self.sampling_rate is None and self.times is None:
            raise ValueError("`unit` is that of `sampling_rate` or `times`: give one of them too")
        if not is_whole(self.axis) or self.axis not in (-1, 0):
            raise ValueError(
                f"`axis` must be -1, for maps (channels, time), or 0, for maps (time, channels), got {shown(self.axis)}"
            )
        keep(
            self,
            sampling_rate=None if self.sampling_rate is None else _positive(self.sampling_rate, "sampling_rate"),
            times=None if self.times is None else _ascending(self.times),
            channels=None if self.channels is None else as_names(self.channels, "channels"),
        )

    def __repr__(self) -> str:
        times = None if self.times is None else f"<{len(self.times):,} numbers>"
        given = {"sampling_rate": self.sampling_rate, "times": times, "unit": self.unit and repr(self.unit)}
        given |= {"channels": self.channels, "axis": "0" if self.axis == 0 else None}
        return f"Series({', '.join(f'{name}={value}' for name, value in given.items() if value is not None)})"

    @property
    def label(self) -> str:
        """Label of the axis of time."""
        unit = self.unit or ("s" if self.sampling_rate is not None else "")
        if self.sampling_rate is None and self.times is None:
            return "step"
        return f"time ({unit})" if unit else "time"

    def times_of(self, length: int) -> np.ndarray:
        """When each step is, float64 (length,)."""
        if self.times is not None:
            if len(self.times) != length:
                raise ValueError(
                    f"`times` must hold a number for each of the {length:,} steps, got {len(self.times):,}"
                )
            return self.times
        return np.arange(length) / (self.sampling_rate or 1.0)

    def names_of(self, count: int) -> tuple[str, ...]:
        """Names of the channels."""
        if self.channels is None and count == 1:
            return ("signal",)
        if self.channels is None:
            return tuple(f"channel {channel}" for channel in range(count))
        if len(self.channels) != count:
            raise ValueError(f"`channels` must hold a name for each of the {count} channels, got {len(self.channels)}")
        return self.channels


@dataclass(frozen=True)
class Volume:
    """Inputs are volumes: maps are (depth, height, width), which are slices, rows and columns.

    Parameters
    ----------
    spacing : (float, float, float)
        Distance of neighbouring slices, rows and columns: (5.0, 0.7, 0.7) for slices that lie further apart.
    unit : str, optional
        Unit of the distances, such as "mm".
    at : (int, int, int), optional
        Slice, row and column of the voxel through which planes are drawn; by default the one with the largest score.
    axis : {0, 1, 2}
        Along which axis a row of slices goes, and the slider of a page at its start.

    Raises
    ------
    TypeError, ValueError
        For distances that are not above 0.

    Examples
    --------
    >>> import metfa
    >>> metfa.plot.Volume(spacing=(5, 0.7, 0.7), unit="mm")
    Volume(spacing=(5.0, 0.7, 0.7), unit='mm', at=None, axis=0)
    """

    spacing: Any = (1.0, 1.0, 1.0)
    unit: str | None = None
    at: Any = None
    axis: int = 0

    def __post_init__(self) -> None:
        spacing = as_list(self.spacing, "spacing", "three numbers, of slices, rows and columns")
        if len(spacing) != 3:
            raise ValueError(f"`spacing` must be three numbers, of slices, rows and columns, got {shown(self.spacing)}")
        if self.unit is not None and not isinstance(self.unit, str):
            raise TypeError(f"`unit` must be a text such as 'mm', got {shown(self.unit)}")
        at = None if self.at is None else as_list(self.at, "at", "three integers: slice, row and column")
        if at is not None and not (len(at) == 3 and all(map(is_whole, at))):
            raise ValueError(f"`at` must be three integers, slice, row and column, got {shown(self.at)}")
        if not is_whole(self.axis) or self.axis not in (0, 1, 2):
            raise ValueError(f"`axis` must be 0 (slices), 1 (rows) or 2 (columns), got {shown(self.axis)}")
        keep(
            self,
            spacing=tuple(_positive(distance, "spacing") for distance in spacing),
            at=None if at is None else tuple(map(int, at)),
            axis=int(self.axis),
        )

    def check_at(self, shape: tuple[int, ...]) -> None:
        """Raise unless the voxel lies in a volume of that shape."""
        if self.at is not None and not all(0 <= place < side for place, side in zip(self.at, shape, strict=True)):
            raise ValueError(f"`at` must be a voxel of a volume {shape}, counted from 0, got {self.at}")


@dataclass(frozen=True)
class Image:
    """Inputs are images: maps are (height, width). A spectrogram has labels and values of its rows and columns.

    Parameters
    ----------
    rows, columns : (str, float, float), optional
        Label of the axis, and its values at the first and at the last row, or column: ``("frequency (Hz)", 0, 8000)``.
        Where the values rise with the rows, the first row is drawn at the bottom.

    Raises
    ------
    TypeError, ValueError
        For other values than a label and two different numbers.

    Examples
    --------
    >>> import metfa
    >>> metfa.plot.Image(rows=("frequency (Hz)", 0, 8000), columns=("time (s)", 0, 2.5))
    Image(rows=('frequency (Hz)', 0.0, 8000.0), columns=('time (s)', 0.0, 2.5))
    """

    rows: Any = None
    columns: Any = None

    def __post_init__(self) -> None:
        keep(self, rows=_axis(self.rows, "rows"), columns=_axis(self.columns, "columns"))

    @property
    def has_axes(self) -> bool:
        """Whether there is anything to write beside a map."""
        return self.rows is not None or self.columns is not None


Kind = Series | Volume | Image


def _positive(value: Any, name: str) -> float:
    return check_number(value, name, above=0)


def _axis(given: Any, name: str) -> tuple[str, float, float] | None:
    if given is None:
        return None
    what = "a label and the values at the first and the last one, such as ('time (s)', 0, 2.5)"
    parts = as_list(given, name, what)
    if len(parts) != 3 or not isinstance(parts[0], str):
        raise ValueError(f"`{name}` must be {what}, got {shown(given)}")
    first, last = (check_number(value, name, least=-math.inf) for value in parts[1:])
    if first == last:
        raise ValueError(f"`{name}` must have two different values, of the first and the last one, got {first:g} twice")
    return parts[0], first, last


def _ascending(times: Any) -> np.ndarray:
    found = to_host(as_array(times, "times"))
    if found.ndim != 1 or found.dtype.kind not in "iuf":
        raise ValueError(
            f"`times` must be numbers along one axis, got {found.dtype} of shape {found.shape}; of dates make numbers, "
            "such as `(dates - dates[0]) / numpy.timedelta64(1, 's')`"
        )
    found = found.astype(np.float64)
    if not np.isfinite(found).all() or not (np.diff(found) > 0).all():
        raise ValueError("`times` must be finite and ascend from step to step")
    found.flags.writeable = False
    return found
