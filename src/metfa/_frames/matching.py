"""Columns matched by their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metfa._base.validation import did_you_mean

__all__ = ["in_order"]

SHOWN = 5


def in_order(own: Sequence[Any], wanted: Sequence[Any], needs: str, name: str = "inputs") -> list[Any]:
    """The names `own` of a frame's columns, in the order of those that are wanted; equal are names of equal text.

    Parameters
    ----------
    own, wanted : sequence
        Names.
    needs : str
        Who wants them, for messages, such as "which the noise needs".
    name : str
        The argument that gave the frame.

    Raises
    ------
    ValueError
        If a name is missing, or a column is not wanted.
    """
    known = {str(one): one for one in own}
    asked = set(map(str, wanted))
    missing = [one for one in wanted if str(one) not in known]
    more = [one for one in own if str(one) not in asked]
    if missing:
        hint = did_you_mean(str(missing[0]), map(str, more or own)) or f"; it has {_few(own)}"
        renamed = f": write `{name}.rename(columns={{{more[0]!r}: {missing[0]!r}}})` if it is the same" if more else ""
        raise ValueError(f"`{name}` has no column {_few(missing)}, {needs}{hint}{renamed}")
    if more:
        columns = "columns" if len(more) > 1 else "the column"
        raise ValueError(
            f"`{name}` has {columns} {_few(more)}, not among those {needs}: leave out what does not belong, "
            f"`{name}.drop(columns={more[:SHOWN]})`"
        )
    return [known[str(one)] for one in wanted]


def _few(names: Sequence[Any]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(repr, names[:SHOWN])) + more
