"""Copies of a text with random words left out, the model's answers to them, and the explainers that use both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metfa._base.validation import MOST_CALLS, check_flag, keep, positive_int
from metfa._base.warnings import DegenerateAttributionsWarning, RowDependenceWarning, warn
from metfa.calls.called import model_itself
from metfa.sampling.randomised import row_generators
from metfa.text._scaling import scaled_words
from metfa.text._text_model import TextModel, words_of_rows
from metfa.text.words import Words

__all__ = ["DeletionExplainer", "DeletionSurrogate", "answers", "deletions", "flat"]

ROUNDING = 1e-2  # the kernels of half precision may change a probability by so much from batch to batch
SINGLE = 4 * float(np.finfo(np.float32).eps)  # most models answer in single precision and round batch by batch


@dataclass(frozen=True)
class DeletionExplainer:
    """Settings of every explainer that leaves words out; each explainer documents them."""

    called: Any
    scale: bool = field(default=True, kw_only=True)

    model = model_itself
    rows_independent = True  # one row is explained after the other: no call of the model holds copies of two rows

    def __post_init__(self) -> None:
        object.__setattr__(self, "called", TextModel.of(self.called).called)
        keep(self, scale=check_flag(self.scale, "scale"))

    @property
    def signed(self) -> bool:
        """Whether scores keep their signs: a score above 0 speaks for the class."""
        return not self.scale

    def _finished(self, coefficients: Sequence[np.ndarray]) -> np.ndarray:
        maps = np.stack(coefficients)
        return scaled_words(maps) if self.scale else maps


@dataclass(frozen=True)
class DeletionSurrogate(DeletionExplainer):
    """Explainer whose scores are the coefficients of a model that a subclass fits to random copies."""

    n_perturbations: int = field(default=500, kw_only=True)
    rng: Any = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(self, n_perturbations=positive_int(self.n_perturbations, "n_perturbations", minimum=2, maximum=MOST_CALLS))

    def __call__(self, inputs: Any, target: Any = None, *, rngs: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Attributions and scores of a batch.

        Parameters
        ----------
        inputs : list of str, or of lists of str
            Texts with equally many words.
        target : int, sequence or array, optional
            Class of each text; None: the predicted one.
        rngs : list of numpy.random.Generator, optional
            One generator for each text.

        Returns
        -------
        attributions : ndarray, (batch, n_words)
        scores : ndarray, (batch, classes)
            The model's scores of the texts themselves.
        """
        fits, scores = self.fit(inputs, target, rngs=rngs)
        return self._finished([fit.coefficients for fit in fits]), scores

    def fit(self, inputs: Any, target: Any = None, *, rngs: Any = None) -> tuple[list[Any], np.ndarray]:
        """The fit to each text, and the model's scores of the texts themselves.

        Parameters
        ----------
        inputs, target, rngs
            As for a call.

        Returns
        -------
        fits : list
            One for each text: a `WordMixture` from `metfa.text.LEMNA`, a `WordSurrogate` from `metfa.text.LIME`.
        scores : ndarray, (batch, classes)
        """
        rows = words_of_rows(inputs)
        self._check_length(len(rows[0]))
        generators = row_generators(list(inputs), rngs, self.rng)
        fits, model = [], TextModel(self.called)
        with model.asked():
            scores = model.scores(inputs)
            for words, chosen, rng in zip(rows, model.targets(scores, target), generators, strict=True):
                kept = deletions(len(words), self.n_perturbations, rng)
                fits.append(self._fitted(words, kept, answers(model, words, kept, chosen)))
        self._warn_of(fits)
        return fits, scores

    def _check_length(self, n_words: int) -> None:
        """Raise if a text has more words than the explainer takes."""

    def _fitted(self, words: Words, kept: np.ndarray, response: np.ndarray) -> Any:
        """The fit to the copies that keep ``kept`` (n, n_words), with its `coefficients`."""
        raise NotImplementedError

    def _warn_of(self, fits: list[Any]) -> None:
        """Warn of fits without meaning: the probabilities do not change, or the fit is no better than chance.

        For n numbers that do not depend on its p regressors, a regression has a mean R² of p / (n - 1).
        """
        n, copies, name = len(fits), self.n_perturbations, type(self).__name__
        still = [fit for fit in fits if not fit.coefficients.any()]
        if still:
            warn(
                f"{name}'s coefficients are all 0 for {len(still)} of {n} texts: the class probability does not depend "
                "on the words",
                DegenerateAttributionsWarning,
            )
        poor = [fit for fit in fits if fit.coefficients.any() and fit.r2 * (copies - 1) <= len(fit.words)]
        if poor:
            worst = min(poor, key=lambda fit: fit.r2)
            warn(
                f"{name}'s linear model fits the probabilities of {len(poor)} of {n} texts no better than it would "
                f"fit unrelated numbers (R² {worst.r2:.2f} with {len(worst.words)} words and {copies} copies): take "
                "more `n_perturbations`",
                DegenerateAttributionsWarning,
            )


def deletions(n_words: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """The words that n copies of a text keep, (n, n_words) of bool; the first copy keeps all.

    Each other copy leaves out a number of words drawn uniformly from 1..n_words, at places drawn without replacement.
    Both ``lemna_beta.py`` and the lime package use this law.
    """
    kept = np.ones((n, n_words), dtype=bool)
    sizes = rng.integers(1, n_words + 1, n - 1)
    for row, size in zip(kept[1:], sizes, strict=True):
        row[rng.permutation(n_words)[:size]] = False
    return kept


def answers(model: TextModel, words: Words, kept: np.ndarray, target: int | None) -> np.ndarray:
    """Probability of the target, (n,), for copies of a text that keep the words in `kept`, (n, n_words).

    Equal copies are asked once. The longest go first, so that a batch holds texts of similar length and a model that
    pads to the longest pads little. Only one batch of texts exists at a time. One copy with about half the words is
    asked a second time, alone, to warn of models that mix the texts of a call.
    """
    _, first, copy_of = np.unique(np.packbits(kept, axis=1), axis=0, return_index=True, return_inverse=True)
    order = np.lexsort((first, -kept[first].sum(axis=1)))
    distinct = kept[first[order]]

    def make(start: int, stop: int) -> list[Any]:
        return [words.kept(mask) for mask in distinct[start:stop].tolist()]

    probabilities = model.as_probabilities(model.scores_of(len(distinct), make))
    by_length = model.chosen(probabilities, [target] * len(distinct))
    n_kept = distinct[: model.texts_a_call].sum(axis=1)
    middle = int(np.abs(n_kept - n_kept[0] / 2).argmin())  # in the first call, which also holds longer copies
    if middle > 0:
        alone = model.chosen(model.probabilities(make(middle, middle + 1)), [target])[0]
        _warn_of_mixed_texts(by_length[middle], alone)
    chosen = np.empty(len(distinct))
    chosen[order] = by_length
    return chosen[copy_of.reshape(-1)]


def _warn_of_mixed_texts(among_others: float, alone: float) -> None:
    """Warn of a model whose answer to a text depends on the other texts of the call, such as by unmasked padding."""
    if abs(among_others - alone) > ROUNDING * max(1.0, abs(alone)):
        warn(
            "the model's answer to a text depends on the other texts of its call (a network that reads the padding "
            "does this), so explanations depend on `batch_size`: write `metfa.Called(model, softmax=..., "
            "batch_size=1)`, or repair the model",
            RowDependenceWarning,
        )


def flat(probabilities: np.ndarray) -> bool:
    """Whether probabilities are the same, up to the rounding of a model in single precision."""
    return bool(np.ptp(probabilities) <= SINGLE * np.abs(probabilities).max())
