"""What a task is: data whose used features are planted, a model fitted to them, and what that model uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch

__all__ = ["Data", "Fitted", "Part", "Task"]


class Part(NamedTuple):
    """Inputs (n, features...), what is to be predicted (n,), and the features that decide it, bool (n, features...)."""

    inputs: np.ndarray
    labels: np.ndarray
    used: np.ndarray


class Data(NamedTuple):
    train: Part
    validation: Part
    test: Part


class Fitted(NamedTuple):
    """A model in evaluation mode, and its accuracy (of a regression: R²) on the test part."""

    model: torch.nn.Module
    accuracy: float


@dataclass(frozen=True)
class Task:
    """One row of the tables.

    Attributes
    ----------
    name, network : str
        What is planted, and what is fitted to it.
    make : callable
        Seed -> `Data`. Task truth T is `Data.test.used`.
    fit : callable
        Data, seed -> `Fitted`. The model's margin of a class, or its prediction, is explained.
    min_accuracy : float
        Trainings below it have not learned what is planted and are left out.
    chosen : callable
        Fitted, data -> indices of test inputs that may be explained (those that the model gets right), in order.
    model_truth : callable
        Fitted, data, inputs -> what the model uses, bool (n, features...): model truth M.
    kind : {"exact", "computed", "estimated"}
        What M is: known by construction, computed exactly from the model, or estimated by redrawing features.
    of : {"images", "tables", "texts"}
        What inputs are: images (n, 1, height, width), rows (n, columns), or words (n, words). It decides the explainers
        and the noise; scores of rows have signs, those of images and words are scaled to [0, 1].
    """

    name: str
    network: str
    make: Callable[[int], Data]
    fit: Callable[[Data, int], Fitted]
    min_accuracy: float
    chosen: Callable[[Fitted, Data], np.ndarray]
    model_truth: Callable[[Fitted, Data, np.ndarray], np.ndarray]
    kind: str
    of: Literal["images", "tables", "texts"]

    @property
    def label(self) -> str:
        return f"{self.name}, {self.network}"
