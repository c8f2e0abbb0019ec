"""A model of texts, asked for class probabilities in batches; and the rows of one call, cut into words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metfa._arrays import first_not_finite, to_host
from metfa._base.warnings import ModelOutputWarning, ReproducibilityWarning, RowDependenceWarning, warn
from metfa.calls.answers import check_logits, checked_scores
from metfa.calls.called import Called
from metfa.calls.layouts import AUTO
from metfa.calls.targets import row_targets
from metfa.text.words import Words, words_of

__all__ = ["TextModel", "words_of_rows"]

BATCH_SIZE = 256
ROUNDING = 1e-3  # of probabilities in half precision


@dataclass(frozen=True)
class TextModel:
    """A function from a list of texts to scores, and how it is asked.

    Its model takes a list of n texts, each a str or a list of tokens. It returns an array of class probabilities (n,
    classes), or of one score a text (n,); logits if `softmax` is true.
    """

    called: Called

    @classmethod
    def of(cls, model: Any) -> TextModel:
        """From a `Called`, or from a plain model that returns probabilities."""
        asked = model.model if isinstance(model, Called) else model
        if isinstance(asked, type) or not callable(asked):
            got = f"the class {asked.__name__}" if isinstance(asked, type) else type(asked).__name__
            method = ": write `model.predict_proba`" if hasattr(asked, "predict_proba") else ""
            raise TypeError(f"`model` must be a function list of texts -> probabilities, got {got}{method}")
        called = model if isinstance(model, Called) else Called(model, softmax=False)
        if called.fast is not None or called.memory_format not in (None, AUTO):
            raise ValueError("`fast` and `memory_format` are for models of arrays: leave them out for a model of texts")
        return cls(called)

    @property
    def texts_a_call(self) -> int:
        """Largest number of texts in a call."""
        return self.called.batch_size or BATCH_SIZE

    def scores(self, texts: Sequence[Any]) -> np.ndarray:
        """The model's scores of texts as it gives them, float64, (n, classes) or (n,), on the host."""
        if isinstance(texts, str) or not isinstance(texts, list | tuple):
            raise TypeError(f"texts must come as a list, got {type(texts).__name__}: write `[text]`")
        if not texts:
            raise ValueError("there are no texts to ask the model about: the list is empty")
        return self.scores_of(len(texts), lambda start, stop: texts[start:stop])

    def probabilities(self, texts: Sequence[Any]) -> np.ndarray:
        """Class probabilities of texts, float64, (n, classes) or (n,), on the host."""
        return self.as_probabilities(self.scores(texts))

    def scores_of(self, n: int, make: Callable[[int, int], Sequence[Any]]) -> np.ndarray:
        """Scores of n texts; ``make(start, stop)`` makes a batch of them, and only one batch exists at a time."""
        size = self.texts_a_call
        found: np.ndarray | None = None
        with self.asked():
            for start in range(0, n, size):
                stop = min(start + size, n)
                scores = self._called(make(start, stop))
                if found is None:
                    found = np.empty((n, *scores.shape[1:]))
                elif found.shape[1:] != scores.shape[1:]:
                    raise ValueError(
                        f"`model` must give equally many scores for every text, got {found.shape[1:]} and then "
                        f"{scores.shape[1:]}"
                    )
                found[start:stop] = scores
        assert found is not None
        return found

    def one_a_call(self, texts: Sequence[Any], scores: np.ndarray) -> TextModel | None:
        """The same model, asked about one text a call, if its scores of a text depend on the other texts of the call.

        None if they do not. `scores` are those of `texts`, together. Two texts of the first call, which also holds
        longer ones, are asked about alone; a warning says what was seen.
        """
        by_length = sorted(range(min(len(texts), self.texts_a_call)), key=lambda index: len(texts[index]))
        if len(by_length) < 2:
            return None
        for index in {by_length[len(by_length) // 4], by_length[len(by_length) // 2]}:
            alone = self.probabilities([texts[index]])
            apart = _apart(self.as_probabilities(scores[index : index + 1]), alone)
            if apart and _apart(self.probabilities([texts[index]]), alone):
                warn(
                    "the model gives other scores each time that it is asked about the same text (random numbers or a "
                    "state of its own), so results change from call to call unless these are seeded",
                    ReproducibilityWarning,
                )
                return None
            if apart:
                warn(
                    f"the model's answer to a text depends on the other texts of its call (by {apart:.2g}; a network "
                    "that reads the padding does this, and half precision alone rounds by some thousandths), so it is "
                    "asked about one text at a time",
                    RowDependenceWarning,
                )
                return TextModel(replace(self.called, batch_size=1))
        return None

    def as_probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Scores as probabilities: their softmax, or the scores themselves (``softmax=False``)."""
        return self.called.as_probabilities(scores)

    def targets(self, scores: np.ndarray, target: Any) -> list[int | None]:
        """One target a text: the one asked for, or the best class of its `scores`; None for models with one score."""
        if scores.ndim == 2 and scores.shape[1] > 1:
            if self.called.softmax:
                check_logits(scores)
            elif scores.min() < -ROUNDING or scores.max() > 1 + ROUNDING:
                warn(
                    f"the model's scores are no probabilities (from {scores.min():.3g} to {scores.max():.3g}): write "
                    "`metfa.Called(model, softmax=True)` if they are logits",
                    ModelOutputWarning,
                )
        targets = row_targets(target, scores, len(scores))
        return [entry[0] if isinstance(entry, tuple) else _class_index(entry) for entry in targets]

    def chosen(self, probabilities: np.ndarray, targets: Sequence[int | None]) -> np.ndarray:
        """The probability of each text's target, (n,)."""
        if probabilities.ndim == 1:
            return probabilities
        return probabilities[np.arange(len(probabilities)), np.array(targets)]

    def asked(self) -> Any:
        """The model in evaluation mode, without a graph."""
        return self.called.asked()

    def _called(self, texts: Sequence[Any]) -> np.ndarray:
        """Scores of one batch; the model gets a list of its own, which it may change."""
        answer = self.called.model([text if isinstance(text, str) else list(text) for text in texts])
        if _of_pipeline(answer):
            raise TypeError(
                "`model` must return an array of probabilities (batch, classes), got labels and scores from a pipeline "
                "of transformers: write `metfa.text.from_transformers(pipe.tokenizer, pipe.model)` in place of it"
            )
        scores = to_host(checked_scores(answer, len(texts), self.called.model))
        if scores.dtype.kind not in "fiub":
            raise TypeError(f"`model` must return probabilities, got an array of {scores.dtype}")
        if scores.ndim > 2 or 0 in scores.shape:
            raise ValueError(
                f"`model` must return probabilities (batch, classes), or one score a text (batch,), got shape "
                f"{scores.shape} for {len(texts)} texts"
            )
        bad = first_not_finite(scores) if scores.dtype.kind == "f" else None
        if bad is not None:
            raise ValueError(f"the model's scores are not finite for the text {texts[bad]!r:.80}")
        return scores


def _apart(a: np.ndarray, b: np.ndarray) -> float:
    """Largest distance of two answers; 0 where the rounding of half precision explains it."""
    apart = float(np.abs(a - b).max())
    return apart if apart > ROUNDING * max(1.0, float(np.abs(b).max())) else 0.0


def _of_pipeline(answer: Any) -> bool:
    """Whether these are the dictionaries of labels and scores that a pipeline of transformers returns."""
    first = answer[0] if isinstance(answer, list) and answer else None
    first = first[0] if isinstance(first, list) and first else first
    return isinstance(first, dict) and "score" in first


def _class_index(entry: Any) -> int | None:
    if entry is not None and not isinstance(entry, int):
        raise TypeError(f"`target` must be a class index for each text, got {type(entry).__name__}: {entry!r:.80}")
    return entry


def words_of_rows(inputs: Any) -> list[Words]:
    """The words of each text of one call; all texts have equally many.

    Raises
    ------
    TypeError, ValueError
        If `inputs` is no list of texts, is empty, holds a text without words, or texts of different lengths.
    """
    if isinstance(inputs, str) or not isinstance(inputs, list | tuple):
        raise TypeError(f"`inputs` must be a list of texts, got {type(inputs).__name__}: write `[text]` for one text")
    if not inputs:
        raise ValueError("`inputs` is empty: there is nothing to explain")
    rows = [words_of(text) for text in inputs]
    for index, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise ValueError(
                f"the texts of one call must have equally many words, got {len(rows[0])} in input 0 and {len(row)} in "
                f"input {index}: explain them one by one, by `metfa.text.explain_text`"
            )
    return rows
