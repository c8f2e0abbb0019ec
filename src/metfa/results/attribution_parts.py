"""The result for a model of several inputs: samples of one map for each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.percents import counted
from metfa._base.provenance import made_by
from metfa._base.validation import shown
from metfa.results.cautions import FLIPS_FROM
from metfa.results.joining import same_maps
from metfa.results.layout import Layout
from metfa.results.sample import AttributionSample
from metfa.results.stopping import Stopping
from metfa.results.terms import Terms

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from metfa.plot.settings import InFigure, PartsSettings
    from metfa.report.settings import ReportSettings
    from metfa.results.summary import Summary

__all__ = ["AttributionParts", "in_parts"]


@dataclass(frozen=True, repr=False, eq=False)
class AttributionParts(Mapping[str | int, AttributionSample]):
    r"""Samples of several maps of each input, one for each part of the inputs: for an image and a table, say.

    Made by `metfa.explain` where the explainer returns a tuple or dict of attributions, or by `metfa.load`. It is a
    read-only mapping: ``result["image"]`` (or ``result[0]``, where the inputs are a tuple) is an `AttributionSample`
    with all its methods. The copies, the class and the prediction are those of the whole input. All else is each part's
    own: its unit, whether its scores are signed, its natural threshold, its scale in figures, and its corrections. So
    no part drowns another, and every rate is over the features of one part and one input.

    Attributes
    ----------
    joined : AttributionSample
        The maps of all parts as one row of features, as they are kept. Its scores have no scale in common: ask the
        parts.

    Notes
    -----
    A statement that holds for all k parts together takes a k-th of the level in each, as in
    ``result.significance_map(alpha=0.05 / len(result), correction="holm")``. Then no feature of any part is called
    important falsely, with probability 95 % (by the union bound). By "by", "e-bh" and "closed-e-bh" 5 % bounds the
    expected share of false ones, as that in all is at most the sum of those in the parts. So for "unimportant".

    Examples
    --------
    >>> import numpy as np, metfa
    >>> image, table = np.ones((1, 4, 4)), np.ones((1, 2))
    >>> explainer = lambda inputs, target: (100 * inputs[0], inputs[1] * np.array([2.0, 0.0]))
    >>> noise = metfa.noise.Uniform(0.1), metfa.noise.Gaussian(0.1)
    >>> result = metfa.explain(explainer, (image, table), 0, noise=noise, n_samples=20, rng=0)
    >>> result[1].significance_map()
    array([[ 1, -1]], dtype=int8)
    """

    joined: AttributionSample

    def __post_init__(self) -> None:
        inputs = self.joined.inputs
        names = list(inputs) if isinstance(inputs, dict) else range(len(inputs)) if isinstance(inputs, tuple) else ()
        if not set(self.layout.names) <= set(names):
            raise TypeError(f"parts, which must be those of the inputs, {shown(list(names))}")

    @cached_property
    def layout(self) -> Layout:
        """Names and shapes of the parts, and where they lie in `joined`."""
        return Layout.read(self.joined.provenance["parts"], self.joined.values.shape, self.joined.stopping)

    @cached_property
    def _samples(self) -> dict[str | int, AttributionSample]:
        joined = self.joined
        values, vanilla = self.layout.split(joined.values), self.layout.split(joined.vanilla)
        shared = {name: fact for name, fact in joined.provenance.items() if name != "parts"}
        return {
            part.name: replace(
                joined,
                values=values[part.name],
                vanilla=vanilla[part.name],
                inputs=joined.inputs[part.name],
                feature_names=part.feature_names,
                stopping=_of_part(part.stopping, joined.stopping),
                provenance={
                    **shared,
                    "part": part.name,
                    "signed": shared.get("signed") if part.signed is None else part.signed,
                },
            )
            for part in self.layout.parts
        }

    def __getitem__(self, name: str | int) -> AttributionSample:
        if name not in self._samples:
            raise KeyError(f"no part {name!r}: there are {', '.join(map(repr, self))}")
        return self._samples[name]

    def __iter__(self) -> Iterator[str | int]:
        return iter(self._samples)

    def __len__(self) -> int:
        return len(self._samples)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and (
            name in AttributionSample.__dataclass_fields__ or hasattr(AttributionSample, name)
        ):
            first = next(iter(self.layout.names))
            raise AttributeError(
                f"a result of several parts has no `{name}`, each part has its own: write `result[{first!r}].{name}`"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def n_samples(self) -> int:
        """Number of samples N of each input."""
        return self.joined.n_samples

    @property
    def inputs(self) -> Any:
        """The clean inputs, a tuple or dict of arrays."""
        return self.joined.inputs

    @property
    def target(self) -> tuple[Any, ...]:
        """What was explained, one entry for each input."""
        return self.joined.target

    @property
    def scores(self) -> np.ndarray | None:
        """The model's scores of the clean inputs, (batch, classes); None where unknown."""
        return self.joined.scores

    @property
    def predictions(self) -> np.ndarray | None:
        """Class predicted on every noisy input, (n_samples, batch); None where unknown."""
        return self.joined.predictions

    @property
    def flip_rate(self) -> np.ndarray | None:
        """Share of noisy inputs whose predicted class differs from the clean one, (batch,); None where unknown."""
        return self.joined.flip_rate

    @property
    def sample_ids(self) -> tuple[int, ...]:
        """Numbers of the samples."""
        return self.joined.sample_ids

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs, which address the random streams."""
        return self.joined.input_names

    @property
    def provenance(self) -> dict[str, Any]:
        """Explainer, noise, seed, versions, time; see `AttributionSample`."""
        return self.joined.provenance

    @property
    def stopping(self) -> Stopping | None:
        """How `metfa.Until` found N, by the worst of all parts; that of a part has its thresholds."""
        return self.joined.stopping

    def of_input(self, index: int) -> AttributionParts:
        """The samples of one input of the batch alone, as a batch of one."""
        one, signed = self.joined.of_input(index), {name: part.signed for name, part in self.items()}
        provenance = {**one.provenance, "parts": self.layout.of_input(index, signed).written()}
        return AttributionParts(replace(one, provenance=provenance))

    def concat(self, other: AttributionParts) -> AttributionParts:
        """Join samples of the same inputs from two calls, in memory; see `AttributionSample.concat`."""
        if not isinstance(other, AttributionParts):
            raise TypeError(f"`other` must be an AttributionParts, got {type(other).__name__}")
        if self.layout.shapes != other.layout.shapes:
            raise ValueError(f"`other` has other parts: {other.layout.shapes} against {self.layout.shapes}")
        if not same_maps(self.joined.vanilla, other.joined.vanilla, self.layout):
            raise ValueError("`other` explains another model: the attributions of a part of the clean inputs differ")
        return AttributionParts(self.joined.concat(other.joined))

    def terms(
        self,
        threshold: Any = None,
        *,
        alpha: float | None = None,
        correction: str | None = None,
        split: int | None = None,
    ) -> dict[str | int, Terms]:
        """Terms of the decisions of each part, see `AttributionSample.terms`.

        Parameters
        ----------
        threshold : optional
            As there, for all parts; or a dict with one for each of some parts, as parts have no scale in common.
        alpha, correction, split
            As there, in each part; an alpha for all k parts together is `alpha` / k.
        """
        given = self.threshold_of_each(threshold)
        return {
            name: part.terms(given.get(name), alpha=alpha, correction=correction, split=split)
            for name, part in self.items()
        }

    def significance_map(
        self,
        threshold: Any = None,
        *,
        alpha: float | None = None,
        correction: str | None = None,
        split: int | None = None,
    ) -> dict[str | int, np.ndarray]:
        r"""Which features of each part lie above its threshold (+1), below (-1) or are undecided (0).

        Parameters
        ----------
        threshold, alpha, correction, split
            As for `terms`.

        Returns
        -------
        dict
            Part -> int8 (batch, \*features), see `AttributionSample.significance_map`.
        """
        terms = self.terms(threshold, alpha=alpha, correction=correction, split=split)
        return {name: part.decide(terms[name]).marks for name, part in self.items()}

    def summary(
        self,
        threshold: Any = None,
        *,
        alpha: float | None = None,
        correction: str | None = None,
        split: int | None = None,
        confidence_level: float = 0.95,
        flips_from: float = FLIPS_FROM,
    ) -> dict[str | int, tuple[Summary, ...]]:
        """The figures to read first, one summary for each part and input; see `AttributionSample.summary`."""
        from metfa.results.summary import summarise

        terms = self.terms(threshold, alpha=alpha, correction=correction, split=split)
        return {
            name: summarise(part, part.decide(terms[name]), confidence_level, flips_from) for name, part in self.items()
        }

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write a new folder `path`, all or nothing; see `AttributionSample.save`."""
        return self.joined.save(path, overwrite=overwrite)

    def report(self, path: str | Path, **settings: Unpack[ReportSettings]) -> Path:
        """Write one HTML file with a section for each part and input; `settings` are those of `metfa.report.write`."""
        from metfa.report import write

        return write(path, self, **settings)

    def plot(self, *, fig: InFigure | None = None, **settings: Unpack[PartsSettings]) -> InFigure:
        """Draw the parts of one input side by side; `settings` are those of `metfa.plot.side_by_side`."""
        from metfa.plot import side_by_side

        return side_by_side(self, fig=fig, **settings)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name!r} {'×'.join(map(str, shape))}" for name, shape in self.layout.shapes.items())
        samples = f"{counted(self.n_samples, 'sample')} of {counted(len(self.target), 'input')}"
        return f"AttributionParts({samples}, {counted(len(self), 'part')}: {sizes}, {made_by(self.provenance)})"

    def _repr_html_(self) -> str:
        from metfa.plot import notebook_html

        return notebook_html(self)

    def threshold_of_each(self, threshold: Any) -> dict[str | int, Any]:
        """The threshold given, part by part: one for all, or a dict with one for each of some parts."""
        if not isinstance(threshold, Mapping):
            return dict.fromkeys(self, threshold)
        unknown = [name for name in threshold if name not in self]
        if unknown:
            raise ValueError(
                f"`threshold` has {unknown[0]!r:.40}, which is no part: there are {', '.join(map(repr, self))}"
            )
        return dict(threshold)


def in_parts(sample: AttributionSample) -> Any:
    """The result as its reader sees it: an `AttributionParts`, where the maps are of several inputs."""
    return AttributionParts(sample) if sample.provenance.get("parts") is not None else sample


def _of_part(stopping: Stopping | None, of_all: Stopping | None) -> Stopping | None:
    return None if stopping is None or of_all is None else replace(stopping, added=of_all.added)
