"""Rows of figures in the file of a unit; a figure that is missing has a reason."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa import metrics
from metfa._arrays import as_array, to_host

__all__ = ["BESIDE_MSTD", "Row", "number", "plain_row", "score_row"]

BESIDE_MSTD = ("level", "constant", "rescaled", "over_level", "correlation")  # as of `metrics.Stability`

Row = dict[str, Any]


def number(value: Any) -> float | None:
    """A figure in the form of JSON; None if it is missing."""
    host = to_host(as_array(value, "score"))
    if host.size != 1:
        raise ValueError(f"a metric must return one score an input, got {host.size} for 1 input")
    value = float(host.reshape(()))
    return value if np.isfinite(value) else None


def score_row(metric: str, scores: metrics.Scores, **more: Any) -> Row:
    """The row of a metric for one input."""
    clean = number(scores.clean[0])
    reason = scores.degenerate[0] or (None if number(scores.score[0]) is not None else "clean score below 1e-6")
    return {
        "metric": metric,
        "score": number(scores.score[0]),
        "raw": number(scores.raw[0]),
        "clean": clean,
        "reason": reason,
        **more,
    }


def plain_row(metric: str, value: Any, reason: str | None = None) -> Row:
    """The row of a figure without a clean score; if there is a reason, only the raw figure is filled in."""
    raw = number(value)
    reason = reason or (None if raw is not None else "not finite")
    return {"metric": metric, "score": None if reason else raw, "raw": raw, "reason": reason}
