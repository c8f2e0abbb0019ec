"""Shared by explainers that optimise a mask: a coarse mask for each input, which mixes it with a baseline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from metfa._arrays import widen
from metfa._base.percents import rows_of_one_call
from metfa._base.validation import MOST_CALLS, check_flag, check_function, check_number, keep, positive_int
from metfa._base.warnings import DegenerateAttributionsWarning, warn
from metfa.calls.baseline import baseline_like, check_baseline
from metfa.calls.blur import Blur
from metfa.calls.called import Called
from metfa.calls.differentiation import index_of, of_indices, weights_frozen
from metfa.calls.enlargement import check_grid, grid_sides, resized
from metfa.calls.held import hold
from metfa.calls.inputs import check_spatial, require_tensor
from metfa.calls.no_gradient import gradient_expected

__all__ = [
    "ROUNDING",
    "Blend",
    "blended",
    "cells_of",
    "check_mask_settings",
    "check_masked",
    "deleted",
    "optimised",
    "target_scores",
    "variation",
    "variation_of_pairs",
]


ROUNDING = 100  # steps of precision: masks that vary less are flat, else scaling would make a map of rounding


def cells_of(masks: torch.Tensor) -> tuple[int, ...]:
    r"""The axes of the cells of masks (batch, \*cells)."""
    return tuple(range(1, masks.ndim))


def variation(masks: torch.Tensor, beta: float) -> torch.Tensor:
    """Total variation of each mask: the sum over its axes of the mean of |difference|^beta over neighbours."""
    total: Any = 0
    for axis in range(1, masks.ndim):
        steps = masks.diff(dim=axis).abs() ** beta
        total = total + steps.sum(cells_of(masks)) / max(steps[0].numel(), 1)  # an axis of one cell has no pairs
    return total


def variation_of_pairs(masks: torch.Tensor, beta: float, floor: float = 1e-5) -> torch.Tensor:
    """Total variation of each mask: the sum over cells of (down² + right²)^(beta / 2), differences to the next cells.

    Below `floor` a term is linear in the squares, as in the gradient of Fong and Vedaldi's code. That keeps its second
    derivatives finite where masks are flat.
    """
    squares: Any = 0
    for axis in range(1, masks.ndim):
        behind = (0, 0) * (masks.ndim - 1 - axis)
        squares = squares + torch.nn.functional.pad(masks.diff(dim=axis), (*behind, 0, 1)) ** 2
    least = floor ** (2 / beta)
    slope = beta / 2 * least ** (beta / 2 - 1)
    return (squares.clamp(min=least) ** (beta / 2) + slope * (squares.clamp(max=least) - least)).sum(cells_of(masks))


@dataclass(frozen=True)
class Blend:
    """Inputs and baselines, mixed by masks: the input where a mask is 1, the baseline where it is 0."""

    baseline: torch.Tensor
    contrast: torch.Tensor  # input - baseline
    index: torch.Tensor  # of each row's target among its scores, (batch, axes)
    dtype: torch.dtype  # the model's; half-precision blends are computed in float32

    def __getitem__(self, rows: Any) -> Blend:
        return Blend(self.baseline[rows], self.contrast[rows], self.index[rows], self.dtype)

    def __call__(self, masks: torch.Tensor) -> torch.Tensor:
        r"""Inputs (batch, channels, \*axes) under masks (batch, \*axes)."""
        return (self.baseline + self.contrast * masks[:, None]).to(self.dtype)


def check_mask_settings(explainer: Any) -> None:
    """Make the explainer's model a `Called`; raise unless the settings that all these explainers have are valid."""
    hold(explainer)
    keep(explainer, scale=check_flag(explainer.scale, "scale"))
    keep(explainer, n_iterations=positive_int(explainer.n_iterations, "n_iterations", maximum=MOST_CALLS))
    check_grid(explainer.grid)
    keep(explainer, l1_weight=check_number(explainer.l1_weight, "l1_weight"))
    if callable(explainer.baseline):
        check_function(explainer.baseline, "baseline", "baseline(images)", None)
    else:
        check_baseline(explainer.baseline)


def check_masked(explainer: Any, inputs: Any) -> None:
    """Raise unless the inputs are tensors that the explainer's masks and baseline fit, before the model is asked."""
    baseline = explainer.baseline
    require_tensor(inputs)
    check_spatial(inputs, explainer.model)
    grid_sides(explainer.grid, inputs.ndim - 2)
    if isinstance(baseline, Blur):
        baseline.of_axes(inputs.ndim - 2)
    if not callable(baseline):
        baseline_like(baseline, inputs)


def optimised(
    called: Called,
    inputs: torch.Tensor,
    target: Any,
    optimise: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor]:
    r"""Masks (batch, \*cells) by ``optimise(inputs, index of each target)``, and scores of the inputs."""
    with torch.no_grad(), weights_frozen(called.model), gradient_expected(called.model):
        inputs = inputs.detach()
        scores = called.scores(inputs)
        return optimise(inputs, index_of(called.targets(target, scores), inputs.device)), scores


def deleted(masks: torch.Tensor, matrices: list[np.ndarray]) -> torch.Tensor:
    r"""Attributions (batch, \*axes) of masks that hide where they are low, enlarged by one matrix for each axis."""
    flat = masks.amax(cells_of(masks)) - masks.amin(cells_of(masks)) <= ROUNDING * torch.finfo(masks.dtype).eps
    if flat.any():
        warn(
            f"the masks of {rows_of_one_call(int(flat.sum()), len(masks))} are the same everywhere: hiding one part of "
            "the input changes the class's score no more than hiding another",
            DegenerateAttributionsWarning,
        )
    first = masks.flatten(1)[:, 0].reshape(-1, *[1] * (masks.ndim - 1))
    return 1 - torch.where(flat.reshape(first.shape), first, resized(masks, matrices))


def blended(images: torch.Tensor, baseline: Any, index: torch.Tensor, dtype: torch.dtype) -> Blend:
    """Inputs with their baselines and targets, for a model that takes `dtype`."""
    if not callable(baseline):
        hidden: Any = baseline_like(baseline, images).expand_as(images)
    else:
        hidden = baseline(images.clone())  # it may write to them
        if getattr(hidden, "shape", None) != images.shape:
            raise ValueError(
                f"`baseline` must return images of the shape it is given, {tuple(images.shape)}, got "
                f"{tuple(getattr(hidden, 'shape', ())) or type(hidden).__name__}"
            )
    return Blend(hidden, images - hidden, index, dtype)


def target_scores(called: Called, images: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Score of each row's target, (batch,): a probability unless `softmax=False`."""
    return of_indices(called.as_probabilities(widen(called(images))), index)
