"""Heat maps: one number in [0, 1] for each pixel, the paper's convention for comparing explainers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from metfa._arrays import as_array, first_not_finite, is_array, namespace, widen
from metfa._base.one_line import one_line
from metfa._base.validation import is_whole, one_of, positive_int, shown
from metfa.calls.inputs import check_channels_first, check_values, refuse_several, require_tensor
from metfa.calls.parts import formed, name_in_words, named
from metfa.sampling.entries import count_rows
from metfa.sampling.outputs import read_output
from metfa.sampling.protocol import check_explainer, explained_model, known_independent, takes_rngs
from metfa.stats.prominences import LEAST_SHARE

__all__ = [
    "check_channel_axis",
    "check_differentiable",
    "finished",
    "for_part",
    "heat_maps",
    "heatmap",
    "reduce_channels",
    "require_channels",
    "scale_to_unit",
]

Sign = Literal["absolute", "positive"]


def check_channel_axis(channel_axis: Any) -> None:
    """Raise unless `channel_axis` is None or an axis behind the batch, or a tuple or dict of these."""
    if isinstance(channel_axis, tuple | Mapping):
        for axis in channel_axis.values() if isinstance(channel_axis, Mapping) else channel_axis:
            check_channel_axis(axis)
    elif channel_axis is not None:
        positive_int(channel_axis, "channel_axis")


def for_part(given: Any, part: Any, name: str = "channel_axis", example: Any = (1, None)) -> Any:
    """The setting `name` for a part of the inputs, which is None where `inputs` is one array.

    Raises
    ------
    ValueError
        If the setting is one number and there are several inputs, or has nothing for this one; or the other way round.
    """
    several = isinstance(given, tuple | Mapping)
    if part is None and several:
        raise ValueError(
            f"`{name}` has entries for several inputs, and `inputs` is one array, got {given!r}: write one"
        )
    if part is None:
        return given
    known = dict(enumerate(given)) if isinstance(given, tuple) else given if several else {}
    if part not in known:
        raise ValueError(
            f"`{name}` must have an entry for each of several inputs, and has none for part {part!r}, got {given!r}: "
            f"write a tuple or dict like the inputs, such as `{name}={example!r}` for an image and a table"
        )
    return known[part]


def require_channels(array: Any, channel_axis: int | None, name: str) -> None:
    """Raise unless `array` has channels on that axis and features beside them."""
    if channel_axis is not None and array.ndim <= max(channel_axis, 2):
        raise ValueError(
            f"`{name}` must be (batch, channels, *features) with channels on axis {channel_axis}, got shape "
            f"{tuple(array.shape)}; where there are no channels write `channel_axis=None`"
        )


def check_differentiable(inputs: Any, channel_axis: Any, what: str, model: Any, *, several: bool = False) -> None:
    """Raise unless `inputs` is a floating-point tensor with channels on that axis, where the `model` has them.

    Or `several` inputs, each a tensor, those of floating point with channels on the axis of their own.
    """
    if isinstance(inputs, tuple | Mapping) and not inputs:
        raise ValueError(f"`inputs` is an empty {type(inputs).__name__}: there is nothing to explain")
    if not several:
        refuse_several(inputs)
    parts = named(inputs)
    for name, part in parts.items():
        own = name_in_words(name)
        require_tensor(part, own)
        if part.is_floating_point():
            _check_part(part, for_part(channel_axis, name), own, model)
        elif name is None:
            raise TypeError(f"`inputs` must be floating point to have {what}, got {part.dtype}")


def _check_part(part: Any, channel_axis: int | None, name: str, model: Any) -> None:
    require_channels(part, channel_axis, name)
    if channel_axis == 1:
        check_channels_first(part, model, name)
    check_values(part, name)


def reduce_channels(attributions: Any, channel_axis: int | None, sign: Sign = "absolute") -> Any:
    r"""Maximum over the channels of the absolute (or positive) attributions, (batch, \*features)."""
    xp = namespace(attributions)
    strength = xp.abs(attributions) if sign == "absolute" else xp.clip(attributions, min=0)
    return strength if channel_axis is None else xp.max(strength, axis=channel_axis)


def scale_to_unit(maps: Any) -> Any:
    """Each map scaled to [0, 1] by its smallest and largest value; a constant map becomes 0 everywhere.

    A map counts as constant if its values differ by less than a ten-thousandth of the largest: scaled, such a map would
    look like any other, and the statistics could not see that nothing stands out of it (see `metfa.stats.prominence`).
    """
    xp = namespace(maps)
    axes = tuple(range(1, maps.ndim))
    low = xp.min(maps, axis=axes, keepdims=True)
    high = xp.max(maps, axis=axes, keepdims=True)
    spread = high - low
    constant = spread <= LEAST_SHARE * xp.maximum(xp.abs(low), xp.abs(high))
    return xp.where(constant, xp.zeros_like(maps), (maps - low) / xp.where(constant, xp.ones_like(spread), spread))


def heat_maps(attributions: Any, channel_axis: Any, *, scale: bool) -> Any:
    """Maps of attributions, absolute and over the channels' maximum, of each part by itself; see `finished`."""
    maps = {
        name: finished(reduce_channels(part, for_part(channel_axis, name)), scale=scale)
        for name, part in named(attributions).items()
    }
    return formed(maps, attributions)


def finished(maps: Any, *, scale: bool) -> Any:
    """Maps at least float32, each scaled to [0, 1] if asked for; raises where one is not finite."""
    maps = widen(maps)
    bad = first_not_finite(maps)
    if bad is not None:
        raise ValueError(f"the map of input {bad} is not finite: the input or the model's scores hold NaN or infinity")
    return scale_to_unit(maps) if scale else maps


@dataclass(frozen=True)
class Heatmap:
    """What :func:`heatmap` returns."""

    explainer: Callable[..., Any]
    channel_axis: Any = field(default=1, kw_only=True)
    sign: Sign = field(default="absolute", kw_only=True)

    def __repr__(self) -> str:
        return one_line(self)

    unit = None  # that of the explainer is lost when each map is scaled

    @property
    def model(self) -> Any:
        return explained_model(self.explainer)

    @property
    def rows_independent(self) -> bool:
        return known_independent(self.explainer)

    def __call__(self, inputs: Any, target: Any = None, **row_args: Any) -> Any:
        if is_array(target):
            as_array(target, "target")
        elif not (target is None or is_whole(target) or isinstance(target, tuple | list)):
            raise TypeError(f"`target` must be a class index, or a list with one entry a row, got {shown(target)}")
        output = self.explainer(inputs, target=target, **row_args)
        if isinstance(inputs, tuple | Mapping):
            attributions, *scores = read_output(output, inputs, count_rows(inputs))
            scores = [one for one in scores if one is not None]
        else:
            attributions, *scores = output if isinstance(output, tuple) else (output,)
        if isinstance(attributions, dict):
            maps: Any = {name: self._map(part, inputs[name], name) for name, part in attributions.items()}
        else:
            maps = self._map(attributions, inputs)
        return (maps, *scores) if scores else maps

    def _map(self, attributions: Any, inputs: Any, part: Any = None) -> Any:
        """The heat maps of an array of attributions, those of a `part` of the inputs where it is one."""
        axis = for_part(self.channel_axis, part)
        name = "attributions" if part is None else f"attributions of part {part!r}"
        attributions = widen(as_array(attributions, name))
        require_channels(attributions, axis, name)
        if axis == 1 and is_array(inputs) and _without_channels(attributions, inputs):
            raise ValueError(
                f"`explainer` returns maps {tuple(attributions.shape)} without channels for inputs "
                f"{tuple(inputs.shape)}: metfa's own explainers are heat maps already, use them as they are; to scale "
                "maps of another explainer write `channel_axis=None`"
            )
        return scale_to_unit(reduce_channels(attributions, axis, self.sign))


def _without_channels(attributions: Any, inputs: Any) -> bool:
    spatial = tuple(inputs.shape[:1]) + tuple(inputs.shape[2:])
    return inputs.ndim >= 4 and tuple(attributions.shape) == spatial


@dataclass(frozen=True, repr=False)
class RandomisedHeatmap(Heatmap):
    """What :func:`heatmap` returns for an explainer that takes `rngs`."""

    def __call__(self, inputs: Any, target: Any = None, *, rngs: Any = None, **row_args: Any) -> Any:
        return super().__call__(inputs, target, rngs=rngs, **row_args)


def heatmap(explainer: Callable[..., Any], *, channel_axis: Any = 1, sign: Sign = "absolute") -> Callable[..., Any]:
    r"""Explainer with one score in [0, 1] for each pixel, from one with scores for each channel.

    Channels are reduced first (maximum of the absolute values), then every map is scaled by its own smallest and
    largest value: the paper's convention, so that explainers can be compared and natural breaks mean something.

    Parameters
    ----------
    explainer : callable
        ``explainer(inputs, target=...)`` -> attributions (batch, channels, \*features), such as
        ``Saliency(model).attribute`` of Captum.
    channel_axis : int, None, or tuple or dict of them
        Axis of the channels in the attributions, at least 1 (axis 0 is the batch); None where there are none (tables,
        texts). For several inputs one for each, as a tuple or dict like the inputs; each part is scaled by itself.
    sign : {"absolute", "positive"}
        "absolute" counts negative evidence by its strength; "positive" sets it to zero.

    Returns
    -------
    callable
        Explainer with maps (batch, \*features) in [0, 1]; a constant map becomes zeros, also one whose values differ by
        less than a ten-thousandth of the largest.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa.explainers import heatmap
    >>> explainer = heatmap(lambda inputs, target: -inputs)
    >>> explainer(np.arange(8.0).reshape(1, 2, 2, 2), target=0)
    array([[[0.        , 0.33333333],
            [0.66666667, 1.        ]]])
    """
    check_explainer(explainer)
    check_channel_axis(channel_axis)
    one_of(sign, "sign", ("absolute", "positive"))
    kind = RandomisedHeatmap if takes_rngs(explainer) else Heatmap
    return kind(explainer, channel_axis=channel_axis, sign=sign)
