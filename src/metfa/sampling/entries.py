"""Entries of inputs, and of what else has one for each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from metfa._arrays import copied, device_of, is_array, namespace
from metfa._base.validation import shown
from metfa._frames.columns import is_frame, row_of

__all__ = ["copy_of", "count_rows", "one_entry", "one_row", "taken"]


def copy_of(inputs: Any) -> Any:
    """Inputs for somebody who may write to them; the objects of a list are the same."""
    if isinstance(inputs, Mapping):
        return {key: copy_of(part) for key, part in inputs.items()}
    if isinstance(inputs, tuple):
        return tuple(map(copy_of, inputs))
    if is_array(inputs):
        return copied(inputs)
    if is_frame(inputs):
        return inputs.copy() if hasattr(inputs, "copy") else inputs.clone()  # as polars calls it
    return list(inputs)


def count_rows(inputs: Any) -> int:
    """Length of the batch axis of inputs that are known to have one."""
    if isinstance(inputs, Mapping):
        return count_rows(next(iter(inputs.values())))
    if isinstance(inputs, tuple):
        return count_rows(inputs[0])
    if not is_array(inputs) and not hasattr(inputs, "__len__"):
        raise TypeError(f"`inputs` must be arrays, or a list with one object a row, got {shown(inputs)}")
    return inputs.shape[0] if is_array(inputs) else len(inputs)


def one_row(inputs: Any, index: int) -> Any:
    """The batch that holds row `index` alone, in the library and the graph of `inputs`."""
    if isinstance(inputs, Mapping):
        return {key: one_row(part, index) for key, part in inputs.items()}
    if isinstance(inputs, tuple):
        return tuple(one_row(part, index) for part in inputs)
    return row_of(inputs, index) if is_frame(inputs) else one_entry(inputs, index)


def one_entry(values: Any, index: int) -> Any:
    """Entry `index` of an array, list or tuple with one entry a row, as an array, list or tuple of length one."""
    return values[index : index + 1, ...] if is_array(values) else values[index : index + 1]


def taken(values: Any, indices: Sequence[int]) -> Any:
    """Entries of an array, or of a list or tuple, with one entry a row, as an array or a list."""
    if not is_array(values):
        return [values[index] for index in indices]
    xp = namespace(values)
    places = np.array(indices, np.int64)  # of this kind also where there are none
    return xp.take(values, xp.asarray(places, device=device_of(values)), axis=0)
