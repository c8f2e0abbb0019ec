"""Names of an attribution's features: given, or those of a data frame's columns."""

from __future__ import annotations

from typing import Any

__all__ = ["checked_names", "fitting_names"]


def checked_names(given: Any, inputs: Any) -> tuple[str, ...] | None:
    """The names given, or those of the columns where `inputs` is a data frame; None where there are none."""
    if given is None:
        columns: tuple[Any, ...] = tuple(getattr(inputs, "columns", ()))
        return columns if columns and all(isinstance(name, str) for name in columns) else None
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise TypeError(f"`feature_names` must be a list of texts, got {type(given).__name__}: {given!r:.80}")
    names = tuple(given)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"`feature_names` must be a list of texts, but holds {type(name).__name__}: {name!r:.80}")
    return tuple(map(str, names))


def fitting_names(
    names: tuple[str, ...] | None, feature_shape: tuple[int, ...], *, required: bool = True
) -> tuple[str, ...] | None:
    """The names, if there is one for each feature of one axis; else ValueError, or None where they were found only."""
    if names is None or feature_shape == (len(names),):
        return names
    if not required:
        return None
    if len(feature_shape) != 1:
        raise ValueError(
            f"`feature_names` has {len(names)} names, but an attribution has features of shape {feature_shape}: "
            "only features along one axis have names"
        )
    raise ValueError(f"`feature_names` has {len(names)} names, but an attribution has {feature_shape[0]} features")
