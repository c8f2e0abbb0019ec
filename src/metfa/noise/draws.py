"""Shared by the laws: numbers in the precision of the input, strengths, and bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np

from metfa._arrays import as_array, from_host, is_array, is_floating, namespace, to_host
from metfa._base.validation import check_kind, check_number, keep, positive_int, shown

__all__ = [
    "Bounds",
    "added",
    "channels_of",
    "check_bounds",
    "check_generator",
    "clamped",
    "draw_dtype",
    "generator_of",
    "is_number",
    "keep_rate",
    "keep_strength",
    "range_outside",
    "require_within",
]

Bounds = tuple[float, float]


def draw_dtype(x: Any) -> Any:
    """Dtype to draw in; raises for inputs that cannot take numeric noise."""
    if type(x) is np.ndarray and x.dtype.char in "fd":
        return x.dtype.type
    if not is_array(x):
        raise TypeError(
            f"numeric noise needs a floating-point array, got {type(x).__name__}: a list is a batch of objects, so "
            "write np.array(inputs) for numbers; texts need a noise on words, such as metfa.text.Synonyms(0.3); a "
            "tuple or dict of arrays takes one noise for each part, as in `noise=(metfa.noise.Uniform(0.1), None)`"
        )
    if not is_floating(x):
        remedy = (
            "scale the image to floats first, as in `image.astype('float32') / 255`"
            if "int8" in str(x.dtype)
            else "token ids need a noise on words, such as metfa.text.Synonyms(0.3) on the texts, or any function "
            "f(x, rng) of yours; if whole numbers are measurements, make the inputs floats, `inputs.astype(float)`"
        )
        raise TypeError(f"numeric noise needs floating-point inputs, got {x.dtype}: {remedy}")
    return np.float64 if namespace(x).finfo(x.dtype).bits > 32 else np.float32


def added(
    rows: Any,
    rngs: Iterable[np.random.Generator],
    fill: Callable[[np.random.Generator, np.ndarray], Any],
    name: str,
    strength: Any,
    bounds: Bounds | None,
) -> Any:
    """`rows` (n, ...) plus `strength` times draws of a law of unit size.

    ``fill(rng, out)`` draws for one row; `name` is the strength's name in messages.
    """
    dtype = draw_dtype(rows)
    shape = tuple(rows.shape[1:])
    if isinstance(strength, tuple) and shape[-1:] != (len(strength),):
        columns = f"{shape[-1]} columns" if shape else "no axis"
        raise ValueError(f"`{name}` has {len(strength)} numbers, one a column, but one input has {columns}: {shape}")
    require_within(rows, bounds)
    draws = np.empty(rows.shape, dtype)
    for row, rng in zip(range(len(draws)), rngs, strict=True):
        fill(rng, draws[row, ...])
    known = _factors if isinstance(strength, tuple | float) else _factors.__wrapped__  # an array is no key
    factors, still = known(strength, dtype)
    draws *= factors  # all columns are drawn, so that one without noise does not change the others
    if still is not None:
        draws[..., still] = -0.0  # adding this zero changes no number's bits
    noise = draws if type(rows) is np.ndarray and draws.dtype == rows.dtype else from_host(draws, like=rows)
    if not isinstance(noise, np.ndarray):
        return clamped(rows + noise, bounds)
    noise += rows  # in place: fresh memory would cost more than the arithmetic
    return noise if bounds is None else np.clip(noise, *bounds, out=noise)


@lru_cache(64)
def _factors(strength: Any, dtype: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Strengths in the dtype of the draws, and which columns have none; None if each has some."""
    factors = np.asarray(strength, dtype=dtype)
    still = np.equal(strength, 0) if isinstance(strength, tuple) else np.zeros(1, bool)
    return factors, still if still.any() else None


def clamped(x: Any, bounds: Bounds | None) -> Any:
    """`x` clamped to the bounds, if there are any."""
    return x if bounds is None else namespace(x).clip(x, *bounds)


def require_within(x: Any, bounds: Bounds | None) -> None:
    """Raise if the clean input lies outside the bounds of its noise."""
    outside = bounds is not None and range_outside(x, bounds, slack=1e-6)
    if outside:
        raise ValueError(
            f"the input has values {outside}, outside the noise's bounds {bounds}: scale the input to them, or, for a "
            "model that takes normalised images, wrap the noise with `metfa.noise.in_pixel_space(noise, mean, std)`"
        )


def range_outside(x: Any, bounds: Bounds, slack: float) -> str:
    """The range of `x` in words if it lies outside the bounds, else an empty text."""
    host = to_host(x)
    if not host.size or (host.min() >= bounds[0] - slack and host.max() <= bounds[1] + slack):
        return ""
    return f"from {host.min():.4g} to {host.max():.4g}"


def is_number(value: Any) -> bool:
    """Whether this is one real number; true and false are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def keep_strength(noise: Any, name: str) -> None:
    """Check the strength of a law; one for each column becomes a tuple, so that noises stay values."""
    value = getattr(noise, name)
    if not (isinstance(value, list | tuple) or (hasattr(value, "__array__") and getattr(value, "ndim", 0) > 0)):
        keep(noise, **{name: check_number(value, name)})
        return
    if not isinstance(value, list | tuple):
        value = to_host(as_array(value, name)).tolist()
    if not value:
        raise ValueError(f"`{name}` is empty: it needs one number for each column, or one for all")
    entries = [entry.item() if getattr(entry, "shape", None) == () else entry for entry in value]
    keep(noise, **{name: tuple(check_number(entry, name) for entry in entries)})


def check_generator(rng: Any) -> None:
    """Raise unless a noise is given a generator to draw from."""
    check_kind(rng, "rng", np.random.Generator, "`numpy.random.default_rng(0)`")


def generator_of(rng: Any) -> np.random.Generator:
    """A generator from a seed: None, an int that is not negative, or a generator, which is returned as it is."""
    if rng is None or isinstance(rng, np.random.Generator):
        return np.random.default_rng(rng)
    return np.random.default_rng(positive_int(rng, "rng", 0, 2**256 - 1))


def check_bounds(bounds: Any) -> None:
    """Raise unless these are bounds (low, high), or None."""
    if bounds is None:
        return
    if not isinstance(bounds, tuple) or len(bounds) != 2:
        raise TypeError(f"`bounds` must be None or a tuple of two numbers (low, high), got {shown(bounds)}")
    for bound in bounds:
        check_number(bound, "bounds", least=-math.inf)
    if not bounds[0] < bounds[1]:
        raise ValueError(f"`bounds` must be a pair (low, high) with low < high, got {bounds}")


def channels_of(x: Any) -> int:
    """Channels of one series, its first axis; raises for anything else."""
    if x.ndim < 2 or 0 in x.shape:
        hint = ": for a series of one channel write `series[None]`" if x.ndim == 1 else ""
        raise ValueError(f"`x` must be one series (channels, length), got shape {tuple(x.shape)}{hint}")
    return x.shape[0]


def keep_rate(noise: Any) -> None:
    """Check the sampling rate of a noise of series, where it has one."""
    if noise.sampling_rate is not None:
        keep(noise, sampling_rate=check_number(noise.sampling_rate, "sampling_rate", above=0))
