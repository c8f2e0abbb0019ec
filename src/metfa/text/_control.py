"""A guess of a score from the parts that are kept, fitted to a few random choices: it makes the samples less wild."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

__all__ = ["Control"]

RIDGE = 1e-3  # of a column's sum of squares: solves equal columns, and changes nothing else that is seen
COIN = 4.0  # deviations that a rest seldom exceeds twice
MOST_PARTS = 60  # up to so many are pairs tried: 3,540 of them


@dataclass(frozen=True)
class Control:
    r"""A sum of terms: a number, and numbers that count if *any*, or if *all*, of some parts are kept.

    Facts that are given twice act by "any", facts that are needed together by "all"; single parts are both.

    Attributes
    ----------
    constant : float
    terms : tuple of (parts, "any" or "all", number)
    deviation : float
        Of the scores from the guess.
    strongest : ndarray, (parts,)
        Largest effect of each part in the choices that it was fitted to.
    """

    constant: float
    terms: tuple[tuple[tuple[int, ...], str, float], ...]
    deviation: float
    strongest: np.ndarray

    @classmethod
    def fitted(cls, masks: np.ndarray, scores: np.ndarray) -> Control:
        """From choices (n, parts) of bool and their scores (n,); terms come one by one, the most useful first.

        A term stays if the extended information criterion of Chen and Chen (Biometrika 95, 2008) gets smaller, which
        counts how many terms could have been taken.
        """
        n, n_parts = masks.shape
        chosen: list[tuple[tuple[int, ...], str]] = []
        coefficients = np.array([scores.mean()])
        best = _criterion(scores - scores.mean(), 0, 1)
        while len(chosen) < n // 4:
            candidates = [one for one in _candidates(n_parts, chosen) if one not in chosen]
            if not candidates:
                break
            columns = np.stack([_column(masks, one) for one in candidates], axis=1)
            fixed = _design(masks, chosen)
            term = _most_useful(fixed, columns, scores)
            if term is None:
                break
            trial = [*chosen, candidates[term]]
            design = _design(masks, trial)
            fit = _least_squares(design, scores)
            criterion = _criterion(scores - design @ fit, len(trial), len(candidates))
            if criterion >= best:
                break
            best, chosen, coefficients = criterion, trial, fit
        terms = tuple((parts, how, float(c)) for (parts, how), c in zip(chosen, coefficients[1:], strict=True))
        found = cls(float(coefficients[0]), terms, 0.0, np.zeros(n_parts))
        rest = scores - found.scores(masks)
        deviation = math.sqrt(float(rest @ rest) / max(1, n - 1 - len(terms)))
        return replace(found, deviation=deviation, strongest=found.effects(masks).max(axis=0))

    def scores(self, masks: np.ndarray) -> np.ndarray:
        """The guess for choices (n, parts), (n,)."""
        guess = np.full(len(masks), self.constant)
        for parts, how, number in self.terms:
            guess += number * _column(masks, (parts, how))
        return guess

    def effects(self, masks: np.ndarray) -> np.ndarray:
        """How far the guess rises by each part, the others as they are, (n, parts)."""
        found = np.zeros(masks.shape)
        for parts, how, number in self.terms:
            for part in parts:
                others = masks[:, [other for other in parts if other != part]]
                found[:, part] += number * (~others.any(axis=1) if how == "any" else others.all(axis=1))
        return found

    def draws(self, masks: np.ndarray, scores: np.ndarray, delta: float) -> np.ndarray:
        """One draw of each part's contribution in each choice (n, parts) with its score (n,); see `SourceEffects`.

        Where a part adds more than `delta` in some choices but, by the guess, not in this one, the draw is spread so
        far that whether it exceeds `delta` is a fair coin, whether the part is kept: such a choice says nothing of what
        the part does in others.
        """
        effects, signs = self.effects(masks), 2.0 * masks - 1.0
        silent = (effects <= delta) & (self.strongest > delta)
        spread = np.where(silent, delta - effects + COIN * self.deviation, 0.0)
        return effects + signs * (2 * (scores - self.scores(masks))[:, None] + spread)


def _candidates(n_parts: int, chosen: list[tuple[tuple[int, ...], str]]) -> list[tuple[tuple[int, ...], str]]:
    """Single parts, pairs, and terms that are chosen already with one part more."""
    found: dict[Any, None] = {((part,), "all"): None for part in range(n_parts)}
    if n_parts <= MOST_PARTS:
        found |= {(pair, how): None for pair in combinations(range(n_parts), 2) for how in ("any", "all")}
    for parts, how in chosen:
        for part in set(range(n_parts)).difference(parts):
            longer = tuple(sorted((*parts, part)))
            found |= {(longer, one): None for one in (("any", "all") if len(parts) == 1 else (how,))}
    return list(found)


def _column(masks: np.ndarray, term: tuple[tuple[int, ...], str]) -> np.ndarray:
    parts, how = term
    kept = masks[:, list(parts)]
    return (kept.any(axis=1) if how == "any" else kept.all(axis=1)).astype(np.float64)


def _design(masks: np.ndarray, terms: list[tuple[tuple[int, ...], str]]) -> np.ndarray:
    return np.stack([np.ones(len(masks)), *(_column(masks, term) for term in terms)], axis=1)


def _least_squares(design: np.ndarray, scores: np.ndarray) -> np.ndarray:
    gram = design.T @ design
    gram[np.diag_indices_from(gram)] += RIDGE * np.array([0.0, *np.diag(gram)[1:]])
    return np.linalg.lstsq(gram, design.T @ scores, rcond=None)[0]


def _most_useful(fixed: np.ndarray, columns: np.ndarray, scores: np.ndarray) -> int | None:
    """The column that lowers the sum of squares most beside the fixed ones; None if none lowers it."""
    basis, _ = np.linalg.qr(fixed)
    rest = columns - basis @ (basis.T @ columns)
    residual = scores - basis @ (basis.T @ scores)
    size = (rest**2).sum(axis=0)
    useful = size > 1e-8 * len(scores)
    gain = np.where(useful, (rest.T @ residual) ** 2 / np.where(useful, size, 1.0), 0.0)
    return int(gain.argmax()) if gain.max(initial=0.0) > 0 else None


def _criterion(residual: np.ndarray, n_terms: int, n_candidates: int) -> float:
    n = len(residual)
    mean = max(float(residual @ residual) / n, 1e-300)
    return n * math.log(mean) + n_terms * (math.log(n) + 2 * math.log(max(n_candidates, 1)))
