"""Names of the rows of a frame: its index, where that says more than their places."""

from __future__ import annotations

from typing import Any

__all__ = ["row_names"]


def row_names(frame: Any) -> tuple[str, ...] | None:
    """Names from the index of pandas, if it has a name or holds other things than integers; else None.

    Integers without a name are places in some table, and stay with a row no longer than its place does: a row alone
    would be called otherwise than among others.
    """
    index = getattr(frame, "index", None)
    if index is None or callable(index):
        return None
    if index.inferred_type == "integer" and index.name is None:
        return None
    return tuple(map(str, index))
