"""What explainers that optimise a mask share: a coarse one for each image, which chooses between it and a baseline."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from metfa._base.validation import check_number, positive_int
from metfa._base.warnings import DegenerateAttributionsWarning, warn
from metfa.calls.baseline import baseline_like, check_baseline
from metfa.calls.differentiation import weights_frozen
from metfa.calls.enlargement import resized
from metfa.calls.grid import grid_sides
from metfa.calls.inputs import check_images, require_tensor
from metfa.explainers._perturbation import PerturbationExplainer
from metfa.sampling.randomised import row_generators

__all__ = [
    "Blend",
    "MaskOptimiser",
    "RandomMaskOptimiser",
    "target_index",
    "variation",
    "variation_of_pairs",
]


ROUNDING = 100  # steps of precision: masks that differ less are the same, or scaling would make a map of rounding


def variation(masks: torch.Tensor, beta: float) -> torch.Tensor:
    """Total variation of each mask: the mean of |difference|^beta over vertical pairs, plus that over horizontal."""
    total: Any = 0
    for axis in (1, 2):
        steps = masks.diff(dim=axis).abs() ** beta
        total = total + steps.sum((1, 2)) / max(steps[0].numel(), 1)  # an axis of one cell has no pairs
    return total


def variation_of_pairs(masks: torch.Tensor, beta: float, floor: float = 1e-5) -> torch.Tensor:
    """Total variation of each mask: the sum over cells of (down² + right²)^(beta / 2), differences to neighbours.

    Below `floor` a term is straight in the squares, as in the gradient of Fong and Vedaldi's code. That keeps its
    second derivatives finite, where masks are flat.
    """
    down = torch.nn.functional.pad(masks.diff(dim=1), (0, 0, 0, 1))
    right = torch.nn.functional.pad(masks.diff(dim=2), (0, 1))
    squares, least = down**2 + right**2, floor ** (2 / beta)
    slope = beta / 2 * least ** (beta / 2 - 1)
    return (squares.clamp(min=least) ** (beta / 2) + slope * (squares.clamp(max=least) - least)).sum((1, 2))


@dataclass(frozen=True)
class Blend:
    """Images and baselines, between which masks choose: the image where a mask is 1, the baseline where 0."""

    baseline: torch.Tensor
    contrast: torch.Tensor  # image - baseline
    index: torch.Tensor  # of each row's target among its scores, (batch, axes)
    dtype: torch.dtype  # the model's: a blend of halves is made in float32

    def __getitem__(self, rows: Any) -> Blend:
        return Blend(self.baseline[rows], self.contrast[rows], self.index[rows], self.dtype)

    def __call__(self, masks: torch.Tensor) -> torch.Tensor:
        """Images (batch, channels, height, width) under masks (batch, height, width)."""
        return (self.baseline + self.contrast * masks[:, None]).to(self.dtype)


@dataclass(frozen=True)
class MaskOptimiser(PerturbationExplainer):
    """Settings and course of these explainers, documented by each."""

    n_iterations: int = field(kw_only=True)
    grid: int | tuple[int, int] = field(default=28, kw_only=True)
    l1_weight: float = field(kw_only=True)
    baseline: Any = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_int(self.n_iterations, "n_iterations")
        grid_sides(self.grid)
        check_number(self.l1_weight, "l1_weight")
        if not callable(self.baseline):
            check_baseline(self.baseline)

    @property
    def _sides(self) -> tuple[int, int]:
        return grid_sides(self.grid)

    def _explained(self, inputs: torch.Tensor, target: Any, rngs: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Maps (batch, height, width) and scores (batch, classes) of checked inputs."""
        with torch.no_grad(), weights_frozen(self.model):
            inputs = inputs.detach()
            scores = self._clean_scores(inputs)
            index = target_index(self._targets(target, scores), inputs.device)
            maps = self._maps(self._optimised(inputs, index, rngs), inputs.shape)
        return self._finished(maps), scores

    @abstractmethod
    def _optimised(self, inputs: torch.Tensor, index: torch.Tensor, rngs: Any) -> torch.Tensor:
        """Masks (batch, rows, columns), at which the sum of score and penalties is low."""

    def _maps(self, masks: torch.Tensor, shape: Any) -> torch.Tensor:
        """Attributions (batch, height, width) of masks that hide where they are low."""
        flat = masks.amax((1, 2)) - masks.amin((1, 2)) <= ROUNDING * torch.finfo(masks.dtype).eps
        if flat.any():
            warn(
                f"the masks of {int(flat.sum())} of {len(masks)} inputs are the same everywhere: hiding one part of "
                "the image changes the class's score no more than hiding another",
                DegenerateAttributionsWarning,
            )
        return 1 - torch.where(flat[:, None, None], masks[:, :1, :1], self._enlarged(masks, shape))

    @abstractmethod
    def _matrices(self, height: int, width: int) -> list[np.ndarray]:
        """What enlarges a mask to an image, one matrix for its rows and one for its columns."""

    def _enlarged(self, masks: torch.Tensor, shape: Any) -> torch.Tensor:
        return resized(masks, self._matrices(*shape[2:]))

    def _blend(self, images: torch.Tensor, index: torch.Tensor, dtype: torch.dtype) -> Blend:
        """Images with their baselines and targets, for a model that takes `dtype`."""
        if not callable(self.baseline):
            baseline = baseline_like(self.baseline, images).expand_as(images)
        else:
            baseline: Any = self.baseline(images)
            if getattr(baseline, "shape", None) != images.shape:
                raise ValueError(
                    f"`baseline` must return images of the shape it is given, {tuple(images.shape)}, got "
                    f"{tuple(getattr(baseline, 'shape', ())) or type(baseline).__name__}"
                )
        return Blend(baseline, images - baseline, index, dtype)

    def _chosen(self, images: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        """Score of each row's target, (batch,): a probability unless `softmax=False`."""
        scores = self._probabilities(self._scores(images))
        return scores[(torch.arange(len(scores), device=scores.device), *index.T)]

    def _check(self, inputs: Any) -> None:
        """Raise unless the inputs fit the settings, before the model is asked."""
        require_tensor(inputs)
        check_images(inputs)
        if not callable(self.baseline):
            baseline_like(self.baseline, inputs)


@dataclass(frozen=True)
class RandomMaskOptimiser(MaskOptimiser):
    """One with randomness of its own, of which each row has a generator."""

    rng: Any = field(default=None, kw_only=True, repr=False)

    def __call__(
        self, inputs: torch.Tensor, target: Any = None, *, rngs: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Maps and scores of a batch.

        Parameters
        ----------
        inputs : torch.Tensor, (batch, channels, height, width)
            Floating point, pixels in [0, 1].
        target : int, sequence or tensor, optional
            Class of each row; None: the predicted one.
        rngs : list of numpy.random.Generator, optional
            One generator for each row.

        Returns
        -------
        maps : torch.Tensor, (batch, height, width)
            1 - mask, high where hiding lowers the score; float32 (or wider), in [0, 1] with `scale`. Never part of a
            graph.
        scores : torch.Tensor, (batch, classes)
            The model's scores of the inputs themselves.
        """
        self._check(inputs)
        return self._explained(inputs, target, row_generators(inputs, rngs, self.rng))


def target_index(targets: list[Any], device: Any) -> torch.Tensor:
    """Targets as indices (batch, axes of a row's scores)."""
    rows = [() if target is None else (target,) if isinstance(target, int) else target for target in targets]
    if not all(isinstance(row, tuple) for row in rows):
        raise TypeError("`target` must be class indices, or one tuple of indices for each row")
    return torch.tensor(rows, dtype=torch.int64, device=device).reshape(len(rows), len(rows[0]))
