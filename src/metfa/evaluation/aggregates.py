"""The maps that a study makes of samples: which are wanted, and how all of them are made at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from metfa import stats
from metfa._arrays import namespace, to_host
from metfa.results.regions import Regions
from metfa.results.sample import AttributionSample
from metfa.results.until import Until
from metfa.sampling.explain import explain
from metfa.sampling.protocol import explained_model
from metfa.sampling.run import Run
from metfa.sampling.smoothed import SampledExplainer
from metfa.sampling.streams import root_entropy

__all__ = ["Aggregate", "Aggregates", "AggregatesUntil", "first", "map_of"]


class Aggregate(NamedTuple):
    """Which map is measured: from which samples it is made, and how."""

    aggregate: str
    sampling: str | None = None
    n_samples: int | None = None
    confidence_level: float | None = None

    @property
    def level(self) -> float:
        """Level of a smoothed map; only these have one."""
        assert self.confidence_level is not None
        return self.confidence_level


@dataclass(frozen=True)
class Aggregates(SampledExplainer):
    """All maps that a study makes from the same samples, side by side: (batch, maps, *features), or regions."""

    wanted: tuple[Aggregate, ...] = field(default=(), kw_only=True)
    over: Regions | None = field(default=None, kw_only=True)

    def summarised(self, samples: Any) -> Any:
        """The wanted maps of samples."""
        if self.over is not None:
            samples = np.stack([self.over.pooled(of_row) for of_row in to_host(samples)])
        xp = namespace(samples)
        maps = []
        for entry in self.wanted:
            part = samples[:, : entry.n_samples]
            if entry.aggregate == "mean":
                maps.append(xp.mean(part, axis=1))
            else:
                maps.append(stats.smoothed_median(part, entry.level, axis=1))
        return xp.stack(maps, axis=1)


@dataclass(frozen=True)
class AggregatesUntil:
    """The same, but for each row from as many samples as a rule takes."""

    explainer: Callable[..., Any]
    noise: Any = field(kw_only=True)
    rule: Until = field(kw_only=True)
    batch_size: int = field(kw_only=True)
    wanted: tuple[Aggregate, ...] = field(kw_only=True)
    over: Regions | None = field(default=None, kw_only=True)

    rows_independent = True

    @property
    def model(self) -> Any:
        """Model of the inner explainer; None if it is unknown."""
        return explained_model(self.explainer)

    def __call__(self, inputs: Any, target: Any = None, *, rngs: Sequence[np.random.Generator]) -> np.ndarray:
        """Maps of a batch, row by row."""
        return np.concatenate([
            self._of_row(inputs[row : row + 1], None if target is None else target[row : row + 1], rng)
            for row, rng in enumerate(rngs)
        ])  # fmt: skip

    def _of_row(self, inputs: Any, target: Any, rng: np.random.Generator) -> np.ndarray:
        sample = explain(
            self.explainer, inputs, target, noise=self.noise, n_samples=self.rule, over=self.over,
            batch_size=self.batch_size, rng=root_entropy(rng), run=Run(input_names=[""]),
        )  # fmt: skip
        return np.stack([map_of(sample, entry) for entry in self.wanted], axis=1)


def first(sample: AttributionSample, n: int | None) -> AttributionSample:
    """The first n samples; None: all that a rule took. A study's numbers are fixed beforehand: none is a look."""
    if n is None:
        return sample
    predictions = None if sample.predictions is None else sample.predictions[:n]
    made, ids = {**sample.provenance, "looks": []}, sample.sample_ids[:n]
    return replace(sample, values=sample.values[:n], predictions=predictions, sample_ids=ids, provenance=made)


def map_of(sample: AttributionSample, entry: Aggregate) -> np.ndarray:
    """The map that an entry wants of a sample."""
    part = first(sample, entry.n_samples)
    return part.mean() if entry.aggregate == "mean" else part.smoothed(entry.level)
