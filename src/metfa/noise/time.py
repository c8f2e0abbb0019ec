"""Noise on the time of series (channels, length): shifts, and an uneven clock."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from metfa._arrays import from_host, namespace
from metfa._base.validation import check_number, keep, one_of
from metfa.noise.draws import channels_of, check_generator, draw_dtype, keep_rate

__all__ = ["TimeShift", "TimeWarp"]

MOST_STEPS = 2**31


@dataclass(frozen=True)
class TimeShift:
    """Move a series in time by a whole number of steps, drawn uniformly, all channels alike.

    Parameters
    ----------
    radius : float
        The furthest move to either side: steps, or seconds with a `sampling_rate` (rounded down to whole steps).
    beyond : {"repeat", "wrap"}
        What comes in from beyond the end: the first or last value repeated, or what left at the other end.
    sampling_rate : float, optional
        Steps a second.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> noise = metfa.noise.TimeShift(2, beyond="wrap")
    >>> noise(np.arange(5.0)[None], np.random.default_rng(0))
    array([[3., 4., 0., 1., 2.]])
    """

    radius: float
    beyond: Literal["repeat", "wrap"] = "repeat"
    sampling_rate: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        keep(self, radius=check_number(self.radius, "radius"))
        keep_rate(self)
        one_of(self.beyond, "beyond", ("repeat", "wrap"))
        if 0 < self._steps < 1:
            raise ValueError(
                f"`radius` is {self._steps:.3g} of a step, but moves are whole steps: write at least "
                f"{1 / (self.sampling_rate or 1.0):.3g}; metfa.noise.TimeWarp moves by parts of steps"
            )

        if self._steps > MOST_STEPS:
            raise ValueError(
                f"`radius` is {self._steps:.3g} steps, more than any series has: write at most {MOST_STEPS}"
            )

    @property
    def _steps(self) -> float:
        return self.radius * (self.sampling_rate or 1.0) * (1 + 1e-12)

    def __call__(self, x: Any, rng: np.random.Generator) -> Any:
        """Noisy copy of the input `x`, with numbers from `rng`."""
        check_generator(rng)
        draw_dtype(x)
        channels_of(x)
        n_steps, most = x.shape[-1], math.floor(self._steps)
        places = np.arange(n_steps) - int(rng.integers(-most, most, endpoint=True))
        places = places % n_steps if self.beyond == "wrap" else places.clip(0, n_steps - 1)
        return _at(x, places)


@dataclass(frozen=True)
class TimeWarp:
    r"""Move each step of a series in time by a smooth random amount, all channels alike: time runs unevenly.

    The displacement is drawn uniformly from [-radius, radius) at knots that lie `spacing` apart, from a random place
    on, and follows half a cosine between them. So its standard deviation is radius / 2 at each step. Time never runs
    backwards: between knots its speed is at least :math:`1 - \pi \cdot \mathrm{radius} / \mathrm{spacing}`. Values
    between steps are interpolated linearly, which takes a little of the highest frequencies; beyond the ends the first
    and last value are repeated.

    Parameters
    ----------
    radius : float
        The largest displacement: steps, or seconds with a `sampling_rate`.
    spacing : float
        Distance of the knots, at least pi times `radius`, in the same unit.
    sampling_rate : float, optional
        Steps a second.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> noise = metfa.noise.TimeWarp(0.02, 0.2, sampling_rate=500)  # 20 ms
    >>> series = np.arange(1000.0)[None]
    >>> warped = noise(series, np.random.default_rng(0))
    >>> bool(abs(warped - series).max() <= 10), bool((np.diff(warped) >= 0).all())
    (True, True)
    """

    radius: float
    spacing: float
    sampling_rate: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        keep(self, radius=check_number(self.radius, "radius"), spacing=check_number(self.spacing, "spacing", above=0))
        keep_rate(self)
        if self.spacing < math.pi * self.radius:
            raise ValueError(
                f"`spacing` must be at least pi times `radius`, {math.pi * self.radius:.4g}, so that time never runs "
                f"backwards, got {self.spacing:g}"
            )

    def __call__(self, x: Any, rng: np.random.Generator) -> Any:
        """Noisy copy of the input `x`, with numbers from `rng`."""
        check_generator(rng)
        draw_dtype(x)
        channels_of(x)
        rate, n_steps = self.sampling_rate or 1.0, x.shape[-1]
        return _at(x, (np.arange(n_steps) + self._displacements(n_steps, rate, rng)).clip(0, n_steps - 1))

    def _displacements(self, n_steps: int, rate: float, rng: np.random.Generator) -> np.ndarray:
        """Displacement of each step, in steps."""
        in_knots = np.arange(n_steps) / (self.spacing * rate) + rng.random()
        left = np.floor(in_knots).astype(int)
        drawn = rng.uniform(-self.radius * rate, self.radius * rate, left[-1] + 2)
        share = (1 - np.cos(np.pi * (in_knots - left))) / 2
        return drawn[left] * (1 - share) + drawn[left + 1] * share


def _at(x: Any, places: np.ndarray) -> Any:
    """A series at places in time, in steps, linear between steps."""
    xp, last = namespace(x), x.shape[-1] - 1
    low = np.floor(places).astype(np.int64)
    share = from_host(places - low, like=x)
    below = xp.take(x, from_host(low, x, xp.int32), axis=-1)
    if not (places - low).any():
        return below
    return below * (1 - share) + xp.take(x, from_host(np.minimum(low + 1, last), x, xp.int32), axis=-1) * share
