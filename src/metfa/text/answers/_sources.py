"""The sources of prompts: checked, in groups, and those of a prompt that are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from metfa._base.validation import as_names, positive_int, shown
from metfa.text._lines import cut

__all__ = [
    "by_places",
    "check_unicode",
    "checked_rows",
    "checked_sources",
    "grouped",
    "kept_sources",
    "names_of_features",
]

LONGEST_NAME = 48  # letters of a source without a name of its own, in figures and tables


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


def checked_sources(sources: Any) -> tuple[list[str], tuple[str, ...] | None]:
    """The sources, and their own names."""
    if isinstance(sources, str) or not isinstance(sources, Mapping | list | tuple):
        text = "cut the prompt into parts that can be left out"
        instead = text if isinstance(sources, str) else "write `list(sources)`"
        raise TypeError(
            f"`sources` must be a list of texts, or a dict of names and texts, got {shown(sources)}: {instead}"
        )
    names = None
    if isinstance(sources, Mapping):
        for name, text in sources.items():
            if not isinstance(name, str):
                raise TypeError(
                    f"`sources`: the name of a source must be a text, got {shown(name)}: write str({name!r})"
                )
            if not isinstance(text, str):
                raise TypeError(f"`sources`: source {name!r} must be a text, got {shown(text)}")
        names, sources = tuple(map(str, sources)), list(sources.values())
    row = list(as_names(list(sources), "sources"))
    if not row:
        raise ValueError("`sources` is empty: there is nothing to leave out")
    for place, source in enumerate(row):
        which = f"`sources`: source {place if names is None else names[place]!r}"
        if not source.strip():
            raise ValueError(f"{which} is empty: leave it out")
        check_unicode(source if names is None else f"{names[place]}{source}", which)
    return row, names


def check_unicode(text: str, which: str) -> None:
    """Raise for a text with halves of surrogate pairs, which no tokeniser reads and no file holds."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{which} is no text in Unicode ({error.object[error.start : error.end]!a}): read its file in its own "
            "encoding, or with `errors='replace'`"
        ) from error


def by_places(groups: Any, names: tuple[str, ...] | None) -> Any:
    """Groups with places where they have names of sources."""
    if not isinstance(groups, Mapping):
        return groups
    known = {} if names is None else {name: place for place, name in enumerate(names)}
    found = {}
    for group, members in groups.items():
        if isinstance(members, str) or not isinstance(members, Sequence):
            found[group] = members
            continue
        unknown = [one for one in members if isinstance(one, str) and one not in known]
        if unknown:
            raise ValueError(f"`groups`: there is no source named {unknown[0]!r} in {list(known)!r:.80}")
        found[group] = [known[one] if isinstance(one, str) else one for one in members]
    return found


def names_of_features(row: list[str], names: tuple[str, ...] | None, groups: Any) -> tuple[str, ...]:
    """A name for each feature: of its group, its own, or its place and its first letters."""
    of_groups, parts = grouped(groups, len(row))
    own = names or tuple(f"{place}: {cut(' '.join(text.split()), LONGEST_NAME)}" for place, text in enumerate(row))
    same = [group for group in of_groups if group in own]
    if same:
        raise ValueError(f"`groups`: {same[0]!r} is the name of a source: give the group another name")
    return tuple(own[part[0]] if group is None else group for group, part in zip(of_groups, parts, strict=True))
