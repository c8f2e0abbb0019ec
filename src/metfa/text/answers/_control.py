"""A guess of a score from the parts that are kept, fitted to a few random choices: it makes the samples less wild."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

__all__ = ["Control"]

Term = tuple[tuple[int, ...], str]  # parts, and whether "any" or "all" of them must be kept

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

        Terms are added, and taken away again, as long as the extended information criterion of Chen and Chen
        (Biometrika 95, 2008) gets smaller, which counts how many terms could have been taken.
        """
        n, n_parts = masks.shape
        alone = _selected(masks, scores, [], together=False)
        if n_parts > MOST_PARTS:
            chosen = alone
        else:  # two ways there, as one term that comes early may stand in the way of the right ones
            ways = [_selected(masks, scores, start, together=True) for start in (alone, [])]
            chosen = min(ways, key=lambda terms: _criterion(masks, terms, scores))
        coefficients = _least_squares(_design(masks, chosen), scores)
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


def _selected(masks: np.ndarray, scores: np.ndarray, start: list[Term], *, together: bool) -> list[Term]:
    """Terms that are useful beside those of the start: of single parts, or also of several parts `together`."""
    chosen, best = start, _criterion(masks, start, scores)
    while len(chosen) < len(masks) // 4:
        candidates = [one for one in _candidates(masks.shape[1], chosen, together=together) if one not in chosen]
        if not candidates:
            break
        columns = np.stack([_column(masks, one) for one in candidates], axis=1)
        term = _most_useful(_design(masks, chosen), columns, scores)
        if term is None:
            break
        trial = [*chosen, candidates[term]]
        criterion = _criterion(masks, trial, scores)
        for one in trial[:-1]:  # a term that came early may stand for two that came later
            fewer = [other for other in trial if other != one]
            if (without := _criterion(masks, fewer, scores)) < criterion:
                trial, criterion = fewer, without
        if criterion >= best:
            break
        best, chosen = criterion, trial
    return chosen


def _candidates(n_parts: int, chosen: list[Term], *, together: bool) -> list[Term]:
    """Single parts; or also pairs, and terms that are chosen already with one part more."""
    found: dict[Term, None] = {((part,), "all"): None for part in range(n_parts)}
    if not together:
        return list(found)
    found |= {(pair, how): None for pair in combinations(range(n_parts), 2) for how in ("any", "all")}
    for parts, how in chosen:
        for part in set(range(n_parts)).difference(parts):
            longer = tuple(sorted((*parts, part)))
            found |= {(longer, one): None for one in (("any", "all") if len(parts) == 1 else (how,))}
    return list(found)


def _column(masks: np.ndarray, term: Term) -> np.ndarray:
    parts, how = term
    kept = masks[:, list(parts)].sum(axis=1)
    return np.asarray(kept > 0 if how == "any" else kept == len(parts), dtype=np.float64)


def _design(masks: np.ndarray, terms: list[Term]) -> np.ndarray:
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


def _criterion(masks: np.ndarray, terms: list[Term], scores: np.ndarray) -> float:
    """The extended information criterion: a term of several parts is one of more that could have been taken."""
    (n, n_parts), design = masks.shape, _design(masks, terms)
    rest = scores - design @ _least_squares(design, scores)
    mean = max(float(rest @ rest) / n, 1e-300)
    kinds = {True: n_parts, False: max(1, n_parts * (n_parts - 1))}
    return n * math.log(mean) + sum(math.log(n) + 2 * math.log(kinds[len(parts) == 1]) for parts, _ in terms)
