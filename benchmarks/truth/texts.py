"""Texts of sixteen words in which known words decide the class: a key word, or a key word and the word before it.

Most words are fillers that mean nothing. KEY has one key word, good or bad, at any place. NOT has one too, and at every
second one "not" stands before it and turns it round; where another word stands there, its being no "not" decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.truth.task import Data, Fitted, Part, Task
from benchmarks.truth.training import trained
from metfa.text.models import BiLSTM, TrainedBiLSTM

__all__ = ["TEXTS", "PlantedReader", "Synonyms", "drawn"]

WORDS, NOT = 16, "not"
FILLERS = tuple(
    f"{start}{end}" for start in ("ba", "de", "ki", "lo", "mu", "na") for end in ("ral", "ten", "vis", "dom")
)
GOOD = ("fine", "bright", "superb", "lovely")
BAD = ("dull", "weak", "dreary", "awful")
VOCABULARY = (NOT, *GOOD, *BAD, *FILLERS)
KINDS = {word: kind for kind in (FILLERS, GOOD, BAD) for word in kind}
SIZES = {"train": 1500, "validation": 300, "test": 300}


def drawn(family: str, seed: int) -> Data:
    """Words (n, 16), class 1 for good, and the places that decide."""
    rng = np.random.default_rng([seed, 23])
    parts = []
    for n in SIZES.values():
        words, used = rng.choice(np.array(VOCABULARY)[-len(FILLERS) :], (n, WORDS)), np.zeros((n, WORDS), bool)
        labels, places, rows = rng.integers(2, size=n), rng.integers(1, WORDS, size=n), np.arange(n)
        turned = rng.integers(2, size=n).astype(bool) & (family == "NOT")
        words[rows, places] = np.where(labels ^ turned, rng.choice(GOOD, n), rng.choice(BAD, n))
        words[turned, places[turned] - 1] = NOT
        used[rows, places] = True
        if family == "NOT":
            used[rows, places - 1] = True
        parts.append(Part(words, labels, used))
    return Data(*parts)


@dataclass(frozen=True)
class Synonyms:
    """Each word but "not" becomes a word of its kind with this probability: another filler, or as good or bad a one."""

    share: float

    def __call__(self, text: Sequence[str], rng: np.random.Generator) -> list[str]:
        changed = rng.random(len(text)) < self.share
        return [str(rng.choice(KINDS[word])) if change and word in KINDS else word
                for word, change in zip(text, changed, strict=True)]  # fmt: skip


@dataclass(frozen=True)
class PlantedReader:
    """The rule itself as a model: a list of texts -> probabilities (n, 2), .9 for the class of the key word."""

    def __call__(self, texts: Sequence[Sequence[str]]) -> np.ndarray:
        good = np.array([0.5 + 0.4 * np.sign(sum(self._sense(text))) for text in texts])
        return np.stack([1 - good, good], axis=1)

    @staticmethod
    def _sense(text: Sequence[str]) -> list[int]:
        before = ("", *text)
        return [((word in GOOD) - (word in BAD)) * (-1 if last == NOT else 1)
                for last, word in zip(before, text, strict=False)]  # fmt: skip


def as_planted(data: Data, seed: int) -> Fitted:  # noqa: ARG001
    return _fitted(PlantedReader(), data)


def lstm_fitted(data: Data, seed: int) -> Fitted:
    numbers = {word: number for number, word in enumerate(VOCABULARY, start=2)}
    train, validation = (
        part._replace(inputs=np.vectorize(numbers.__getitem__)(part.inputs)) for part in (data.train, data.validation)
    )
    sizes = {"embedding_size": 12, "n_units": 12, "n_hidden": 12}
    module: Any = trained(
        lambda: BiLSTM(len(VOCABULARY) + 2, **sizes, dropout=0.0), train, validation, loss=nn.functional.cross_entropy,
        seed=seed, epochs=12, batch=64,
    )  # fmt: skip
    return _fitted(TrainedBiLSTM(module, VOCABULARY, ("bad", "good")), data)


def _fitted(model: Any, data: Data) -> Fitted:
    return Fitted(model, float((_classes(model, data.test) == data.test.labels).mean()))


def _classes(model: Callable[[list[Any]], np.ndarray], part: Part) -> np.ndarray:
    with torch.no_grad():
        return model(part.inputs.tolist()).argmax(axis=1)


def right(found: Fitted, data: Data) -> np.ndarray:
    """Texts of the second class: it is the one that is explained."""
    return np.flatnonzero((_classes(found.model, data.test) == data.test.labels) & (data.test.labels == 1))


def redrawn(found: Fitted, data: Data, texts: np.ndarray) -> np.ndarray:  # noqa: ARG001
    """Places whose effect is at least a tenth of the text's largest, bool (n, 16).

    The effect is the mean absolute change of the probability when the word alone becomes each of the fillers.
    """
    effects = np.zeros(texts.shape)
    for text, effect in zip(texts, effects, strict=True):
        copies = np.broadcast_to(text, (WORDS, len(FILLERS), WORDS)).copy()
        for place in range(WORDS):
            copies[place, :, place] = FILLERS
        with torch.no_grad():
            changed = found.model(copies.reshape(-1, WORDS).tolist())[:, 1].reshape(WORDS, -1)
            effect[:] = np.abs(changed - found.model([text.tolist()])[0, 1]).mean(axis=1)
    return effects >= 0.1 * effects.max(axis=1, keepdims=True)


def planted_places(found: Fitted, data: Data, texts: np.ndarray) -> np.ndarray:  # noqa: ARG001
    """Of the rule itself: the key word, and in NOT the place before it."""
    known = {tuple(text): used for text, used in zip(data.test.inputs.tolist(), data.test.used, strict=True)}
    return np.array([known[tuple(text)] for text in texts.tolist()])


def _task(family: str, network: str, fit: Any, truth: Any, kind: str) -> Task:
    return Task(family, network, partial(drawn, family), fit, 0.9, right, truth, kind, "texts")


TEXTS = [
    _task("KEY", "planted", as_planted, planted_places, "exact"),
    _task("KEY", "BiLSTM", lstm_fitted, redrawn, "estimated"),
    _task("NOT", "BiLSTM", lstm_fitted, redrawn, "estimated"),
]
