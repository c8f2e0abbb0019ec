"""LEMNA: the class probability as a mixture of linear models of the words that are left in, neighbours fused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from metfa._base.one_line import one_line
from metfa._base.other_words import our_words
from metfa._base.percents import rows_of_one_call
from metfa._base.validation import MOST_CALLS, check_number, keep, positive_int
from metfa._base.warnings import DegenerateAttributionsWarning, warn
from metfa.calls.held import model_itself
from metfa.explainers.linear_fits import without_pull
from metfa.text._deletions import (
    Ask,
    additive_share,
    deletions,
    explained_rows,
    flat,
    hold_text_model,
    keeps_signs,
    warn_of_luck,
    warn_of_words_together,
    warn_of_zeros,
    word_maps,
)
from metfa.text._fused_lasso import unfused
from metfa.text._mixture import Mixture, fit_mixture
from metfa.text._text_model import words_of_rows
from metfa.text.words import Words

__all__ = ["LEMNA", "WordMixture"]

MOST_WORDS = 2000  # the fit holds a few matrices of words by words, 32 MB each


@dataclass(frozen=True, eq=False)
class WordMixture:
    """The linear models that LEMNA fitted around one text.

    Parameters
    ----------
    words : tuple of str
    coefficients : ndarray, (n_words,)
        By how much a word raises the class probability, in the component that the text itself most probably belongs
        to. All are exactly 0 if the probability is the same, up to rounding, whatever is left out.
    intercept : float
        Probability with all words left out, in that component.
    r2 : float
        Coefficient of determination of that component. The weight of a copy is the probability that it belongs there.
        At most 1, and 0 where the probability does not vary.
    component : int
        Index of that component.
    responsibilities : ndarray, (n_components,)
        Probability that the text itself belongs to each component.
    mixture : Mixture
        All components: ``.shares``, ``.intercepts``, ``.coefficients`` and ``.deviations``. A component that the fit
        did not need has share 0.
    additive : float or None
        R² of a sum over the words over all copies alike, without weights; None where not every copy was asked.
    """

    words: tuple[str, ...]
    coefficients: np.ndarray
    intercept: float
    r2: float
    component: int
    responsibilities: np.ndarray
    mixture: Mixture
    additive: float | None = None


@our_words
@dataclass(frozen=True)
class LEMNA:
    r"""Mixture of fused linear regressions over words (Guo et al., CCS 2018): which words raise the class probability?

    Copies of the text leave words out. EM fits a mixture of K linear regressions of the class probability on the words
    left in. The score of a word is its coefficient in the component that the text itself most probably belongs to. A
    fused lasso in each component draws the coefficients of neighbouring words together.

    Parameters
    ----------
    called : callable or Called
        Model, or a `metfa.Called` that says how it is asked (``metfa.Called(model)`` for a model that gives logits): a
        list of texts (or of lists of tokens, if the inputs are such) -> class probabilities (batch, classes), or one
        score a text (batch,). It must also answer texts without any words.
    n_perturbations : int
        Number of copies of each text; the first leaves nothing out. 500 in the authors' ``lemna_beta.py``; 500 and
        2000 in the MeTFA paper.
    n_components : int
        Largest number of regressions in the mixture. The authors' released code has 1, so no mixture; see Notes.
    fused : float
        Strength of the fusion: component k has the penalty
        :math:`\lambda_k = \text{fused} \cdot \sigma_k \sqrt{n \log p}`, with n copies, p words and the standard
        deviation σ of its residuals; see Notes. 0 means no fusion.
    rng : int, numpy.random.Generator or None
        Seed of direct calls without `rngs`; `metfa.explain` passes its own generators. It decides which words are left
        out; the fit itself is not random.
    scale : bool
        True scales each map to [0, 1] by its smallest and largest coefficient (equal coefficients become zeros). False
        returns the coefficients with their signs.

    Notes
    -----
    *Copies.* Each copy leaves out a number of words drawn uniformly from 1 to all, at places drawn without
    replacement, as in ``Henrygwb/Explaining-DL`` (``lemna/code/lemna_beta.py``). There the words become zeros; here
    they are removed, and the regressors are 1 for a word left in and 0 for a word left out. Equal copies are asked
    once.

    *Fusion.* The paper bounds the steps between neighbours, Σⱼ|bⱼ₊₁ - bⱼ| ≤ S. Its code has the equivalent penalty
    :math:`\lambda = \sqrt{n \log p}` in ½ Σᵢ(yᵢ - xᵢ·b)² + λ Σⱼ|bⱼ₊₁ - bⱼ|. This is the usual choice for residuals of
    deviation 1; the regressors there are bytes 1 to 256. Here they are zeros and ones. With 500 copies, one word that
    matters among 39 that do not would have to move the probability by 0.84 before any two coefficients differ. So the
    penalty here has the factor σ, which the fit estimates (the explanation then follows a change of the model's units),
    and the factor `fused`. On a bidirectional LSTM of film reviews, 0.03 and 0.1 gave equally faithful and equally
    steady scores; 0.3 and 1 were worse in both.

    *Words that count for nothing.* Fusion draws their scores towards their neighbours', by about 1e-5 in a model that
    is linear in the words. That is always to the same side, so many runs would call it significant. A score is 0 here
    if least squares with the same blocks of equal scores give it the other sign, or nothing but rounding. (Where blocks
    are more than half as many as copies, least squares know no signs, and scores stay as they are.)

    *Mixture.* The released code has one component, and so has the default. A re-implementation has 3; the paper's
    number could not be checked. A mixture fits the probabilities near the text better. But nothing ties a component to
    the place where it holds. If a few words decide, the mixture may have one component for high and one for low
    probabilities. Neither component needs these words, so their scores are lost. One component finds them.
    EM starts from one regression, without random numbers, and stops when the log-likelihood changes by less than 0.01.
    No deviation falls below 0.01 of the deviation of the probabilities. Components that no copy needs end with share 0.

    Memory grows with `n_perturbations` by a few numbers a word; only one batch of texts exists at a time. The fit
    takes seconds for 1000 words and most of a minute for 2000; longer texts are refused.

    `fit` returns the mixture and R² of each row. Four kinds of text raise a warning: the probability does not change;
    all words get the same coefficient; R² is at most n_words / (n_perturbations - 1), the average, without fusion, for
    scores that have nothing to do with the words; every copy of a short text was asked, and a sum over the words
    describes the answers to all of them with an R² below 0.95.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa.text import LEMNA
    >>> def model(texts):  # probabilities of two classes
    ...     good = np.array([0.1 + 0.6 * ("moving" in text) + 0.2 * ("well" in text) for text in texts])
    ...     return np.stack([1 - good, good], axis=1)
    >>> explainer = LEMNA(model, rng=0, scale=False)
    >>> scores, probabilities = explainer(["a moving film , well made"], target=1)
    >>> scores.round(1) + 0
    array([[0. , 0.6, 0. , 0.2, 0. ]])
    """

    called: Any
    n_perturbations: int = field(default=500, kw_only=True)
    n_components: int = field(default=1, kw_only=True)
    fused: float = field(default=0.1, kw_only=True)
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
        keep(self, n_components=positive_int(self.n_components, "n_components"))
        if self.n_components > self.n_perturbations:
            raise ValueError(
                f"`n_components` must not be more than `n_perturbations` ({self.n_perturbations}), got "
                f"{self.n_components}"
            )
        keep(self, fused=check_number(self.fused, "fused"))

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

    def fit(self, inputs: Any, target: Any = None, *, rngs: Any = None) -> tuple[list[WordMixture], np.ndarray]:
        """The fit to each text, and the model's scores of the texts themselves.

        Parameters
        ----------
        inputs, target, rngs
            As for a call.

        Returns
        -------
        fits : list of WordMixture
            One for each text.
        scores : ndarray, (batch, classes)
        """
        n_words = len(words_of_rows(inputs)[0])
        if n_words > MOST_WORDS:
            raise ValueError(
                f"LEMNA explains texts of at most {MOST_WORDS} words, got {n_words}: explain parts of it, or take "
                "metfa.text.LIME"
            )
        fits, scores = explained_rows(self.called, inputs, target, self._fitted, rngs=rngs, rng=self.rng)
        coefficients = [fit.coefficients for fit in fits]
        warn_of_zeros(coefficients, "LEMNA's coefficients", "the class probability does not depend on the words")
        warn_of_luck(fits, "LEMNA", self.n_perturbations)
        warn_of_words_together(fits, "LEMNA")
        self._warn_of_equal(fits)
        return fits, scores

    def _fitted(self, words: Words, ask: Ask, rng: np.random.Generator) -> WordMixture:
        kept = deletions(len(words), self.n_perturbations, rng)
        response, features = ask(kept), kept.astype(np.float64)
        if flat(response):
            zeros, ones = np.zeros((1, len(words))), np.ones(1)
            nothing = Mixture(ones, response[:1], zeros, np.zeros(1))
            return WordMixture(words.words, zeros[0], float(response[0]), 0.0, 0, ones, nothing)
        strength = self.fused * np.sqrt(len(kept) * np.log(len(words)))
        mixture = fit_mixture(features, response, self.n_components, strength)
        responsibilities, _ = mixture.responsibilities(features, response)
        component = int(responsibilities[0].argmax())
        weights = responsibilities[:, component]
        residuals = response - mixture.predictions(features)[:, component]
        deviations = response - weights @ response / weights.sum()
        total = weights @ deviations**2
        coefficients = mixture.coefficients[component]
        free = unfused(features, response, weights, coefficients)
        if free is not None:
            coefficients = without_pull(coefficients, free, response)
        return WordMixture(
            words.words,
            coefficients,
            float(mixture.intercepts[component]),
            float(1 - weights @ residuals**2 / total) if total > 0 else 0.0,
            component,
            responsibilities[0],
            mixture,
            additive_share(kept, response),
        )

    def _warn_of_equal(self, fits: list[WordMixture]) -> None:
        equal = [m for m in fits if len(m.words) > 1 and m.coefficients.any() and np.ptp(m.coefficients) == 0]
        if equal:
            warn(
                f"LEMNA's coefficients are the same for all words of {rows_of_one_call(len(equal), len(fits))}: take "
                f"more `n_perturbations`, or a smaller `fused` than {self.fused:g}",
                DegenerateAttributionsWarning,
            )
