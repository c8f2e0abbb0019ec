"""Settings of a study, one by one: noises by name, aggregates, and numbers that may be several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from metfa._base.validation import did_you_mean

__all__ = ["AGGREGATES", "aggregates_of", "ascending", "named", "noises_named"]

AGGREGATES = ("vanilla", "mean", "smoothed")


def named(mapping: Any, name: str) -> list[tuple[str, Any]]:
    """Entries of a dict with names as keys; raises for anything else, and for no explainers."""
    if not isinstance(mapping, Mapping):
        raise TypeError(f"`{name}` must be a dict of names, got {type(mapping).__name__}: {mapping!r}")
    if not all(isinstance(key, str) and key for key in mapping):
        raise TypeError(f"`{name}` must have strings as names, got {list(mapping)}")
    if not mapping and name == "explainers":
        raise ValueError("`explainers` is empty: there is nothing to measure")
    return list(mapping.items())


def noises_named(mapping: Any, name: str, *, none_allowed: bool) -> list[tuple[str, Any]]:
    """Noises with their names; raises for what cannot be one."""
    for key, noise in named(mapping, name):
        if isinstance(noise, type):
            raise TypeError(f"`{name}[{key!r}]` must be a noise, got the class {noise.__name__}: give it its settings")
        if not (callable(noise) or (noise is None and none_allowed)):
            raise TypeError(
                f"`{name}[{key!r}]` must be a function f(x, rng) -> x, such as metfa.noise.Uniform(0.1), got {noise!r}"
            )
    return named(mapping, name)


def aggregates_of(aggregates: Any, sampling: Mapping[str, Any]) -> tuple[str, ...]:
    """The aggregates that can be made: without sampling noises only the vanilla map."""
    if isinstance(aggregates, str) or not isinstance(aggregates, Sequence):
        raise TypeError(f"`aggregates` must be a sequence of names, got {type(aggregates).__name__}: {aggregates!r}")
    if not aggregates:
        raise ValueError(f"`aggregates` is empty: give some of {', '.join(AGGREGATES)}")
    for entry in aggregates:
        if entry not in AGGREGATES:
            raise ValueError(
                f"`aggregates` must be of {', '.join(AGGREGATES)}, got {entry!r}{did_you_mean(str(entry), AGGREGATES)}"
            )
    if sampling:
        return tuple(dict.fromkeys(aggregates))
    return tuple(entry for entry in dict.fromkeys(aggregates) if entry == "vanilla")


def ascending(value: Any, name: str, check: Callable[[Any], Any]) -> tuple[Any, ...]:
    """One value or several, each checked, ascending and each once."""
    entries = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
    if not entries:
        raise ValueError(f"`{name}` is empty")
    return tuple(sorted({check(entry) for entry in entries}))
