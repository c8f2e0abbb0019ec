"""What is shown about each word of an explained text: its score, interval and decision."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa import stats
from metfa._base.percents import counted, percent
from metfa._base.provenance import method_of
from metfa.results.cautions import about_outside, explained, named_parts, notes_of, nothing_stands_out
from metfa.results.compared import Compared
from metfa.results.decisions import Decision, TooFewSamplesError, kinds_at
from metfa.results.one_map import is_noisy
from metfa.results.population import check_copies
from metfa.results.promises import promise
from metfa.results.sample import AttributionSample
from metfa.results.scores import Scores, why_no_ends
from metfa.results.terms import Terms
from metfa.text.word_for_word import CHANGES
from metfa.text.words import Words, words_of

__all__ = ["NOT_TESTED", "Reading", "about_the_text", "harmless_text", "short_number", "words_explained"]

NOT_TESTED = ""
JOINERS = "\u200c\u200d\u200e\u200f\u061c"  # emoji and scripts need them, and they move nothing else


@dataclass(frozen=True)
class Reading:
    """The words of a text, what is shown about each word, and what is shown about all of them."""

    words: Words
    noun: str  # "word", "region" where the scores are of parts of the text, or "source" of an answer
    scores: Scores
    kinds: list[str]
    looks: list[str]  # how each is shown: the kinds, but differences as scores of a sign
    about: list[str]
    marks: list[tuple[str, str, str]]  # kind, look and meaning
    nothing: list[str]  # why no word stands out, if none does

    @classmethod
    def of(cls, sample: AttributionSample, terms: Terms, level: float) -> Reading:
        """From a sample of one text, decided on these terms, with intervals of a level."""
        words, noun = words_explained(sample), "word" if sample.noun == "feature" else sample.noun
        scores = Scores.of(sample, level)
        try:
            decision = sample.decide(terms)
            kinds, looks, marks, how = _decisions(sample, decision, noun, scores.median)
            nothing = nothing_stands_out(decision.nothing, 0, noun)
        except TooFewSamplesError as error:
            kinds = looks = [NOT_TESTED] * len(words)
            marks, nothing, how = [], [], f"no {noun} can be significant: {error}"
        if marks and scores.ends is not None and not terms.of_effects:
            how += "; brackets have their own level, so they may differ from the marks at the threshold"
        brackets = (
            f"in brackets the {scores.intervals(2)} of its {scores.median}"
            if scores.ends is not None
            else f"no intervals: {why_no_ends(sample, level)}"
        )
        about = [_origin(sample), f"{scores.quantity}: {scores.called}; {brackets}", how]
        if scores.ends is not None and scores.vanilla is not None:
            about.append(about_outside(int(scores.outside.sum()), len(words), noun, scores.quantity))
        compared = Compared.of(sample, 0)
        if compared is not None:
            about.insert(1, f"compared: {compared.about}")
        of_text = about_the_text(sample)
        if of_text:
            about.insert(1, f"the text itself: {of_text}")
        about += [f"{name}: {said}" for name, said in notes_of(sample) if name == CHANGES]
        return cls(words, noun, scores, kinds, looks, about, marks, nothing)

    @property
    def gaps(self) -> tuple[str, ...]:
        """The texts between the words, before the first and after the last: one more than words."""
        return ("", *[" "] * (len(self.words) - 1), "") if self.words.gaps is None else self.words.gaps

    @property
    def strengths(self) -> np.ndarray:
        """Scores divided by the largest absolute value, -1 to 1."""
        values = self.scores.values
        largest = np.abs(values).max()
        return values / largest if largest > 0 else np.zeros(len(values))

    def figures(self, index: int) -> str:
        """Score, interval and decision of one word, and its score without noise."""
        scores, interval = self.scores, ""
        if scores.ends is not None:
            low, high = (short_number(end[index]) for end in scores.ends)
            interval = f" [{low}, {high}]"
        beyond = " (outside)" if scores.outside[index] else ""
        clean = "" if scores.vanilla is None else f"without noise {short_number(scores.vanilla[index])}{beyond}"
        parts = [f"{short_number(scores.values[index])}{interval}", clean, self.kinds[index]]
        return ", ".join(part for part in parts if part)


def words_explained(sample: AttributionSample) -> Words:
    """The words of a sample of one text, which are its features; raises for other samples."""
    if not isinstance(sample, AttributionSample):
        raise TypeError(f"`sample` must be an AttributionSample, got {type(sample).__name__}")
    check_copies(sample.population, "a text shows")
    if sample.pairs_of is not None:
        raise ValueError(
            "`sample` must hold the words of a text, and these are pairs of them: `sample.plot()` draws them"
        )
    if not isinstance(sample.inputs, list) or len(sample.feature_shape) != 1:
        raise ValueError(
            "`sample` must be of a text, as `metfa.text.explain_text` gives it; `sample.plot()` draws other samples"
        )
    if len(sample.inputs) != 1:
        how = "write `sample.of_input(0)`" if sample.of_effects else "explain them one by one"
        raise ValueError(f"`sample` must be of one text, got {len(sample.inputs)}: {how}")
    names, words = sample.words, words_of(sample.inputs[0])
    edited = _edited(sample, words)
    if edited is not None:
        words = edited
    elif names is not None and names != words.words:
        words = Words(names, None)  # cut by another rule
    if len(words) != sample.n_features:
        raise ValueError(
            f"`sample` must have one score for each word, got {sample.n_features} for the {len(words)} words of its "
            "text: name the features by `metfa.Run(feature_names=...)`"
        )
    return words


def _edited(sample: AttributionSample, words: Words) -> Words | None:
    """The words of a comparison of a text with an edited one, "good → bad" where they differ; None if it is none."""
    if sample.pair is None or sample.regions is not None or sample.pair[1].inputs == sample.inputs:
        return None
    other = words_of(sample.pair[1].inputs[0])
    if len(other) != len(words) or any(
        part.words not in (None, own.words) for part, own in zip(sample.pair, (words, other), strict=True)
    ):
        return None
    pairs = zip(words.words, other.words, strict=True)
    return Words(tuple(one if one == two else f"{one} → {two}" for one, two in pairs), words.gaps)


def _decisions(
    sample: AttributionSample, decision: Decision, noun: str, median: str
) -> tuple[list[str], list[str], list[tuple[str, str, str]], str]:
    """Decision about each word, its look, the meanings of the decisions with their counts, and how they were found."""
    terms, threshold, of_mark = decision.terms, decision.threshold, decision.kinds
    if decision.nothing[0] is not None:
        none = [NOT_TESTED] * decision.marks.size
        return none, none, [], f"no {noun} is decided"
    at = "a threshold of its own" if threshold is None else f"{threshold:.3g}"
    marks = decision.marks[0].tolist()
    look_of = of_mark if terms.sides is None else kinds_at(0.0)
    expected = None
    if terms.correction is None and not decision.any_time:
        expected = stats.expected_false_marks(sample.n_samples - terms.split, terms.alpha, len(marks))
    promised = promise(
        terms, len(marks), expected=expected, kinds=of_mark, unproven=False, noun=noun
    )  # the level says so
    how = f"decided at {terms.level}: {promised}"
    meanings = {1: f"{median} significantly above {at}", -1: f"{median} significantly below {at}", 0: "neither"}
    if terms.of_effects:
        meanings |= {1: f"more draws above {at} than chance explains", -1: "more below it than chance explains"}
    return (
        [of_mark[mark] for mark in marks],
        [look_of[mark] for mark in marks],
        [
            (of_mark[mark], look_of[mark], f"{meaning}, {counted(marks.count(mark), noun)}")
            for mark, meaning in meanings.items()
        ],
        how,
    )


def _origin(sample: AttributionSample) -> str:
    made, compared = sample.provenance, Compared.of(sample, 0)
    named = explained(sample, 0)
    target = "" if named is None else f"{named}; "
    by = _explainer(sample)
    noise = f"noise {made['noise']}" if is_noisy(made) else "no noise"
    flips = "" if sample.flip_rate is None else percent(sample.flip_rate[0], 0)
    if compared is not None:
        flips = compared.flipped
    flips = f"; another prediction in {flips} of the samples" if flips else ""
    return f"{target}explained by {by}; N = {sample.n_samples} samples, {noise}{flips}"


def _explainer(sample: AttributionSample) -> str:
    """Its name; its settings stand in the sample's provenance."""
    if sample.pair is None:
        return method_of(sample.provenance.get("explainer"))
    first, second = (_explainer(part) for part in sample.pair)
    return first if first == second else ", ".join(f"{name}: {by}" for name, by in named_parts(sample, first, second))


def _facts(sample: AttributionSample) -> dict[str, Any]:
    facts = sample.provenance.get("text")
    return facts if isinstance(facts, dict) else {}


def about_the_text(sample: AttributionSample) -> str:
    """What scaled scores hide about the explanation of the text itself, where it is known; else an empty text."""
    if sample.pair is not None:
        first, second = (about_the_text(part) for part in sample.pair)
        named = [f"{name}: {text}" for name, text in named_parts(sample, first, second) if text]
        return first if first == second else "; ".join(named)
    facts, parts = _facts(sample), []
    if "unscaled" in facts:
        low, high = facts["unscaled"]
        parts.append(f"scores from {short_number(low)} to {short_number(high)} before they are scaled to [0, 1]")
    if "r2" in facts:
        parts.append(f"R² of the linear fit {facts['r2']:.2f}")
    if "unread" in facts:
        parts.append(f"{counted(facts['unread'], 'word')} not read by the model")
    return "; ".join(parts)


def short_number(value: float) -> str:
    """A number with three digits."""
    return f"{value:.3g}"


def harmless_text(text: str) -> str:
    """`text` without characters that control a terminal or turn the direction of other texts; emoji stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_harmless_character, text.replace("\r\n", "\n")))


def _harmless_character(character: str) -> str:
    if character.isspace():
        return "\n" if character in "\n\r\x85\u2028\u2029" else " "
    category = unicodedata.category(character)
    if category in ("Cc", "Cs"):
        return "\N{REPLACEMENT CHARACTER}"
    return "" if category == "Cf" and character not in JOINERS else character
