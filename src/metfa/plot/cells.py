"""What the picture of all rows against all columns shows: the cells, their order, and the words below it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from metfa import stats
from metfa._base.content_ids import is_content_id
from metfa._base.percents import counted
from metfa._base.provenance import printable
from metfa.results.cautions import cautions, class_in_words
from metfa.results.compared import Compared
from metfa.results.decisions import Decision
from metfa.results.promises import expected_number
from metfa.results.sample import AttributionSample
from metfa.results.scores import Scores
from metfa.results.thresholds import flat_rows

__all__ = ["Cells", "lines_below", "name_of_row", "rows_in_words"]

MOST_CLASSES = 8  # that rows are grouped by
STRONG = 99  # percent of the decided cells that have a colour of their own; the others have the strongest


@dataclass(frozen=True)
class Cells:
    """What the cells of all rows and columns show.

    Attributes
    ----------
    marks, apart : ndarray, (rows, columns)
        Marks, and how far the scores lie from the thresholds of their rows; 0 where nothing is decided.
    weight : ndarray, (rows, columns)
        How much a cell counts for the order: its distance, of important ones alone where the threshold is not 0.
    lead : ndarray, (rows,)
        The column with the largest weight; -1 where there is none.
    classes : tuple of str
        The class that was explained in each row.
    warned : ndarray of bool, (rows,)
        Rows with a caution.
    called : str
        What a score is.
    """

    marks: np.ndarray
    apart: np.ndarray
    weight: np.ndarray
    lead: np.ndarray
    classes: tuple[str, ...]
    warned: np.ndarray
    called: str

    @classmethod
    def of(cls, sample: AttributionSample, decision: Decision, confidence_level: float, flips_from: float) -> Cells:
        """Of all rows of a result."""
        scores, marks = Scores.of_all(sample, confidence_level), decision.marks
        apart = np.where(marks == 0, 0.0, scores.values - np.nan_to_num(decision.thresholds))
        weight = np.abs(apart) if decision.threshold == 0 else np.where(marks > 0, apart, 0.0)
        lead = np.where(weight.any(axis=1), weight.argmax(axis=1), -1)
        classes = tuple(class_in_words(sample, target) or "" for target in sample.target)
        warned = np.array([bool(cautions(sample, row, flips_from)) for row in range(len(marks))])
        return cls(marks, apart, weight, lead, classes, warned, scores.called)

    @property
    def top(self) -> float:
        """The distance from the threshold that has the strongest colour; never 0."""
        strength = np.abs(self.apart[self.marks != 0])
        return (
            (float(np.percentile(strength, STRONG, method="lower")) or float(strength.max()) or 1.0)
            if strength.size
            else 1.0
        )

    @property
    def columns(self) -> np.ndarray:
        """All columns, those with the largest weights first."""
        return np.argsort(-self.weight.sum(axis=0), kind="stable")

    @property
    def grouped(self) -> np.ndarray:
        """All rows: by class, by leading column, and by its score from the highest to the lowest."""
        place = np.append(np.argsort(self.columns), len(self.columns))  # the last is of rows without a lead
        kinds = sorted(set(self.classes))
        by_class = [kinds.index(name) if len(kinds) <= MOST_CLASSES else 0 for name in self.classes]
        scores = self.apart[np.arange(len(self.lead)), self.lead]
        return np.lexsort(np.array([-scores, place[self.lead], by_class], np.float64))


def name_of_row(sample: AttributionSample, row: int) -> str:
    """A row's name, where it was given one, else its place."""
    name = sample.input_names[row]
    return f"row {row}" if is_content_id(name) else printable(name)


def rows_in_words(rows: np.ndarray, cells: Cells) -> str:
    """How many rows there are, and the classes explained."""
    counts = Counter(cells.classes[row] for row in rows)
    named = [f"{name} for {counted(count, 'row')}" for name, count in counts.most_common(3) if name]
    if not named:
        return counted(len(rows), "row")
    more = f" and {len(counts) - 3} more" if len(counts) > 3 else ""
    shown = named[0].partition(" for ")[0] if len(counts) == 1 else f"{', '.join(named)}{more}"
    return f"{counted(len(rows), 'row')}; explained: {shown}"


def lines_below(sample: AttributionSample, decision: Decision, cells: Cells, rest: np.ndarray) -> list[str]:
    """What was asked, what colours mean, and what is not shown; `rest` are the columns that are not."""
    return [_question(sample, decision), _about(sample, cells, decision), *_notes(sample, decision, rest)]


def _question(sample: AttributionSample, decision: Decision) -> str:
    """What was asked of each feature in each row, and how many marks to expect by chance."""
    terms, noun, (n_rows, size) = decision.terms, sample.noun, decision.marks.shape
    if terms.of_differences and terms.sides is not None and decision.threshold == 0:
        asked = f"does a {noun} of a row get {', or '.join(terms.sides)}, by its median difference?"
    else:
        at = "the threshold of its row" if decision.threshold is None else f"{decision.threshold:.3g}"
        median = "median difference" if terms.of_differences else "median"
        asked = f"is the {median} of a {noun} of a row above or below {at}?"
    asked = f"{asked} ({terms.level}; {counted(size, noun)} in each of {counted(n_rows, 'row')})"
    if terms.correction is not None:
        return f"{asked}; the correction is for each row by itself"
    if decision.any_time:
        return asked
    expected = stats.expected_false_marks(decision.test.n, terms.alpha, size * n_rows)
    falsely = f"up to {expected_number(expected)} cells are marked falsely on average"
    return f"{asked}; {falsely}, if every median lay at the threshold"


def _about(sample: AttributionSample, cells: Cells, decision: Decision) -> str:
    """What colours mean."""
    compared = Compared.of(sample, 0)
    score = sample.score_name if compared is None else f"{compared.score}, {compared.subtraction}"
    from_where = "0" if decision.threshold == 0 else "the threshold of its row"
    strong = f"the stronger the further from {from_where}, strongest from {cells.top:.3g} on"
    return f"colours: {score}, {cells.called}; {strong}"


def _notes(sample: AttributionSample, decision: Decision, rest: np.ndarray) -> list[str]:
    notes = [f"{said} in {counted(n, 'row')}" for said, n in flat_rows(decision.nothing, sample.noun)]
    if rest.size:
        counts = [(decision.kinds[mark], int((decision.marks[:, rest] == mark).sum())) for mark in (1, 0, -1)]
        decided = ", ".join(f"{count:,} cells {name}" for name, count in counts if count)
        notes.append(f"not shown: {counted(rest.size, sample.noun)} with less; {decided}")
    return notes
