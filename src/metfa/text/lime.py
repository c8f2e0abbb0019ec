"""LIME for texts: the class probability near a text as a linear model of the words that are left in."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import comb
from typing import Any, ClassVar

import numpy as np

from metfa._base.one_line import one_line
from metfa._base.other_words import our_words
from metfa._base.validation import MOST_CALLS, check_number, keep, positive_int
from metfa.calls.held import model_itself
from metfa.explainers.linear_fits import warn_of_penalty, weighted_ridge
from metfa.text._deletions import (
    SINGLE,
    Ask,
    additive_share,
    deletions,
    every_copy,
    explained_rows,
    flat,
    hold_text_model,
    keeps_signs,
    warn_of_luck,
    warn_of_words_together,
    warn_of_zeros,
    word_maps,
)
from metfa.text.words import Words

__all__ = ["LIME", "WordSurrogate"]


@dataclass(frozen=True, eq=False)
class WordSurrogate:
    """The linear model that LIME fitted around one text.

    Parameters
    ----------
    words : tuple of str
    coefficients : ndarray, (n_words,)
        By how much a word raises the class probability. All are exactly 0 if the probability is the same, up to
        rounding, whatever is left out.
    intercept : float
        Probability with all words left out, according to the linear model.
    r2 : float
        Weighted coefficient of determination of the fit, at most 1; 0 where the probability does not vary.
    kept : float
        Share of the coefficients that the ridge penalty leaves; 1 where there is none.
    additive : float or None
        R² of a sum over the words over all copies alike, without weights; None where not every copy was asked.
    """

    words: tuple[str, ...]
    coefficients: np.ndarray
    intercept: float
    r2: float
    kept: float = 1.0
    additive: float | None = None


@our_words
@dataclass(frozen=True)
class LIME:
    r"""Local linear surrogate over words (Ribeiro et al. 2016): which words raise the class probability?

    Copies of the text leave words out. A ridge regression of the class probability on the words left in gives each
    word its coefficient; copies closer to the text weigh more. Copies, weights and regression are those of
    ``marcotcr/lime`` 0.2.0.1 (``lime_text.py`` with ``bow=False``, ``lime_base.py``); short texts differ, see Notes.

    Parameters
    ----------
    called : callable or Called
        Model, or a `metfa.Called` that says how it is asked (``metfa.Called(model)`` for a model that gives logits): a
        list of texts (or of lists of tokens, if the inputs are such) -> class probabilities (batch, classes), or one
        score a text (batch,). It must also answer texts without any words.
    n_perturbations : int
        Largest number of copies of each text; the first leaves nothing out. 5000 in the lime package. A text of n
        words has 2^n distinct copies; if these are no more, each is asked once (n up to 12 with 5000), see Notes.
    kernel_width : float
        Width w of the weight :math:`\sqrt{\exp(-d^2 / w^2)}`, where d is a hundred times the cosine distance between
        the words left in and all words, as vectors of zeros and ones. 25 in the lime package.
    regularization : float
        Ridge penalty on the coefficients, 1 in the lime package; the intercept is not penalised. There is none where
        every copy is asked.
    rng : int, numpy.random.Generator or None
        Seed of direct calls without `rngs`; `metfa.explain` passes its own generators.
    scale : bool
        True scales each map to [0, 1] by its smallest and largest coefficient (equal coefficients become zeros). False
        returns the coefficients with their signs.

    Notes
    -----
    Each place of the text is a feature, also where a word is repeated; the lime package's default (``bow=True``) leaves
    a word out everywhere at once. All words enter the regression; the package's default reports the best ten of another
    fit. Words left out are removed, as in the package with ``mask_string=""``. Equal copies are asked once.

    A copy without any words has a cosine distance of 1, as in scikit-learn.

    Memory grows with `n_perturbations` by a few numbers a word; only one batch of texts exists at a time.

    *Short texts differ from the lime package.* There the copies are random, and only the first holds the whole text.
    With few words nearly all copies are the same few, those near the text have little weight against the ridge penalty
    of 1, and it decides: one word that moves the probability by 0.4 gets 0.154, and beside it a word that counts for
    nothing gets -0.104. So where all copies can be asked, they are, each with the weight that it has on average among
    random copies, and without a penalty. That is the limit of the package's fit for many copies, and not random.

    *Words that count for nothing.* If every copy is asked, a word that changes no answer has the score 0, and the fit
    is one of the other words. In longer texts the penalty draws them towards the others, by about 1e-4 of their scores,
    always to the same side, so that many runs would call it significant. A coefficient that least squares give the
    other sign, or nothing but rounding, is 0 here.

    Warnings name texts whose probability does not change. With random copies they name fits of which the penalty takes
    more than half, and fits whose R² is at most n_words / (n_perturbations - 1), the average for scores that have
    nothing to do with the words. If every copy is asked they name texts where a sum over the words describes the
    answers to all copies, without weights, with an R² below 0.95: words act together there.
    `fit` returns the coefficients and R² of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa.text import LIME
    >>> def model(texts):  # one score a text
    ...     return np.array([0.25 + 0.5 * ("moving" in text) for text in texts])
    >>> LIME(model, rng=0, scale=False)(["a moving film"])[0].round(2) + 0
    array([[0. , 0.5, 0. ]])
    """

    called: Any
    n_perturbations: int = field(default=5000, kw_only=True)
    kernel_width: float = field(default=25.0, kw_only=True)
    regularization: float = field(default=1.0, kw_only=True)
    rng: Any = field(default=None, kw_only=True, repr=False)
    scale: bool = field(default=True, kw_only=True)

    def __repr__(self) -> str:
        return one_line(self)

    model: ClassVar[property] = model_itself
    signed = keeps_signs
    rows_independent = True  # no call of the model holds copies of two rows

    def __post_init__(self) -> None:
        hold_text_model(self)
        keep(self, n_perturbations=positive_int(self.n_perturbations, "n_perturbations", minimum=2, maximum=MOST_CALLS))
        keep(self, kernel_width=check_number(self.kernel_width, "kernel_width", above=0))
        keep(self, regularization=check_number(self.regularization, "regularization", above=0))

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
        return word_maps([fit.coefficients for fit in fits], scale=self.scale), scores

    def fit(self, inputs: Any, target: Any = None, *, rngs: Any = None) -> tuple[list[WordSurrogate], np.ndarray]:
        """The fit to each text, and the model's scores of the texts themselves.

        Parameters
        ----------
        inputs, target, rngs
            As for a call.

        Returns
        -------
        fits : list of WordSurrogate
            One for each text.
        scores : ndarray, (batch, classes)
        """
        fits, scores = explained_rows(self.called, inputs, target, self._fitted, rngs=rngs, rng=self.rng)
        coefficients = [fit.coefficients for fit in fits]
        warn_of_zeros(coefficients, "LIME's coefficients", "the class probability does not depend on the words")
        if self._asks_all(len(fits[0].words)):
            warn_of_words_together(fits, "LIME")
        else:
            warn_of_luck(fits, "LIME", self.n_perturbations)
            warn_of_penalty(fits, self.regularization, self.n_perturbations)
        return fits, scores

    def _asks_all(self, n_words: int) -> bool:
        return 2**n_words <= self.n_perturbations

    def _fitted(self, words: Words, ask: Ask, rng: np.random.Generator) -> WordSurrogate:
        n_words, copies = len(words), self.n_perturbations
        exact = self._asks_all(n_words)
        kept = every_copy(n_words) if exact else deletions(n_words, copies, rng)
        response = ask(kept)
        if flat(response):
            return WordSurrogate(words.words, np.zeros(n_words), float(response[0]), 0.0)
        distances = 100 * (1 - np.sqrt(kept.mean(axis=1)))  # 100 times the cosine distance to a vector of ones
        closeness = np.exp(-((distances / self.kernel_width) ** 2) / 2)
        if not exact:
            return WordSurrogate(words.words, *weighted_ridge(kept, response, closeness, self.regularization))
        reads = _words_that_count(response, n_words)
        fit = weighted_ridge(kept[:, reads], response, closeness * _expected_numbers(kept, copies), 0.0)
        coefficients = np.zeros(n_words)
        coefficients[reads] = fit.coefficients
        return WordSurrogate(words.words, coefficients, *fit[1:], additive=additive_share(kept, response))


def _words_that_count(response: np.ndarray, n_words: int) -> np.ndarray:
    """Whether a word ever changes an answer, (n_words,) of bool, from the answers to every copy (`every_copy`).

    A sum over the words would give others a share of what the rest do together.
    """
    corners = response.reshape((2,) * n_words)  # the last word is the first axis
    steps = [np.abs(np.diff(corners, axis=n_words - 1 - word)).max() for word in range(n_words)]
    return np.array(steps) > SINGLE * np.abs(response).max()


def _expected_numbers(kept: np.ndarray, copies: int) -> np.ndarray:
    """How often each distinct copy is expected among random ones, (n,): those of `deletions`."""
    n_words = kept.shape[1]
    equal = np.array([n_words * comb(n_words, left_out) for left_out in range(n_words + 1)], dtype=np.float64)
    return np.where(kept.all(axis=1), 1.0, (copies - 1) / equal[n_words - kept.sum(axis=1)])
