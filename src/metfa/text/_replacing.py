"""Words of a text replaced by chance, by words of the same case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metfa.text._articles import fitted_articles
from metfa.text.words import Words, words_of

__all__ = ["replaced_words"]


def replaced_words(
    row: Any,
    p: float,
    rng: np.random.Generator,
    synonyms_at: Callable[[Words], Callable[[int], Sequence[str]]],
    *,
    articles: bool = False,
) -> Any:
    """Copy of a text, or of a list of tokens, in which each word is replaced with probability `p`.

    `articles`: "a" and "an" fit the word that is put behind them.

    Two numbers are drawn for each word, even if nothing can replace it, so that what becomes of a word does not depend
    on the words before it.
    """
    if not isinstance(rng, np.random.Generator):
        raise TypeError(
            f"`rng` must be a numpy.random.Generator, got {type(rng).__name__}: write `np.random.default_rng(seed)`"
        )
    words = words_of(row)
    synonyms = synonyms_at(words)
    draws = rng.random((len(words), 2))
    changed = list(words.words)
    for place in map(int, np.flatnonzero(draws[:, 0] < p)):
        found = synonyms(place)
        if found:
            changed[place] = _cased(found[int(draws[place, 1] * len(found))], like=changed[place])
    noisy = words.replaced(fitted_articles(words.words, changed) if articles else changed)
    return tuple(noisy) if isinstance(row, tuple) else noisy


def _cased(synonym: str, like: str) -> str:
    if len(like) > 1 and like.isupper():
        return synonym.upper()
    if like[0].isupper() and like[1:] == like[1:].lower():  # also a single letter at the start of a sentence
        return synonym[0].upper() + synonym[1:]
    return synonym
