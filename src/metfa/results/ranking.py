"""Which features have higher scores than which, from the differences of all pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from metfa._base.percents import counted
from metfa._base.provenance import printable
from metfa.results.decisions import Decision, TooFewSamplesError

if TYPE_CHECKING:
    from metfa.results.sample import AttributionSample
    from metfa.results.samples import Samples

__all__ = ["Ranking", "in_words", "ranked"]

NAMED = 3  # features that are named below one; the others are counted
LINES = 5  # features that are said to be above others


@dataclass(frozen=True, eq=False)
class Ranking:
    r"""Which features are decided to score above which.

    A pair is decided by the median of the difference of its two scores in the same sample. This is not the difference
    of the two medians. Pairs that are not decided are not shown to differ; they are not shown to be equal either.

    Attributes
    ----------
    names : tuple of str, (features,)
        The features.
    marks : ndarray of int8, (features, features)
        +1 where the feature of the line scores above that of the column, -1 where below, 0 where not shown to differ.
    order : ndarray of int, (features,)
        Features from the first to the last: by the number of features that each is above, less the number that it is
        below; where that is equal, by their median scores. Neighbours need not be decided.
    decision : Decision
        Of the pairs of one input.
    """

    names: tuple[str, ...]
    marks: np.ndarray
    order: np.ndarray
    decision: Decision

    @property
    def undecided(self) -> int:
        """Number of pairs that are not shown to differ."""
        return int((self.decision.marks == 0).sum())

    @property
    def level(self) -> str:
        """How sure the order is, in words."""
        return f"{self.decision.terms.level}, {counted(self.decision.marks.size, 'pair')}"

    def __str__(self) -> str:
        above = [(j, [k for k in self.order if self.marks[j, k] == 1]) for j in self.order]
        above = [(j, below) for j, below in above if below]
        said = [f"{self._name(j)} above {self._listed(below)}" for j, below in above[:LINES]]
        if len(above) > LINES:
            said.append(f"{len(above) - LINES} more above others")
        pairs = counted(self.decision.marks.size, "pair")
        if self.undecided:
            said.append(f"{self.undecided:,} of {pairs} not shown to differ")
        return f"{'; '.join(said)} ({self.level})"

    def _listed(self, features: list[int]) -> str:
        if len(features) == len(self.names) - 1 > NAMED:
            return f"all {len(features)} others"
        more = f" and {len(features) - NAMED} more" if len(features) > NAMED else ""
        return ", ".join(map(self._name, features[:NAMED])) + more

    def _name(self, feature: int) -> str:
        return printable(self.names[feature])[:60]


def ranked(sample: Samples, decision: Decision, medians: np.ndarray) -> Ranking:
    r"""From the pairs of one input, their decision, and the medians of the features' own scores, (features,)."""
    names = sample.pairs_of or ()
    m = len(names)
    marks = np.zeros((m, m), np.int8)
    upper = np.triu_indices(m, 1)
    marks[upper] = decision.marks[0]
    marks -= marks.T
    order = np.lexsort((-medians, -marks.sum(axis=1, dtype=np.int64)))
    return Ranking(names, marks, order, decision)


def in_words(sample: AttributionSample, row: int) -> str:
    """The ranking of one input in words, or why there is none."""
    try:
        return str(sample.of_input(row).ranking())
    except TooFewSamplesError as error:
        return f"none: {error}"
