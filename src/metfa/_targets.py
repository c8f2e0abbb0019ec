"""The target of every row: what was asked for, or the class predicted on the clean input."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa._arrays import as_array, from_host, namespace, to_host

__all__ = ["row_targets", "stacked_targets"]


def row_targets(target: Any, scores: np.ndarray | None, n_rows: int) -> list[Any]:
    """One target for each row: the caller's, or the argmax of the clean scores where `target` is None.

    A model with one score a row, shape (batch,), needs no target: the rows' targets are None.
    """
    if target is None:
        if scores is None:
            raise ValueError(
                "`target` is None and the explainer's model is unknown: pass `target=`, or `predict=` (inputs -> "
                "scores) so that the class predicted on the clean input can be explained"
            )
        if scores.ndim == 1:
            return [None] * n_rows
        if scores.ndim != 2:
            raise ValueError(
                f"`target` is None, but the model's scores have shape {scores.shape}, not (batch, classes): pass "
                "`target=`"
            )
        return [int(best) for best in scores.argmax(axis=1)]
    if isinstance(target, str):
        raise TypeError(f"`target` must be a class index or one entry a row, got the text {target!r}")
    if not hasattr(target, "__len__") or getattr(target, "ndim", 1) == 0:
        targets = [_index(target)] * n_rows
    else:
        entries = to_host(as_array(target, "target")) if hasattr(target, "ndim") else target
        if len(entries) != n_rows:
            raise ValueError(
                f"`target` must be one class index, or one entry for each of the {n_rows} inputs, got {len(entries)} "
                f"entries; for the same tuple everywhere write [target] * {n_rows}"
            )
        targets = [_index(entry) for entry in entries]
    _check_range(targets, scores)
    return targets


def stacked_targets(targets: list[Any], like: Any) -> Any:
    """Targets of one batch as explainers take them: integers as an array beside the inputs, others as a list."""
    if all(target is None for target in targets):
        return None
    if not all(isinstance(target, int) for target in targets):
        return targets
    host = np.array(targets, dtype=np.int64)
    return host if like is None or isinstance(like, np.ndarray) else from_host(host, like, namespace(like).int64)


def _index(entry: Any) -> Any:
    if isinstance(entry, bool):
        raise TypeError(f"`target` must be a class index, got the bool {entry!r}")
    if hasattr(entry, "__index__") and getattr(entry, "ndim", 0) == 0:
        return int(entry)
    if isinstance(entry, int | float | np.floating | str) or entry is None:
        raise TypeError(f"`target` must be a class index (int, tuple or mask), got {type(entry).__name__}: {entry!r}")
    return entry


def _check_range(targets: list[Any], scores: np.ndarray | None) -> None:
    if scores is None or scores.ndim != 2:
        return
    for row, target in enumerate(targets):
        if isinstance(target, int) and not 0 <= target < scores.shape[1]:
            raise ValueError(
                f"`target` must lie in 0..{scores.shape[1] - 1} (the model has {scores.shape[1]} classes), got "
                f"{target} for input {row}"
            )
