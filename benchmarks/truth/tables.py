"""Rows of normal columns and a planted function of some of them, with exact Shapley values.

Linear and nonlinear additive: Liu, Khandagale, White and Neiswanger, "Synthetic benchmarks for scientific research in
explainable machine learning", NeurIPS 2021 (arXiv:2106.12543; abacusai/xai-bench): columns N(0, (1 - rho) I + rho 11'),
standardised predictions. Suppressor: Haufe et al., "On the interpretation of weight vectors of linear models in
multivariate neuroimaging", NeuroImage 87, 2014.
Piecewise linear: Mamalakis, Ebert-Uphoff and Barnes, "Neural network attribution methods for problems in geoscience: A
novel synthetic benchmark dataset", Environmental Data Science 1, 2022 (their slopes are of climate data, ours drawn).
The code is ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from itertools import combinations

import numpy as np
import torch
from torch import nn

from benchmarks.truth.task import Data, Fitted, Part, Task
from benchmarks.truth.training import perceptron, trained

__all__ = [
    "FUNCTIONS", "LEAST_VALUE", "Planted", "background", "coalitions", "of_coalitions", "piecewise",
    "shapley_values", "tables",
]  # fmt: skip

SIZES = {"train": 2000, "validation": 300, "test": 500}
BREAKS = np.sort(np.random.default_rng(12).uniform(-1.5, 1.5, (4, 5)), axis=1)  # of four columns
SLOPES = np.random.default_rng(13).normal(size=(4, 6))  # before, between and after them
LEAST_VALUE = 0.05  # standard deviations of what is predicted: a smaller Shapley value is no use of a column


def piecewise(rows: torch.Tensor) -> torch.Tensor:
    """Part c_j of each of the first four columns, piecewise linear with c_j(0) = 0, (n, 4)."""
    breaks, slopes = (torch.from_numpy(array).to(rows) for array in (BREAKS, SLOPES))
    bends = (rows[:, :4, None] - breaks).relu() - (-breaks).relu()
    return slopes[:, 0] * rows[:, :4] + (slopes.diff(dim=1) * bends).sum(dim=2)


FUNCTIONS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], int, tuple[int, ...]]] = {  # columns, those used
    "linear": (lambda x: 4 * x[:, 0] + 3 * x[:, 1] + 2 * x[:, 2] + x[:, 3], 5, (0, 1, 2, 3)),
    "additive": (
        lambda x: x[:, 0].sin() + x[:, 1].abs() + x[:, 2].square() + (-x[:, 3]).exp(),
        8,
        (0, 1, 2, 3),
    ),
    "piecewise linear": (lambda x: piecewise(x).sum(dim=1), 8, (0, 1, 2, 3)),
    "suppressor": (lambda x: x[:, 0] - x[:, 1], 4, (0,)),  # column 1 tells nothing of the prediction by itself
}


class Planted(nn.Module):
    """The planted function itself as a model, standardised by `centre` and `scale`; rows -> (n, 1)."""

    def __init__(self, name: str, centre: float = 0.0, scale: float = 1.0) -> None:
        super().__init__()
        self.name, self.centre, self.scale = name, centre, scale

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return ((FUNCTIONS[self.name][0](rows) - self.centre) / self.scale)[:, None]


def drawn(name: str, rho: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Rows (n, columns)."""
    columns = FUNCTIONS[name][1]
    rows = rng.standard_normal((n, columns))
    if name == "suppressor":
        rows[:, 0] += rows[:, 1]
    else:
        rows = math.sqrt(1 - rho) * rows + math.sqrt(rho) * rng.standard_normal((n, 1))
    return rows.astype(np.float32)


@cache
def planted(name: str, rho: float) -> Planted:
    values = Planted(name)(torch.from_numpy(drawn(name, rho, 200_000, np.random.default_rng(5)))).double()
    return Planted(name, float(values.mean()), float(values.std()))


def made(name: str, rho: float, seed: int) -> Data:
    """Rows, standardised predictions with noise of .01, and the columns that the prediction depends on."""
    rng = np.random.default_rng([seed, 11])
    _, columns, used = FUNCTIONS[name]
    truth = np.isin(np.arange(columns), used)
    parts = []
    for n in SIZES.values():
        rows = drawn(name, rho, n, rng)
        values = planted(name, rho)(torch.from_numpy(rows)).numpy()
        labels = (values + rng.normal(0, 0.01, values.shape)).astype(np.float32)
        parts.append(Part(rows, labels, np.broadcast_to(truth, rows.shape)))
    return Data(*parts)


def as_planted(name: str, rho: float, data: Data, seed: int) -> Fitted:  # noqa: ARG001
    model = planted(name, rho).eval()
    return Fitted(model, _explained(model, data.test))


def perceptron_fitted(data: Data, seed: int) -> Fitted:
    columns = data.train.inputs.shape[1]
    model = trained(
        lambda: perceptron(columns, 32, 32, 1), data.train, data.validation, loss=nn.functional.mse_loss, seed=seed,
        epochs=150, batch=256,
    )  # fmt: skip
    return Fitted(model, _explained(model, data.test))


def _explained(model: nn.Module, part: Part) -> float:
    """R²."""
    residues = part.labels - model(torch.from_numpy(part.inputs)).numpy()
    return float(1 - residues.var() / part.labels.var())


def background(data: Data) -> np.ndarray:
    """The thirty rows that hidden columns are taken from."""
    return data.train.inputs[:30]


def shapley_values(model: Callable[[torch.Tensor], torch.Tensor], hidden: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Exact Shapley values (n, d) of rows (n, d): every coalition, other columns from the `hidden` rows (b, d).

    The worth of a coalition is the model's mean over the hidden rows, with the coalition's columns taken from the row.
    """
    d = rows.shape[1]
    weights = _weights(d)
    kept = torch.from_numpy(coalitions(d))[:, None]
    others = torch.from_numpy(hidden)
    values = np.empty((len(rows), d))
    for row, value in zip(torch.from_numpy(rows), values, strict=True):
        mixed = torch.where(kept, row, others)  # (2^d, b, d)
        with torch.no_grad():
            worth = model(mixed.reshape(-1, d))[:, 0].view(2**d, -1).double().mean(dim=1)
        value[:] = weights @ worth.numpy()
    return values


def coalitions(d: int) -> np.ndarray:
    """All sets of d columns, bool (2^d, d), numbered by their bits."""
    return ((np.arange(2**d)[:, None] >> np.arange(d)) & 1).astype(bool)


def of_coalitions(worth: np.ndarray) -> np.ndarray:
    """Shapley values (n, d) of the worths (n, 2^d) of `coalitions`."""
    return worth @ _weights(worth.shape[1].bit_length() - 1).T


@cache
def _weights(d: int) -> np.ndarray:
    """Matrix (d, 2^d) that turns worths of coalitions, numbered by their bits, into Shapley values."""
    found = np.zeros((d, 2**d))
    for feature in range(d):
        others = [other for other in range(d) if other != feature]
        for size in range(d):
            share = 1 / (d * math.comb(d - 1, size))
            for coalition in combinations(others, size):
                number = sum(1 << other for other in coalition)
                found[feature, number + (1 << feature)] += share
                found[feature, number] -= share
    return found


def valued(found: Fitted, data: Data, rows: np.ndarray) -> np.ndarray:
    """Columns whose exact Shapley value for this row is at least .05 in size."""
    return np.abs(shapley_values(found.model, background(data), rows)) >= LEAST_VALUE


def every(found: Fitted, data: Data) -> np.ndarray:  # noqa: ARG001
    return np.arange(len(data.test.labels))


LEAST = {"linear": 0.95, "additive": 0.9, "suppressor": 0.95, "piecewise linear": 0.9}


def tables(*rhos: float, names: tuple[str, ...] = ("linear", "additive")) -> list[Task]:
    """Each function at each correlation, as the planted function and as a network that was trained on it."""
    found = []
    for name in names:
        for rho in rhos:
            named = name if name == "suppressor" else f"{name} rho {rho:g}"
            for network, fit in (("planted", partial(as_planted, name, rho)), ("MLP", perceptron_fitted)):
                found.append(
                    Task(
                        named, network, partial(made, name, rho), fit, LEAST[name], every, valued, "computed", "tables"
                    )
                )
    return found
