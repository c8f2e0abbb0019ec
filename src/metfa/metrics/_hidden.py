"""Inputs of which some features are kept and the others hidden behind a baseline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from metfa._arrays import as_array, namespace, widen
from metfa._lazy import needs_extra
from metfa._validation import did_you_mean
from metfa.explainers._baseline import baseline_like, check_baseline
from metfa.explainers._model_explainer import check_values

__all__ = ["Baseline", "Hidden", "check_features", "checked_inputs"]

Baseline = Literal["black", "mean", "blur"] | float | Sequence[float] | Callable[[Any], Any]
NAMED = ("black", "mean", "blur")


def checked_inputs(inputs: Any) -> Any:
    """`inputs` as a batch of finite floating-point numbers; raises otherwise."""
    inputs = as_array(inputs, "inputs")
    if inputs.ndim < 2:
        raise ValueError(f"`inputs` must be a batch (batch, ...) with features, got shape {tuple(inputs.shape)}")
    check_values(inputs)
    return inputs


def check_features(features: Any, inputs: Any, name: str) -> None:
    """Raise unless `features`, one number a feature, belong to `inputs`: alike in shape, or without its channels."""
    shape, whole = tuple(features.shape), tuple(inputs.shape)
    spatial = whole[:1] + whole[2:] if len(whole) > 2 else whole
    if shape == spatial or (shape == whole and len(whole) < 4):
        return
    if len(whole) > 3 and shape == whole:
        raise ValueError(
            f"`{name}` must have one score for each pixel, {spatial}, got {shape}: reduce the channels first, as "
            "metfa.explainers.heatmap does"
        )
    raise ValueError(f"`{name}` must have the shape {spatial} for inputs of shape {whole}, got {shape}")


@dataclass(frozen=True)
class Hidden:
    """Inputs beside what takes the place of their hidden features."""

    inputs: Any
    substitutes: Any

    @classmethod
    def behind(cls, baseline: Baseline, inputs: Any) -> Hidden:
        """Inputs behind a baseline: a name of `NAMED`, a number, one for each channel, or a function of the inputs."""
        xp = namespace(inputs)
        if isinstance(baseline, str):
            substitutes = _named(baseline, inputs)
        elif callable(baseline):
            substitutes = baseline(inputs)
            if getattr(substitutes, "shape", None) != inputs.shape:
                raise ValueError(
                    f"`baseline` must return inputs of the shape it is given, {tuple(inputs.shape)}, got "
                    f"{tuple(getattr(substitutes, 'shape', ())) or type(substitutes).__name__}"
                )
        else:
            check_baseline(baseline)
            substitutes = baseline_like(baseline, inputs)
        return cls(inputs, xp.astype(xp.broadcast_to(substitutes, inputs.shape), inputs.dtype))

    def keeping(self, kept: Any, rows: Any) -> Any:
        r"""Copies of the inputs `rows`, of which the features `kept` (copies, \*features) are shown."""
        xp = namespace(self.inputs)
        if kept.ndim < self.inputs.ndim:
            kept = kept[:, None]
        return xp.where(kept, self.inputs[rows], self.substitutes[rows])


def _named(baseline: str, inputs: Any) -> Any:
    xp = namespace(inputs)
    if baseline == "black":
        return xp.zeros_like(inputs)
    if baseline not in NAMED:
        raise ValueError(
            f"`baseline` must be one of {', '.join(NAMED)}, a number, one for each channel, or a function of the "
            f"inputs, got {baseline!r}{did_you_mean(baseline, NAMED)}"
        )
    if inputs.ndim != 4:
        raise ValueError(
            f"`baseline={baseline!r}` is made for images (batch, channels, height, width), got shape "
            f"{tuple(inputs.shape)}: give a number, or a function of the inputs"
        )
    if baseline == "mean":
        return xp.mean(widen(inputs), axis=(2, 3), keepdims=True)
    with needs_extra("`baseline='blur'`"):
        from metfa.explainers.blur import Blur
    return Blur(5.0, kernel=11, border="reflect")(widen(inputs))
