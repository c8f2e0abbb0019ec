"""What is measured: one line an explainer, (model, data) -> explainer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from captum.attr import IntegratedGradients
from lime.lime_tabular import LimeTabularExplainer

import metfa
from benchmarks.truth.conditional import Conditional
from benchmarks.truth.tables import background, shapley_values
from benchmarks.truth.task import Data
from metfa.explainers import RISE, Gradient, SmoothGrad, from_lime, heatmap
from metfa.text import LEMNA, LIME, Occlusion

__all__ = ["OF", "OF_IMAGES", "OF_TABLES", "OF_TEXTS", "Shapley"]


@dataclass(frozen=True)
class SignedGradient:
    """Slopes, with their signs."""

    model: torch.nn.Module

    rows_independent = True
    signed = True

    def __call__(self, inputs: torch.Tensor, target: Any = None) -> torch.Tensor:
        return metfa.Called(self.model).gradient(inputs, target)[0]


@dataclass(frozen=True)
class Shapley:
    """Exact Shapley values of each row, by every coalition."""

    model: torch.nn.Module
    hidden: np.ndarray

    rows_independent = True
    signed = True

    def __call__(self, inputs: torch.Tensor, target: Any = None) -> torch.Tensor:  # noqa: ARG002
        return torch.from_numpy(shapley_values(self.model, self.hidden, inputs.numpy())).float()


def lime_of(model: torch.nn.Module, data: Data) -> Callable[..., Any]:
    table = LimeTabularExplainer(
        data.train.inputs, mode="regression", discretize_continuous=False, feature_selection="none"
    )
    return from_lime(table, lambda rows: model(rows)[:, 0], num_samples=200)


def asked(model: torch.nn.Module) -> metfa.Called:
    """Asked about many copies at once: the networks are tiny."""
    return metfa.Called(model, batch_size=256)


# ruff: noqa: ARG005
OF_IMAGES: dict[str, Callable[[torch.nn.Module, Data], Any]] = {  # maps in [0, 1]
    "Gradient": lambda model, data: Gradient(model),
    "SmoothGrad": lambda model, data: SmoothGrad(asked(model), n_perturbations=25, std=0.1),
    "IG": lambda model, data: heatmap(partial(IntegratedGradients(model).attribute, n_steps=16)),
    "RISE": lambda model, data: RISE(asked(model), n_masks=256, grid=4),
}
OF_TABLES: dict[str, Callable[[torch.nn.Module, Data], Any]] = {  # signed, in the unit of what is predicted
    "Gradient": lambda model, data: SignedGradient(model),
    "IG": lambda model, data: partial(IntegratedGradients(model).attribute, n_steps=16),
    "exact SHAP": lambda model, data: Shapley(model, background(data)),
    "conditional SHAP": lambda model, data: Conditional(model, np.cov(data.train.inputs, rowvar=False)),
    "LIME": lime_of,
}
OF_TEXTS: dict[str, Callable[[Any, Data], Any]] = {  # in [0, 1], for the second class
    "Occlusion": lambda model, data: Occlusion(model),
    "LIME": lambda model, data: LIME(model, n_perturbations=100),
    "LEMNA": lambda model, data: LEMNA(model, n_perturbations=100),
}
OF = {"images": OF_IMAGES, "tables": OF_TABLES, "texts": OF_TEXTS}
