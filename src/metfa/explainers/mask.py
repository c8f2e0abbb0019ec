"""MASK: a mask learnt by gradient descent, which hides as little as possible and lowers the class's probability."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from metfa._arrays import widen
from metfa._base.validation import check_number, keep, one_of, positive_int
from metfa.calls.blur import Blur, blur_and_median
from metfa.calls.differentiation import index_of, require_graph, weights_frozen
from metfa.calls.enlargement import Enlargement, enlargements, grid_sides, resized, stretched
from metfa.calls.held import asks_a_model, model_itself, rows_as_the_model
from metfa.calls.targets import row_targets
from metfa.explainers._discs import discs, discs_on_grid, radii_of
from metfa.explainers.heatmaps import finished, scale_to_unit
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
    variation_of_pairs,
)
from metfa.sampling.randomised import row_generators

__all__ = ["MASK", "MaskState"]

DECAY, DECAY_OF_SQUARES, EPSILON = 0.9, 0.999, 1e-8  # Adam's


@dataclass(frozen=True)
class MaskState:
    r"""The state of the optimisation of a batch.

    Attributes
    ----------
    masks : torch.Tensor, (batch, \*cells)
        Masks on the grid, in [0, 1]; 0 hides.
    mean, square : torch.Tensor, (batch, \*cells)
        Adam's running means of the gradient and of its square.
    count : int
        Steps taken.
    """

    masks: torch.Tensor
    mean: torch.Tensor
    square: torch.Tensor
    count: int = 0


@asks_a_model
@dataclass(frozen=True)
class MASK:
    r"""Meaningful perturbation (Fong and Vedaldi 2017): the smallest deletion that makes the class go away.

    A mask m on a coarse grid descends, by Adam and clipped to [0, 1], on

    .. math:: f(m x + (1 - m) x_0) + l \sum |1 - m| + t \, TV(m),

    f the class's probability, x0 a blurred x, under the enlarged and softened mask. Every row has an optimiser of its
    own. The map is 1 - m, enlarged and softened.

    The defaults are those of the authors' code (``ruthcfong/perturb_explanations``, ``defaults.py`` and
    ``optimize_mask.py``). Other implementations are the class methods `gildenblat`, `adv2` and `adv2_v2`: they swap the
    sizes of the two penalties, and a mean of 28 x 28 cells is 784 times smaller than their sum.

    Parameters
    ----------
    called : torch.nn.Module, callable or Called
        Model, or a `metfa.Called` that says how it is asked: images (batch, channels, height, width), series (batch,
        channels, length) or volumes (batch, channels, depth, height, width) -> scores (batch, classes). Its
        `batch_size` is the number of rows that are optimised together.
    n_iterations : int
        Steps of Adam.
    learning_rate : float
        Adam's learning rate; its decays are .9 and .999.
    grid : int or tuple of int
        Cells of the mask along each axis, such as (rows, columns): 28 is an eighth of 224 pixels.
    enlargement : {"nearest", "corners", "centres"}
        Cells become pixels by repetition, or bilinearly: corner to corner, or with each cell's value at its centre.
    mask_blur : Blur or None
        Blur that softens the enlarged mask; its sigma may be one number for each axis.
    init : "circle" or float
        The mask at the start. "circle" hides a soft disc in the middle: the smallest of 35 discs that lowers the
        probability by at least 99 % of what the largest does. A number fills the mask.
    l1_weight, l1_reduction : float, {"sum", "mean"}
        Weight of \|1 - m\|, and whether cells are summed or averaged.
    tv_weight, tv_beta, tv_reduction : float, float, {"sum", "mean"}
        Weight and exponent of the total variation. "sum": (down² + right²)^(beta / 2), summed over cells, of the
        differences to the cells below and to the right (and behind). "mean": the mean of \|down\|^beta, plus that of
        \|right\|^beta.
    baseline : callable, float or sequence of float
        What a pixel becomes where the mask is 0: a function of images (each by itself), a number, or one number for
        each channel. The default is a Gaussian blur, sigma 10 (Pillow's "radius" is sigma).
    jitter : int
        Inputs are enlarged by this many pixels along each axis. Each step sees a window of the original size, at one of
        ``jitter`` random places along each; the mask does not move. 0: no jitter.
    rng : int, numpy.random.Generator or None
        Seed of direct calls without `rngs`; `metfa.explain` passes its own generators.
    scale : bool
        Scale each map to [0, 1] by its smallest and largest value (the paper's convention). False: 1 - m.

    Notes
    -----
    Images are not rounded to 8 bits on the way, as they are in the authors' code.

    Examples
    --------
    >>> import torch, metfa
    >>> from metfa.explainers import MASK
    >>> def model(images):  # probabilities of two classes, by the brightness of the upper left corner
    ...     bright = images[:, 0, :4, :4].mean((1, 2))
    ...     return torch.stack([bright, 1 - bright], dim=1)
    >>> called = metfa.Called(model, softmax=False)
    >>> explainer = MASK(called, n_iterations=20, grid=8, baseline=0, mask_blur=None, jitter=0, init=1.0)
    >>> maps, scores = explainer(torch.ones(1, 1, 16, 16), target=0)
    >>> bool(maps[0, :4, :4].mean() > 2 * maps[0, 8:, 8:].mean())
    True
    """

    called: Any
    n_iterations: int = field(default=300, kw_only=True)
    grid: int | tuple[int, ...] = field(default=28, kw_only=True)
    learning_rate: float = field(default=0.1, kw_only=True)
    enlargement: Enlargement = field(default="nearest", kw_only=True)
    mask_blur: Blur | None = field(default=Blur(5.0), kw_only=True)
    init: Literal["circle"] | float = field(default="circle", kw_only=True)
    l1_weight: float = field(default=1e-4, kw_only=True)
    l1_reduction: Literal["sum", "mean"] = field(default="sum", kw_only=True)
    tv_weight: float = field(default=1e-2, kw_only=True)
    tv_beta: float = field(default=3.0, kw_only=True)
    tv_reduction: Literal["sum", "mean"] = field(default="sum", kw_only=True)
    baseline: Any = field(default=Blur(10.0), kw_only=True)
    jitter: int = field(default=4, kw_only=True)
    scale: bool = field(default=True, kw_only=True)
    rng: Any = field(default=None, kw_only=True, repr=False)

    model: ClassVar[property] = model_itself
    rows_independent: ClassVar[property] = rows_as_the_model
    n_forwards: ClassVar[property] = property(attrgetter("n_iterations"))  # see `metfa.sampling.progress`
    forwards = "iterations"

    def __post_init__(self) -> None:
        check_mask_settings(self)
        keep(self, learning_rate=check_number(self.learning_rate, "learning_rate", above=0))
        keep(self, tv_weight=check_number(self.tv_weight, "tv_weight"))
        keep(self, tv_beta=check_number(self.tv_beta, "tv_beta", least=1))
        for name, choices in (
            ("enlargement", ("nearest", "corners", "centres")),
            ("l1_reduction", ("sum", "mean")),
            ("tv_reduction", ("sum", "mean")),
        ):
            one_of(getattr(self, name), name, choices)
        if self.mask_blur is not None and not isinstance(self.mask_blur, Blur):
            raise TypeError(f"`mask_blur` must be a Blur or None, got {type(self.mask_blur).__name__}")
        if isinstance(self.init, str) and self.init != "circle":
            raise ValueError(f"`init` must be 'circle' or a number, got {self.init!r:.80}")
        if not isinstance(self.init, str):
            keep(self, init=check_number(self.init, "init", most=1))
        keep(self, jitter=positive_int(self.jitter, "jitter", minimum=0))

    @classmethod
    def gildenblat(cls, model: Any, **settings: Any) -> MASK:
        """As in ``jacobgil/pytorch-explain-black-box``, ``explain.py``; `settings` replace single ones.

        Both penalties are means, the mask starts at 1, and the baseline is the mean of a Gaussian and a median blur.
        """
        reductions = {"l1_reduction": "mean", "tv_reduction": "mean"}
        baseline = {"baseline": blur_and_median, "mask_blur": None, "enlargement": "corners"}
        return cls(model, **{"init": 1.0, "jitter": 0, **reductions, **baseline, **settings})

    @classmethod
    def adv2(cls, model: Any, **settings: Any) -> MASK:
        """As in the first version of ADV² (``alps-lab/adv2``, ``mask_model.py``); `settings` replace single ones.

        400 steps from 0.5, L1 a mean with weight 1e-2, and total variation a sum with weight 1e-4. (Their sum pairs the
        downward difference at cell (i, j) with the rightward one at (j, i); here both belong to the same cell.)
        """
        penalties = {"l1_weight": 1e-2, "l1_reduction": "mean", "tv_weight": 1e-4}
        baseline = {"baseline": Blur(10.0, kernel=11, border="reflect"), "mask_blur": None, "enlargement": "centres"}
        return cls(model, **{"n_iterations": 400, "init": 0.5, "jitter": 0, **penalties, **baseline, **settings})

    @classmethod
    def adv2_v2(cls, model: Any, **settings: Any) -> MASK:
        """As in the second version of ADV² (``alps-lab/adv2``, ``rev1/mask_v2``); `settings` replace single ones.

        300 steps from 0.5 with the authors' weights, narrower blurs, and jitter.
        """
        baseline = {"baseline": Blur(3.5, kernel=21, border="reflect"), "enlargement": "centres"}
        mask_blur = Blur(2.0, kernel=11, border="reflect")
        return cls(model, **{"init": 0.5, "mask_blur": mask_blur, **baseline, **settings})

    def __call__(
        self, inputs: torch.Tensor, target: Any = None, *, rngs: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Maps and scores of a batch, taken and returned as by `IGOS`: 1 - mask, high where hiding lowers the score."""
        self._check(inputs)
        generators = row_generators(inputs, rngs, self.rng)
        masks, scores = optimised(self.called, inputs, target, partial(self._optimised, rngs=generators))
        return self.maps(masks, inputs), scores

    def maps(self, masks: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        r"""Maps (batch, \*axes) of masks on the grid, such as those of a `MaskState`; as a call returns them."""
        return finished(deleted(masks, self._matrices(inputs)), scale=self.scale)

    def start(self, inputs: torch.Tensor, target: Any) -> MaskState:
        r"""The first state for `step`: inputs (batch, channels, \*axes), and a class or one for each row."""
        self._check(inputs)
        with torch.no_grad(), weights_frozen(self.model):
            return self._started(inputs.detach(), self._given(inputs, target))

    def step(
        self,
        inputs: torch.Tensor,
        target: Any,
        state: MaskState,
        *,
        shifts: Any = None,
        create_graph: bool = False,
    ) -> MaskState:
        r"""One step of Adam, as a function without randomness. A call takes `n_iterations` steps.

        Parameters
        ----------
        inputs : torch.Tensor, (batch, channels, \*axes)
            Floating point; pixels in [0, 1].
        target : int, sequence or tensor
            Class of each row.
        state : MaskState
            Masks and Adam's means before the step.
        shifts : array of int, (batch, axes), optional
            Place, such as (down, right), of each row's window, in 0..`jitter`. None: the middle.
        create_graph : bool
            Keep the graph: the new masks and means are differentiable in the inputs and in the state. That needs second
            derivatives of the model; those of a ReLU are 0.

        Returns
        -------
        MaskState
        """
        self._check(inputs)
        shape = (len(inputs), inputs.ndim - 2)
        places = np.full(shape, self.jitter // 2) if shifts is None else np.asarray(shifts)
        if places.shape != shape or places.dtype.kind not in "iu":
            raise ValueError(f"`shifts` must be integers {shape}, got {places.dtype} {places.shape}")
        if places.min() < 0 or places.max() > self.jitter:
            raise ValueError(f"`shifts` must lie in 0..{self.jitter}, got {places.min()}..{places.max()}")
        with torch.set_grad_enabled(create_graph), weights_frozen(self.model):
            return self._stepped(self._wide(inputs, self._given(inputs, target)), state, places, create_graph)

    @staticmethod
    def _given(inputs: torch.Tensor, target: Any) -> torch.Tensor:
        if target is None:
            raise ValueError("`target` must be a class, or one for each row: single steps predict none, got None")
        return index_of(row_targets(target, None, len(inputs)), inputs.device)

    def _check(self, inputs: Any) -> None:
        check_masked(self, inputs)
        if self.mask_blur is not None:
            self.mask_blur.of_axes(inputs.ndim - 2)

    def _matrices(self, images: torch.Tensor) -> list[np.ndarray]:
        return enlargements(self.grid, images.shape[2:], self.enlargement, self.mask_blur)

    def _optimised(self, inputs: torch.Tensor, index: torch.Tensor, rngs: list[np.random.Generator]) -> torch.Tensor:
        shifts = np.stack([rng.integers(0, max(self.jitter, 1), (self.n_iterations, inputs.ndim - 2)) for rng in rngs])
        parts: list[torch.Tensor] = []

        def optimise(start: int, stop: int) -> None:
            part = slice(start, stop)
            wide, state = self._wide(inputs[part], index[part]), self._started(inputs[part], index[part])
            for iteration in range(self.n_iterations):
                state = self._stepped(wide, state, shifts[part, iteration])
            parts.append(state.masks)

        self.called.in_batches(len(inputs), inputs, optimise)
        return torch.cat(parts)

    def _wide(self, inputs: torch.Tensor, index: torch.Tensor) -> Blend:
        """Images and baselines, enlarged so that windows of the original size can move in them."""
        images = widen(inputs)
        if self.jitter:
            images = stretched(images, [size + self.jitter for size in images.shape[2:]])
        return blended(images, self.baseline, index, inputs.dtype)

    def _window(self, wide: Blend, shifts: np.ndarray) -> Blend:
        if not self.jitter:
            return wide
        sizes = [size - self.jitter for size in wide.contrast.shape[2:]]
        windows = [
            (slice(None), *(slice(start, start + size) for start, size in zip(row, sizes, strict=True)))
            for row in shifts.tolist()
        ]
        baseline, contrast = (
            torch.stack([row[window] for row, window in zip(images, windows, strict=True)])
            for images in (wide.baseline, wide.contrast)
        )
        return Blend(baseline, contrast, wide.index, wide.dtype)

    def _stepped(self, wide: Blend, state: MaskState, shifts: np.ndarray, create_graph: bool = False) -> MaskState:
        window = self._window(wide, shifts)
        masks = state.masks
        if not (create_graph and masks.requires_grad):
            masks = masks.detach().requires_grad_()
        with torch.enable_grad():
            shown = window(resized(masks, self._matrices(window.contrast)))
            scores = target_scores(self.called, shown, window.index)
            require_graph(scores, masks)
            loss = (scores + self._penalties(masks)).sum()
            (gradient,) = torch.autograd.grad(loss, masks, create_graph=create_graph)
        count = state.count + 1
        mean = DECAY * state.mean + (1 - DECAY) * gradient
        square = DECAY_OF_SQUARES * state.square + (1 - DECAY_OF_SQUARES) * gradient**2
        size = (square / (1 - DECAY_OF_SQUARES**count)).clamp(min=1e-30).sqrt()  # a root's derivative at 0 is infinite
        change = mean / (1 - DECAY**count) / (size + EPSILON)
        return MaskState((masks - self.learning_rate * change).clamp(0, 1), mean, square, count)

    def _penalties(self, masks: torch.Tensor) -> torch.Tensor:
        deleted = (1 - masks).abs()
        l1 = (deleted.sum if self.l1_reduction == "sum" else deleted.mean)(cells_of(masks))
        tv = (variation_of_pairs if self.tv_reduction == "sum" else variation)(masks, self.tv_beta)
        return self.l1_weight * l1 + self.tv_weight * tv

    def _started(self, inputs: torch.Tensor, index: torch.Tensor) -> MaskState:
        blank = widen(inputs[:0]).new_zeros((len(inputs), *grid_sides(self.grid, inputs.ndim - 2)))
        masks = self._circles(inputs, index) if self.init == "circle" else blank + self.init
        return MaskState(masks, blank, blank)

    def _circles(self, inputs: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        """Masks that hide a disc (or window, or ball) in the middle of each input, as large as needed."""
        radii = radii_of(inputs.ndim - 2)
        blend, n = blended(widen(inputs), self.baseline, index, inputs.dtype), len(radii)
        parts: list[torch.Tensor] = []

        def ask(start: int, stop: int) -> None:
            pairs = torch.arange(start, stop, device=inputs.device)
            shown = discs(radii[np.arange(start, stop) % n], blend.contrast)
            parts.append(target_scores(self.called, blend[pairs // n](shown), index[pairs // n]))

        self.called.in_batches(len(inputs) * n, inputs, ask)
        scores = torch.cat(parts).reshape(-1, n)
        whole = target_scores(self.called, inputs.clone(), index)  # a model may work in place on what it gets
        left = (scores - scores[:, -1:]) / (whole[:, None] - scores[:, -1:])
        enough = (left < 0.01).int()  # NaN (no disc changes anything) is not enough
        chosen = torch.where(enough.any(1), enough.argmax(1), n - 1).cpu().numpy()
        start = discs_on_grid(radii[chosen], blend.contrast, grid_sides(self.grid, inputs.ndim - 2))
        return scale_to_unit(start.round(decimals=6))  # a disc over the whole image is flat, to rounding
