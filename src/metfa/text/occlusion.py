"""Occlusion of words: how far the class probability falls when a word is left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from metfa._base.one_line import one_line
from metfa._base.other_words import our_words
from metfa.calls.held import model_itself
from metfa.text._deletions import (
    SINGLE,
    Ask,
    explained_rows,
    hold_text_model,
    keeps_signs,
    warn_of_zeros,
    word_maps,
)
from metfa.text.words import Words

__all__ = ["Occlusion"]


@our_words
@dataclass(frozen=True)
class Occlusion:
    """Each word's score is the fall of the class probability when only that word is left out.

    It is the ``occlusion`` of images (Zeiler and Fergus 2014) with words in place of patches; Li, Monroe and Jurafsky
    (2016) call it erasure. It is not random, and needs one copy of the text for each word.

    Parameters
    ----------
    called : callable or Called
        Model, or a `metfa.Called` that says how it is asked (``metfa.Called(model)`` for a model that gives logits): a
        list of texts (or of lists of tokens, if the inputs are such) -> class probabilities (batch, classes), or one
        score a text (batch,). For a text of one word, it must also answer a text without words.
    scale : bool
        True scales each map to [0, 1] by its smallest and largest score (equal scores become zeros). False returns the
        falls of the probability; they are negative for words that lower it.

    Notes
    -----
    Only one batch of copies exists at a time. If no word changes the probability of a text, a warning says so. A fall
    within the rounding of single precision counts as 0, so that an idle word has no sign. One copy is asked a second
    time, alone, to warn of models that mix the texts of a call.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa.text import Occlusion
    >>> def model(texts):  # one score a text
    ...     return np.array([0.25 + 0.5 * ("moving" in text) for text in texts])
    >>> Occlusion(model, scale=False)(["a moving film"])[0]
    array([[0. , 0.5, 0. ]])
    """

    called: Any
    scale: bool = field(default=True, kw_only=True)

    def __repr__(self) -> str:
        return one_line(self)

    model: ClassVar[property] = model_itself
    signed = keeps_signs
    rows_independent = True  # no call of the model holds copies of two rows

    def __post_init__(self) -> None:
        hold_text_model(self)

    def __call__(self, inputs: Any, target: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Attributions and scores of a batch.

        Parameters
        ----------
        inputs : list of str, or of lists of str
            Texts with equally many words.
        target : int, sequence or array, optional
            Class of each text; None: the predicted one.

        Returns
        -------
        attributions : ndarray, (batch, n_words)
        scores : ndarray, (batch, classes)
            The model's scores of the texts themselves.
        """
        falls, scores = explained_rows(self.called, inputs, target, _falls)
        why = "the class probability does not change when a single word is left out"
        warn_of_zeros(falls, "occlusion's scores", why)
        return word_maps(falls, scale=self.scale), scores


def _falls(words: Words, ask: Ask, _: Any) -> np.ndarray:
    """Fall of the target's probability for each word, (n_words,); exactly 0 where it is no more than rounding."""
    whole = np.ones((1, len(words)), dtype=bool)
    chosen = ask(np.concatenate([whole, ~np.eye(len(words), dtype=bool)]))
    falls = chosen[0] - chosen[1:]
    return np.where(np.abs(falls) <= SINGLE * np.abs(chosen).max(), 0.0, falls)
