"""An explainer made of an explainer, a noise and a level: its map is the smoothed median."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metfa import stats
from metfa._arrays import as_array, namespace, to_host
from metfa._guard import model_in_evaluation, random_state_as_found
from metfa._protocol import (
    call_explainer,
    explained_model,
    known_independent,
    predict_scores,
    probe_rows,
    takes_rngs,
)
from metfa._streams import Purpose, root_entropy, stream
from metfa._targets import row_targets, stacked_targets
from metfa._validation import positive_int
from metfa.randomised import row_generators

__all__ = ["Smoothed"]


@dataclass(frozen=True)
class Smoothed:
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

    explainer: Callable[..., Any]
    noise: Callable[..., Any] = field(kw_only=True)
    n_samples: int = field(default=10, kw_only=True)
    confidence_level: float = field(default=0.95, kw_only=True)
    batch_size: int = field(default=10, kw_only=True)
    rng: Any = field(default=None, kw_only=True)

    rows_independent = True

    def __post_init__(self) -> None:
        if not callable(self.explainer):
            raise TypeError(f"`explainer` must be callable, got {type(self.explainer).__name__}")
        if not callable(self.noise):
            raise TypeError(f"`noise` must be a function f(x, rng) -> x, got {type(self.noise).__name__}")
        positive_int(self.n_samples, "n_samples")
        positive_int(self.batch_size, "batch_size")
        stats.median_ranks(self.n_samples, self.confidence_level)  # too few samples for the level are refused here

    @property
    def model(self) -> Any:
        """Model of the inner explainer, None where unknown."""
        return explained_model(self.explainer)

    def attribute(self, inputs: Any, target: Any = None) -> Any:
        """Same as calling the object: Captum's name for it."""
        return self(inputs, target)

    def __call__(self, inputs: Any, target: Any = None, *, rngs: Sequence[np.random.Generator] | None = None) -> Any:
        r"""Smoothed maps of a batch.

        Parameters
        ----------
        inputs : array, (batch, ...)
            Clean inputs.
        target : int or sequence, optional
            Class explained; None: as predicted on the clean input.
        rngs : sequence of numpy.random.Generator, optional
            One generator for each row, given by `metfa.explain`.

        Returns
        -------
        array, (batch, \*features)
            In the library and on the device of `inputs`.
        """
        inputs = as_array(inputs, "inputs")
        with ExitStack() as stack:
            stack.enter_context(random_state_as_found())
            stack.enter_context(model_in_evaluation(self.model))
            targets = self._targets(inputs, target)
            roots = [root_entropy(rng) for rng in row_generators(inputs, rngs, self.rng)]
            jobs = [(row, sample) for row in range(len(inputs)) for sample in range(self.n_samples)]
            run = self._runner(inputs, targets, roots)
            batch_size = self.batch_size
            if len(jobs) > 1 and batch_size > 1 and not known_independent(self.explainer):
                probed = [jobs[0], jobs[-1]]
                batch_size = batch_size if probe_rows(lambda at: to_host(run([probed[i] for i in at]))) else 1
            maps = [run(jobs[start : start + batch_size]) for start in range(0, len(jobs), batch_size)]
            xp = namespace(maps[0])
            samples = xp.concat(maps, axis=0)
            samples = xp.reshape(samples, (len(inputs), self.n_samples, *samples.shape[1:]))
            return stats.smoothed_median(samples, self.confidence_level, axis=1)

    def _targets(self, inputs: Any, target: Any) -> list[Any]:
        scores = None
        if target is None and self.model is not None:
            scores = predict_scores(self.model, inputs)
        return row_targets(target, scores, len(inputs))

    def _runner(self, inputs: Any, targets: list[Any], roots: list[int]) -> Callable[[Sequence[tuple[int, int]]], Any]:
        xp = namespace(inputs)
        random_inner = takes_rngs(self.explainer)

        def draws(row: int, sample: int, purpose: Purpose) -> np.random.Generator:
            return stream(roots[row], "", sample, purpose)

        def run(jobs: Sequence[tuple[int, int]]) -> Any:
            batch = xp.stack([self.noise(inputs[row], draws(row, sample, Purpose.NOISE)) for row, sample in jobs])
            rngs = [draws(row, sample, Purpose.EXPLAINER) for row, sample in jobs] if random_inner else None
            target = stacked_targets([targets[row] for row, _ in jobs], inputs)
            return call_explainer(self.explainer, batch, target, len(jobs), rngs, {})[0]

        return run
