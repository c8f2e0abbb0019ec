"""In which unit values of SHAP add up to what a model predicts: found by adding them up, not by the model's name."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["DoesNotAddUpError", "scale_of"]

CLOSE = 1e-3  # of the largest prediction: values in single precision differ by 1e-6, wrong ones by far more


class DoesNotAddUpError(ValueError):
    """Values whose sum is not the prediction in any unit that is known."""


def _exp(total: np.ndarray) -> np.ndarray:
    return np.exp(np.minimum(total, 700.0))


def _odds(total: np.ndarray) -> np.ndarray:
    return 1 / (1 + _exp(-total))


def _softmax(total: np.ndarray) -> np.ndarray:
    powers = np.exp(total - total.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def scale_of(explainer: Any, inner: Any, rows: Any, scores: np.ndarray, of: str) -> str:
    """The unit of an explainer's values, in words.

    Parameters
    ----------
    explainer : callable
        From `metfa.explainers.from_shap`.
    inner : shap.Explainer
        SHAP's own. Its ``expected_value``, of the single output or of each class, may be right only after a call.
    rows : frame or array
        Rows to add up.
    scores : ndarray
        What the model predicts for them, (rows, classes) or (rows,).
    of : str
        What these scores are, in words.

    Raises
    ------
    DoesNotAddUpError
        If base and values of a row are the scores in no unit.
    """
    classes = scores.shape[1] if scores.ndim == 2 else 0
    sums = [_sum(explainer, rows, target) for target in (range(classes) if classes else [None])]
    base = np.ravel(np.asarray(inner.expected_value, np.float64))
    if classes == 2 and base.size == 1:
        totals, expected = base[0] + sums[1], scores[:, 1]
    elif base.size == classes:
        totals, expected = base + np.stack(sums, axis=1), scores
    elif not classes and base.size == 1:
        totals, expected = base[0] + sums[0], scores
    else:
        raise DoesNotAddUpError(f"SHAP explains {base.size} outputs, and the model has {classes or 1}")
    found = {of: totals, "log-odds": _odds(totals)}
    if not classes:
        found["logarithm of the prediction"] = _exp(totals)
    elif totals.ndim == 2:
        found = {of: totals, "margin": _softmax(totals), "log-odds": _normalised(_odds(totals))}
    off = {unit: float(np.abs(made - expected).max()) for unit, made in found.items()}
    unit = min(off, key=lambda name: off[name])
    if not off[unit] <= CLOSE * max(1e-9, float(np.abs(expected).max())):
        raise DoesNotAddUpError(
            f"SHAP's values do not add up to the model's predictions: they are off by {off[unit]:.3g} at best"
        )
    return unit


def _sum(explainer: Any, rows: Any, target: int | None) -> np.ndarray:
    """Sum of each row's values of a class."""
    found = explainer(rows, target=None if target is None else [target] * len(rows))
    values = found[0] if isinstance(found, tuple) else found
    return np.asarray(values, np.float64).sum(axis=1)


def _normalised(shares: np.ndarray) -> np.ndarray:
    return shares / shares.sum(axis=-1, keepdims=True)
