"""`Smoothed`: an explainer made of an explainer, a noise and a level; its map is the smoothed median."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from metfa import stats
from metfa._arrays import namespace
from metfa._base.one_line import one_line
from metfa._base.other_words import our_words
from metfa._base.validation import MOST_CALLS, keep, positive_int
from metfa._base.warnings import each_once
from metfa.calls.behind import loaded_torch
from metfa.calls.guard import left_as_found
from metfa.sampling.loop import Job, Loop
from metfa.sampling.protocol import check_explainer, explained_model, prediction_of
from metfa.sampling.randomised import row_generators
from metfa.sampling.rows_in_graph import RowsInGraph
from metfa.sampling.streams import root_entropy

__all__ = ["SampledExplainer", "Smoothed"]


@dataclass(frozen=True)
class SampledExplainer:
    """Explainer that makes its map from samples of another one under noise; `summarised` of a subclass says how."""

    explainer: Callable[..., Any]
    noise: Callable[..., Any] = field(kw_only=True)
    n_samples: int = field(default=10, kw_only=True)
    batch_size: int = field(default=10, kw_only=True)
    rng: Any = field(default=None, kw_only=True, repr=False)

    def __repr__(self) -> str:
        return one_line(self)

    rows_independent = True
    _safe = (1, 0)  # maps in a call that are safe, and the largest number of them that has been looked at

    def __post_init__(self) -> None:
        check_explainer(self.explainer)
        if not callable(self.noise):
            raise TypeError(f"`noise` must be a function f(x, rng) -> x, got {type(self.noise).__name__}")
        keep(self, n_samples=positive_int(self.n_samples, "n_samples", maximum=MOST_CALLS))
        keep(self, batch_size=positive_int(self.batch_size, "batch_size"))

    @property
    def model(self) -> Any:
        """Model of the inner explainer; None if unknown."""
        return explained_model(self.explainer)

    def summarised(self, samples: Any) -> Any:
        r"""The map made of samples (batch, n, \*features)."""
        raise NotImplementedError

    @each_once()
    def __call__(self, inputs: Any, target: Any = None, *, rngs: Sequence[np.random.Generator] | None = None) -> Any:
        r"""Maps of a batch.

        Parameters
        ----------
        inputs : array, (batch, ...), tuple or dict of arrays, or list of objects
            Clean inputs, as for `metfa.explain`.
        target : int or sequence, optional
            Class to explain; None: the class predicted on the clean input.
        rngs : sequence of numpy.random.Generator, optional
            One generator for each row, given by `metfa.explain`.

        Returns
        -------
        array, (batch, \*features)
            In the library and on the device of `inputs`; for texts as the explainer gives them.
        """
        with left_as_found(self.explainer):
            loop, jobs = self._loop(inputs, target, rngs)
            return self.summarised(self._samples(_maps(loop, jobs)))

    attribute = __call__  # Captum's name for it

    def vjp(
        self, inputs: Any, target: Any = None, *, rngs: Sequence[np.random.Generator] | None = None
    ) -> tuple[Any, Callable[[Any], Any]]:
        r"""Maps of a batch of torch tensors, and a function that pulls derivatives back from the maps to the inputs.

        The result is that of a backward pass from the maps, but it needs memory for `batch_size` rows only. If there
        are more samples, they are first explained without a graph, and then again, `batch_size` at a time, for their
        part of the gradient.

        Parameters
        ----------
        inputs, target, rngs
            As for a call; `inputs` a floating-point torch.Tensor.

        Returns
        -------
        maps : torch.Tensor, (batch, \*features)
            Detached.
        pull_back : callable
            Takes the derivative of a number with respect to the maps, (batch, \*features); returns its gradient with
            respect to the inputs, in their shape. Call it once.

        Raises
        ------
        ValueError
            From `pull_back`, if the inner explainer's maps are not differentiable in the inputs.

        Notes
        -----
        If an explainer detaches something, it counts as constant, as in any backward pass. Captum's own objects detach
        their gradients; `metfa.explainers.from_captum` keeps them in the graph.

        Examples
        --------
        >>> import torch, metfa
        >>> smooth = metfa.Smoothed(lambda x, target: x**3, noise=metfa.noise.Uniform(0.1), n_samples=6, rng=0)
        >>> maps, pull_back = smooth.vjp(torch.ones(1, 4), target=0)
        >>> pull_back(torch.ones_like(maps)).shape
        torch.Size([1, 4])
        """
        torch = loaded_torch()
        if torch is None or not isinstance(inputs, torch.Tensor) or not inputs.is_floating_point():
            kind = getattr(inputs, "dtype", type(inputs).__name__)
            raise TypeError(f"`inputs` must be a floating-point torch.Tensor to have a gradient, got {kind}")
        inputs = inputs.detach()
        with left_as_found(self.explainer), torch.no_grad():
            loop, jobs = self._loop(inputs, target, rngs)
            size = loop.batch_size
            start = (len(jobs) - 1) // size * size  # of the last chunk; its graph is kept
            loop = replace(loop, first=None)  # its graph, if it has one, is not for keeping
            parts = _maps(loop, jobs[:start], detached=True)  # they may have a graph nevertheless
            with torch.enable_grad():
                leaf, last = self._part(loop, inputs, jobs[start:])
        samples = self._samples([*parts, last.detach()]).requires_grad_()
        with torch.enable_grad():
            maps = self.summarised(samples)

        def pull_back(derivative: Any) -> Any:
            (by_samples,) = torch.autograd.grad(maps, samples, derivative)
            by_samples = by_samples.flatten(0, 1)
            gradient = _pulled(last, by_samples[start:], leaf)
            for first in range(0, start, size):
                with left_as_found(self.explainer), torch.enable_grad():
                    again, part = self._part(loop, inputs, jobs[first : first + size])
                    gradient = gradient + _pulled(part, by_samples[first : first + size], again)
            return gradient

        return maps.detach(), pull_back

    def _loop(self, inputs: Any, target: Any, rngs: Any) -> tuple[Loop, list[Job]]:
        """The loop in the graph of the inputs, and its jobs, row by row."""
        rows, noise = RowsInGraph(inputs).matched(self.noise)
        addresses = [(root_entropy(rng), "") for rng in row_generators(inputs, rngs, self.rng)]
        jobs = [Job(row, sample) for row in range(len(rows)) for sample in range(self.n_samples)]
        predict = prediction_of(self.explainer) if target is None else None
        size, looked_at = self._safe
        together = min(len(jobs), self.batch_size)
        loop = Loop(self.explainer, rows, noise, addresses, self.batch_size)
        if size < looked_at or together <= looked_at:  # an attack asks thousands of times
            return replace(replace(loop, batch_size=size).aimed(target, predict)[0], predict=None), jobs
        loop = replace(loop.ready(target, predict, jobs)[0], predict=None)
        if together > 1:
            object.__setattr__(self, "_safe", (min(loop.batch_size, together), together))
        return loop, jobs

    def _samples(self, maps: list[Any]) -> Any:
        r"""Samples (batch, n, \*features)."""
        xp = namespace(maps[0])
        samples = xp.concat(maps, axis=0)
        return xp.reshape(samples, (-1, self.n_samples, *samples.shape[1:]))

    @staticmethod
    def _part(loop: Loop, inputs: Any, jobs: Sequence[Job]) -> tuple[Any, Any]:
        """A leaf tensor with the values of `inputs`, and the maps of one chunk in its graph."""
        leaf = inputs.clone().requires_grad_()
        (maps,) = _maps(replace(loop, rows=RowsInGraph(leaf)), jobs)
        return leaf, maps


@our_words
@dataclass(frozen=True, repr=False)
class Smoothed(SampledExplainer):
    """Explainer whose map is the smoothed median of another explainer's maps under noise (paper, the smoothed map).

    It takes torch, NumPy or other arrays with a batch axis and returns maps in their library and on their device,
    differentiable in the inputs if the inner explainer's maps are. It can be used wherever an explainer can, also
    inside `metfa.explain`; `attribute` is for code that expects Captum's interface.

    Smoothed scores vary less, also because their range is smaller. Where noise of another kind comes in, or on the
    clean input itself, the map of one explanation can be the better one: see the documentation's page on the paper's
    claims.

    Parameters
    ----------
    explainer : callable
        The explainer to smooth, as for `metfa.explain`.
    noise : callable
        ``f(x, rng) -> x`` for one input in the inputs' own library; those of `metfa.noise` take any.
    n_samples : int
        The paper's N. It is checked against the level at once. At the level 0.95 one wild map on either side is left
        out from N = 9 on, two from 12, five from 20; with fewer than 9 the map is the plain mean.
    confidence_level : float
        Level of the interval; the samples inside it are averaged.
    batch_size : int, optional
        Rows in one call of the inner explainer; 10 by default.
    rng : int, numpy.random.Generator or None
        Seed for direct calls: with an int, equal inputs get equal maps every time. None: fresh numbers.

    Raises
    ------
    ValueError
        If `n_samples` is too small for the level; the message names the smallest N.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> square = lambda inputs, target: inputs**2
    >>> smooth = metfa.Smoothed(square, noise=metfa.noise.Uniform(0.1), n_samples=20, rng=0)
    >>> smooth(np.ones((1, 4)), target=0).shape
    (1, 4)
    """

    confidence_level: float = field(default=0.95, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        stats.median_ranks(self.n_samples, self.confidence_level)  # too few samples for the level are refused here

    def summarised(self, samples: Any) -> Any:
        """The smoothed median of samples."""
        return stats.smoothed_median(samples, self.confidence_level, axis=1)


def _maps(loop: Loop, jobs: Sequence[Job], *, detached: bool = False) -> list[Any]:
    with loop.over(jobs) as chunks:
        return [chunk.maps.detach() if detached else chunk.maps for chunk in chunks]


def _pulled(maps: Any, derivative: Any, inputs: Any) -> Any:
    """Gradient with respect to the inputs, from the derivative with respect to their maps."""
    torch: Any = loaded_torch()
    gradient = None
    if maps.requires_grad:
        (gradient,) = torch.autograd.grad(maps, inputs, derivative.to(maps.dtype), allow_unused=True)
    if gradient is None:
        raise ValueError(
            "`explainer` returns maps that are not differentiable in the inputs, so no derivative can be pulled back"
        )
    return gradient
