"""Explainers that ask the model about many changed copies of an input."""

from __future__ import annotations

from dataclasses import dataclass

from metfa.calls.probabilities import ProbabilityModel
from metfa.explainers._model_explainer import ModelExplainer

__all__ = ["PerturbationExplainer"]


@dataclass(frozen=True)
class PerturbationExplainer(ProbabilityModel, ModelExplainer):
    """Its maps are made of class probabilities of changed copies of the inputs."""
