"""Decisions about samples: their terms, the test, which features are marked, and what has changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metfa import stats
from metfa._base.validation import check_function, check_kind, positive_int
from metfa._base.warnings import said_of
from metfa.results.corrections import ANY_TIME, check_correction
from metfa.results.decisions import Decision, decide, tested
from metfa.results.derived import Derived
from metfa.results.equivalence import changed, unchanged
from metfa.results.ranking import Ranking, ranked
from metfa.results.terms import Terms, check_fits, filled
from metfa.results.thresholds import ruled
from metfa.stats.validation import as_alternative

__all__ = ["Decided"]


@dataclass(frozen=True, repr=False, eq=False)
class Decided(Derived):
    """The questions to an `AttributionSample` that are answered by tests."""

    def terms(
        self,
        threshold: Any = None,
        *,
        alpha: float | None = None,
        correction: str | None = None,
        split: int | None = None,
    ) -> Terms:
        r"""Terms of its decisions: what is given, and for each None what holds for this result.

        Every method, figure, report, text, metric and command takes its terms from here. `Terms` says what holds where
        nothing is given.

        Parameters
        ----------
        threshold, alpha, correction, split
            See `Terms`; TypeError or ValueError if one is not allowed, or does not fit these samples.
        """
        usual, stopping = self.default_terms or Terms(0.0 if self.signed else self.usual_rule), self.stopping
        own = usual
        if stopping is not None and stopping.tested and stopping.over in (None, self.regions):
            own = stopping.terms
        elif stopping is not None and stopping.over is not None and "undecided" in stopping.asked:
            own = replace(usual, alpha=stopping.alpha, correction=stopping.correction)  # its threshold is the regions'
        if self.any_time and own.correction not in ANY_TIME:
            own = replace(own, correction="bonferroni")  # a default that bounds the same errors at any time
        own = replace(own, unit=self.unit, sides=usual.sides, effects_at=usual.effects_at, families=self.families)
        found = filled(own, usual.threshold, threshold, alpha=alpha, correction=correction, split=split)
        check_correction(found.correction, any_time=self.any_time)
        check_fits(found, self.values.shape)
        return found

    def decide(self, terms: Terms) -> Decision:
        """Marks, test and thresholds on these terms; raises `TooFewSamplesError` if nothing could be significant."""
        check_kind(terms, "terms", Terms, "`sample.terms(...)`")
        terms = terms if terms.families else replace(terms, families=self.families)
        self._look()
        with said_of(self.part):
            return decide(self.values, terms, unmoved=self.unmoved, any_time=self.any_time, nouns=self.nouns)

    def test(
        self, threshold: Any = None, *, alternative: str = "two-sided", split: int | None = None
    ) -> stats.SignTestResult:
        r"""Test each feature's median against a threshold.

        Parameters
        ----------
        threshold, split
            As for `terms`.
        alternative : {"two-sided", "greater", "less"}
            See `stats.sign_test`.

        Returns
        -------
        stats.SignTestResult
            Counts and p-values (batch, \*features). ``.test(0)`` is for signed attributions: its `sign` says on which
            side of zero the median is; scores within 1e-4 of `Terms.unit` on neither. Or `stats.SequentialTestResult`.
        """
        alternative = as_alternative(alternative)
        self._look()
        terms = self.terms(threshold, split=split)
        with said_of(self.part):
            return tested(self.values, terms, alternative, unmoved=self.unmoved, any_time=self.any_time)[0]

    def threshold(self, rule: Callable[[np.ndarray], Any] | None = None, *, split: int | None = None) -> np.ndarray:
        r"""Threshold of each input from its own samples, (batch,) float64.

        Parameters
        ----------
        rule : callable, optional
            Values (n, \*features) -> float; by default the usual natural break, nan where no feature stands out.
        split : int, optional
            Use only the first `split` samples; by default (and for 0) all of them.
        """
        rule = self.usual_rule if rule is None else rule
        check_function(rule, "rule", "rule(values)", None)
        first = 0 if split is None else positive_int(split, "split", 0, self.n_samples)
        with said_of(self.part):
            return ruled(rule, self.values, self.terms().unit, first or self.n_samples)[0]

    def significance_map(
        self,
        threshold: Any = None,
        *,
        alpha: float | None = None,
        correction: str | None = None,
        split: int | None = None,
    ) -> np.ndarray:
        r"""Which features lie above the threshold (+1), below (-1) or are undecided (0), int8 (batch, \*features).

        Above a natural break is important, above 0 is positive.

        Parameters
        ----------
        threshold, alpha, correction, split
            As for `terms`. With or without a split, the mark of a feature is on the wrong side of the threshold that is
            used with probability at most alpha for each side (but see "closed-e-bh"): if the median V is at most h,
            then ``#{e > h} <= #{e > V}``, however h was found. (A break of few samples may lie far from the law's own.)

        Raises
        ------
        TooFewSamplesError
            If nothing could become significant with so few samples, a ValueError that names the smallest N.
        """
        return self.decide(self.terms(threshold, alpha=alpha, correction=correction, split=split)).marks

    def changed(self, delta: float = 0.0, *, alpha: float | None = None, correction: str | None = None) -> np.ndarray:
        r"""Which differences are larger than `delta`: +1 above it, -1 below minus `delta`, int8 (batch, \*features).

        One family for all inputs, all features and both sides. So where nothing has changed by more than `delta`, a
        family-wise correction keeps the probability of any mark at alpha: an alarm for a whole set of inputs. (For each
        input alone, 50 inputs would raise a false alarm in .64 of the unchanged runs.)

        Parameters
        ----------
        delta : float
            Smallest change that matters, in the units of the differences, fixed before the samples. A 0 asks for any
            change that is more than rounding: a ten-thousandth of the largest score (see `Terms.unit`), so that a
            feature of far smaller scores than the others is not seen. `with_unit` sets another unit.
        alpha : float, default: 0.05
            Level of the family.
        correction : str, default: "holm"
            See `Terms`; "closed-e-bh" where `any_time` holds.

        Raises
        ------
        TooFewSamplesError
            If nothing could be marked with so few samples; the message names the smallest number.
        ValueError
            For results that are no differences (`metfa.compare`).
        """
        self._look()
        return changed(self, delta, alpha, correction)

    def unchanged(self, delta: float, *, alpha: float | None = None, correction: str | None = None) -> np.ndarray:
        r"""Which median differences are shown to lie within plus and minus `delta`, bool (batch, \*features).

        Equivalence, by two one-sided tests (Schuirmann 1987): the median difference is significantly below `delta`, and
        significantly above minus `delta`. A feature that is not shown to differ is not thereby unchanged.

        Parameters
        ----------
        delta : float
            Largest difference that counts as none, above 0, in the units of the differences, fixed before the samples.
        alpha : float, default: 0.05
            Level of the statement: of a feature, or with a correction of all features of an input together.
        correction : str, default: None
            See `Terms`.

        Raises
        ------
        TooFewSamplesError
            If nothing could be shown with so few samples; the message names the smallest number.
        ValueError
            For results that are no differences (`metfa.compare`).
        """
        self._look()
        return unchanged(self, delta, alpha, correction)

    def ranking(self, index: int = 0, *, alpha: float | None = None, correction: str | None = None) -> Ranking:
        """Which features of an input, or of a population, score above which, from `pairwise`.

        Parameters
        ----------
        index : int
            Which input of the batch.
        alpha, correction
            As for `terms`; by default those of `pairwise`.

        Returns
        -------
        Ranking
            Its text is the statement, its `marks` are a matrix (features, features).

        Raises
        ------
        TooFewSamplesError
            If no pair could be decided; the message names the smallest number.
        """
        one = self.of_input(index)
        pairs = one.pairwise()
        decision = pairs.decide(pairs.terms(alpha=alpha, correction=correction))
        return ranked(pairs, decision, one.median().ravel())
