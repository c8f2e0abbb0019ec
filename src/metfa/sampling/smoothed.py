"""An explainer made of an explainer, a noise and a level: its map is the smoothed median."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from metfa import stats
from metfa._arrays import as_array, first_not_finite, namespace, to_host
from metfa._base.validation import positive_int
from metfa.calls.guard import left_as_found, loaded_torch
from metfa.calls.targets import row_targets, stacked_targets
from metfa.sampling.protocol import (
    call_explainer,
    explained_model,
    predict_scores,
    prediction_of,
    safe_batch_size,
    takes_rngs,
)
from metfa.sampling.randomised import row_generators
from metfa.sampling.rows import check_like_text, like_row
from metfa.sampling.streams import Purpose, root_entropy, stream

__all__ = ["SampledExplainer", "Smoothed"]


@dataclass(frozen=True)
class SampledExplainer:
    """Explainer that makes its map of samples of another one under noise; what of, subclasses tell."""

    explainer: Callable[..., Any]
    noise: Callable[..., Any] = field(kw_only=True)
    n_samples: int = field(default=10, kw_only=True)
    batch_size: int = field(default=10, kw_only=True)
    rng: Any = field(default=None, kw_only=True, repr=False)

    rows_independent = True

    def __post_init__(self) -> None:
        if not callable(self.explainer):
            raise TypeError(f"`explainer` must be callable, got {type(self.explainer).__name__}")
        if not callable(self.noise):
            raise TypeError(f"`noise` must be a function f(x, rng) -> x, got {type(self.noise).__name__}")
        positive_int(self.n_samples, "n_samples")
        positive_int(self.batch_size, "batch_size")

    @property
    def model(self) -> Any:
        """Model of the inner explainer, None where unknown."""
        return explained_model(self.explainer)

    def _summarised(self, samples: Any) -> Any:
        r"""The map made of samples (batch, n, \*features)."""
        raise NotImplementedError

    def __call__(self, inputs: Any, target: Any = None, *, rngs: Sequence[np.random.Generator] | None = None) -> Any:
        r"""Maps of a batch.

        Parameters
        ----------
        inputs : array, (batch, ...), or list
            Clean inputs; a list of texts, where the noise and the explainer are of texts.
        target : int or sequence, optional
            Class explained; None: as predicted on the clean input.
        rngs : sequence of numpy.random.Generator, optional
            One generator for each row, given by `metfa.explain`.

        Returns
        -------
        array, (batch, \*features)
            In the library and on the device of `inputs`; of texts as the explainer gives them.
        """
        inputs = inputs if isinstance(inputs, list) else as_array(inputs, "inputs")
        with left_as_found(self.model) as drawn:
            chunks, n_rows = self._chunks(inputs, target, rngs, drawn)
            return self._summarised(self._joined([chunk(inputs) for chunk in chunks], n_rows))

    attribute = __call__  # Captum's name for it

    def vjp(
        self, inputs: Any, target: Any = None, *, rngs: Sequence[np.random.Generator] | None = None
    ) -> tuple[Any, Callable[[Any], Any]]:
        r"""Maps of a batch of torch tensors, and the function that pulls a derivative by them back to the inputs.

        The same as a backward pass from the maps, in the memory of `batch_size` rows: samples beyond these are first
        explained without a graph, and once more, `batch_size` at a time, for their part of the gradient.

        Parameters
        ----------
        inputs, target, rngs
            As for a call; `inputs` a floating-point torch.Tensor.

        Returns
        -------
        maps : torch.Tensor, (batch, \*features)
            Detached.
        pull_back : callable
            Derivative of a number by the maps, (batch, \*features) -> its gradient by the inputs, of their shape. To be
            called once.

        Raises
        ------
        ValueError
            From `pull_back`, if the inner explainer's maps are not differentiable in the inputs.

        Notes
        -----
        What an explainer takes out of the graph is a constant here, as in any backward pass. Captum's own objects do so
        with their gradients; `metfa.explainers.from_captum` keeps them.

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
        with left_as_found(self.model) as drawn, torch.no_grad():
            chunks, n_rows = self._chunks(inputs, target, rngs, drawn)
            parts = [chunk(inputs).detach() for chunk in chunks[:-1]]  # there may be a graph all the same
            leaf = inputs.clone().requires_grad_()
            with torch.enable_grad():
                parts.append(chunks[-1](leaf))
        samples = self._joined([part.detach() for part in parts], n_rows).requires_grad_()
        with torch.enable_grad():
            maps = self._summarised(samples)

        def pull_back(derivative: Any) -> Any:
            (by_samples,) = torch.autograd.grad(maps, samples, derivative)
            by_samples = by_samples.flatten(0, 1)
            last = parts.pop()  # whose graph was kept, and is freed now
            gradient = _pulled(last, by_samples[-len(last) :], leaf)
            start = 0
            for chunk, part in zip(chunks[:-1], parts, strict=True):
                again = inputs.clone().requires_grad_()
                with left_as_found(self.model), torch.enable_grad():
                    gradient = gradient + _pulled(chunk(again), by_samples[start : start + len(part)], again)
                start += len(part)
            return gradient

        return maps.detach(), pull_back

    def _chunks(self, inputs: Any, target: Any, rngs: Any, drawn: Any) -> tuple[list[Callable[[Any], Any]], int]:
        """Functions of the inputs that explain `batch_size` samples each, row by row, and the number of rows."""
        roots = [root_entropy(rng) for rng in row_generators(inputs, rngs, self.rng)]
        targets = self._targets(inputs, target, len(roots))
        jobs = [(row, sample) for row in range(len(roots)) for sample in range(self.n_samples)]
        probed = [jobs[0], jobs[-1]]

        def probe(indices: list[int]) -> np.ndarray:
            return to_host(self._explained(inputs, targets, roots, [probed[i] for i in indices]))

        size = safe_batch_size(self.explainer, self.batch_size, len(jobs), probe, drawn)
        return [
            partial(self._explained, targets=targets, roots=roots, jobs=jobs[start : start + size])
            for start in range(0, len(jobs), size)
        ], len(roots)

    def _joined(self, maps: list[Any], n_rows: int) -> Any:
        r"""Samples (batch, n, \*features)."""
        xp = namespace(maps[0])
        samples = xp.concat(maps, axis=0)
        return xp.reshape(samples, (n_rows, self.n_samples, *samples.shape[1:]))

    def _targets(self, inputs: Any, target: Any, n_rows: int) -> list[Any]:
        predict = prediction_of(self.explainer)
        scores = predict_scores(predict, inputs) if target is None and predict is not None else None
        return row_targets(target, scores, n_rows)

    def _explained(self, inputs: Any, targets: list[Any], roots: list[int], jobs: Sequence[tuple[int, int]]) -> Any:
        """Attributions of the jobs (row, sample), in the graph of `inputs`."""
        batch: Any = [self._noisy(inputs, roots[row], row, sample) for row, sample in jobs]
        if not isinstance(inputs, list):
            batch = namespace(inputs).stack(batch)
            _require_finite(batch, "`noise` made NaN or infinity of", jobs)
        rngs = None
        if takes_rngs(self.explainer):
            rngs = [stream(roots[row], "", sample, Purpose.EXPLAINER) for row, sample in jobs]
        like = None if isinstance(inputs, list) else inputs
        target = stacked_targets([targets[row] for row, _ in jobs], like)
        maps = call_explainer(self.explainer, batch, target, len(jobs), rngs, {})[0]
        _require_finite(maps, "`explainer` returned NaN or infinity for", jobs)
        return maps

    def _noisy(self, inputs: Any, root: int, row: int, sample: int) -> Any:
        rng = stream(root, "", sample, Purpose.NOISE)
        if isinstance(inputs, list):
            noisy = self.noise(inputs[row], rng)
            check_like_text(noisy, inputs[row], f"input {row}, sample {sample}")
            return noisy
        clean = inputs[row, ...]
        return like_row(self.noise(clean, rng), clean, f"input {row}, sample {sample}")


@dataclass(frozen=True)
class Smoothed(SampledExplainer):
    """Explainer whose map is the smoothed median of another one's under noise (paper, the smoothed map).

    It takes torch, NumPy or other arrays with a batch axis and returns maps in their library and on their device,
    differentiable in the inputs where the inner explainer's maps are. It can stand wherever an explainer can, also
    inside `metfa.explain`, and `attribute` serves where Captum's interface is expected.

    Parameters
    ----------
    explainer : callable
        The explainer to smooth, as for `metfa.explain`.
    noise : callable
        ``f(x, rng) -> x`` for one input in the inputs' own library; those of `metfa.noise` take any.
    n_samples : int
        The paper's N; checked at once against the level.
    confidence_level : float
        Level of the interval whose inside is averaged.
    batch_size : int, optional
        Rows a call of the inner explainer; 10 by default.
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

    def _summarised(self, samples: Any) -> Any:
        return stats.smoothed_median(samples, self.confidence_level, axis=1)


def _require_finite(rows: Any, message: str, jobs: Sequence[tuple[int, int]]) -> None:
    bad = first_not_finite(rows)
    if bad is not None:
        raise ValueError(f"{message} input {jobs[bad][0]}, sample {jobs[bad][1]}")


def _pulled(maps: Any, derivative: Any, inputs: Any) -> Any:
    """Gradient of the inputs that a derivative by their maps makes."""
    torch: Any = loaded_torch()
    gradient = None
    if maps.requires_grad:
        (gradient,) = torch.autograd.grad(maps, inputs, derivative.to(maps.dtype), allow_unused=True)
    if gradient is None:
        raise ValueError(
            "`explainer` returns maps that are not differentiable in the inputs, so no derivative can be pulled back"
        )
    return gradient
