"""Rounds of sampling: how many samples come next, and what earlier rounds have shown."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from metfa import stats
from metfa._base.percents import percent
from metfa.results.decisions import TooFewSamplesError, any_time_undecided, samples_for_interval
from metfa.results.families import samples_needed
from metfa.results.moments import of_both_signs
from metfa.results.rules import RULES, USUAL, is_break
from metfa.results.stopping import Look, Stopping
from metfa.results.terms import Terms, checked_threshold
from metfa.results.thresholds import UNMOVED, number_of, ruled, sides
from metfa.results.until import CRITERIA, Until
from metfa.sampling.what_rules_see import Seen

__all__ = ["Ended", "FixedRound", "Rounds", "RoundsUntil", "rounds_of"]

FOR_PROMINENCE = 5  # samples with which `stats.prominence` can ask whether the maps agree
FOR_A_RULE = 10  # samples for a rule, such as the natural break of the medians: see the guide on choosing N


class Rounds(Protocol):
    """How many samples the sampling loop makes, and when it stops."""

    most: int

    def check(self, seen: Seen, usual: str) -> None:
        """Raise, before any sample, if the clean maps show that the rule cannot be followed; `usual` as of `Sink`."""
        ...

    def next(self, taken: int, made: float) -> int | None:
        """Number of samples after the next round; None: enough. Of the samples `taken`, this call has `made` some."""
        ...

    def look(self, seen: Seen, taken: int, unmoved: Sequence[int]) -> str:
        """Look at the samples taken; returns a text for the progress bar.

        Inputs that are `unmoved` (`AttributionSample.unmoved`) show nothing.
        """
        ...

    def stopping(self) -> Stopping | None:
        """How sampling ended; None if the number was fixed beforehand."""
        ...


class FixedRound:
    """One round with all samples."""

    def __init__(self, n_samples: int) -> None:
        self.most = n_samples

    def check(self, seen: Seen, usual: str) -> None:
        """See `Rounds`."""

    def next(self, taken: int, made: float) -> int | None:  # noqa: ARG002
        """See `Rounds`."""
        return self.most if taken < self.most else None

    def look(self, seen: Seen, taken: int, unmoved: Sequence[int]) -> str:  # noqa: ARG002
        """See `Rounds`."""
        return ""

    def stopping(self) -> Stopping | None:
        """See `Rounds`."""
        return None


class Ended(FixedRound):
    """One round with all samples of an interrupted run, which had made them all; how it had ended is known."""

    def __init__(self, n_samples: int, stopping: Stopping | None) -> None:
        super().__init__(n_samples)
        self._stopping = stopping

    def stopping(self) -> Stopping | None:
        """See `Rounds`."""
        return self._stopping


class RoundsUntil:
    """Rounds that grow until a rule is met."""

    most: int

    def __init__(self, rule: Until, batch: int, *, signed: bool | None = None, over: Any = None) -> None:
        self.most = rule.max_samples
        self._over = rule.over if over is None else over
        if self._over is not None and self._over.against is not None:
            signed = True
        self._rule, self._batch = rule, batch
        self._clock = time.perf_counter()
        self._looks: list[Look] = []
        self._reason: str | None = None
        self._tests = None if rule.undecided is None else _Counted(rule, batch, signed)
        if self._least() > self.most:
            raise TooFewSamplesError(
                f"`max_samples`={self.most} is too few for a look at {', '.join(rule.asked)}: at least {self._least()} "
                f"samples are needed; write max_samples={self._least()} or more"
            )
        self._smoothed: np.ndarray | None = None

    def check(self, seen: Seen, usual: str) -> None:
        """See `Rounds`."""
        given, tests = self._rule.threshold, self._tests
        if tests is not None:
            tests.usual = RULES[usual]
            tests.see_clean(seen.vanilla)
            if callable(given) and not is_break(given):
                _try(given, np.repeat(seen.vanilla[:1], min(tests.split, FOR_A_RULE), axis=0))

    def next(self, taken: int, made: float) -> int | None:
        """See `Rounds`."""
        if self._reason is not None:
            return None
        rule, tests = self._rule, self._tests
        if taken == 0:
            return min(max(rule.first or self._least(), 0 if tests is None else tests.split), self.most)
        if tests is not None and taken == tests.split:
            return min(taken + tests.needed, self.most)
        wanted = rule.after(taken)
        if rule.max_seconds is not None and made:
            seconds = time.perf_counter() - self._clock
            in_time = int(made * (rule.max_seconds - seconds) / seconds)
            wanted = min(wanted, taken + max(in_time, 1))
        return wanted

    @property
    def soonest(self) -> int:
        """Smallest number of samples that it can end with, unless a budget ends it before."""
        tests = self._tests
        return max(self._rule.first or 0, self._least(), 0 if tests is None else tests.split + tests.needed)

    def _least(self) -> int:
        """Smallest first round that shows anything."""
        rule, least = self._rule, [1]
        if self._tests is not None:
            least.append(self._tests.split or self._tests.needed)
        if rule.width is not None:
            least.append(samples_for_interval(rule.confidence_level, any_time=True))
        if rule.change is not None:
            least.append(samples_for_interval(rule.confidence_level))
        return max(least)

    def look(self, seen: Seen, taken: int, unmoved: Sequence[int]) -> str:
        """See `Rounds`."""
        rule, self._reason = self._rule, None
        moved = np.setdiff1d(np.arange(self._batch), unmoved)
        if not len(moved):
            self._reason = "unmoved"
            self._looks.append(Look(taken, None, None, None, round(time.perf_counter() - self._clock, 3)))
            return UNMOVED
        found: dict[str, float | None] = dict.fromkeys(CRITERIA)
        if self._tests is not None:
            found["undecided"] = float(self._tests.undecided(seen, taken)[moved].max())
        if rule.width is not None and taken >= samples_for_interval(rule.confidence_level, any_time=True):
            ranks = stats.sequence_ranks(taken, rule.confidence_level)
            interval = stats.median_interval(seen.values(0, taken), ranks=ranks)
            found["width"] = _worst(np.subtract(interval.high[moved], interval.low[moved], dtype=np.float64))
        if rule.change is not None and taken >= samples_for_interval(rule.confidence_level):
            smoothed = stats.smoothed_median(seen.values(0, taken), rule.confidence_level)
            if self._smoothed is not None:
                found["change"] = _worst(np.abs(smoothed - self._smoothed)[moved])
            self._smoothed = smoothed
        seconds = time.perf_counter() - self._clock
        self._looks.append(Look(taken, seconds=round(seconds, 3), **found))
        if all((value := found[name]) is not None and value <= asked for name, asked in rule.asked.items()):
            self._reason = "reached"
        elif self._tests is not None and taken > self._tests.split and self._tests.hopeless:
            self._reason = "no_threshold"
        elif taken == self.most:
            self._reason = "max_samples"
        elif rule.max_seconds is not None and seconds >= rule.max_seconds:
            self._reason = "max_seconds"
        shown = {"undecided": lambda share: percent(share, 1), "width": "{:.3g}".format, "change": "{:.2g}".format}
        return ", ".join(f"{name} {shown[name](value)}" for name, value in found.items() if value is not None)

    def stopping(self) -> Stopping:
        """See `Rounds`."""
        rule, tests = self._rule, self._tests
        return Stopping(
            reason=self._reason or "max_samples",
            asked=rule.asked,
            alpha=rule.alpha,
            correction=rule.correction,
            confidence_level=rule.confidence_level,
            split=0 if tests is None else tests.split,
            thresholds=None if tests is None or tests.thresholds is None else tuple(tests.thresholds.tolist()),
            looks=tuple(self._looks),
            n_inputs=self._batch,
            nothing=() if tests is None else tests.nothing,
            over=rule.over,
            noun="feature" if self._over is None else "region",
        )


class _Counted:
    """Counts of samples above and below each input's threshold: all that has to be kept for decisions."""

    def __init__(self, rule: Until, batch: int, signed: bool | None) -> None:
        self.usual: Callable[[np.ndarray], Any] = RULES[USUAL]  # the rule where none is given
        self._unit: Any = None  # as of `AttributionSample.unit`
        self._signed = signed
        self._threshold = 0.0 if rule.threshold is None and signed else rule.threshold
        least = FOR_PROMINENCE if self._threshold is None or is_break(self._threshold) else 1
        of_samples = self._threshold is None or callable(self._threshold)
        self.split = max(rule.first or FOR_A_RULE, least) if of_samples else 0
        self.nothing: tuple[str | None, ...] = ()  # as in `Stopping`
        self._terms = Terms(0.0, rule.alpha, rule.correction)  # of these, what counts decide by
        self.needed = samples_needed(self._terms, 1, any_time=True)
        self.thresholds: np.ndarray | None = None if self.split else _one_an_input(self._threshold, batch)
        if self.split + self.needed > rule.max_samples:
            kept = f" after {self.split} for the threshold" if self.split else ""
            raise TooFewSamplesError(
                f"`max_samples`={rule.max_samples} can decide nothing: at least {self.needed} samples are needed{kept} "
                f"for anything to become significant at `alpha`={rule.alpha}; write "
                f"max_samples={self.split + self.needed} or more{', or a smaller `first`' if rule.first else ''}"
            )
        self._counted = self.split
        self._above: Any = 0
        self._below: Any = 0

    def undecided(self, seen: Seen, taken: int) -> np.ndarray:
        """Share of undecided features of each input, (batch,); 0 where there is no threshold but for others."""
        if self._unit is None:
            self._unit = seen.unit(taken)
        if self.thresholds is None:
            self.thresholds, nothing = self._of_first_round(seen.values(0, self.split))
            self.nothing = nothing if any(nothing) else ()
        if taken <= self._counted:
            return np.ones(len(self.thresholds))
        new = seen.values(self._counted, taken)
        above, below = sides(new, self.thresholds.reshape(-1, *[1] * (new.ndim - 2)), self._unit)
        self._above, self._below, self._counted = self._above + above, self._below + below, taken
        n = taken - self.split
        shares = any_time_undecided(self._above, self._below, n, self._terms)
        return shares if self.hopeless else np.where(np.isnan(self.thresholds), 0.0, shares)

    @property
    def hopeless(self) -> bool:
        """Whether no input has a threshold, so that nothing can ever be decided."""
        return self.thresholds is not None and bool(np.isnan(self.thresholds).all())

    def see_clean(self, vanilla: np.ndarray) -> None:
        r"""Take 0 as the threshold where clean maps (batch, \*features) are signed: they are none of the samples."""
        if self._threshold is None and self._signed is None and of_both_signs(vanilla[None]) is not None:
            self._threshold, self.split, self._counted = 0.0, 0, 0
            self.thresholds = np.zeros(len(vanilla))

    def _of_first_round(self, values: np.ndarray) -> tuple[np.ndarray, tuple[str | None, ...]]:
        """Threshold of each input from the samples of the first round, and why there is none."""
        if self._threshold is None and self._signed is None and of_both_signs(values) is not None:
            return np.zeros(values.shape[1]), (None,) * values.shape[1]
        return ruled(self._threshold if callable(self._threshold) else self.usual, values, self._unit)


def _try(rule: Callable[[np.ndarray], Any], values: np.ndarray) -> None:
    """Raise if a rule returns no number for values that stand in for samples."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            returned = rule(values)
        except Exception:  # it may need values that differ: the samples will show
            return
    number_of(returned)


def rounds_of(n_samples: Any, batch: int, *, signed: bool | None = None, over: Any = None) -> Rounds:
    """Rounds for a number of samples, or for a rule; raises if the rule can never be met.

    `signed` is what the explainer says of its scores, None where it says nothing. `over`: the `Regions` that the
    samples are pooled over before they are kept.
    """
    if isinstance(n_samples, Until):
        return RoundsUntil(n_samples, batch, signed=signed, over=over)
    return FixedRound(n_samples)


def _worst(of_features: np.ndarray) -> float:
    """Largest of the inputs' means."""
    return float(of_features.reshape(len(of_features), -1).mean(axis=1).max())


def _one_an_input(threshold: Any, batch: int) -> np.ndarray:
    thresholds = np.asarray(checked_threshold(threshold))
    if thresholds.shape not in ((), (batch,)):
        raise ValueError(
            f"`threshold` must be a number, one for each of the {batch} inputs, or a rule, got shape {thresholds.shape}"
        )
    return np.broadcast_to(thresholds, (batch,)).copy()
