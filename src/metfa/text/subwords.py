"""Attributions of tokens or sub-words, summed to words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from metfa._arrays import as_array, first_not_finite, is_floating, to_host
from metfa._base.validation import as_list, positive_int

__all__ = ["words_from_tokens"]


def words_from_tokens(attributions: Any, word_index: Sequence[int | None], n_words: int) -> np.ndarray:
    r"""Attributions of words: the sum over the tokens of each word.

    Some methods split a difference of scores over the word vectors, such as integrated gradients. The words keep this
    sum, except for the part on special tokens and punctuation.

    Parameters
    ----------
    attributions : array, (tokens, \*rest)
        Attributions of one row, as ``attributions[0]`` of Captum's layer methods. Axes after the tokens, such as the
        entries of a word vector, are summed too.
    word_index : sequence of (int or None)
        The word of each token, as the ``tokenize`` of a text model gives it. Tokens with None are left out.
    n_words : int
        Number of words in the row. A word without tokens (after the end of what the model reads) gets 0.

    Returns
    -------
    numpy.ndarray, (n_words,)
        float64.

    Raises
    ------
    TypeError, ValueError
        If the arguments do not fit each other.

    Examples
    --------
    >>> from metfa.text.subwords import words_from_tokens
    >>> words_from_tokens([9.0, 1.0, 2.0, -1.0, 9.0], [None, 0, 0, 1, None], 2)
    array([ 3., -1.])
    """
    n_words = positive_int(n_words, "n_words", maximum=10**6)
    values = as_array(attributions, "attributions")
    if not is_floating(values) or values.ndim < 1:
        raise TypeError(f"`attributions` must be floating point, (tokens, ...), got {values.dtype}, {values.shape}")
    word_index = as_list(word_index, "word_index", "a list with the word of each token")
    host = to_host(values)
    if len(host) != len(word_index):
        raise ValueError(
            f"`attributions` must have one entry for each of the {len(word_index)} tokens of `word_index`, got "
            f"{len(host)}"
        )
    bad = first_not_finite(host)
    if bad is not None:
        raise ValueError(f"`attributions` must be finite, but those of token {bad} are not")
    words = np.zeros(n_words)
    for index, value in zip(word_index, host.reshape(len(host), -1).sum(axis=1, dtype=np.float64), strict=True):
        if index is None:
            continue
        words[positive_int(index, "word_index", 0, n_words - 1)] += value
    return words
