"""What was found about the sources of an answer, sentence by sentence, as every view says it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from metfa.results.cautions import FLIPS_FROM, cautions
from metfa.results.decisions import Decision, TooFewSamplesError
from metfa.results.sample import AttributionSample
from metfa.results.scores import Scores, why_no_ends
from metfa.results.summary import Summary
from metfa.results.terms import Terms
from metfa.results.thresholds import resolved
from metfa.text._lines import cut
from metfa.text.answers.answered import Answered, Source
from metfa.text.reading import harmless_text

__all__ = ["Finding", "Findings"]

MOST_NAMED, LONGEST_NAMED = 3, 32  # sources that are named behind a sentence, and letters of each


@dataclass(frozen=True)
class Finding:
    """What was found about one source of one sentence; `ends` is None where there is no interval, `kind` if too few."""

    source: Source
    score: float
    ends: tuple[float, float] | None
    mark: int
    kind: str
    beside: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Findings:
    """What was found about all sources of all sentences.

    Attributes
    ----------
    answered : Answered
    each : tuple of tuple of Finding
        For each sentence, those that add most first.
    thresholds : tuple of float
        For each sentence the effect that is asked about.
    kinds : dict of int -> str
        What the marks say.
    about : list of str
        What the numbers, brackets and marks are.
    cautions : list of str
        What belongs above every view.
    too_few : str or None
        Why nothing is decided.
    """

    answered: Answered
    each: tuple[tuple[Finding, ...], ...]
    thresholds: tuple[float, ...]
    kinds: dict[int, str]
    about: list[str]
    cautions: list[str]
    too_few: str | None = None

    @classmethod
    def of(cls, sample: AttributionSample, terms: Terms, level: float, flips_from: float = FLIPS_FROM) -> Findings:
        """Of a sample that `is_answer`, decided on these terms, with intervals of a level."""
        answered = Answered.of(sample)
        assert answered is not None
        scores, n, too_few = Scores.of_all(sample, level), len(sample.target), None
        try:
            decision: Decision = sample.decide(terms)
            thresholds, kinds, marks = decision.thresholds, decision.kinds, decision.marks
        except TooFewSamplesError as error:
            thresholds, too_few = resolved(sample.values, terms, sample.unmoved)[0], str(error)
            kinds, marks = {1: "", 0: "", -1: ""}, np.zeros(scores.values.shape, np.int8)
        if thresholds.size not in (1, n):
            raise ValueError("`threshold` must be one number for each answer, got one for each source")
        if too_few is not None:
            about = [f"no source can be marked: {too_few}"]
        else:
            about = [] if len(answered.answers) == 1 else [f"each {answered.noun} is decided by itself"]
            about.append(f"marks: {terms.level}")
        found = []
        for k, of_input in enumerate(scores.values):
            ends = None if scores.ends is None else (scores.ends[0][k], scores.ends[1][k])
            rows = [
                Finding(
                    source,
                    float(of_input[place]),
                    None if ends is None else (float(ends[0][place]), float(ends[1][place])),
                    int(marks[k, place]),
                    kinds[int(marks[k, place])],
                    tuple((name, values[k][place]) for name, values in answered.beside),
                )
                for place, source in enumerate(answered.sources)
            ]
            found.append(tuple(sorted(rows, key=lambda row: -row.score)))
        brackets = f"in brackets the {scores.intervals(2)} of its {scores.median}"
        if scores.ends is None:
            brackets = f"no intervals: {why_no_ends(sample, level)}"
        about.insert(0, f"numbers: {scores.quantity} of a source, {scores.called}; {brackets}")
        if answered.beside:
            names = ", ".join(name for name, _ in answered.beside)
            about.append(f"beside them {names}: without error bars, on scales of their own; no mark looks at them")
        each = np.broadcast_to(np.asarray(thresholds, dtype=np.float64).reshape(-1), (n,))
        warned = [harmless_text(text) for text in cautions(sample, 0, flips_from)]
        return cls(answered, tuple(found), tuple(each.tolist()), kinds, about, warned, too_few)

    @cached_property
    def scale(self) -> tuple[float, float]:
        """Lowest and highest number that is drawn, with 0 and the threshold."""
        numbers = [0.0, *filter(math.isfinite, self.thresholds)]
        for row in (row for rows in self.each for row in rows):
            numbers += [row.score, *(row.ends or ())]
        low, high = min(numbers), max(numbers)
        return low, high if high > low else low + 1.0

    def number(self, value: float) -> str:
        """A number with as many digits as can be seen on the scale."""
        low, high = self.scale
        if not 1e-5 < high - low < 1e7:
            return f"{value:.3g}"
        return f"{round(value, places := min(12, max(0, 2 - math.floor(math.log10(high - low))))) + 0.0:.{places}f}"

    def numbers(self, row: Finding) -> str:
        """The number of a source, with its interval in brackets."""
        ends = "" if row.ends is None else f" [{self.number(row.ends[0])}, {self.number(row.ends[1])}]"
        return self.number(row.score) + ends

    def named(self, k: int) -> str:
        """The sources that are found for a sentence, in a few letters, as they stand behind it; empty without any."""
        found = [cut(row.source.name, LONGEST_NAMED) for row in self.each[k] if row.mark > 0]
        more = f" +{len(found) - MOST_NAMED}" if len(found) > MOST_NAMED else ""
        return ", ".join(found[:MOST_NAMED]) + more

    def lines(self, summary: Summary) -> list[tuple[str, str]]:
        """The lines of a summary, of the first sentence, as those of all sentences together."""
        n, noun = len(self.each), self.answered.noun
        if n == 1:
            return summary.lines()
        counts: dict[str, list[int]] = {self.kinds[mark]: [0] * n for mark in (1, -1, 0)}
        for k, rows in enumerate(self.each):
            for row in rows:
                counts[row.kind][k] += 1
        said = [
            (kind, "; ".join(f"{number} of {noun} {k}" for k, number in enumerate(numbers)))
            for kind, numbers in counts.items()
        ]
        of_one = {"row", "explained", *counts}
        return [*said, *(line for line in summary.lines() if line[0] not in of_one)]
