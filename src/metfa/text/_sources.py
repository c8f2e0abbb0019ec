"""The sources of prompts: checked, in groups, and those of a prompt that are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from metfa._base.validation import as_names, positive_int, shown

__all__ = ["checked_rows", "grouped", "kept_sources"]


def checked_rows(inputs: Any) -> list[list[str]]:
    """The sources of each prompt of a call, equally many; raises for anything else."""
    if isinstance(inputs, str) or not isinstance(inputs, list | tuple) or not inputs:
        raise TypeError(f"`inputs` must be a list of lists of sources, got {shown(inputs)}: write `[sources]`")
    rows = []
    for number, row in enumerate(inputs):
        if isinstance(row, str) or not isinstance(row, list | tuple):
            raise TypeError(
                f"`inputs` must be a list of lists of sources, got {shown(row)} as prompt {number}: write "
                "`[[source, source, ...]]` for one prompt"
            )
        rows.append(list(as_names(list(row), "inputs")) if row else [])
        empty = [place for place, source in enumerate(rows[-1]) if not source.strip()]
        if empty or not row:
            what = f"source {empty[0]} is empty" if empty else "it has no sources"
            raise ValueError(f"`inputs`: nothing can be said of prompt {number}, {what}: leave it out")
    if len({len(row) for row in rows}) > 1:
        raise ValueError(
            f"`inputs`: the prompts of one call must have equally many sources, got {sorted({len(r) for r in rows})}: "
            "explain them one by one, by `metfa.text.explain_answer`"
        )
    return rows


def grouped(groups: Any, n_sources: int | None) -> tuple[list[str | None], list[list[int]]]:
    """Name of each group (None for a source alone) and the places of its sources, in the order of their first places.

    Raises
    ------
    TypeError, ValueError
        If `groups` is no dict of lists of places, or names a place that is not there (if `n_sources` is known) or
        twice.
    """
    found: dict[int, str] = {}
    if groups is not None and not isinstance(groups, Mapping):
        raise TypeError(
            f"`groups` must be a dict of names and lists of places such as {{'weather': [0, 3]}}, got {shown(groups)}"
        )
    for name, places in (groups or {}).items():
        if not isinstance(name, str):
            raise TypeError(f"`groups`: the name of a group must be a text such as 'weather', got {shown(name)}")
        if isinstance(places, str) or not isinstance(places, Sequence):
            raise TypeError(f"`groups`: {name!r} must be a list of sources such as [0, 3], got {shown(places)}")
        if not places:
            raise ValueError(f"`groups`: {name!r} holds no source: leave the group out")
        for place in places:
            place = positive_int(place, "groups", 0, 10**9 if n_sources is None else n_sources - 1)
            if place in found:
                raise ValueError(
                    f"`groups`: source {place} is in {found[place]!r} and {name!r}, and can be dropped with one alone"
                )
            found[place] = name
    names: list[str | None] = []
    parts: list[list[int]] = []
    for place in range(n_sources or 0):
        name = found.get(place)
        if name is not None and name in names:
            parts[names.index(name)].append(place)
        else:
            names.append(name)
            parts.append([place])
    return names, parts


def kept_sources(row: list[str], parts: list[list[int]], mask: np.ndarray) -> list[str]:
    """The sources of the parts that are kept, in their order."""
    return [row[place] for place in sorted(place for part, on in zip(parts, mask, strict=True) if on for place in part)]
