"""Laws of noise on numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np

from metfa._arrays import from_host, is_array, is_floating, namespace, to_host
from metfa._base.validation import check_number
from metfa.noise.columns import column_stds

__all__ = ["Brightness", "Compose", "Gaussian", "Laplace", "Noise", "Uniform", "in_pixel_space", "per_column"]

Noise = Callable[[Any, np.random.Generator], Any]
Bounds = tuple[float, float]
Strength = float | Sequence[float] | np.ndarray


@dataclass(frozen=True)
class Uniform:
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
        _keep_strength(self, "radius")
        _require_bounds(self.bounds)

    def __call__(self, x: Any, rng: np.random.Generator) -> Any:
        """Noisy copy of the input `x`, with numbers from `rng`."""

        def draws(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
            numbers = rng.random(shape, dtype)
            numbers *= 2
            numbers -= 1
            return numbers

        return _added(x, draws, "radius", self.radius, self.bounds)


@dataclass(frozen=True)
class Gaussian:
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
        _keep_strength(self, "std")
        _require_bounds(self.bounds)

    def __call__(self, x: Any, rng: np.random.Generator) -> Any:
        """Noisy copy of the input `x`, with numbers from `rng`."""
        return _added(x, rng.standard_normal, "std", self.std, self.bounds)


@dataclass(frozen=True)
class Laplace:
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
        _keep_strength(self, "scale")
        _require_bounds(self.bounds)

    def __call__(self, x: Any, rng: np.random.Generator) -> Any:
        """Noisy copy of the input `x`, with numbers from `rng`."""

        def draws(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
            return rng.standard_exponential(shape, dtype) - rng.standard_exponential(shape, dtype)

        return _added(x, draws, "scale", self.scale, self.bounds)


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
        check_number(self.low, "low")
        check_number(self.high, "high")
        if self.low > self.high:
            raise ValueError(f"`low` must not exceed `high`, got low={self.low} and high={self.high}")
        if self.per not in ("image", "pixel"):
            raise ValueError(f"`per` must be 'image' or 'pixel', got {self.per!r}")
        _require_bounds(self.bounds)
        axis = self.channel_axis
        if axis is not None and (isinstance(axis, bool) or not isinstance(axis, int)):
            raise TypeError(f"`channel_axis` must be an integer or None, got {type(axis).__name__}: {axis!r}")

    def __call__(self, x: Any, rng: np.random.Generator) -> Any:
        """Noisy copy of the input `x`, with numbers from `rng`."""
        dtype = _draw_dtype(x)
        _require_within(x, self.bounds)
        factors = self.low + (self.high - self.low) * rng.random(self._shape_of_factors(x), dtype)
        return _clamped(x * from_host(factors, like=x), self.bounds)

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
            if not callable(noise):
                raise TypeError(f"`noises` must be functions f(x, rng) -> x, got {type(noise).__name__}: {noise!r}")
        object.__setattr__(self, "noises", noises)

    def __repr__(self) -> str:
        return f"Compose({', '.join(map(repr, self.noises))})"

    def __call__(self, x: Any, rng: np.random.Generator) -> Any:
        """Noisy copy of the input `x`, with numbers from `rng`."""
        for noise in self.noises:
            x = noise(x, rng)
        return x


@dataclass(frozen=True)
class PixelSpaceNoise:
    """What :func:`in_pixel_space` returns."""

    noise: Noise
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __call__(self, x: Any, rng: np.random.Generator) -> Any:
        """Noisy copy of the normalised input `x`, with numbers from `rng`."""
        _draw_dtype(x)
        if x.ndim < 1 or x.shape[0] != len(self.mean):
            raise ValueError(
                f"`mean` and `std` have {len(self.mean)} channels, but the input has shape {tuple(x.shape)}: the first "
                "axis of one input must be its channels"
            )
        column = (-1, *[1] * (x.ndim - 1))
        mean = from_host(np.reshape(self.mean, column), like=x)
        std = from_host(np.reshape(self.std, column), like=x)
        pixels = x * std + mean
        outside = _range_outside(pixels, (0.0, 1.0), slack=1e-2)
        if outside:
            raise ValueError(
                f"with `mean` {self.mean} and `std` {self.std} the input has pixels {outside}, outside [0, 1]: it was "
                "normalised otherwise, or not at all"
            )
        return (_clamped(self.noise(_clamped(pixels, (0.0, 1.0)), rng), (0.0, 1.0)) - mean) / std


def in_pixel_space(noise: Noise, mean: Sequence[float], std: Sequence[float]) -> Noise:
    """Noise in [0, 1] pixel space for a model that takes normalised images.

    The input ``(pixels - mean) / std`` is turned back into pixels, `noise` is applied, the result clamped to [0, 1]
    and normalised again (paper, section on the sampling noise).

    Parameters
    ----------
    noise : callable
        Noise on pixels, such as ``Uniform(0.1)``.
    mean, std : sequence of float
        The model's normalisation, one number for each channel (the first axis of one input); `std` is positive.

    Returns
    -------
    callable
        A noise ``f(x, rng) -> x`` on normalised images.

    Raises
    ------
    ValueError
        If `mean` and `std` differ in length or a `std` is not positive; when called, if the image does not become
        pixels in [0, 1] (it was normalised otherwise, or not at all).
    """
    if not callable(noise):
        raise TypeError(f"`noise` must be a function f(x, rng) -> x, got {type(noise).__name__}: {noise!r}")
    means, stds = _channel_numbers("mean", mean), _channel_numbers("std", std)
    if len(means) != len(stds):
        raise ValueError(f"`mean` and `std` must have one number a channel, got {len(means)} and {len(stds)} numbers")
    if not all(s > 0 for s in stds):
        raise ValueError(f"`std` must be positive, got {stds}")
    return PixelSpaceNoise(noise, means, stds)


def per_column(
    data: Any,
    fraction: float,
    *,
    law: Callable[[Sequence[float]], Noise] = Gaussian,
    categorical: Sequence[int | str] = (),
    feature_names: Sequence[str] | None = None,
) -> Any:
    """Noise for one row of a table: the same fraction of each column's own standard deviation.

    Categorical columns are left exactly as they are, and so are constant ones.

    Parameters
    ----------
    data : array or data frame, (rows, columns)
        Data that the columns' standard deviations are taken from (n, not n - 1, as `StandardScaler` does), such as the
        training table; columns as in the rows to be explained.
    fraction : float
        The setting of the law is this multiple of the standard deviation; not negative.
    law : {Gaussian, Uniform, Laplace}
        Law with one setting a column: `Gaussian` has it for its standard deviation, `Uniform` for its radius,
        `Laplace` for its scale.
    categorical : sequence of int or str
        Columns to be left alone, by position or by name. They alone may hold texts or missing values.
    feature_names : sequence of str, optional
        Names of the columns; by default those of the data frame.

    Returns
    -------
    Gaussian, Uniform or Laplace
        With absolute numbers, one a column: look at it before use.

    Raises
    ------
    TypeError
        If a column that is not categorical holds no numbers.
    ValueError
        If a column that is not categorical holds NaN or infinity, which the message names, if there is no such column
        in the table, or if no column varies.

    Examples
    --------
    >>> import metfa
    >>> table = [[1.0, 20.0, 0], [3.0, 60.0, 1], [1.0, 20.0, 2], [3.0, 60.0, 1]]
    >>> metfa.noise.per_column(table, 0.25, categorical=[2])
    Gaussian(std=(0.25, 5.0, 0.0), bounds=None)
    """
    check_number(fraction, "fraction")
    return law([fraction * std for std in column_stds(data, categorical, feature_names)])


def gaussian_std(noise: Any) -> float | None:
    """Standard deviation of a noise that is Gaussian, the same for all parts of an input; None for any other.

    Of noise in pixel space it is that of pixels.
    """
    if isinstance(noise, PixelSpaceNoise):
        return gaussian_std(noise.noise)
    if not isinstance(noise, Gaussian) or not _is_number(noise.std):
        return None
    return float(noise.std)  # pyright: ignore[reportArgumentType]


def _channel_numbers(name: str, values: Any) -> tuple[float, ...]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise TypeError(f"`{name}` must be a sequence with one number for each channel, got {values!r}")
    numbers = tuple(map(float, values))
    if not numbers or not all(map(math.isfinite, numbers)):
        raise ValueError(f"`{name}` must hold finite numbers, one for each channel, got {numbers}")
    return numbers


def _draw_dtype(x: Any) -> Any:
    """Dtype to draw in; refuses inputs to which numeric noise means nothing."""
    if not is_array(x):
        raise TypeError(
            f"numeric noise needs a floating-point array, got {type(x).__name__}: a list is a batch of objects, so "
            "write np.array(inputs) for numbers; texts need a noise on words, such as metfa.text.Synonyms(0.3); a "
            "tuple or dict of arrays takes one noise a part, as in `noise=(metfa.noise.Uniform(0.1), None)`"
        )
    if not is_floating(x):
        remedy = (
            "scale the image to floats first, as in `image.astype('float32') / 255`"
            if "int8" in str(x.dtype)
            else "token ids need a noise on words, such as metfa.text.Synonyms(0.3) on the texts, or any function "
            "f(x, rng) of yours; whole numbers that are measurements go as `table.astype(float)`"
        )
        raise TypeError(f"numeric noise needs floating-point inputs, got {x.dtype}: {remedy}")
    return np.float64 if namespace(x).finfo(x.dtype).bits > 32 else np.float32


def _added(x: Any, unit_draws: Callable[..., Any], name: str, strength: Any, bounds: Bounds | None) -> Any:
    """`x` plus draws of a law of unit size, times `strength`, which is called `name`."""
    dtype = _draw_dtype(x)
    shape = tuple(x.shape)
    if isinstance(strength, tuple) and shape[-1:] != (len(strength),):
        columns = f"{shape[-1]} columns" if shape else "no axis"
        raise ValueError(f"`{name}` has {len(strength)} numbers, one a column, but one input has {columns}: {shape}")
    _require_within(x, bounds)
    draws = unit_draws(shape, dtype)
    draws *= np.asarray(strength, dtype=dtype)  # all columns are drawn: to leave one alone does not change the others
    if isinstance(strength, tuple):
        draws[..., np.equal(strength, 0)] = -0.0  # of the two zeros the one that changes no number's bits
    noise = from_host(draws, like=x)
    if not isinstance(noise, np.ndarray):
        return _clamped(x + noise, bounds)
    noise += x  # in place: fresh memory would cost more than the arithmetic
    return noise if bounds is None else np.clip(noise, *bounds, out=noise)


def _clamped(x: Any, bounds: Bounds | None) -> Any:
    return x if bounds is None else namespace(x).clip(x, *bounds)


def _require_within(x: Any, bounds: Bounds | None) -> None:
    outside = bounds is not None and _range_outside(x, bounds, slack=1e-6)
    if outside:
        raise ValueError(
            f"the input has values {outside}, outside the noise's bounds {bounds}: scale the input to them, or, for a "
            "model that takes normalised images, wrap the noise with `metfa.noise.in_pixel_space(noise, mean, std)`"
        )


def _range_outside(x: Any, bounds: Bounds, slack: float) -> str:
    """The range of `x` in words if it leaves the bounds, else an empty text."""
    host = to_host(x)
    if not host.size or (host.min() >= bounds[0] - slack and host.max() <= bounds[1] + slack):
        return ""
    return f"from {host.min():.4g} to {host.max():.4g}"


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _keep_strength(noise: Any, name: str) -> None:
    """Check the strength of a law; one for each column becomes a tuple, so that noises stay values."""
    value = getattr(noise, name)
    if isinstance(value, str | Mapping) or not hasattr(value, "__iter__") or getattr(value, "ndim", 1) == 0:
        check_number(value, name)
        return
    entries = [entry.item() if hasattr(entry, "item") else entry for entry in value]
    if not entries:
        raise ValueError(f"`{name}` is empty: it needs one number for each column, or one for all")
    for entry in entries:
        check_number(entry, name)
    object.__setattr__(noise, name, tuple(map(float, entries)))


def _require_bounds(bounds: Any) -> None:
    if bounds is None:
        return
    if not isinstance(bounds, tuple) or len(bounds) != 2 or not all(map(_is_number, bounds)):
        raise TypeError(f"`bounds` must be None or a tuple of two numbers (low, high), got {bounds!r}")
    if not bounds[0] < bounds[1]:
        raise ValueError(f"`bounds` must be a pair (low, high) with low < high, got {bounds}")
