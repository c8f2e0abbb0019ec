"""Laws of noise on numbers, added or multiplied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from metfa._arrays import from_host
from metfa._base.validation import MOST, check_function, check_number, keep, one_of, positive_int
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
from metfa.noise.many import OfMany, many_of

__all__ = ["Brightness", "Compose", "Gaussian", "Laplace", "Noise", "Uniform"]

Noise = Callable[[Any, np.random.Generator], Any]
Strength = float | Sequence[float] | np.ndarray


@dataclass(frozen=True)
class Uniform(OfMany):
    """Add independent uniform numbers from [-radius, radius).

    Parameters
    ----------
    radius : float or sequence of float
        Half width of the law, in the units of the input; not negative. The paper uses 0.1 on pixels in [0, 1]. A
        sequence has one for each column (the last axis of one input), 0 for columns to be left alone.
    bounds : (float, float), optional
        Range that the noisy input is clamped to, such as (0, 1) for pixels. The clean input must lie in it.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> noise = metfa.noise.Uniform(0.1, bounds=(0, 1))
    >>> noisy = noise(np.full((3, 8, 8), 0.5), np.random.default_rng(0))
    >>> bool(abs(noisy - 0.5).max() <= 0.1)
    True
    """

    radius: Strength
    bounds: Bounds | None = None

    def __post_init__(self) -> None:
        keep_strength(self, "radius")
        check_bounds(self.bounds)

    def many(self, rows: Any, rngs: Iterable[np.random.Generator]) -> Any:
        """Noisy copies of rows (n, ...), with the numbers of one generator each."""
        return added(rows, rngs, _uniform, "radius", self.radius, self.bounds)


@dataclass(frozen=True)
class Gaussian(OfMany):
    """Add independent normal numbers with mean 0 and standard deviation `std`.

    Parameters
    ----------
    std : float or sequence of float
        Standard deviation (not variance), in the units of the input; not negative. The paper's N(0, 0.01) is std 0.1.
        A sequence has one for each column (the last axis of one input), 0 for columns to be left alone.
    bounds : (float, float), optional
        Range that the noisy input is clamped to, such as (0, 1) for pixels. The clean input must lie in it.
    """

    std: Strength
    bounds: Bounds | None = None

    def __post_init__(self) -> None:
        keep_strength(self, "std")
        check_bounds(self.bounds)

    def many(self, rows: Any, rngs: Iterable[np.random.Generator]) -> Any:
        """Noisy copies of rows (n, ...), with the numbers of one generator each."""
        return added(rows, rngs, _normal, "std", self.std, self.bounds)


@dataclass(frozen=True)
class Laplace(OfMany):
    """Add independent Laplace numbers with mean 0 and mean absolute value `scale`.

    Parameters
    ----------
    scale : float or sequence of float
        Scale b of the density exp(-abs(n) / b) / (2 b), in the units of the input; not negative. A sequence has one
        for each column (the last axis of one input), 0 for columns to be left alone.
    bounds : (float, float), optional
        Range that the noisy input is clamped to, such as (0, 1) for pixels. The clean input must lie in it.
    """

    scale: Strength
    bounds: Bounds | None = None

    def __post_init__(self) -> None:
        keep_strength(self, "scale")
        check_bounds(self.bounds)

    def many(self, rows: Any, rngs: Iterable[np.random.Generator]) -> Any:
        """Noisy copies of rows (n, ...), with the numbers of one generator each."""
        return added(rows, rngs, _laplace, "scale", self.scale, self.bounds)


@dataclass(frozen=True)
class Brightness:
    """Multiply by factors drawn uniformly from [low, high).

    Parameters
    ----------
    low, high : float
        Ends of the law, ``0 <= low <= high``. The paper uses 0.9 and 1.1.
    per : {"image", "pixel"}
        One factor for the whole input (the paper's released code, the default), or one for each pixel (the paper's
        text), the same for all channels of that pixel.
    bounds : (float, float), optional
        Range that the noisy input is clamped to, such as (0, 1) for pixels. The clean input must lie in it.
    channel_axis : int or None
        Axis of the channels in one input (without the batch axis), used by ``per="pixel"``; None where there are no
        channels.
    """

    low: float
    high: float
    per: Literal["image", "pixel"] = "image"
    bounds: Bounds | None = None
    channel_axis: int | None = 0

    def __post_init__(self) -> None:
        keep(self, low=check_number(self.low, "low"), high=check_number(self.high, "high"))
        if self.low > self.high:
            raise ValueError(f"`low` must not exceed `high`, got low={self.low} and high={self.high}")
        one_of(self.per, "per", ("image", "pixel"))
        check_bounds(self.bounds)
        if self.channel_axis is not None:
            keep(self, channel_axis=positive_int(self.channel_axis, "channel_axis", -MOST))

    def __call__(self, x: Any, rng: np.random.Generator) -> Any:
        """Noisy copy of the input `x`, with numbers from `rng`."""
        check_generator(rng)
        dtype = draw_dtype(x)
        require_within(x, self.bounds)
        factors = self.low + (self.high - self.low) * rng.random(self._shape_of_factors(x), dtype)
        return clamped(x * from_host(factors, like=x), self.bounds)

    def _shape_of_factors(self, x: Any) -> tuple[int, ...]:
        if self.per == "image":
            return (1,) * x.ndim
        shape = list(x.shape)
        if self.channel_axis is not None:
            if not -x.ndim <= self.channel_axis < x.ndim:
                raise ValueError(
                    f"`channel_axis` is {self.channel_axis}, but one input has shape {tuple(x.shape)}: write "
                    "`channel_axis=None` for inputs without channels"
                )
            shape[self.channel_axis] = 1
        return tuple(shape)


@dataclass(frozen=True, init=False, repr=False)
class Compose:
    """Apply several noises one after the other, each with fresh numbers of the same stream.

    Parameters
    ----------
    *noises : callable
        Noises, applied from left to right.
    """

    noises: tuple[Noise, ...]

    def __init__(self, *noises: Noise) -> None:
        if not noises:
            raise ValueError("`noises` is empty: Compose needs at least one noise, such as Compose(Uniform(0.1))")
        for noise in noises:
            check_function(noise, "noises", "noise(x, rng)", None, None)
        object.__setattr__(self, "noises", noises)

    def __repr__(self) -> str:
        return f"Compose({', '.join(map(repr, self.noises))})"

    def __call__(self, x: Any, rng: np.random.Generator) -> Any:
        """Noisy copy of the input `x`, with numbers from `rng`."""
        for noise in self.noises:
            x = noise(x, rng)
        return x

    @property
    def many(self) -> Callable[[Any, Iterable[np.random.Generator]], Any] | None:
        """Noisy copies of many rows, as of `OfMany`; None if one of the noises makes them row by row."""
        found = [one for noise in self.noises if (one := many_of(noise))]

        def many(rows: Any, rngs: Iterable[np.random.Generator]) -> Any:
            rngs = list(rngs)
            for one in found:
                rows = one(rows, rngs)
            return rows

        return many if len(found) == len(self.noises) else None

    def for_columns(self, columns: Any) -> tuple[Any, Compose]:
        """The columns of a frame, and the noise for its codes; see `metfa.noise.per_column`."""
        known: list[Any] = [noise for noise in self.noises if hasattr(noise, "for_columns")]
        for noise in known:
            columns, _ = noise.for_columns(columns)  # all labels, before any noise counts on their order
        matched = {id(noise): noise.for_columns(columns)[1] for noise in known}
        return columns, Compose(*(matched.get(id(noise), noise) for noise in self.noises))


def _uniform(rng: np.random.Generator, out: np.ndarray) -> None:
    rng.random(dtype=out.dtype, out=out)
    out *= 2
    out -= 1


def _normal(rng: np.random.Generator, out: np.ndarray) -> None:
    rng.standard_normal(dtype=out.dtype, out=out)


def _laplace(rng: np.random.Generator, out: np.ndarray) -> None:
    rng.standard_exponential(dtype=out.dtype, out=out)
    out -= rng.standard_exponential(out.shape, out.dtype)
