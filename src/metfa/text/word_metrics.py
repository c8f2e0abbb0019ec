"""Faithfulness of words: class probability without the best words, with only them, and with them in another text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from metfa._base.validation import is_text, positive_int
from metfa.calls.targets import row_targets
from metfa.metrics.scores import NOT_FINITE, Scores, divisor, faults_of, warn_of_missing
from metfa.sampling.rows import Rows
from metfa.sampling.streams import Purpose, root_entropy, stream
from metfa.text._text_model import TextModel
from metfa.text._word_maps import one_score_a_word
from metfa.text.words import Words, words_of

__all__ = ["WordScores", "fat", "fdt", "st"]

TIES, OTHER_TEXT = 0, 1  # numbers of the random streams of an input
NO_OTHER = "no other text of as many words"


@dataclass(frozen=True, eq=False, repr=False)
class WordScores(Scores):
    """Class probability of every text for each number m = 1..n of its best words.

    Attributes
    ----------
    raw : numpy.ndarray, (batch,)
        Mean of `curves` over m; NaN where `degenerate` gives a reason.
    clean : numpy.ndarray, (batch,)
        Class probability of the text itself.
    degenerate : tuple of (str or None), one a text
        Why a text has no score: its attributions are constant (one word alone is not) or not finite, or no other text
        has enough words to plant its words in.
    curves : numpy.ndarray, (batch, n)
        Class probability at m = 1..n, as in the paper's figures. Constant attributions are taken in a random order; a
        curve that cannot be computed is NaN. If a text has fewer than m words, all of them are taken: its curve is
        level from `n_words` on.
    n_words : numpy.ndarray, (batch,)
        How many words each text has.
    """

    curves: np.ndarray
    n_words: np.ndarray

    @cached_property
    def normalised(self) -> np.ndarray:
        """Curves divided by the clean probability, (batch, n); NaN where it is below 1e-6. `score` is their mean."""
        return self.curves / divisor(self.clean)[:, None]


@dataclass(frozen=True)
class Ranked:
    """Texts with the places of their words: 0 for the word with the highest score, and so on."""

    texts: Sequence[Any]
    words: list[Words]
    places: list[np.ndarray]
    degenerate: tuple[str | None, ...]
    ids: tuple[str, ...]
    root: int

    @classmethod
    def by(cls, attributions: Any, texts: Any, rng: Any) -> Ranked:
        """Rank the words; the order of equal scores is random and depends only on seed and text, not on the map."""
        words = _parsed(texts, "inputs")
        maps = one_score_a_word(attributions, words)
        ids, root = Rows(list(texts)).ids(), root_entropy(rng)
        places = []
        for scores, identity in zip(maps, ids, strict=True):
            at_random = stream(root, identity, TIES, Purpose.TIES).permutation(len(scores))
            place = np.empty(len(scores), dtype=np.int64)
            place[np.lexsort((at_random, -scores.astype(np.float64)))] = np.arange(len(scores))
            places.append(place)
        return cls(texts, words, places, tuple(map(_fault, maps)), ids, root)

    def judged(self, model: TextModel, target: Any, n: int, changed: Callable[[int, np.ndarray], Any]) -> WordScores:
        """Scores of the texts ``changed(row, top)``, where `top` marks the best m words of a row, m = 1..n."""
        if target is not None:
            row_targets(target, None, len(self.words))  # raises for a wrong kind or number before the model is asked
        n_words = np.array([len(words) for words in self.words])
        ends = np.minimum(n_words, n)
        asked = [(row, m) for row, end in enumerate(ends) for m in range(1, end + 1)]

        def copies(start: int, stop: int) -> list[Any]:
            return [changed(row, self.places[row] < m) for row, m in asked[start:stop]]

        def answers(model: TextModel) -> tuple[np.ndarray, list[int | None], np.ndarray]:
            clean_scores = model.scores(texts)
            return clean_scores, model.targets(clean_scores, target), model.scores_of(len(asked), copies)

        texts = list(self.texts)
        with model.asked():
            clean_scores, targets, scores = answers(model)
            alone = model.one_a_call(texts, clean_scores) or model.one_a_call(copies(0, model.texts_a_call), scores)
            if alone is not None:
                clean_scores, targets, scores = answers(alone)
        clean = model.chosen(model.as_probabilities(clean_scores), targets)
        found = model.chosen(model.as_probabilities(scores), [targets[row] for row, _ in asked])
        curves = np.empty((len(ends), n))
        for row, values in enumerate(np.split(found, np.cumsum(ends)[:-1])):
            curves[row, : len(values)] = values
            curves[row, len(values) :] = values[-1]
        warn_of_missing(self.degenerate, clean)
        curves[[fault in (NOT_FINITE, NO_OTHER) for fault in self.degenerate]] = np.nan
        missing = [fault is not None for fault in self.degenerate]
        return WordScores(np.where(missing, np.nan, curves.mean(axis=1)), clean, self.degenerate, curves, n_words)


def _parsed(texts: Any, name: str) -> list[Words]:
    if isinstance(texts, str) or not isinstance(texts, list | tuple):
        raise TypeError(f"`{name}` must be a list of texts, got {type(texts).__name__}: write `[text]` for one text")
    if not texts:
        raise ValueError(f"`{name}` is empty: give at least one text")
    return [words_of(text) for text in texts]


def _fault(scores: np.ndarray) -> str | None:
    if len(scores) == 1 and np.isfinite(scores).all():
        return None  # a single word has only one order
    return faults_of(scores[None])[0]


def fdt(
    model: Any,
    inputs: Sequence[Any],
    attributions: Any,
    target: Any = None,
    *,
    n: int = 10,
    rng: Any = 0,
) -> WordScores:
    r"""Feature deduction test: leave out the best words of each text, and see the class probability fall.

    :math:`\mathrm{FDT}_m(T, M) = f_c(T^{M-}_m)` is the probability of the text without the m words with the highest
    attributions (paper, section on faithfulness metrics; Guo et al. 2018, its source, count how often it falls below
    one half). The paper draws it against m; the single score here is the mean over m = 1..n. Lower is more faithful.

    Parameters
    ----------
    model : callable or Called
        A list of texts -> class probabilities (batch, classes), or one score a text (batch,); for a model that gives
        logits write ``metfa.Called(model)``. It must also answer texts without any words if `n` reaches the number of
        words of an input.
    inputs : list of str or of lists of str
        Texts, or texts as tokens; they may have different numbers of words.
    attributions : array, (batch, words), or sequence of arrays, (words,)
        One score a word. Words are ordered by their signed scores.
    target : int, sequence or array, optional
        Class of each text; None: the predicted one.
    n : int
        Largest number of words taken; the default is the end of the paper's axis. If a text has fewer, all are taken.
    rng : int or numpy.random.Generator
        Seed of the order of equal scores. The order depends on the text, not on the attributions, so it is the same
        for all maps of a text that are compared.

    Returns
    -------
    WordScores
        `curves` (batch, n), their mean `raw` (batch,), and `score`, which is `raw` divided by the clean probability.
        The robust form is ``metfa.metrics.robust(fdt, noise=metfa.text.Synonyms(0.5))``, and the curves of its result
        are ``np.mean([draw.curves for draw in result.draws], axis=0)``.

    Raises
    ------
    TypeError, ValueError
        For bad arguments, before the model is asked, and for scores that are not finite. A `target` that is not one of
        the classes is found only after the model was asked.

    Warns
    -----
    DegenerateAttributionsWarning
        For attributions that are not finite, or constant (only the tie rule would order them). Their score is NaN.
    ModelOutputWarning
        For a clean probability below 1e-6, where the normalised score is NaN.
    RowDependenceWarning
        For a model whose answer to a text depends on the other texts of its call, such as one that reads the padding.
        It is asked about one text at a time.
    ReproducibilityWarning
        For a model that gives other scores each time.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa import text
    >>> def model(texts):  # each "good" adds to a probability of 0.2
    ...     positive = np.array([0.2 + 0.3 * line.count("good") for line in texts])
    ...     return np.stack([1 - positive, positive], axis=1)
    >>> scores = text.fdt(model, ["a good film, a good joke"], [[0, 0.9, 0.1, 0, 0.8, 0.2]], target=1, n=3)
    >>> scores.clean, scores.curves
    (array([0.8]), array([[0.5, 0.2, 0.2]]))
    >>> text.st(model, ["a good film, a good joke"], [[0, 0.9, 0.1, 0, 0.8, 0.2]], target=1, n=3).curves
    array([[0.5, 0.8, 0.8]])
    """
    asked = TextModel.of(model)
    positive_int(n, "n")
    ranked = Ranked.by(attributions, inputs, rng)
    return ranked.judged(asked, target, n, lambda row, top: ranked.words[row].kept((~top).tolist()))


def st(
    model: Any,
    inputs: Sequence[Any],
    attributions: Any,
    target: Any = None,
    *,
    n: int = 10,
    rng: Any = 0,
) -> WordScores:
    r"""Synthetic test: keep only the best words of each text, and see the class probability grow.

    :math:`\mathrm{ST}_m(T, M) = f_c(T^{M+}_m)` is the probability of the text with only the m words with the highest
    attributions. Higher is more faithful. Parameters, result, errors and warnings are those of :func:`fdt`.
    """
    asked = TextModel.of(model)
    positive_int(n, "n")
    ranked = Ranked.by(attributions, inputs, rng)
    return ranked.judged(asked, target, n, lambda row, top: ranked.words[row].kept(top.tolist()))


def fat(
    model: Any,
    inputs: Sequence[Any],
    attributions: Any,
    target: Any = None,
    *,
    others: Sequence[Any],
    n: int = 10,
    rng: Any = 0,
) -> WordScores:
    r"""Feature augmentation test: plant the best words of each text in another text, and see its probability grow.

    It is the probability of a random other text, at least as long. The m words with the highest attributions replace
    the words at the same positions there (paper, section on faithfulness metrics, after Guo et al. 2018). Higher is
    more faithful. Result, errors and warnings are those of :func:`fdt`.

    Parameters
    ----------
    model, inputs, attributions, target, n, rng
        As for :func:`fdt`.
    others : list of str or of lists of str
        One of these texts is drawn for each input; take texts of the data set that are not explained, for example.
        They must be tokens if the inputs are tokens. A text with the same words as the input is never drawn for it. An
        input that is longer than all other texts has no score. The draw depends only on the seed and the input, so it
        is the same for all maps of a text that are compared.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa import text
    >>> model = lambda texts: np.array([0.2 + 0.6 * ("good" in line) for line in texts])
    >>> text.fat(model, ["a good film"], [[0.1, 0.9, 0.2]], others=["we saw it twice"], n=2).curves
    array([[0.8, 0.8]])
    """
    asked = TextModel.of(model)
    positive_int(n, "n")
    ranked = Ranked.by(attributions, inputs, rng)
    found = _others(others, ranked)
    alone = [fault or (None if soil else NO_OTHER) for fault, soil in zip(ranked.degenerate, found, strict=True)]
    soils = [soil or words for soil, words in zip(found, ranked.words, strict=True)]

    def planted(row: int, top: np.ndarray) -> Any:
        own, soil = ranked.words[row].words, soils[row]
        grown = [mine if planted else theirs for mine, theirs, planted in zip(own, soil.words, top, strict=False)]
        return soil.replaced([*grown, *soil.words[len(own) :]])

    return replace(ranked, degenerate=tuple(alone)).judged(asked, target, n, planted)


def _others(others: Any, ranked: Ranked) -> list[Words | None]:
    """Another text, at least as long, for each ranked text; None where there is none."""
    pool = _pool(others)
    kinds = {"texts" if words.gaps is not None else "lists of tokens" for words in [*pool, *ranked.words]}
    if len(kinds) > 1:
        raise TypeError("`others` and `inputs` must be of one kind, got both texts and lists of tokens")
    lengths = np.array([len(words) for words in pool])
    drawn: list[Words | None] = []
    for words, identity in zip(ranked.words, ranked.ids, strict=True):
        rng = stream(ranked.root, identity, OTHER_TEXT, Purpose.TIES)
        long_enough = rng.permutation(np.flatnonzero(lengths >= len(words)))
        drawn.append(next((pool[index] for index in long_enough if pool[index].words != words.words), None))
    return drawn


def _pool(others: Any) -> list[Words]:
    """The other texts as words; they are kept, because a study asks for the same texts for every map and draw."""
    if not isinstance(others, list | tuple) or not all(map(is_text, others)):
        return _parsed(others, "others")  # raises
    return _parsed_once(tuple(text if isinstance(text, str) else tuple(text) for text in others))


@lru_cache(maxsize=2)
def _parsed_once(texts: tuple[Any, ...]) -> list[Words]:
    return _parsed(texts, "others")
