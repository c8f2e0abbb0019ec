"""An answer and its sources as every view shows them: the texts, and what is chosen together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa._base.validation import is_text
from metfa.results.sample import AttributionSample
from metfa.text.reading import harmless_text

__all__ = ["Answered", "Source", "facts_of_answer", "is_answer"]


@dataclass(frozen=True)
class Source:
    """A source, or several that are kept or dropped together.

    Attributes
    ----------
    name : str
        Its own name, that of the group, or its place.
    label : str
        The same, with its first letters where it has no name of its own.
    members : tuple of (str, str)
        Names and texts of what it is made of; of a single source one.
    group : bool
    """

    name: str
    label: str
    members: tuple[tuple[str, str], ...]
    group: bool


@dataclass(frozen=True)
class Answered:
    """What an answer says, sentence by sentence, and what its sources say; all texts are harmless.

    Attributes
    ----------
    answers : tuple of str
        For each input of the sample: the answer, or its sentence.
    pieces : tuple of (str, int or None)
        The text with the inputs in it: each piece with the number of its input, None for what was not scored. Answers
        that are no parts of one text stand one after the other, without anything between them.
    one_text : bool
        Whether the pieces are parts of one text.
    sources : tuple of Source
        For each feature.
    level : str or None
        Which level of a tree it is, and why these sources were asked about (`metfa.text.explain_answer_tree`).
    beside : tuple of (str, tuple of tuple of float)
        Other numbers by their names, for each answer and source (`metfa.text.put_beside`).
    """

    answers: tuple[str, ...]
    pieces: tuple[tuple[str, int | None], ...]
    one_text: bool
    sources: tuple[Source, ...]
    level: str | None = None
    beside: tuple[tuple[str, tuple[tuple[float, ...], ...]], ...] = ()

    @property
    def noun(self) -> str:
        """What an input is called."""
        return "sentence" if self.one_text and len(self.answers) > 1 else "answer"

    @classmethod
    def of(cls, sample: Any) -> Answered | None:
        """From what `explain_answer` wrote beside a sample, or anybody into a file; None where nothing fits."""
        facts = sample.provenance.get("answer") if isinstance(sample, AttributionSample) else None
        if not isinstance(facts, dict) or not sample.of_effects or sample.pair is not None:
            return None
        try:
            return cls._read(sample, facts)
        except (KeyError, TypeError, ValueError, IndexError):
            return None

    @classmethod
    def _read(cls, sample: AttributionSample, facts: dict[str, Any]) -> Answered | None:
        row, parts, of_groups = sample.inputs[0], facts["parts"], facts["groups"]
        names = list(map(_in_line, facts["names"] or map(str, range(len(row)))))
        if not len(parts) == len(of_groups) == sample.n_features or len(sample.feature_shape) != 1:
            return None
        sources = tuple(
            Source(
                names[part[0]] if group is None else _in_line(group),
                _in_line(label),
                tuple((names[place], harmless_text(row[place])) for place in part),
                group is not None,
            )
            for part, group, label in zip(parts, of_groups, sample.feature_names or names, strict=True)
        )
        beside = tuple(
            (_in_line(name), _numbers(values)) for name, values in sorted((facts.get("beside") or {}).items())
        )
        if any(np.shape(values)[1:] != (sample.n_features,) for _, values in beside):
            return None
        places = [0 if target is None else int(target) for target in sample.target]
        beside = tuple((name, tuple(values[place] for place in places)) for name, values in beside)
        given, text, spans = facts["answers"], facts["text"], facts["spans"]
        said = [f"answer {place}" if given is None else str(given[place]) for place in places]
        answers = tuple(harmless_text(one) for one in said)
        level = None if facts.get("level") is None else _in_line(str(facts["level"]))
        if text is None or spans is None or not _in_order(spans, len(text)):
            return cls(answers, tuple((one, k) for k, one in enumerate(answers)), False, sources, level, beside)
        input_of, pieces, end = {place: k for k, place in enumerate(places)}, [], 0
        for place, (start, stop) in enumerate(spans):
            pieces += [(text[end:start], None), (text[start:stop], input_of.get(place))]
            end = stop
        pieces = [(harmless_text(one), k) for one, k in [*pieces, (text[end:], None)] if one]
        return cls(answers, tuple(pieces), True, sources, level, beside)


def _in_line(name: str) -> str:
    return harmless_text(name).replace("\n", " ")


def _numbers(values: Any) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, np.array(values, dtype=np.float64).tolist()))


def _in_order(spans: list[list[int]], length: int) -> bool:
    """Whether ranges of a text follow each other."""
    ends = [end for span in spans for end in span]
    return all(len(span) == 2 for span in spans) and ends == sorted(ends) and ends[0] >= 0 and ends[-1] <= length


def is_answer(sample: Any) -> bool:
    """Whether a result says which sources raise the score of an answer, and has the texts of both."""
    return Answered.of(sample) is not None


def facts_of_answer(scorer: Any, answers: Any, n_answers: int, **of_sources: Any) -> dict[str, Any]:
    """What a result keeps of its answer, and of the "groups", "parts" and "names" of its sources; JSON."""
    spans, own = getattr(scorer, "spans", None), getattr(scorer, "answers", None)
    of_spans = answers is None and spans is not None and own is not None and len(own) == 1
    said = getattr(scorer, "names", None) if answers is None else answers
    fits = isinstance(said, list | tuple) and len(said) == n_answers and all(map(is_text, said))
    return {
        "answers": list(said) if fits and said is not None else None,
        "text": own[0] if of_spans and own is not None else None,
        "spans": [list(span) for span in spans] if of_spans and spans is not None else None,
        **{name: list(value) if isinstance(value, tuple) else value for name, value in of_sources.items()},
    }
