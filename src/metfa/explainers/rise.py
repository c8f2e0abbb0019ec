"""RISE: the average of random masks, weighted by the class probability that is left under each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from metfa._arrays import from_host, namespace, widen
from metfa._base.validation import MOST_CALLS, check_flag, keep, positive_int
from metfa._base.warnings import DegenerateAttributionsWarning, warn
from metfa.calls.answers import one_score
from metfa.calls.baseline import baseline_like, check_baseline
from metfa.calls.enlargement import along, check_grid, enlargement, grid_sides
from metfa.calls.held import asks_a_model, hold, model_itself
from metfa.calls.inputs import check_spatial
from metfa.calls.targets import target_indices
from metfa.explainers.heatmaps import finished
from metfa.sampling.randomised import row_generators
from metfa.stats.validation import as_level

__all__ = ["RISE"]

DRAWN_AT_ONCE = 4096  # masks whose random numbers are in memory together


@asks_a_model
@dataclass(frozen=True)
class RISE:
    r"""Randomised input sampling (Petsiuk et al. 2018): which parts of an input must be kept for the class to be seen?

    Each mask is a grid of cells, kept with probability `keep`, enlarged linearly along each axis and shifted at random
    by less than a cell. The map is :math:`\frac{1}{N p} \sum_i f(x \odot m_i) \, m_i`, with f the probability of the
    class, as in the authors' code (``eclique/RISE``, ``explanations.py``), whose masks are reproduced exactly.

    Parameters
    ----------
    called : torch.nn.Module, callable or Called
        Model, or a `metfa.Called` that says how it is asked: images (batch, channels, height, width), series (batch,
        channels, length) or volumes (batch, channels, depth, height, width) -> scores (batch, classes). Any function of
        arrays will do.
    n_masks : int
        Masks for each input. The authors' notebooks use 2000 to 6000, the MeTFA paper 1000.
    grid : int or tuple of int
        Cells along each axis of the input, such as (rows, columns). 8 in the authors' notebooks and the MeTFA paper, 7
        in TorchRay. A long series wants more, and a volume of thick slices fewer along its depth.
    keep : float
        Probability p of keeping a cell, in (0, 1). 0.5 in the authors' ``Easy_start.ipynb``, 0.1 in ``Saliency.ipynb``
        and in the MeTFA paper's code. (TorchRay's argument is the probability of *hiding*.)
    baseline : float or sequence of float
        Value of hidden pixels, in the units of the inputs: one number, or one for each channel. 0, the default, is
        black for pixels in [0, 1]. The authors mask normalised images, where 0 is the mean colour: ``baseline=(0.485,
        0.456, 0.406)`` for the usual ImageNet networks.
    rng : int, numpy.random.Generator or None
        Seed of direct calls without `rngs`; `metfa.explain` passes its own generators.
    scale : bool
        Scale each map to [0, 1] by its smallest and largest value (the paper's convention). False: the sum above.

    Notes
    -----
    Masks are made on the model's device, a batch at a time (on a CPU one volume of 64 x 128 x 128 voxels): memory does
    not grow with `n_masks`, except by about 100 bytes a mask. Every row has masks of its own, from its own generator.
    The MeTFA code instead draws 1000 masks for every explanation from one pool of 10,000. Samples that share masks are
    not independent, and the intervals need independence.

    A mask may hide everything (about 0.15 % of them at ``grid=8, keep=0.1``). It adds nothing to the sum and counts in
    N, as in the formula.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> from metfa.explainers import RISE
    >>> def model(images):  # probabilities of two classes, by the brightness of the upper left corner
    ...     bright = images[:, 0, :4, :4].mean(axis=(1, 2))
    ...     return np.stack([bright, 1 - bright], axis=1)
    >>> maps, scores = RISE(metfa.Called(model, softmax=False), n_masks=200, grid=4, rng=0)(np.ones((1, 1, 16, 16)), 0)
    >>> bool(maps[0, :4, :4].mean() > 2 * maps[0, 8:, 8:].mean())
    True
    """

    called: Any
    n_masks: int = field(default=1000, kw_only=True)
    grid: int | tuple[int, ...] = field(default=8, kw_only=True)
    keep: float = field(default=0.5, kw_only=True)
    baseline: float | Sequence[float] = field(default=0.0, kw_only=True)
    scale: bool = field(default=True, kw_only=True)
    rng: Any = field(default=None, kw_only=True, repr=False)

    model: ClassVar[property] = model_itself
    rows_independent = True  # for any model: no pass holds two rows
    n_forwards: ClassVar[property] = property(attrgetter("n_masks"))  # see `metfa.sampling.progress`
    forwards = "masks"

    def __post_init__(self) -> None:
        hold(self)
        keep(self, scale=check_flag(self.scale, "scale"))
        keep(self, n_masks=positive_int(self.n_masks, "n_masks", maximum=MOST_CALLS))
        check_grid(self.grid)
        keep(self, keep=as_level(self.keep, "keep"))
        check_baseline(self.baseline)

    def __call__(self, inputs: Any, target: Any = None, *, rngs: Any = None) -> tuple[Any, Any]:
        r"""Maps and scores of a batch.

        Parameters
        ----------
        inputs : array, (batch, channels, \*axes)
            Floating point.
        target : int, sequence or array, optional
            Class of each row; None: the predicted one.
        rngs : list of numpy.random.Generator, optional
            One generator for each row.

        Returns
        -------
        maps : array, (batch, \*axes)
            float32 (or wider), in [0, 1] with `scale`.
        scores : array, (batch, classes)
            The model's scores of the inputs themselves.
        """
        check_spatial(inputs, self.model)
        grid_sides(self.grid, inputs.ndim - 2)
        generators = row_generators(inputs, rngs, self.rng)
        baseline = baseline_like(self.baseline, inputs)
        with self.called.asked():
            scores = self.called.scores(inputs)
            targets = self.called.targets(target, scores)
            target_indices(targets)  # raises for masks
            maps = [
                self._map(inputs[row : row + 1], baseline, entry, rng)
                for row, (entry, rng) in enumerate(zip(targets, generators, strict=True))
            ]
        return finished(namespace(inputs).stack(maps), scale=self.scale), scores

    def _map(self, image: Any, baseline: Any, target: Any, rng: np.random.Generator) -> Any:
        """Sum over all masks of one input, without batch and channels."""
        xp = namespace(image)
        masks = Masks.drawn(rng, self.n_masks, grid_sides(self.grid, image.ndim - 2), self.keep, image)
        contrast = self.called.laid_out(image - baseline)
        total, asked = xp.zeros_like(widen(image[0, 0])), []
        black = not bool(xp.any(baseline != 0))

        def add(start: int, stop: int) -> None:
            nonlocal total
            kept = masks[start:stop]
            masked = contrast * xp.astype(kept, image.dtype)[:, None]
            if not black:
                masked = masked + baseline
            weights = one_score(self.called.as_probabilities(widen(self.called(masked))), target)
            total = total + xp.tensordot(xp.astype(weights, kept.dtype), kept, axes=1)
            asked.append(weights)

        self.called.in_batches(self.n_masks, image, add)
        scores = xp.concat(asked)
        if bool(xp.all(scores == scores[0])):
            warn(
                f"the class has the score {float(scores[0]):.4g} under each of {self.n_masks} masks: the map "
                "shows the masks, not the model",
                DegenerateAttributionsWarning,
            )
        return total / (self.n_masks * self.keep)


@dataclass(frozen=True)
class Masks:
    """The masks of one input: which cells are kept, and how each mask is shifted; a slice makes an array."""

    cells: Any
    shifts: tuple[Any, ...]
    enlarge: tuple[Any, ...]
    size: tuple[int, ...]

    @classmethod
    def drawn(cls, rng: np.random.Generator, n_masks: int, sides: tuple[int, ...], keep: float, image: Any) -> Masks:
        r"""Draw masks for an input (1, channels, \*axes), on its device."""
        xp, like = namespace(image), widen(image[0, 0])
        size = tuple(image.shape[2:])
        steps = [-(-length // side) for length, side in zip(size, sides, strict=True)]
        blocks = [min(DRAWN_AT_ONCE, n_masks - start) for start in range(0, n_masks, DRAWN_AT_ONCE)]
        kept = np.concatenate([rng.random((block, *sides), np.float32) < keep for block in blocks])
        shifts = tuple(from_host(rng.integers(0, step, n_masks), like, xp.int64) for step in steps)
        enlarge = tuple(
            from_host(enlargement(side, (side + 1) * step, "mirrored"), like)
            for side, step in zip(sides, steps, strict=True)
        )
        return cls(from_host(kept, like, xp.uint8), shifts, enlarge, size)

    def __getitem__(self, part: slice) -> Any:
        r"""Masks (n, \*size) in [0, 1]."""
        xp = namespace(self.cells)
        masks = xp.astype(self.cells[part], self.enlarge[0].dtype)
        for axis, (matrix, shift, length) in enumerate(zip(self.enlarge, self.shifts, self.size, strict=True), 1):
            masks = along(axis, matrix[shift[part][:, None] + xp.arange(length, device=masks.device)], masks)
        return masks
