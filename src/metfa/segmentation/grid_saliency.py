"""GridSaliency: the smallest part of an object's surroundings that a segmentation network needs to find it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import torch

from metfa._arrays import first_not_finite, widen
from metfa._base.percents import rows_of_one_call
from metfa._base.validation import check_number, keep, positive_int
from metfa._base.warnings import DegenerateAttributionsWarning, warn
from metfa.calls.answers import answered
from metfa.calls.blur import Blur
from metfa.calls.called import Called
from metfa.calls.differentiation import require_graph
from metfa.calls.enlargement import enlargements, grid_sides, resized
from metfa.calls.held import asks_a_model, model_itself, rows_as_the_model
from metfa.calls.inputs import check_images, require_tensor
from metfa.calls.targets import row_targets
from metfa.explainers.heatmaps import finished
from metfa.explainers.mask_optimisation import (
    ROUNDING,
    Blend,
    blended,
    check_mask_settings,
    check_masked,
    optimised,
)
from metfa.segmentation._class_maps import check_kind, class_maps
from metfa.segmentation._object import check_size
from metfa.segmentation.regions import RegionModel

__all__ = ["GridSaliency"]


@asks_a_model
@dataclass(frozen=True)
class GridSaliency:
    r"""Context explanation of a segmented object (Hoyer et al. 2019): which surroundings does the network need?

    A mask m on a coarse grid descends on

    .. math:: l \, \mathrm{mean}(m) + \frac{1}{|R|} \sum_{R} \max(0, p(x) - p(m x + (1 - m) x_0)),

    p the class's probability in each pixel, R the object's pixels, x0 a baseline. The mask is enlarged bilinearly, and
    the object itself is always kept. The map is the enlarged mask outside the object, 0 within: 1 where the network
    needs the context, 0 where it finds the object equally well without.

    Steps follow the gradient with momentum, times the number of cells, so a finer grid needs no more steps. Masks are
    clipped to [0, 1]. Each row has a mask and a momentum of its own. Showing everything costs `l1_weight`. A row that
    ends with a higher cost starts again from a mask that shows everything.

    Parameters
    ----------
    called : torch.nn.Module, callable, RegionModel, or Called of one of these
        Segmentation network, images (batch, channels, height, width) -> class scores (batch, classes, height, width),
        see `RegionModel`; or a `RegionModel`, which contains the region. A `metfa.Called` says how it is asked: its
        `softmax` is over classes (for a single class a sigmoid), and its `batch_size` is the number of rows that are
        optimised together. A `RegionModel` itself says whether its network gives probabilities.
    target_class : int, optional
        Class of the object, for calls without `target`; another `target` is refused.
    region : array of bool, (height, width)
        The object's pixels, such as `predicted_region` finds; the same for all images that are explained.
    grid : int or (int, int)
        Cells of the mask along (rows, columns).
    n_iterations : int
        Number of steps.
    learning_rate, momentum : float
        Learning rate and momentum of the steps.
    init : float
        Value of the mask at the start, in [0, 1]. If the object is lost for good there, 1 is tried too.
    l1_weight : float
        Weight l of the mask's mean.
    baseline : callable, float or sequence of float
        What a pixel becomes where the mask is 0: a function of images (each by itself), such as
        `metfa.explainers.Blur` or `metfa.explainers.mean_colour`, a number, or one number for each channel, such as the
        data's mean.
    scale : bool
        Scale each map to [0, 1] by its smallest and largest value. The default is False, unlike for other explainers:
        masks are in [0, 1] by themselves, and if no context is needed, scaling would enlarge tiny values.

    Notes
    -----
    The authors published no explainer (their repository makes the toy data). The loss, the kept object and the momentum
    .5 are those of the paper and of a re-implementation, ``herbat/segmentation_xai``. Its ``0.2`` a cell and ``0.02`` a
    cell of 4 x 4 are ``learning_rate=0.0125, l1_weight=0.32`` here. It also updates four or five random cells in each
    step and erodes the mask; this explainer does not. Grid and weight are those of the re-implementation: on images
    whose needed context is known (``examples/planted_context.py``), finer grids and smaller weights found it less well.
    The learning rate is metfa's: on 36 such images the mean loss was .0642 after 100 steps. With the other it was
    .0701, and .0644 after 400.

    Examples
    --------
    >>> import torch
    >>> from metfa.segmentation import GridSaliency
    >>> def network(images):  # class 1 is a bright pixel in an image whose left edge is bright
    ...     left = images[:, :, :, :2].mean((2, 3), keepdim=True)
    ...     return torch.cat([0 * images, 10 * images * left - 3], dim=1)
    >>> region = torch.zeros(8, 8, dtype=bool)
    >>> region[3:5, 5:7] = True
    >>> explainer = GridSaliency(network, 1, region=region, grid=4, baseline=0.0)
    >>> maps, _ = explainer(torch.ones(1, 1, 8, 8))
    >>> bool(maps[0, :, 0].min() > 0.5), bool(maps[0, :, 7].max() < 0.1)
    (True, True)
    """

    called: Any
    target_class: int | None = None
    region: Any = field(default=None, kw_only=True, repr=False)
    n_iterations: int = field(default=100, kw_only=True)
    grid: int | tuple[int, int] = field(default=4, kw_only=True)
    learning_rate: float = field(default=0.05, kw_only=True)
    momentum: float = field(default=0.5, kw_only=True)
    init: float = field(default=0.5, kw_only=True)
    l1_weight: float = field(default=0.3, kw_only=True)
    baseline: Any = field(default=Blur(10.0), kw_only=True)
    scale: bool = field(default=False, kw_only=True)

    model: ClassVar[property] = model_itself
    rows_independent: ClassVar[property] = rows_as_the_model

    def __post_init__(self) -> None:
        called = Called.of(self.called)
        if isinstance(called.model, RegionModel):
            if self.region is not None:
                raise ValueError("`region` is given twice: a RegionModel has one already")
            if called.model.softmax and not called.softmax:
                raise ValueError(
                    "`softmax=False` contradicts the RegionModel, which treats the network's scores as logits: write "
                    "`RegionModel(network, region, softmax=False)`, or `explain_context(metfa.Called(network, "
                    "softmax=False), ...)`"
                )
            called = replace(called, softmax=called.model.softmax)
        elif self.region is None:
            raise TypeError(
                "`region` is needed, the object's pixels (height, width): write "
                "`region=metfa.segmentation.predicted_region(model, image, target_class)`, or explain the image by "
                "`metfa.segmentation.explain_context`"
            )
        else:
            called = replace(called, model=RegionModel(called.model, self.region, softmax=called.softmax))
        object.__setattr__(self, "called", called)
        check_mask_settings(self)
        grid_sides(self.grid)
        if self.target_class is not None:
            keep(self, target_class=positive_int(self.target_class, "target_class", minimum=0))
        keep(self, learning_rate=check_number(self.learning_rate, "learning_rate", above=0))
        for name in ("momentum", "init"):
            keep(self, **{name: check_number(getattr(self, name), name)})
        if self.momentum >= 1:
            raise ValueError(f"`momentum` must lie below 1, otherwise steps never end, got {self.momentum}")
        if self.init > 1:
            raise ValueError(f"`init` must lie in [0, 1], got {self.init}")

    def __call__(self, inputs: torch.Tensor, target: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Maps and scores of a batch.

        Parameters
        ----------
        inputs : torch.Tensor, (batch, channels, height, width)
            Floating point, pixels in [0, 1].
        target : int, sequence or tensor, optional
            Class of each row; None: `target_class`, or if that is None too, the region's best class.

        Returns
        -------
        maps : torch.Tensor, (batch, height, width)
            Masks outside the object, in [0, 1], 0 within; float32 or wider. Never part of a graph.
        scores : torch.Tensor, (batch, classes)
            Mean of the model's scores in the region.
        """
        self._check(inputs)
        wanted = self.target_class if target is None else target
        if self.target_class is not None:
            self._check_targets(row_targets(wanted, None, len(inputs)))
        masks, scores = optimised(self.called, inputs, wanted, self._optimised)
        maps = resized(masks, self._matrices(inputs)).masked_fill(self._object(masks), 0)
        return finished(maps, scale=self.scale), scores

    def _check_targets(self, targets: list[Any]) -> None:
        for row, entry in enumerate(targets):
            if entry != self.target_class:
                raise ValueError(
                    f"`target` of input {row} is {entry}, but this explainer is made for `target_class` "
                    f"{self.target_class}: pass `target={self.target_class}` (without one `metfa.explain` takes the "
                    "region's best class), or make it without `target_class`"
                )

    def _check(self, inputs: Any) -> None:
        require_tensor(inputs)
        check_images(inputs)
        check_masked(self, inputs)
        check_size(self.model.region, inputs)

    def _matrices(self, images: torch.Tensor) -> list[np.ndarray]:
        return enlargements(self.grid, images.shape[2:], "centres")

    def _optimised(self, inputs: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        parts: list[torch.Tensor] = []

        def optimise(start: int, stop: int) -> None:
            images = inputs[start:stop]
            blend = blended(widen(images), self.baseline, index[start:stop], images.dtype)
            maps = self._class_maps(images)
            check_kind(maps, softmax=self.called.softmax)
            rows = torch.arange(start, stop, device=inputs.device)
            parts.append(self._descended(blend, self._in_object(maps, blend.index, rows), start))

        self.called.in_batches(len(inputs), inputs, optimise)
        return torch.cat(parts)

    def _descended(self, blend: Blend, clean: torch.Tensor, first: int) -> torch.Tensor:
        """Masks of a batch from row `first`, from the object's probabilities (batch, pixels) in the clean images.

        Showing everything costs `l1_weight`. A mask that costs more is stuck where the network's output is flat, for
        example because the object is lost for good. Its row starts again from an image shown in full.
        """
        rows = torch.arange(first, first + len(clean), device=clean.device)
        masks, losses = self._descended_from(self.init, blend, clean, rows)
        limit = self.l1_weight + ROUNDING * torch.finfo(losses.dtype).eps
        lost = losses > limit
        if lost.any() and self.init < 1:
            again, after = self._descended_from(1.0, blend[lost], clean[lost], rows[lost])
            better = after < losses[lost]
            masks[lost] = torch.where(better[:, None, None], again, masks[lost])
            losses[lost] = torch.where(better, after, losses[lost])
        costly = losses > limit
        if costly.any():
            warn(
                f"the masks of {rows_of_one_call(int(costly.sum()), len(masks))} lose more of the object than showing "
                "everything would cost: their descent went astray; take a smaller `learning_rate`, more "
                "`n_iterations`, or another `baseline`",
                DegenerateAttributionsWarning,
            )
        return masks

    def _descended_from(
        self, init: float, blend: Blend, clean: torch.Tensor, rows: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Masks and their costs after a descent that starts from `init`."""
        n_rows, n_columns = grid_sides(self.grid)
        masks = blend.contrast.new_full((len(clean), n_rows, n_columns), init)
        velocity = torch.zeros_like(masks)
        least = clean - ROUNDING * torch.finfo(clean.dtype).eps  # if all is shown, rounding loses nothing
        for _ in range(self.n_iterations):
            with torch.enable_grad():
                leaf = masks.detach().requires_grad_()
                loss = self._loss(leaf, blend, least, rows)
                (gradient,) = torch.autograd.grad(loss.sum(), leaf)
            velocity = self.momentum * velocity + gradient
            masks = (masks - self.learning_rate * n_rows * n_columns * velocity).clamp(0, 1)
        return masks, self._loss(masks, blend, least, rows)

    def _loss(self, masks: torch.Tensor, blend: Blend, least: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        shown = resized(masks, self._matrices(blend.contrast)).masked_fill(self._object(masks), 1)
        left = self._in_object(self._class_maps(blend(shown)), blend.index, rows)
        if masks.requires_grad:
            require_graph(left, masks)
        return self.l1_weight * masks.mean((1, 2)) + (least - left).clamp(min=0).mean(dim=1)

    def _object(self, like: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.model.region, device=like.device)

    def _class_maps(self, images: torch.Tensor) -> torch.Tensor:
        with self.called.precision(images):
            output = answered(self.model.network, self.called.laid_out(images))
        return class_maps(output, images, softmax=self.called.softmax)

    def _in_object(self, maps: torch.Tensor, index: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Probability of each row's target in each of the object's pixels, (batch, pixels)."""
        scores = widen(self.model.in_region(maps))
        probabilities = scores.softmax(dim=1) if self.called.softmax else scores
        places = torch.arange(len(scores), device=scores.device), index[:, 0]
        bad = first_not_finite((scores[places] + probabilities[places]).detach())  # NaN would get gradients of 0
        if bad is not None:
            row = int(rows[bad])
            raise ValueError(f"the model's scores of input {row}, whole or with hidden context, are not finite")
        return probabilities[places]
