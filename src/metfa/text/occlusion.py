"""Occlusion of words: how far the class probability falls when a word is left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa._base.warnings import DegenerateAttributionsWarning, warn
from metfa.text._deletions import DeletionExplainer, flat
from metfa.text._text_model import TextModel, words_of_rows
from metfa.text.words import Words

__all__ = ["Occlusion"]


@dataclass(frozen=True)
class Occlusion(DeletionExplainer):
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
    Only one batch of copies exists at a time. If no word changes the probability of a text, a warning says so.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa.text import Occlusion
    >>> def model(texts):  # one score a text
    ...     return np.array([0.25 + 0.5 * ("moving" in text) for text in texts])
    >>> Occlusion(model, scale=False)(["a moving film"])[0]
    array([[0. , 0.5, 0. ]])
    """

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
        rows = words_of_rows(inputs)
        model = TextModel(self.called)
        with model.asked():
            scores = model.scores(inputs)
            targets = model.targets(scores, target)
            falls = [_falls(model, words, chosen) for words, chosen in zip(rows, targets, strict=True)]
        still = sum(not row.any() for row in falls)
        if still:
            warn(
                f"occlusion's scores are all 0 for {still} of {len(rows)} texts: the class probability does not change "
                "when a single word is left out",
                DegenerateAttributionsWarning,
            )
        return self._finished(falls), scores


def _falls(model: TextModel, words: Words, target: int | None) -> np.ndarray:
    """Fall of the target's probability for each word, (n_words,); the first copy asked is the text itself."""

    def copy_without(left_out: int) -> Any:
        return words.kept([index != left_out for index in range(len(words))])

    def make(start: int, stop: int) -> list[Any]:
        return [copy_without(index - 1) for index in range(start, stop)]  # the first leaves nothing out

    probabilities = model.as_probabilities(model.scores_of(len(words) + 1, make))
    chosen = model.chosen(probabilities, [target] * len(probabilities))
    return np.zeros(len(words)) if flat(chosen) else chosen[0] - chosen[1:]
