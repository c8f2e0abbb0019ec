"""The target of every row: what was asked for, or the class predicted on the clean input."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Number
from typing import Any

import numpy as np

from metfa._arrays import as_array, device_of, is_array, namespace, to_host
from metfa._base.validation import as_list, shown
from metfa.calls.answers import is_regression
from metfa.calls.behind import function_behind

__all__ = ["choose_output", "row_targets", "stacked_targets", "target_indices"]


def row_targets(target: Any, scores: np.ndarray | None, n_rows: int, asked: Any = None) -> list[Any]:
    """One target for each row: the caller's, or the argmax of the clean scores where `target` is None.

    A model with one score a row, shape (batch,), needs no target: the rows' targets are None. A regression of several
    outputs predicts no class, so it needs one: `asked` is the function that gave the scores, where it is known.
    """
    if target is None:
        return _predicted(scores, n_rows, asked)
    if isinstance(target, str):
        raise TypeError(f"`target` must be a class index or one entry a row, got the text {target!r}")
    if scores is not None and scores.ndim == 1:
        raise ValueError(f"`target` must be None for a model with one score a row, shape (batch,), got {target!r}")
    entries = to_host(as_array(target, "target")) if hasattr(target, "ndim") else target
    if not hasattr(entries, "__len__") or getattr(entries, "ndim", 1) == 0:
        targets = [_entry(entries)] * n_rows
    else:
        entries = as_list(entries, "target", "a class index, or a list with one entry a row")
        if len(entries) != n_rows:
            raise ValueError(
                f"`target` must be one class index, or one entry for each of the {n_rows} inputs, got {len(entries)} "
                f"entries; for the same tuple everywhere write [target] * {n_rows}"
            )
        targets = [_entry(entry) for entry in entries]
    for row, entry in enumerate(targets):
        _check_range(entry, scores, row)
    return targets


def stacked_targets(targets: list[Any], like: Any) -> Any:
    """Targets of one batch as explainers take them: integers as an array beside the inputs, others as a list."""
    if all(target is None for target in targets):
        return None
    if not all(isinstance(target, int) for target in targets):
        return targets
    return np.array(targets) if like is None else namespace(like).asarray(targets, device=device_of(like))


def target_indices(targets: Sequence[Any]) -> list[tuple[int, ...]]:
    """Targets as indices into the scores of a row, none where a model gives one score a row; raises for others."""
    rows = [() if entry is None else tuple(entry) if isinstance(entry, tuple | list) else (entry,) for entry in targets]
    for row, indices in enumerate(rows):
        if not all(isinstance(index, int) for index in indices):
            raise TypeError(
                "`target` must be class indices, or one tuple of indices for each row, got "
                f"{type(targets[row]).__name__} for input {row}"
            )
    return rows


def choose_output(n: int) -> str:
    """End of a message: how to choose one of n outputs."""
    return f"write a number from `target=0` to `target={n - 1}`, and explain another output by another call"


def _predicted(scores: np.ndarray | None, n_rows: int, asked: Any) -> list[Any]:
    if scores is None:
        raise ValueError(
            "`target` is None and the explainer's model is unknown: pass `target=`, or `predict=` (inputs -> scores) "
            "so that the class predicted on the clean input can be explained"
        )
    if scores.ndim == 1:
        return [None] * n_rows
    if scores.ndim != 2:
        raise ValueError(
            f"`target` is None, but the model's scores have shape {scores.shape}, not (batch, classes): pass `target=`"
        )
    if scores.shape[1] > 1 and is_regression(asked):
        name = type(function_behind(asked).__self__).__name__
        raise ValueError(
            f"`target` is needed: `{name}.predict` gives {scores.shape[1]} numbers for each row, the outputs of a "
            f"regression and no scores of classes, so nothing says which of them to explain: "
            f"{choose_output(scores.shape[1])}"
        )
    return [int(best) for best in scores.argmax(axis=1)]


def _entry(entry: Any) -> Any:
    """A class index as int, a tuple of indices as tuple of ints, an array (such as a mask) as it is."""
    if isinstance(entry, tuple | list):
        return tuple(map(_entry, entry))
    if getattr(entry, "ndim", None) == 0:
        entry = to_host(entry)[()]
    if isinstance(entry, Integral) and not isinstance(entry, bool):
        return int(entry)
    if isinstance(entry, Number | np.generic | str | None) or not is_array(entry):
        raise TypeError(f"`target` must be a class index (int, tuple or mask), got {shown(entry)}")
    return entry


def _check_range(entry: Any, scores: np.ndarray | None, row: int) -> None:
    indices = (entry,) if isinstance(entry, int) else entry
    if not (isinstance(indices, tuple) and all(isinstance(index, int) for index in indices)):
        return
    if any(index < 0 for index in indices):
        raise ValueError(f"`target` must not be negative, got {entry} for input {row}")
    if scores is None:
        return
    sizes = scores.shape[1:]
    if len(indices) != len(sizes):
        raise ValueError(
            f"`target` must choose one score of each row by {len(sizes)} indices (the model's scores have shape "
            f"{tuple(sizes)}), got {entry} for input {row}"
        )
    for index, size in zip(indices, sizes, strict=True):
        if index >= size:
            raise ValueError(
                f"`target` must lie in 0..{size - 1} (the model's scores have shape {tuple(sizes)}), got {entry} for "
                f"input {row}"
            )
