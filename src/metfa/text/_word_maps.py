"""Attributions of texts, one score a word, checked against their words."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa._arrays import as_array, is_array, to_host
from metfa._base.validation import as_list
from metfa.text.words import Words

__all__ = ["one_score_a_word"]


def one_score_a_word(attributions: Any, words: list[Words]) -> list[np.ndarray]:
    """The attributions as one array (words,) for each text; raises where they do not fit the words."""
    if not is_array(attributions) and not isinstance(attributions, list | tuple):
        raise TypeError(
            f"`attributions` must hold one array of scores for each text, got {type(attributions).__name__}"
        )
    rows = as_list(
        to_host(attributions) if is_array(attributions) else attributions, "attributions", "one array for each text"
    )
    if len(rows) != len(words):
        raise ValueError(
            f"`attributions` must hold one array of scores for each of the {len(words)} texts, got {len(rows)}"
        )
    maps = [to_host(as_array(scores, f"attributions[{row}]")) for row, scores in enumerate(rows)]
    for row, (scores, parsed) in enumerate(zip(maps, words, strict=True)):
        if scores.shape != (len(parsed),):
            raise ValueError(
                f"`attributions` must have one score for each word, got shape {scores.shape} for the {len(parsed)} "
                f"words of input {row} (a noise must keep the number of words)"
            )
    return maps
