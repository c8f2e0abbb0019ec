"""I-GOS: the smallest smooth region whose blurring lowers the class's probability, found by integrated gradients."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch

from metfa._arrays import from_host, widen
from metfa._base.validation import MOST_CALLS, check_number, keep, positive_int
from metfa.calls.blur import Blur
from metfa.calls.differentiation import require_graph
from metfa.calls.enlargement import enlargements, grid_sides, resized
from metfa.calls.held import asks_a_model, model_itself, rows_as_the_model
from metfa.explainers.heatmaps import finished
from metfa.explainers.mask_optimisation import (
    Blend,
    blended,
    cells_of,
    check_mask_settings,
    check_masked,
    deleted,
    optimised,
    target_scores,
    variation,
)
from metfa.sampling.randomised import row_generators

__all__ = ["IGOS"]

SHRINK = 0.2  # the step is multiplied by this until the loss falls enough
ARMIJO = 1e-4  # enough is this share of what the gradient predicts
SEARCHED = 4  # steps that an iteration is taken to try, for the progress that is shown
SMALLEST_STEP = 1e-5  # the first step below it is taken, whatever the loss


@asks_a_model
@dataclass(frozen=True)
class IGOS:
    r"""Integrated-gradients optimised saliency (Qi, Khorram and Li 2019).

    A mask m on a coarse grid starts at 1 and descends on

    .. math:: l \, \overline{|1 - m|} + t \, TV(m) + f(m x + (1 - m) x_0),

    f the class's probability, x0 a blurred x, all under the enlarged mask. The descent follows the penalties' gradient
    and the integrated gradient :math:`w \sum_{k=1}^{S} \nabla_m f(\frac{k}{S} m x + (1 - \frac{k}{S} m) x_0 + noise)`,
    with a step found by backtracking. Every row has a line search, a step and a weight l of its own. The map is 1 - m.

    The defaults are those of the authors' main script (``zhongangqi/IGOS``, ``IGOS_generate_video.py``), and the MeTFA
    paper's code has the same. The authors' function itself has other defaults: ``grid=112, l1_weight=3, tv_weight=60``.

    Parameters
    ----------
    called : torch.nn.Module, callable or Called
        Model, or a `metfa.Called` that says how it is asked: images (batch, channels, height, width), series (batch,
        channels, length) or volumes (batch, channels, depth, height, width) -> scores (batch, classes). Its
        `batch_size` counts rows times points. It can change maps through rounding: a network rounds differently for
        another batch size, and that decides the line search where two steps are nearly as good.
    n_iterations : int
        Number of descents. With more than 3, l tunes itself. It is divided by 10 after iteration ``n_iterations // 2``
        (from 0) if hiding has moved the probability by at most 0.001 until then, and by 5 after ``4 * n_iterations //
        5`` if it has moved it by at most 0.01.
    n_steps : int
        Points S of the integrated gradient.
    score_weight : float
        Weight w of each point: 1/20 in the authors' code, for every S.
    grid : int or tuple of int
        Cells of the mask along each axis, such as (rows, columns). It is enlarged linearly along each, corner to
        corner.
    l1_weight : float
        l, of the mean of \|1 - m\| over cells.
    tv_weight, tv_beta : float
        t, of the total variation: the mean of \|difference\|^beta over vertically neighbouring cells, plus that over
        horizontally neighbouring ones (one mean for each axis).
    baseline : callable, float or sequence of float
        What a pixel becomes where the mask is 0: a function of images (each by itself), a number, or one number for
        each channel. The default is a Gaussian blur, sigma 50, cut to 51 pixels.
    noise_std : float or sequence of float
        Standard deviation of the normal noise on each point, in the units of the inputs: one number, or one for each
        channel. The authors name 0.2, for inputs normalised as usual for ImageNet. The channels' deviations there are
        .229, .224, .225 in pixels, and 0.2 times those is .045. (Their call of ``cv2.randn`` in fact adds .4 to the red
        channel and nothing to the others, .23 on average: ``noise_std=(0.0916, 0, 0)``.)
    first_step : float
        Step at which each line search starts. It shrinks to a fifth until the loss has fallen by 1e-4 of step times
        squared gradient (the Armijo condition) or the step lies below 1e-5.
    rng : int, numpy.random.Generator or None
        Seed of direct calls without `rngs`; `metfa.explain` passes its own generators.
    scale : bool
        Scale each map to [0, 1] by its smallest and largest value (the paper's convention). False: 1 - m.

    Notes
    -----
    Memory does not grow with `n_iterations` or `n_steps`, except by 8 bytes each: noise is drawn for one pass at a
    time.

    Examples
    --------
    >>> import torch, metfa
    >>> from metfa.explainers import IGOS
    >>> def model(images):  # probabilities of two classes, by the brightness of the upper left corner
    ...     bright = images[:, 0, :4, :4].mean((1, 2))
    ...     return torch.stack([bright, 1 - bright], dim=1)
    >>> explainer = IGOS(metfa.Called(model, softmax=False), grid=8, baseline=0, rng=0)
    >>> maps, scores = explainer(torch.ones(1, 1, 16, 16), target=0)
    >>> bool(maps[0, :4, :4].mean() > 2 * maps[0, 8:, 8:].mean())
    True
    """

    called: Any
    n_iterations: int = field(default=15, kw_only=True)
    grid: int | tuple[int, ...] = field(default=28, kw_only=True)
    n_steps: int = field(default=20, kw_only=True)
    score_weight: float = field(default=1 / 20, kw_only=True)
    l1_weight: float = field(default=1.0, kw_only=True)
    tv_weight: float = field(default=20.0, kw_only=True)
    tv_beta: float = field(default=2.0, kw_only=True)
    baseline: Any = field(default=Blur(50.0, kernel=51, border="reflect"), kw_only=True)
    noise_std: float | Sequence[float] = field(default=0.045, kw_only=True)
    first_step: float = field(default=200.0, kw_only=True)
    scale: bool = field(default=True, kw_only=True)
    rng: Any = field(default=None, kw_only=True, repr=False)

    model: ClassVar[property] = model_itself
    rows_independent: ClassVar[property] = rows_as_the_model
    forwards = "passes"

    @property
    def n_forwards(self) -> int:
        """About how many rows the model is asked about for one map: those of line searches are not known before."""
        return self.n_iterations * (self.n_steps + SEARCHED)

    def __post_init__(self) -> None:
        check_mask_settings(self)
        keep(self, n_steps=positive_int(self.n_steps, "n_steps", maximum=MOST_CALLS))
        keep(self, score_weight=check_number(self.score_weight, "score_weight", above=0))
        for std in self.noise_std if isinstance(self.noise_std, tuple | list) else [self.noise_std]:
            check_number(std, "noise_std")
        keep(self, first_step=check_number(self.first_step, "first_step", above=0))
        keep(self, tv_weight=check_number(self.tv_weight, "tv_weight"))
        keep(self, tv_beta=check_number(self.tv_beta, "tv_beta", least=1))

    def __call__(
        self, inputs: torch.Tensor, target: Any = None, *, rngs: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        r"""Maps and scores of a batch.

        Parameters
        ----------
        inputs : torch.Tensor, (batch, channels, \*axes)
            Floating point; pixels in [0, 1].
        target : int, sequence or tensor, optional
            Class of each row; None: the predicted one.
        rngs : list of numpy.random.Generator, optional
            One generator for each row.

        Returns
        -------
        maps : torch.Tensor, (batch, \*axes)
            1 - mask, high where hiding lowers the score; float32 (or wider), in [0, 1] with `scale`. Never part of a
            graph.
        scores : torch.Tensor, (batch, classes)
            The model's scores of the inputs themselves.
        """
        self._check(inputs)
        generators = row_generators(inputs, rngs, self.rng)
        masks, scores = optimised(self.called, inputs, target, partial(self._optimised, rngs=generators))
        return finished(deleted(masks, self._matrices(inputs)), scale=self.scale), scores

    def _matrices(self, images: torch.Tensor) -> list[np.ndarray]:
        return enlargements(self.grid, images.shape[2:], "corners")

    def _check(self, inputs: Any) -> None:
        check_masked(self, inputs)
        if len(self._deviations) not in (1, inputs.shape[1]):
            raise ValueError(
                f"`noise_std` must be one number or one for each of the {inputs.shape[1]} channels, got "
                f"{len(self._deviations)}"
            )

    @property
    def _deviations(self) -> np.ndarray:
        return np.asarray(self.noise_std, dtype=np.float32).reshape(-1)

    def _optimised(self, inputs: torch.Tensor, index: torch.Tensor, rngs: list[np.random.Generator]) -> torch.Tensor:
        blend = blended(widen(inputs), self.baseline, index, inputs.dtype)
        # One seed for each point, so that a pass that is repeated has the same noise
        seeds = np.stack([rng.integers(0, 2**63, (self.n_iterations, self.n_steps)) for rng in rngs])
        masks = blend.contrast.new_ones((len(inputs), *grid_sides(self.grid, inputs.ndim - 2)))
        l1_weights = blend.contrast.new_full((len(inputs),), self.l1_weight)
        scores = first = previous = self._scores_under(masks, blend)
        for iteration in range(self.n_iterations):
            gradient = self._gradient(masks, l1_weights, blend, seeds[:, iteration])
            before = scores
            masks, scores = self._descended(masks, scores, gradient, l1_weights, blend)
            moved = (first - previous).abs()  # until before the last descent but one, as in the authors' code
            if self.n_iterations > 3 and iteration == self.n_iterations // 2:
                l1_weights = torch.where(moved <= 0.001, l1_weights / 10, l1_weights)
            elif self.n_iterations > 3 and iteration == 4 * self.n_iterations // 5:
                l1_weights = torch.where(moved <= 0.01, l1_weights / 5, l1_weights)
            previous = before
        return masks

    def _penalties(self, masks: torch.Tensor, l1_weights: torch.Tensor) -> torch.Tensor:
        return l1_weights * (1 - masks).abs().mean(cells_of(masks)) + self.tv_weight * variation(masks, self.tv_beta)

    def _gradient(self, masks: torch.Tensor, l1_weights: torch.Tensor, blend: Blend, seeds: np.ndarray) -> torch.Tensor:
        """Gradient of the penalties and of the scores at all points with respect to each row's mask."""
        with torch.enable_grad():
            leaf = masks.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(self._penalties(leaf, l1_weights).sum(), leaf)

        def add(start: int, stop: int) -> None:
            part = slice(start // self.n_steps, (stop - 1) // self.n_steps + 1)
            pairs = torch.arange(start, stop, device=masks.device)
            rows, points = pairs // self.n_steps, pairs % self.n_steps
            noise = self._noise(seeds.flat[start:stop], blend)
            with torch.enable_grad():
                leaf = masks[part].detach().requires_grad_()
                enlarged = resized(leaf, self._matrices(blend.contrast))[rows - part.start]
                part_shown = (points + 1).to(masks.dtype) / self.n_steps
                shares = enlarged * part_shown.reshape(-1, *[1] * (enlarged.ndim - 1))
                scores = target_scores(self.called, blend[rows](shares) + noise, blend.index[rows])
                require_graph(scores, leaf)
                (of_scores,) = torch.autograd.grad(scores.sum(), leaf)
            gradient[part] += self.score_weight * of_scores

        self.called.in_batches(len(masks) * self.n_steps, blend.contrast, add)
        return gradient

    def _noise(self, seeds: np.ndarray, blend: Blend) -> torch.Tensor | float:
        """Noise on the points of one pass, from their seeds."""
        shape = blend.contrast.shape[1:]
        deviations = self._deviations.reshape(-1, *[1] * (len(shape) - 1))
        if not deviations.any():
            return 0.0

        def draw(seed: int) -> np.ndarray:
            return deviations * np.random.default_rng(seed).standard_normal(shape, np.float32)

        with ThreadPoolExecutor() as pool:  # NumPy lets other threads run while it draws
            return from_host(np.stack(list(pool.map(draw, seeds))), like=blend.contrast, dtype=blend.dtype)

    def _scores_under(self, masks: torch.Tensor, blend: Blend) -> torch.Tensor:
        """Scores of the blended images, (batch,)."""
        parts: list[torch.Tensor] = []

        def ask(start: int, stop: int) -> None:
            part = slice(start, stop)
            images = blend[part](resized(masks[part], self._matrices(blend.contrast)))
            parts.append(target_scores(self.called, images, blend.index[part]))

        self.called.in_batches(len(masks), blend.contrast, ask)
        return torch.cat(parts)

    def _descended(
        self, masks: torch.Tensor, scores: torch.Tensor, gradient: torch.Tensor, l1_weights: torch.Tensor, blend: Blend
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Masks and scores after one descent: each row takes the largest step that lowers its loss enough.

        All rows start with the same step, so the rows that still search share it. The others have left the batch.
        """
        losses = self._penalties(masks, l1_weights) + scores
        promises = ARMIJO * gradient.square().sum(cells_of(gradient))
        lowered, new_scores = torch.empty_like(masks), torch.empty_like(scores)
        searching, step = torch.arange(len(masks), device=masks.device), self.first_step
        while len(searching):
            tried = (masks[searching] - step * gradient[searching]).clamp(0, 1)
            found = self._scores_under(tried, blend[searching])
            lowered[searching], new_scores[searching] = tried, found
            if step < SMALLEST_STEP:
                break
            reached = self._penalties(tried, l1_weights[searching]) + found
            searching = searching[reached > losses[searching] - step * promises[searching]]
            step *= SHRINK
        return lowered, new_scores
