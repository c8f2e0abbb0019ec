"""Noise on the values of series (channels, length): their amplitude, and noise of a colour or band."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from metfa._arrays import from_host
from metfa._base.validation import check_number, keep, one_of
from metfa.noise.draws import (
    Bounds,
    added,
    channels_of,
    check_bounds,
    check_generator,
    clamped,
    draw_dtype,
    keep_rate,
    keep_strength,
    require_within,
)
from metfa.noise.many import OfMany

__all__ = ["Amplitude", "FilteredGaussian"]


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
        n_channels = channels_of(x) if self.per == "channel" else 1
        factors = self.low + (self.high - self.low) * rng.random((n_channels, *[1] * (x.ndim - 1)), dtype)
        return clamped(x * from_host(factors, like=x), self.bounds)


@dataclass(frozen=True)
class FilteredGaussian(OfMany):
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
        0 is white noise, 1 pink ("1/f") and 2 brown; from -10 to 10. Any but 0 leaves out the mean, at the frequency 0.
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
    sampling_rate: float | None = field(default=None, kw_only=True)
    bounds: Bounds | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        keep_strength(self, "std")
        keep_rate(self)
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
        keep(self, exponent=check_number(self.exponent, "exponent", least=-10, most=10))
        check_bounds(self.bounds)

    def many(self, rows: Any, rngs: Iterable[np.random.Generator]) -> Any:
        """Noisy copies of series (n, channels, length), with the numbers of one generator each."""
        draw_dtype(rows)
        n_channels = channels_of(rows[0, ...])
        std: Any = self.std
        if isinstance(std, tuple):
            if len(std) != n_channels:
                raise ValueError(
                    f"`std` has {len(std)} numbers, one a channel, but one input has {n_channels} channels"
                )
            std = np.reshape(std, (-1, *[1] * (rows.ndim - 2)))
        gains = self._gains(rows.shape[-1])

        def fill(rng: np.random.Generator, out: np.ndarray) -> None:
            spectrum = np.fft.rfft(rng.standard_normal(out.shape, out.dtype)) * gains
            out[...] = np.fft.irfft(spectrum, n=out.shape[-1])

        return added(rows, rngs, fill, "std", std, self.bounds)

    def _gains(self, n_steps: int) -> np.ndarray:
        """Factor of each frequency, such that white noise of deviation 1 keeps its deviation."""
        rate = self.sampling_rate or 1.0
        frequencies = np.fft.rfftfreq(n_steps, 1 / rate)
        slack = 1e-9 * rate  # a band of one frequency is written with fewer digits
        inside = frequencies >= (-1 if self.low is None else self.low - slack)
        if self.high is not None:
            inside &= frequencies <= self.high + slack
        if self.exponent:
            inside &= frequencies > 0
        if not inside.any():
            raise ValueError(
                f"`low` and `high`: the band from {self.low} to {self.high} holds no frequency of a series of "
                f"{n_steps} steps, whose frequencies are {rate / n_steps:.4g} apart: widen it"
            )
        gains = np.zeros(len(frequencies))
        gains[inside] = (frequencies[inside] / frequencies.max()) ** (-self.exponent / 2) if self.exponent else 1.0
        both_sides = np.full(len(frequencies), 2.0)  # all but the mean, and the highest of an even length
        both_sides[0] = 1.0
        if n_steps % 2 == 0:
            both_sides[-1] = 1.0
        return gains / np.sqrt((both_sides * gains**2).sum() / n_steps)
