"""Inputs with some features kept and the others replaced by a baseline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from metfa._arrays import as_array, copied, first_not_finite, from_host, namespace, to_host, widen
from metfa._base.lazy import needs_extra
from metfa._base.validation import check_function, did_you_mean
from metfa.calls.baseline import mean_colour
from metfa.calls.behind import loaded_torch
from metfa.calls.inputs import MOST_AXES, check_channels_first, check_values, shapes_allowed

__all__ = [
    "Baseline",
    "Hidden",
    "baseline_numbers",
    "check_features",
    "checked_attributions",
    "checked_inputs",
    "detached",
]

Baseline = Literal["black", "mean", "blur"] | float | Sequence[float] | np.ndarray | Callable[[Any], Any]
NAMED = ("black", "mean", "blur")


def checked_inputs(inputs: Any) -> Any:
    """`inputs` as a batch of finite floating-point numbers, without a graph; raises otherwise."""
    inputs = detached(as_array(inputs, "inputs"))
    if inputs.ndim < 2:
        raise ValueError(f"`inputs` must be a batch (batch, ...) with features, got shape {tuple(inputs.shape)}")
    check_values(inputs)
    return inputs


def detached(array: Any) -> Any:
    """`array` without its graph, if it has one: nothing here needs a gradient."""
    torch = loaded_torch()
    return array.detach() if torch is not None and isinstance(array, torch.Tensor) else array


def checked_attributions(attributions: Any, inputs: Any) -> Any:
    """`attributions` as real numbers, one for each feature of `inputs`, without a graph; raises otherwise."""
    attributions = detached(as_array(attributions, "attributions"))
    if not namespace(attributions).isdtype(attributions.dtype, ("bool", "integral", "real floating")):
        raise TypeError(f"`attributions` must be real numbers, which have an order, got {attributions.dtype}")
    check_features(attributions, inputs, "attributions")
    return attributions


def check_features(features: Any, inputs: Any, name: str) -> None:
    """Raise unless `features`, one number for each feature, has the shape of `inputs`, with or without channels."""
    shape, whole = tuple(features.shape), tuple(inputs.shape)
    spatial = whole[:1] + whole[2:] if len(whole) > 2 else whole
    if shape == spatial or (shape == whole and len(whole) < 4):
        return
    if len(whole) > 3 and shape == whole:
        raise ValueError(
            f"`{name}` must have one score for each pixel, {spatial}, got {shape}: reduce the channels first, as "
            "metfa.explainers.heatmap does"
        )
    check_channels_first(inputs)
    raise ValueError(f"`{name}` must have the shape {spatial} for inputs of shape {whole}, got {shape}")


@dataclass(frozen=True)
class Hidden:
    """Inputs, and the values that replace their hidden features."""

    inputs: Any
    substitutes: Any

    @classmethod
    def behind(cls, baseline: Baseline, inputs: Any) -> Hidden:
        """Inputs and their baseline: a name in `NAMED`, numbers for one input, or a function of the inputs."""
        xp = namespace(inputs)
        if isinstance(baseline, str):
            substitutes = _named(baseline, inputs)
        elif callable(baseline):
            check_function(baseline, "baseline", "baseline(inputs)", None)
            substitutes = detached(baseline(copied(inputs)))  # it may write to them
            if getattr(substitutes, "shape", None) != inputs.shape:
                raise ValueError(
                    f"`baseline` must return inputs of the shape it is given, {tuple(inputs.shape)}, got "
                    f"{tuple(getattr(substitutes, 'shape', ())) or type(substitutes).__name__}"
                )
            bad = first_not_finite(substitutes)
            if bad is not None:
                raise ValueError(f"`baseline` must return finite numbers, but made NaN or infinity of input {bad}")
        else:
            substitutes = _numbers(baseline, inputs)
        return cls(inputs, xp.astype(xp.broadcast_to(substitutes, inputs.shape), inputs.dtype))

    def keeping(self, kept: Any, rows: Any) -> Any:
        r"""Copies of the inputs `rows` that show the features `kept`, (copies, \*features)."""
        xp = namespace(self.inputs)
        if kept.ndim < self.inputs.ndim:
            kept = kept[:, None]
        return xp.where(kept, self.inputs[rows], self.substitutes[rows])


def baseline_numbers(baseline: Any) -> np.ndarray:
    """A baseline, neither a name nor a function, as finite numbers on the host; raises otherwise."""
    host = to_host(as_array(baseline, "baseline"))
    if host.dtype.kind not in "fiu":
        raise TypeError(f"`baseline` must be real numbers, got {host.dtype}")
    if not np.isfinite(host).all():
        raise ValueError("`baseline` must be finite numbers, got NaN or infinity among them")
    return host


def _numbers(baseline: Any, inputs: Any) -> Any:
    """Numbers beside the inputs: one, one for each channel (of a table: column), or an array that fits one input."""
    host = baseline_numbers(baseline)
    shape, one = host.shape, tuple(inputs.shape[1:])
    if len(shape) == 1:
        host = host.reshape(-1, *[1] * (len(one) - 1))  # along the channels, not along the last axis as NumPy would
    elif shape[:1] == (1,) and len(shape) == len(one) + 1:
        host = host[0]  # a mean over rows that kept their axis
    fits = host.ndim in (0, len(one)) and all(
        size in (1, whole) for size, whole in zip(host.shape, one[: host.ndim], strict=True)
    )
    if not fits:
        channels = "columns" if len(one) == 1 else "channels"
        got = f"{shape[0]} numbers" if len(shape) == 1 else f"shape {shape}"
        raise ValueError(
            f"`baseline` must be one number, one for each of the {one[0]} {channels}, or an array that fits one input, "
            f"{one}, got {got}; if it differs from input to input, give a function of the inputs"
        )
    return from_host(host, like=inputs)


def _named(baseline: str, inputs: Any) -> Any:
    xp = namespace(inputs)
    if baseline == "black":
        return xp.zeros_like(inputs)
    if baseline not in NAMED:
        raise ValueError(
            f"`baseline` must be one of {', '.join(NAMED)}, a number, one for each channel, an array that fits one "
            f"input, or a function of the inputs, got {baseline!r}{did_you_mean(baseline, NAMED)}"
        )
    if not 3 <= inputs.ndim <= 2 + MOST_AXES:
        raise ValueError(
            f"`baseline={baseline!r}` is made for {shapes_allowed()}, got shape "
            f"{tuple(inputs.shape)}: give a number, one for each channel (of a table: column, such as "
            "`table.mean(axis=0)`), or a function of the inputs"
        )
    if baseline == "mean":
        return mean_colour(inputs)
    with needs_extra("`baseline='blur'`"):
        from metfa.calls.blur import Blur
    return Blur(5.0, kernel=11, border="reflect")(widen(inputs))
