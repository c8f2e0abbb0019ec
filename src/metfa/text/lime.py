"""LIME for texts: the class probability near a text as a linear model of the words that are left in."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from metfa._base.validation import check_number, keep
from metfa.explainers.lime import weighted_ridge
from metfa.text._deletions import DeletionSurrogate, flat
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
    """

    words: tuple[str, ...]
    coefficients: np.ndarray
    intercept: float
    r2: float


@dataclass(frozen=True)
class LIME(DeletionSurrogate):
    r"""Local linear surrogate over words (Ribeiro et al. 2016): which words raise the class probability?

    Copies of the text leave words out. A ridge regression of the class probability on the words left in gives each
    word its coefficient; copies closer to the text weigh more. Copies, weights and regression are those of
    ``marcotcr/lime`` 0.2.0.1 (``lime_text.py`` with ``bow=False``, ``lime_base.py``).

    Parameters
    ----------
    called : callable or Called
        Model, or a `metfa.Called` that says how it is asked (``metfa.Called(model)`` for a model that gives logits): a
        list of texts (or of lists of tokens, if the inputs are such) -> class probabilities (batch, classes), or one
        score a text (batch,). It must also answer texts without any words.
    n_perturbations : int
        Number of copies of each text; the first leaves nothing out. 5000 in the lime package.
    kernel_width : float
        Width w of the weight :math:`\sqrt{\exp(-d^2 / w^2)}`, where d is a hundred times the cosine distance between
        the words left in and all words, as vectors of zeros and ones. 25 in the lime package.
    regularization : float
        Ridge penalty on the coefficients, 1 in the lime package; the intercept is not penalised.
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

    A warning is raised if the probability of a text does not change, or if the R² of a fit is at most
    n_words / (n_perturbations - 1), the average for scores that have nothing to do with the words. `fit` returns the
    coefficients and R² of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa.text import LIME
    >>> def model(texts):  # one score a text
    ...     return np.array([0.25 + 0.5 * ("moving" in text) for text in texts])
    >>> LIME(model, rng=0, scale=False)(["a moving film"])[0].round(2) + 0
    array([[0. , 0.5, 0. ]])
    """

    n_perturbations: int = field(default=5000, kw_only=True)
    kernel_width: float = field(default=25.0, kw_only=True)
    regularization: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(self, kernel_width=check_number(self.kernel_width, "kernel_width", above=0))
        keep(self, regularization=check_number(self.regularization, "regularization", above=0))

    def _fitted(self, words: Words, kept: np.ndarray, response: np.ndarray) -> WordSurrogate:
        if flat(response):
            return WordSurrogate(words.words, np.zeros(len(words)), float(response[0]), 0.0)
        distances = 100 * (1 - np.sqrt(kept.mean(axis=1)))  # 100 times the cosine distance to a vector of ones
        closeness = np.exp(-((distances / self.kernel_width) ** 2) / 2)
        return WordSurrogate(words.words, *weighted_ridge(kept, response, closeness, self.regularization))
