"""Classes by the model's own labels, as places among its scores."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

from metfa._arrays import is_array, to_host
from metfa._base.validation import brief
from metfa._frames.columns import is_series

__all__ = ["are_numbers", "places_of"]

SHOWN = 12  # labels in a message


def are_numbers(labels: Sequence[Any]) -> bool:
    """Whether labels are numbers, so that a number is a label and no place."""
    return all(isinstance(label, Real) for label in labels)


def places_of(target: Any, labels: Sequence[Any] | None) -> Any:
    """Targets as places, one or a list of them.

    `labels` are those of the model's classes, in the order of its scores. None where it has none: targets are places
    as they came, which are checked where the scores are known.

    Raises
    ------
    ValueError
        For what is no class of the model, and for an integer that may be a label or a place.
    """
    entries = _entries(target)
    if labels is None:
        texts = [entry for entry in (entries if isinstance(entries, list) else [entries]) if isinstance(entry, str)]
        if texts:
            raise ValueError(
                f"`target` must be a class of the model, got {texts[0]!r}; its classes have no names of their own: "
                "give a place, such as 0"
            )
        return target
    if isinstance(entries, list):
        return [_place(entry, labels) for entry in entries]
    return None if entries is None else _place(entries, labels)


def _entries(target: Any) -> Any:
    """A list of one entry a row, or the one target; numbers and texts as Python has them."""
    if is_series(target):
        return list(map(_entries, target))
    if is_array(target):
        host = to_host(target)
        return (host[:, 0] if host.ndim == 2 and host.shape[1] == 1 else host).tolist()  # as of catboost's `predict`
    return list(map(_entries, target)) if isinstance(target, list | tuple) else target


def _place(entry: Any, labels: Sequence[Any]) -> Any:
    """The place of one target."""
    names = [str(label) for label in labels]
    if isinstance(entry, str) and entry in names:
        return names.index(entry)
    for place, label in enumerate(labels):
        if _equal(entry, label):
            return place
    if isinstance(entry, Real) and not are_numbers(labels):
        if str(entry) in names and names.index(str(entry)) != entry:
            raise ValueError(
                f"`target` {entry} may be the label {str(entry)!r} or the class at place {entry}: write the label as a "
                f"text, `target={str(entry)!r}`"
            )
        return entry
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    numbers = ", whose labels are numbers" if are_numbers(labels) else ""
    raise ValueError(
        f"`target` must be a class of the model{numbers}, got {brief(entry)}; {', '.join(names[:SHOWN])}{more}"
    )


def _equal(entry: Any, label: Any) -> bool:
    """Whether a target is this label. True is not the label 1, for it may be an answer and no label."""
    if isinstance(entry, bool) and not isinstance(label, bool):
        return False
    return isinstance(entry, Real if isinstance(label, Real) else type(label)) and entry == label
