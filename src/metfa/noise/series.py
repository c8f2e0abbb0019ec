"""Noise for series (channels, length): amplitude, jitter and shift of time, noise of a colour or band."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from metfa._arrays import from_host, namespace
from metfa._base.validation import check_number, keep, one_of
from metfa.noise.draws import (
    Bounds,
    added,
    check_bounds,
    check_generator,
    clamped,
    draw_dtype,
    keep_strength,
    require_within,
)

__all__ = ["Amplitude", "FilteredGaussian", "TimeShift", "TimeWarp"]

Rate = float | None


@dataclass(frozen=True)
class Amplitude:
    """Multiply a series by factors drawn uniformly from [low, high), as where gains are not calibrated.

    Parameters
    ----------
    low, high : float
        Ends of the law, ``0 <= low <= high``.
    per : {"channel", "series"}
        One factor for each channel (the first axis of one input), or one for all.
    bounds : (float, float), optional
        Range that the noisy input is clamped to. The clean input must lie in it.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> noise = metfa.noise.Amplitude(0.8, 1.2)
    >>> noise(np.ones((2, 3)), np.random.default_rng(0)).round(3)
    array([[1.055, 1.055, 1.055],
           [0.908, 0.908, 0.908]])
    """

    low: float
    high: float
    per: Literal["channel", "series"] = "channel"
    bounds: Bounds | None = None

    def __post_init__(self) -> None:
        keep(self, low=check_number(self.low, "low"), high=check_number(self.high, "high"))
        if self.low > self.high:
            raise ValueError(f"`low` must not exceed `high`, got low={self.low} and high={self.high}")
        one_of(self.per, "per", ("channel", "series"))
        check_bounds(self.bounds)

    def __call__(self, x: Any, rng: np.random.Generator) -> Any:
        """Noisy copy of the input `x`, with numbers from `rng`."""
        check_generator(rng)
        dtype = draw_dtype(x)
        require_within(x, self.bounds)
        n_channels = _channels(x) if self.per == "channel" else 1
        factors = self.low + (self.high - self.low) * rng.random((n_channels, *[1] * (x.ndim - 1)), dtype)
        return clamped(x * from_host(factors, like=x), self.bounds)


@dataclass(frozen=True)
class FilteredGaussian:
    r"""Add normal noise of a given spectrum, such as mains hum, muscle noise or baseline wander, to each channel.

    White noise is filtered by its Fourier transform: its power at the frequency f is multiplied by :math:`f^{-a}`, a
    the `exponent`, within the band from `low` to `high`, and by 0 elsewhere. Each number is normal with mean 0 and
    standard deviation `std` exactly; neighbours are correlated. Channels are independent.

    Parameters
    ----------
    std : float or sequence of float
        Standard deviation, in the units of the input; not negative. A sequence has one for each channel (the first
        axis of one input), 0 for channels to be left alone.
    low, high : float, optional
        Ends of the band, both in it: cycles a step, up to 0.5, or hertz with a `sampling_rate`. None: no limit.
    exponent : float
        0 is white noise, 1 pink ("1/f") and 2 brown. A number above 0 leaves out the mean, at the frequency 0.
    sampling_rate : float, optional
        Steps a second.
    bounds : (float, float), optional
        Range that the noisy input is clamped to. The clean input must lie in it.

    Notes
    -----
    A series of n steps has the frequencies 0, 1/n, 2/n, ... cycles a step; its noise is periodic, so that the last step
    is a neighbour of the first.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> hum = metfa.noise.FilteredGaussian(0.05, low=45, high=55, sampling_rate=500)
    >>> noisy = hum(np.zeros((12, 5000)), np.random.default_rng(0))
    >>> power = (np.abs(np.fft.rfft(noisy)) ** 2).mean(axis=0)
    >>> round(float(noisy.std()), 2), float(np.fft.rfftfreq(5000, 1 / 500)[power > 1e-9].min())
    (0.05, 45.0)
    """

    std: float | Sequence[float] | np.ndarray
    low: float | None = field(default=None, kw_only=True)
    high: float | None = field(default=None, kw_only=True)
    exponent: float = field(default=0.0, kw_only=True)
    sampling_rate: Rate = field(default=None, kw_only=True)
    bounds: Bounds | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        keep_strength(self, "std")
        _keep_rate(self)
        most = 0.5 * (self.sampling_rate or 1.0)
        for name in ("low", "high"):
            if getattr(self, name) is not None:
                keep(self, **{name: check_number(getattr(self, name), name)})
                if getattr(self, name) > most:
                    half = "half the sampling rate" if self.sampling_rate else "half a cycle a step"
                    raise ValueError(
                        f"`{name}` must be at most {most:g}, {half}, got {getattr(self, name):g}; for hertz give "
                        "`sampling_rate=`"
                    )
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"`low` must not exceed `high`, got low={self.low} and high={self.high}")
        keep(self, exponent=check_number(self.exponent, "exponent", least=-math.inf))
        check_bounds(self.bounds)

    def __call__(self, x: Any, rng: np.random.Generator) -> Any:
        """Noisy copy of the input `x`, with numbers from `rng`."""
        check_generator(rng)
        draw_dtype(x)
        n_channels = _channels(x)
        std: Any = self.std
        if isinstance(std, tuple):
            if len(std) != n_channels:
                raise ValueError(
                    f"`std` has {len(std)} numbers, one a channel, but one input has {n_channels} channels"
                )
            std = np.reshape(std, (-1, *[1] * (x.ndim - 1)))
        gains = self._gains(x.shape[-1])

        def draws(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
            spectrum = np.fft.rfft(rng.standard_normal(shape, dtype)) * gains
            return np.fft.irfft(spectrum, n=shape[-1]).astype(dtype)

        return added(x, draws, "std", std, self.bounds)

    def _gains(self, n_steps: int) -> np.ndarray:
        """Factor of each frequency, such that white noise of deviation 1 keeps its deviation."""
        rate = self.sampling_rate or 1.0
        frequencies = np.fft.rfftfreq(n_steps, 1 / rate)
        slack = 1e-9 * rate  # a band of one frequency is written with fewer digits
        inside = frequencies >= (-1 if self.low is None else self.low - slack)
        if self.high is not None:
            inside &= frequencies <= self.high + slack
        if self.exponent > 0:
            inside &= frequencies > 0
        if not inside.any():
            raise ValueError(
                f"the band from {self.low} to {self.high} holds no frequency of a series of {n_steps} steps, whose "
                f"frequencies are {rate / n_steps:.4g} apart: widen it"
            )
        gains = np.zeros(len(frequencies))
        known = np.where(frequencies > 0, frequencies, frequencies[1] if len(frequencies) > 1 else 1.0)
        gains[inside] = (known[inside] / known.max()) ** (-self.exponent / 2)
        both_sides = np.full(len(frequencies), 2.0)  # all but the mean, and the highest of an even length, stand twice
        both_sides[0] = 1.0
        if n_steps % 2 == 0:
            both_sides[-1] = 1.0
        return gains / np.sqrt((both_sides * gains**2).sum() / n_steps)


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
    sampling_rate: Rate = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        keep(self, radius=check_number(self.radius, "radius"))
        _keep_rate(self)
        one_of(self.beyond, "beyond", ("repeat", "wrap"))
        if 0 < self._steps < 1:
            raise ValueError(
                f"`radius` is {self._steps:.3g} of a step, but moves are whole steps: write at least "
                f"{1 / (self.sampling_rate or 1.0):.3g}; metfa.noise.TimeWarp moves by parts of steps"
            )

    @property
    def _steps(self) -> float:
        return self.radius * (self.sampling_rate or 1.0) * (1 + 1e-12)

    def __call__(self, x: Any, rng: np.random.Generator) -> Any:
        """Noisy copy of the input `x`, with numbers from `rng`."""
        check_generator(rng)
        draw_dtype(x)
        _channels(x)
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
    sampling_rate: Rate = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        keep(self, radius=check_number(self.radius, "radius"), spacing=check_number(self.spacing, "spacing", above=0))
        _keep_rate(self)
        if self.spacing < math.pi * self.radius:
            raise ValueError(
                f"`spacing` must be at least pi times `radius`, {math.pi * self.radius:.4g}, so that time never runs "
                f"backwards, got {self.spacing:g}"
            )

    def __call__(self, x: Any, rng: np.random.Generator) -> Any:
        """Noisy copy of the input `x`, with numbers from `rng`."""
        check_generator(rng)
        draw_dtype(x)
        _channels(x)
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


def _channels(x: Any) -> int:
    """Channels of one series, its first axis; raises for anything else."""
    if x.ndim < 2 or 0 in x.shape:
        hint = ": for a series of one channel write `series[None]`" if x.ndim == 1 else ""
        raise ValueError(f"one input must be a series (channels, length), got shape {tuple(x.shape)}{hint}")
    return x.shape[0]


def _keep_rate(noise: Any) -> None:
    if noise.sampling_rate is not None:
        keep(noise, sampling_rate=check_number(noise.sampling_rate, "sampling_rate", above=0))
