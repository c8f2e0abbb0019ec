"""Copies of a text with words left out, the model's answers to them, and what explainers by such copies share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from metfa._base.percents import rows_of_one_call
from metfa._base.validation import check_flag, keep
from metfa._base.warnings import DegenerateAttributionsWarning, RowDependenceWarning, warn
from metfa.sampling.randomised import row_generators
from metfa.text._scaling import scaled_words
from metfa.text._text_model import TextModel, words_of_rows
from metfa.text.words import Words

__all__ = [
    "SINGLE",
    "Ask",
    "additive_share",
    "deletions",
    "every_copy",
    "explained_rows",
    "flat",
    "hold_text_model",
    "keeps_signs",
    "warn_of_luck",
    "warn_of_words_together",
    "warn_of_zeros",
    "word_maps",
]

ROUNDING = 1e-3  # the kernels of a model may change a probability by so much from batch to batch
ADDITIVE = 0.95  # a choice: least R² at which scores of single words describe the answers to all copies
SINGLE = 4 * float(np.finfo(np.float32).eps)  # most models answer in single precision and round batch by batch

Ask = Callable[[np.ndarray], np.ndarray]

keeps_signs = property(
    lambda explainer: not explainer.scale, doc="Whether scores keep their signs: above 0 speaks for the class."
)


def hold_text_model(explainer: Any) -> None:
    """Turn the model in the field `called` of a frozen explainer of texts into a `Called`, and check its `scale`."""
    object.__setattr__(explainer, "called", TextModel.of(explainer.called).called)
    keep(explainer, scale=check_flag(explainer.scale, "scale"))


def explained_rows(
    called: Any,
    inputs: Any,
    target: Any,
    explain: Callable[[Words, Ask, np.random.Generator], Any],
    *,
    rngs: Any = None,
    rng: Any = 0,
) -> tuple[list[Any], np.ndarray]:
    """What `explain` finds out about each text, and the model's scores of the texts, (batch, classes).

    Parameters
    ----------
    called : Called
        Model of texts.
    inputs, target, rngs
        As for a call of an explainer.
    explain : callable
        Words of a text, a function that asks about copies, and a generator -> anything. The function takes the words
        that each copy keeps, (n, n_words) of bool, and returns the probability of the target for each, (n,).
    rng : int, numpy.random.Generator or None
        Seed of calls without `rngs`.
    """
    rows = words_of_rows(inputs)
    generators = row_generators(list(inputs), rngs, rng)
    found, model = [], TextModel(called)
    with model.asked():
        scores = model.scores(inputs)
        for words, chosen, generator in zip(rows, model.targets(scores, target), generators, strict=True):
            found.append(explain(words, partial(answers, model, words, target=chosen), generator))
    return found, scores


def word_maps(scores: Sequence[np.ndarray], *, scale: bool) -> np.ndarray:
    """Scores of the words of each text as a batch, (batch, n_words), scaled to [0, 1] if asked."""
    maps = np.stack(scores)
    return scaled_words(maps) if scale else maps


def warn_of_zeros(scores: Sequence[np.ndarray], what: str, why: str) -> None:
    """Warn of texts where all scores are 0."""
    still = sum(not row.any() for row in scores)
    if still:
        warn(f"{what} are all 0 for {rows_of_one_call(still, len(scores))}: {why}", DegenerateAttributionsWarning)


def warn_of_luck(fits: Sequence[Any], name: str, copies: int) -> None:
    """Warn of linear fits that are no better than chance.

    For n numbers that do not depend on its p regressors, a regression has a mean R² of p / (n - 1).
    """
    poor = [fit for fit in fits if fit.coefficients.any() and fit.r2 * (copies - 1) <= len(fit.words)]
    if poor:
        worst = min(poor, key=lambda fit: fit.r2)
        warn(
            f"{name}'s linear model fits the probabilities of {rows_of_one_call(len(poor), len(fits))} no better than "
            f"it would fit unrelated numbers (R² {worst.r2:.2f} with {len(worst.words)} words and {copies} copies): "
            "take more `n_perturbations`",
            DegenerateAttributionsWarning,
        )


def additive_share(kept: np.ndarray, response: np.ndarray) -> float | None:
    """R² of a sum over the words where each distinct copy counts once; None unless all 2^n_words copies were asked.

    The weights of a method hide words that act together, because few copies weigh much. Over all copies the columns of
    `kept` are orthogonal, so each word's coefficient is a difference of two means.
    """
    n_words = kept.shape[1]
    if 2**n_words > len(kept):
        return None
    codes, first = np.unique(kept @ (1 << np.arange(n_words)), return_index=True)
    variance = float(response[first].astype(np.float64).var())
    if len(codes) < 2**n_words or variance == 0:
        return None
    effects = 4 * ((kept[first] - 0.5) * response[first, None].astype(np.float64)).mean(axis=0)
    return float((effects**2).sum() / 4 / variance)


def warn_of_words_together(fits: Sequence[Any], name: str) -> None:
    """Warn of texts where all copies were asked and a sum over the words does not describe the answers."""
    poor = [fit.additive for fit in fits if fit.additive is not None and fit.additive < ADDITIVE]
    if poor:
        warn(
            f"a sum over the words describes the probabilities of {rows_of_one_call(len(poor), len(fits))} badly (R² "
            f"{min(poor):.2f} over all copies alike, and every copy was asked): words act together there, and {name}'s "
            "scores of single words cannot say how; look at the copies themselves",
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


def every_copy(n_words: int) -> np.ndarray:
    """All distinct copies of a text, (2^n_words, n_words) of bool: the words that each keeps; the first keeps all."""
    return (np.arange(2**n_words)[:, None] >> np.arange(n_words)) % 2 == 0


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
    apart = abs(among_others - alone)
    if apart > ROUNDING * max(1.0, abs(alone)):
        warn(
            f"the model's answer to a text depends on the other texts of its call (by {apart:.2g}; a network that "
            "reads the padding does this, and half precision alone rounds by some thousandths), so explanations depend "
            "on `batch_size`: write `metfa.Called(model, softmax=..., batch_size=1)`, or repair the model",
            RowDependenceWarning,
        )


def flat(probabilities: np.ndarray) -> bool:
    """Whether probabilities are the same, up to the rounding of a model in single precision."""
    return bool(np.ptp(probabilities) <= SINGLE * np.abs(probabilities).max())
