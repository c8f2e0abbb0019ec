"""Arrays that cannot be written to."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["read_only"]


def read_only(value: Any) -> Any:
    """`value` with the NumPy arrays in it, also in tuples and dicts, as views that cannot be written to."""
    if isinstance(value, np.ndarray):
        view = value.view()
        view.flags.writeable = False
        return view
    if isinstance(value, tuple):
        return tuple(map(read_only, value))
    return {key: read_only(part) for key, part in value.items()} if isinstance(value, dict) else value
