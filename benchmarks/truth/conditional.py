"""Conditional Shapley values of rows of normal columns: what is expected of the prediction, given some columns.

The worth of a coalition is the mean of the model over the rows that have its columns' values: hidden columns follow
from the shown ones by their correlation. So a column that the model does not read has a value of its own, if it goes
with one that is read: true of the data, and false of the model. Aas, Jullum and Løland, "Explaining individual
predictions when features are dependent", Artificial Intelligence 298, 2021. The code is ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy.special import ndtr

from benchmarks.truth.tables import coalitions, of_coalitions

__all__ = ["Conditional", "exact_values", "given"]

DRAWS = 16  # and their opposites: exact for linear models


def given(covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each coalition, with mean 0: a row times the first (2^d, d, d) is the mean, the second is the covariance."""
    d = len(covariance)
    means, rests = np.zeros((2**d, d, d)), np.zeros((2**d, d, d))
    for shown, mean, rest in zip(coalitions(d), means, rests, strict=True):
        hidden = ~shown
        mean[np.ix_(shown, shown)] = np.eye(shown.sum())
        across = np.linalg.solve(covariance[np.ix_(shown, shown)], covariance[np.ix_(shown, hidden)])
        mean[np.ix_(shown, hidden)] = across
        rest[np.ix_(hidden, hidden)] = covariance[np.ix_(hidden, hidden)] - covariance[np.ix_(hidden, shown)] @ across
    return means, rests


def _absolute(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Mean of the absolute value of a normal variable."""
    std = np.sqrt(np.maximum(variance, 1e-300))
    peak = std * math.sqrt(2 / math.pi) * np.exp(-(mean**2) / (2 * std**2))
    return peak + mean * (1 - 2 * ndtr(-mean / std))


EXPECTED: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {  # of means and variances (..., columns)
    "linear": lambda m, v: m[..., :4] @ np.array([4.0, 3.0, 2.0, 1.0]),  # noqa: ARG005
    "additive": lambda m, v: (
        np.sin(m[..., 0]) * np.exp(-v[..., 0] / 2) + _absolute(m[..., 1], v[..., 1]) + m[..., 2] ** 2 + v[..., 2]
        + np.exp(v[..., 3] / 2 - m[..., 3])
    ),
}  # fmt: skip


def exact_values(name: str, covariance: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Of a planted function, in closed form, (n, d)."""
    means, rests = given(covariance)
    at = np.einsum("ni,sij->nsj", rows.astype(np.float64), means)
    variances = np.broadcast_to(np.einsum("sjj->sj", rests), at.shape)
    return of_coalitions(EXPECTED[name](at, np.maximum(variances, 0)))


@dataclass(frozen=True)
class Conditional:
    """Of any model, by the same draws for every row: exact for linear models, else by 32 rows a coalition."""

    model: Callable[[torch.Tensor], torch.Tensor]
    covariance: np.ndarray

    rows_independent = True
    signed = True

    @cached_property
    def _rest(self) -> tuple[torch.Tensor, torch.Tensor]:
        means, rests = given(self.covariance)
        values, vectors = np.linalg.eigh(rests)
        root = vectors * np.sqrt(np.maximum(values, 0))[:, None]
        normal = np.random.default_rng(21).standard_normal((DRAWS, len(self.covariance)))
        draws = np.einsum("kj,sij->ski", np.concatenate([normal, -normal]), root)
        return torch.from_numpy(means).float(), torch.from_numpy(draws).float()

    def __call__(self, inputs: torch.Tensor, target: Any = None) -> torch.Tensor:  # noqa: ARG002
        means, draws = self._rest
        worth = np.empty((len(inputs), len(means)))
        for row, found in zip(inputs, worth, strict=True):
            rows = torch.einsum("i,sij->sj", row, means)[:, None] + draws
            with torch.no_grad():
                predicted = self.model(rows.reshape(-1, rows.shape[-1]))[:, 0]
            found[:] = predicted.view(len(means), -1).double().mean(dim=1).numpy()
        return torch.from_numpy(of_coalitions(worth)).float()
