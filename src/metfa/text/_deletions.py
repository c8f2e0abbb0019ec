"""Texts with words left out: which ones, drawn at random, and what the model says about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metfa.explainers.heatmaps import scale_to_unit
from metfa.text._text_model import TextModel
from metfa.text._words import Words

__all__ = ["DeletionExplainer", "answers", "deletions", "flat"]

SINGLE = 4 * float(np.finfo(np.float32).eps)  # most models answer in single precision, and round batch by batch


@dataclass(frozen=True)
class DeletionExplainer:
    """Settings of every explainer that leaves words out, documented by each."""

    model: Any
    softmax: bool = field(default=False, kw_only=True)
    batch_size: int | None = field(default=None, kw_only=True)
    scale: bool = field(default=True, kw_only=True)

    rows_independent = True  # the rows are explained one after the other: no call of the model holds copies of two

    def __post_init__(self) -> None:
        self._asked_model()
        if not isinstance(self.scale, bool):
            raise TypeError(f"`scale` must be True or False, got {type(self.scale).__name__}: {self.scale!r}")

    def _asked_model(self) -> TextModel:
        return TextModel(self.model, softmax=self.softmax, batch_size=self.batch_size)

    def _finished(self, coefficients: Sequence[np.ndarray]) -> np.ndarray:
        maps = np.stack(coefficients)
        return scale_to_unit(maps) if self.scale else maps


def deletions(n_words: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Which words n copies of a text keep, (n, n_words) of bool; the first keeps all.

    Each other leaves out a number of words drawn uniformly from 1..n_words, at places drawn without replacement: the
    law of both ``lemna_beta.py`` and the lime package.
    """
    kept = np.ones((n, n_words), dtype=bool)
    sizes = rng.integers(1, n_words + 1, n - 1)
    for row, size in zip(kept[1:], sizes, strict=True):
        row[rng.permutation(n_words)[:size]] = False
    return kept


def answers(model: TextModel, words: Words, kept: np.ndarray, target: int | None) -> np.ndarray:
    """Probability of the target for copies of a text, (n,), by which words they keep, (n, n_words).

    The model is asked once about equal copies, and about the longest first, so that a batch holds texts of like
    lengths: where they are padded to the longest, little is padded. A batch of texts exists at a time.
    """
    _, first, copy_of = np.unique(np.packbits(kept, axis=1), axis=0, return_index=True, return_inverse=True)
    order = np.lexsort((first, -kept[first].sum(axis=1)))
    distinct = kept[first[order]]

    def make(start: int, stop: int) -> list[Any]:
        return [words.kept(mask) for mask in distinct[start:stop].tolist()]

    probabilities = model.as_probabilities(model.scores_of(len(distinct), make))
    chosen = np.empty(len(distinct))
    chosen[order] = model.chosen(probabilities, [target] * len(distinct))
    return chosen[copy_of.reshape(-1)]


def flat(probabilities: np.ndarray) -> bool:
    """Whether probabilities are the same, to the rounding of a model in single precision."""
    return bool(np.ptp(probabilities) <= SINGLE * np.abs(probabilities).max())
