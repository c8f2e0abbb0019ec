"""N attributions of each input, and the facts about them that ask for no decision."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from metfa import stats
from metfa._base.percents import counted, percent
from metfa._base.provenance import made_by, printable
from metfa._base.warnings import DegenerateAttributionsWarning, warn
from metfa.results.cautions import predicted
from metfa.results.decisions import samples_for_interval
from metfa.results.joining import grown, read_only, with_record
from metfa.results.moments import mean_of, median_of, of_both_signs, std_of
from metfa.results.population import Population
from metfa.results.regions import Regions
from metfa.results.rules import RULES
from metfa.results.stopping import Stopping, of_a_fixed_number
from metfa.results.terms import Terms
from metfa.results.thresholds import UNMOVED
from metfa.results.units import unit_of

__all__ = ["Samples"]


@dataclass(frozen=True, repr=False, eq=False)
class Samples:
    """The fields of an `AttributionSample`, which describes them, and what is known from them at once."""

    values: np.ndarray
    inputs: Any
    target: tuple[Any, ...]
    vanilla: Any
    scores: np.ndarray | None
    predictions: np.ndarray | None
    sample_ids: tuple[int, ...]
    input_names: tuple[str, ...]
    feature_names: tuple[str, ...] | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    stopping: Stopping | None = None
    default_terms: Terms | None = None
    regions: Regions | None = None
    population: Population | None = None
    pairs_of: tuple[str, ...] | None = None
    pair: tuple[Any, Any] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "provenance", with_record(self.provenance))
        for name in ("values", "inputs", "vanilla", "scores", "predictions"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def n_samples(self) -> int:
        """Number of samples N of each input; of a `population` the number of its rows or models."""
        return len(self.values)

    @property
    def any_time(self) -> bool:
        """Whether tests and intervals must hold at any time: after `metfa.Until`, or `looks` at fewer samples."""
        return self.stopping is not None or self.grown is not None

    def _look(self) -> None:
        for one in (self, *(self.pair or ())):  # a look at differences is one at both parts
            if one.n_samples not in one.looks:
                one.looks.append(one.n_samples)

    def _look_at_intervals(self) -> None:
        self._look()
        if self.unmoved.any():
            warn(f"intervals of width 0 say nothing: {UNMOVED} ({self.unmoved.sum()})", DegenerateAttributionsWarning)

    def _ranks_at(self, confidence_level: float, n_features: int = 1) -> stats.Ranks:
        """Ranks of the intervals of a level, which is that of `n_features` together."""
        ranks_of = stats.sequence_ranks if self.any_time else stats.median_ranks
        return ranks_of(self.n_samples, confidence_level, n_features=n_features)

    @property
    def looks(self) -> list[int]:
        """Numbers of samples at which marks or intervals of these samples were asked for; files keep them."""
        return self.provenance["looks"]

    @property
    def families(self) -> str:
        """Which tests a correction takes together, see `Terms`: as saved; "both" in a file that does not say it."""
        given = self.default_terms and self.default_terms.families
        return given or self.provenance["families"]

    @property
    def usual_rule(self) -> Callable[[np.ndarray], float]:
        """Its natural break where no threshold is given: of the medians, or as saved; of all scores in older files."""
        return RULES[self.provenance["usual_threshold"]]

    @property
    def grown(self) -> str | None:
        """At which smaller numbers of samples somebody looked, in words; None if nobody did."""
        return grown(self.looks, self.n_samples, self.sample_noun)

    def too_few_for(self, confidence_level: float) -> str | None:
        """Why there are no intervals of that level: too few samples, or all the same; None if there are."""
        if self.unmoved.all():
            return UNMOVED
        needed = samples_for_interval(confidence_level, any_time=self.any_time)
        if self.n_samples >= needed:
            return None
        there = f"{counted(self.n_samples, self.sample_noun)} {'is' if self.n_samples == 1 else 'are'} too few"
        return f"{there}, {percent(confidence_level)} needs {needed}"

    @property
    def unmoved(self) -> np.ndarray:
        """Whether neither noise nor draws move an input: its samples are one explanation N times, (batch,)."""
        return np.isin(self.input_names, self.provenance.get("unmoved", []))

    @property
    def noun(self) -> str:
        """What its features are called in sentences: "feature", "region", "pair" or "source"."""
        if self.pairs_of is not None:
            return "pair"
        if self.of_effects:
            return "source"
        own = "feature" if self.population is None else self.population.feature
        return own if self.regions is None else "region"

    @property
    def of_effects(self) -> bool:
        """Whether its samples are draws of effects, as of `metfa.text.SourceEffects`, and no scores (`Terms.sides`)."""
        return self.default_terms is not None and self.default_terms.of_effects

    @property
    def target_noun(self) -> str:
        """What its targets are called in sentences: "class", "answer", or "output" of a regression."""
        if self.of_effects:
            return "answer"
        return "output" if self.provenance.get("of_outputs") else "class"

    @property
    def sample_noun(self) -> str:
        """What its samples are called in sentences: "sample", "row" or "model"."""
        return "sample" if self.population is None else self.population.noun

    @property
    def nouns(self) -> tuple[str, str]:
        """Words for a sample and for a feature."""
        return self.sample_noun, self.noun

    @property
    def part(self) -> str | None:
        """Which of several inputs its features are, in words: "part 'image'"; None where there is but one."""
        name = self.provenance.get("part")
        return None if name is None else printable(f"part {name!r:.80}")

    @property
    def score_name(self) -> str:
        """What a score is, in words."""
        if self.pairs_of is not None:
            return "first score less second score"
        known = self.provenance.get("score")  # as of `metfa.tables.explain`, with the unit
        own = "contribution" if self.of_effects else "attribution score"
        own = own if known is None else printable(known)
        own = own if self.population is None else self.population.short
        if self.regions is None:
            return own
        return f"{self.regions.score_name}{'' if self.population is None else f': {own}'}"

    @property
    def words(self) -> tuple[str, ...] | None:
        """Words of an explained text: another name for `feature_names`."""
        return self.feature_names

    @property
    def feature_shape(self) -> tuple[int, ...]:
        """Shape of one map."""
        return self.values.shape[2:]

    @property
    def n_features(self) -> int:
        """Number of features of one input."""
        return math.prod(self.feature_shape)

    @cached_property
    def signed(self) -> bool:
        """Whether scores above 0 speak for the target, and scores below 0 against it.

        An explainer may say so (an attribute `signed`, which those of texts have). Else it holds if the samples of any
        input reach below 0 by more than 5 % of their highest. One input taken from a batch keeps the batch's answer.
        """
        known = self.provenance.get("signed")
        return of_both_signs(self.values) is not None if known is None else bool(known)

    @cached_property
    def unit(self) -> float | np.ndarray:
        """What counts as a whole score (see `Terms`): the explainer's `unit`, else from the maps of each input.

        Of differences it is the larger of both parts' units.
        """
        given = self.default_terms and self.default_terms.unit
        known = self.provenance.get("unit") if given is None else given
        if known is None and self.pair is not None:
            return np.maximum(*(part.unit for part in self.pair))
        first = self.stopping and self.stopping.looks[0].n_samples  # its looks count with this unit
        return unit_of(self.vanilla, self.values[:first]) if known is None else known

    @cached_property
    def flip_rate(self) -> np.ndarray | None:
        """Share of noisy inputs whose predicted class differs from the clean one, (batch,); None where unknown."""
        if self.population is not None:
            return None if self.population.flips is None else np.array(self.population.flips)
        clean = predicted(self.scores)
        return None if self.predictions is None or clean is None else (self.predictions != clean).mean(axis=0)

    def median(self) -> np.ndarray:
        r"""Sample median of each feature, (batch, \*features)."""
        return median_of(self.values)

    def mean(self) -> np.ndarray:
        r"""Mean of the samples, (batch, \*features): SmoothGrad's map where the explainer is a gradient."""
        return mean_of(self.values)

    def std(self) -> np.ndarray:
        r"""Standard deviation of the samples (n - 1), (batch, \*features); needs two samples."""
        return std_of(self.values)

    def smoothed(self, confidence_level: float | None = None, *, ranks: stats.Ranks | None = None) -> np.ndarray:
        r"""Smoothed map: the mean of the order statistics inside the interval, (batch, \*features).

        At the level 0.95 one wild map on either side does not move it from N = 9 on, two from 12, five from 20; up to 8
        samples it is their plain mean.
        """
        return stats.smoothed_median(self.values, confidence_level, ranks=ranks)

    def mean_interval(self, confidence_level: float = 0.95) -> stats.ConfidenceInterval:
        """Asymptotic interval of the mean (jackknife and central limit theorem), to compare with the exact one.

        The error bar that the paper gives SmoothGrad, for large N; it is refused where `any_time` holds.
        """
        if self.any_time:
            raise of_a_fixed_number("`mean_interval` is", confidence_level)
        return stats.mean_interval(self.values, confidence_level)

    def __repr__(self) -> str:
        sizes = "×".join(map(str, self.feature_shape))
        features = counted(1, self.noun) if sizes == "1" else f"{sizes} {self.noun}s"
        features += "" if self.part is None else f" of {self.part}"
        samples = counted(self.n_samples, self.sample_noun)
        if self.sample_noun != "row":  # those are the inputs
            samples = f"{samples} of {counted(self.values.shape[1], 'input')}"
        if self.population is not None:
            features = f"{features}, of each {self.sample_noun} {self.population.number}"
        return f"AttributionSample({samples}, {features}, {made_by(self.provenance)})"
