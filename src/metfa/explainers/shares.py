"""`Shares`: what the inputs and a model's own constants contribute to a score, under the rules of attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["LOST", "Shares"]

LOST = {"bfloat16": 0.1, "single": 1e-3, "double": 1e-5}  # of the largest share by rounding, at most


@dataclass(frozen=True)
class Shares:
    """Parts of the scores of some rows, (batch,) float64 each. All parts of a row add up to its score.

    Attributes
    ----------
    scores : numpy.ndarray
        The scores of the rows' targets.
    inputs : numpy.ndarray
        The relevance of the inputs: the sum of an unscaled map.
    tokens : numpy.ndarray
        Of tokens that are joined to those of the inputs: class tokens, registers.
    positions : numpy.ndarray
        Of tables that are added: positions, kinds of tokens, relative positions in attention.
    biases : numpy.ndarray
        Of biases of linear layers, convolutions and normalisations, and other constants that are added.
    softmax : numpy.ndarray
        What the softmax of attention keeps: relevance of its weights, less that of its scores. 0 with "cplrp".
    named : dict of str to numpy.ndarray
        Tokens and positions by the names of the model's parameters.
    """

    scores: np.ndarray
    inputs: np.ndarray
    tokens: np.ndarray
    positions: np.ndarray
    biases: np.ndarray
    softmax: np.ndarray
    named: dict[str, np.ndarray]

    @classmethod
    def of(cls, rows: Sequence[tuple[float, float, dict[tuple[str, str], float]]], close: float) -> Shares:
        """From the score, the relevance of the inputs, and the contributions by kind and name of each row.

        Raises where they do not add up: by more than `close` of the largest.
        """
        for row, (score, relevance, parts) in enumerate(rows):
            largest = max(abs(part) for part in (score, relevance, *parts.values()))
            lost = score - relevance - sum(parts.values())
            if abs(lost) > close * largest:
                raise ValueError(
                    f"the parts of input {row} add up to {score - lost:.4g}, and its score is {score:.4g}: the model "
                    "has steps that cannot be seen (an autograd function of its own, a scripted part) or detaches "
                    "values, so its relevance is not what LRP says"
                )
        kinds = ("tokens", "positions", "biases", "softmax")
        sums = {
            kind: np.array([sum(v for (k, _), v in parts.items() if k == kind) for _, _, parts in rows], float)
            for kind in kinds
        }
        names = {name for _, _, parts in rows for kind, name in parts if kind in ("tokens", "positions") and name}
        named = {
            name: np.array([sum(v for (_, n), v in parts.items() if n == name) for _, _, parts in rows], float)
            for name in sorted(names)
        }
        return cls(np.array([row[0] for row in rows]), np.array([row[1] for row in rows]), **sums, named=named)

    @classmethod
    def joined(cls, parts: Sequence[Shares]) -> Shares:
        """The shares of several batches as those of one."""
        names = sorted(set().union(*(part.named for part in parts)))
        kinds = ("scores", "inputs", "tokens", "positions", "biases", "softmax")
        together = {kind: np.concatenate([getattr(part, kind) for part in parts]) for kind in kinds}
        named = {
            name: np.concatenate([part.named.get(name, np.zeros(len(part.scores))) for part in parts]) for name in names
        }
        return cls(**together, named=named)
