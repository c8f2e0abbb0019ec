"""When to stop sampling: the rule, `Until`, and the record of how a result followed it, `Stopping`."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from metfa._base.validation import check_number, keep, positive_int
from metfa.results.corrections import ANY_TIME, check_alpha, check_correction
from metfa.results.how_it_ended import how_it_ended
from metfa.results.terms import Terms, checked_threshold
from metfa.stats.sequential import MOST_SAMPLES
from metfa.stats.validation import as_level

__all__ = ["CRITERIA", "Look", "Stopping", "Until", "of_a_fixed_number"]

CRITERIA = ("undecided", "width", "change")
REASONS = ("reached", "max_samples", "max_seconds", "no_threshold", "unmoved")


@dataclass(frozen=True, kw_only=True)
class Until:
    r"""Sample until enough is known: give it as `n_samples` of `metfa.explain`.

    Samples come in rounds, and after each round there is a look at all samples so far. Sampling ends when every given
    criterion holds for every input, or at a budget. Tests use e-values and intervals use confidence sequences. Both
    hold at any time: frequent looks, and a stop because of what is seen, do them no harm (see `stats.sequential_test`).
    The first N samples are those of a call with ``n_samples=N``.

    Parameters
    ----------
    undecided : float, optional
        Share of an input's features, in [0, 1), that may be left undecided.
    width : float, optional
        Mean width of the intervals over an input's features that is narrow enough, in the units of the maps.
    change : float, optional
        Mean absolute change of the smoothed map from one look to the next that is small enough, in the units of the
        maps. (It does not say how far the map is from its limit.)
    threshold : callable, float or array (batch,)
        For `undecided`: a number, one number for each input, or a rule. A rule takes the threshold from the samples of
        the first round; only later ones are tested. (It is tried on the clean map before.) A number costs no samples.
        None: 0 for signed attributions (as the explainer or the first round says), else natural breaks. An input for
        which the rule finds none stays undecided, the others go on; if there is no other, sampling ends.
    alpha : float
        For `undecided`: level of the tests, as in `AttributionSample.significance_map`.
    correction : {"e-bh", "bonferroni", None}
        For `undecided`: correction for many features, one that holds at any time. "e-bh" keeps the false discovery rate
        under any dependence. "none" is None.
    confidence_level : float
        Level of the intervals and of the smoothed map.
    max_samples : int
        Most samples of an input.
    max_seconds : float, optional
        Seconds after which no further round begins. Rounds after the first are made smaller, to end by then.
    first : int, optional
        Samples of the first round. By default as few as could decide anything, or for a rule 10; for natural breaks at
        least 5, as fewer cannot show whether anything stands out (`stats.contrast`).
    growth : float
        Factor from the number of samples at one look to that at the next, above 1.

    Raises
    ------
    TypeError, ValueError
        For bad settings, and where no criterion is given.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> weights = np.array([3.0, 0.0, -2.0])
    >>> sample = metfa.explain(
    ...     lambda inputs, target: np.abs(inputs * weights), np.ones((1, 3)), 0, noise=metfa.noise.Uniform(0.1),
    ...     n_samples=metfa.Until(undecided=0.05, threshold=1.0, max_samples=200), rng=0,
    ... )
    >>> print(sample.stopping)
    8 samples, 2 looks: at most 0.0% undecided, as asked (5%); tested at alpha 0.05 by e-bh, threshold 1
    """

    undecided: float | None = None
    width: float | None = None
    change: float | None = None
    threshold: Any = None
    alpha: float = 0.05
    correction: str | None = "e-bh"
    confidence_level: float = 0.95
    max_samples: int = 500
    max_seconds: float | None = None
    first: int | None = None
    growth: float = 1.2

    def __post_init__(self) -> None:
        for name in CRITERIA:
            if getattr(self, name) is not None:
                keep(self, **{name: check_number(getattr(self, name), name)})
        if not self.asked:
            raise ValueError("`Until` needs a reason to stop: write `Until(undecided=0.05)`, or `width=` or `change=`")
        if self.undecided is not None and self.undecided >= 1:
            raise ValueError(f"`undecided` must be a share below 1, got {self.undecided}: for 5 % write 0.05")
        check_alpha(self.alpha)
        object.__setattr__(self, "correction", check_correction(self.correction, any_time=True))
        as_level(self.confidence_level, "confidence_level")
        if positive_int(self.max_samples, "max_samples") > MOST_SAMPLES:
            raise ValueError(f"`max_samples` must be at most {MOST_SAMPLES:,}, got {self.max_samples:,}")
        if self.max_seconds is not None:
            keep(self, max_seconds=check_number(self.max_seconds, "max_seconds", above=0))
        if self.first is not None:
            keep(self, first=positive_int(self.first, "first"))
            if self.first > self.max_samples:
                raise ValueError(
                    f"`first` must not exceed `max_samples`={self.max_samples}, got {self.first}: write "
                    f"max_samples={self.first} or more, or a smaller `first`"
                )
        keep(self, growth=check_number(self.growth, "growth", above=1))
        if self.threshold is not None:
            checked_threshold(self.threshold)
        if self.undecided is None:
            self._refuse_terms_of_tests()

    def _refuse_terms_of_tests(self) -> None:
        given = {
            "threshold": self.threshold is not None,
            "alpha": self.alpha != Until.alpha,
            "correction": self.correction != Until.correction,
        }
        for name, is_given in given.items():
            if is_given:
                raise ValueError(
                    f"`{name}` is for `undecided`, which is not asked for, and would do nothing: write "
                    f"Until(undecided=0.05, {name}=...), or leave it out"
                )

    @property
    def asked(self) -> dict[str, float]:
        """The given criteria, with their limits."""
        return {name: getattr(self, name) for name in CRITERIA if getattr(self, name) is not None}

    @property
    def described(self) -> str:
        """The rule as code: the criteria, what differs from the defaults, and what else a figure depends on."""
        always = {"max_samples", *([] if self.undecided is not None and len(self.asked) == 1 else ["confidence_level"])}
        written = []
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name == "threshold":
                if value is not entry.default:
                    written.append(f"threshold={getattr(value, '__name__', None) or _shortened(value)}")
            elif entry.name in always or value != entry.default:
                written.append(f"{entry.name}={f'{value:.6g}' if isinstance(value, float) else value}")
        return f"Until({', '.join(written)})"

    def after(self, n_samples: int) -> int:
        """Number of samples at the look after the one with `n_samples`."""
        return min(max(n_samples + 1, math.ceil(n_samples * self.growth)), self.max_samples)


@dataclass(frozen=True)
class Look:
    """What was seen after a round, the worst of all inputs that the noise changes; None for what was not asked.

    Attributes
    ----------
    n_samples : int
    undecided, width, change : float or None
        As for `Until`.
    seconds : float
        Since the call began.
    """

    n_samples: int
    undecided: float | None
    width: float | None
    change: float | None
    seconds: float


@dataclass(frozen=True)
class Stopping:
    """How sampling found the number of samples of a result.

    Attributes
    ----------
    reason : {"reached", "max_samples", "max_seconds", "no_threshold", "unmoved"}
        Whether all criteria were met, which budget ended it, that no input has a threshold, or that the noise changes
        none of the inputs. Inputs without a threshold do not count for `undecided` where others have one.
    asked : dict
        Criteria by name.
    alpha, correction, confidence_level
        As for `Until`.
    split : int
        Samples of the first round that gave the thresholds and were not tested.
    thresholds : tuple of float or None
        Threshold of each input, nan where the rule found none; None where `undecided` was not asked.
    looks : tuple of Look
    n_inputs : int
        Number of inputs that were sampled together. Looks show the worst of them, also in the result of one input.
    added : int
        Samples that `AttributionSample.concat` added afterwards: tested like the others, but seen by no look.
    nothing : tuple of (str or None)
        Why the rule found no threshold for an input, None where it did; empty if every input has one.

    Notes
    -----
    Such a result is tested by e-values, and its intervals are confidence sequences. It refuses what holds only for a
    number of samples that was fixed beforehand: the corrections "holm", "bh" and "by", intervals by ranks that are not
    `sequential`, and `AttributionSample.mean_interval`. The smoothed map, the mean and the median are estimates and
    promise no level in either case.
    """

    reason: str
    asked: dict[str, float]
    alpha: float
    correction: str | None
    confidence_level: float
    split: int
    thresholds: tuple[float, ...] | None
    looks: tuple[Look, ...]
    n_inputs: int = 1
    added: int = 0
    nothing: tuple[str | None, ...] = ()

    @property
    def tested(self) -> bool:
        """Whether there are samples that were tested: more than those that gave the thresholds."""
        return self.thresholds is not None and self.looks[-1].n_samples + self.added > self.split

    @property
    def terms(self) -> Terms:
        """Terms of the last look; `AttributionSample.terms` takes them where nothing else is given.

        Samples that were added later are decided on the same terms.

        Raises
        ------
        ValueError
            If nothing was tested.
        """
        if self.thresholds is None:
            raise ValueError("nothing was tested during sampling: `Until` was not asked for `undecided`")
        if not self.tested:
            raise ValueError(
                f"nothing was tested during sampling: the first {self.split} samples gave the threshold, and then "
                f"{self.reason} ended it: allow more, or give `Until` a number as `threshold`, which costs no samples"
            )
        return Terms(np.array(self.thresholds), self.alpha, self.correction, self.split, nothing=self.nothing)

    def of_input(self, index: int) -> Stopping:
        """The same for one input of the batch; the looks still show the worst of all."""
        if self.thresholds is None:
            return self
        nothing = self.nothing[index : index + 1]
        reason = "no_threshold" if any(nothing) else self.reason
        return replace(self, thresholds=self.thresholds[index : index + 1], nothing=nothing, reason=reason)

    def __str__(self) -> str:
        return how_it_ended(self)

    def written(self) -> dict[str, Any]:
        """As JSON."""
        written = asdict(self)
        if self.nothing and self.thresholds is not None:
            written["thresholds"] = [None if math.isnan(threshold) else threshold for threshold in self.thresholds]
        return written

    @classmethod
    def read(cls, written: Any, batch: int, n_samples: int) -> Stopping:
        """From JSON that anybody may have written; TypeError or KeyError if it does not fit."""
        if not isinstance(written, dict):
            raise TypeError("stopping, which must be an object")
        if "held_out" in written:  # as it was called once
            written = {**written, "split": written["held_out"]}
        looks = tuple(Look(**{field.name: look[field.name] for field in fields(Look)}) for look in written["looks"])
        written = {"nothing": (), **written}  # which older files do not have
        found = cls(**{**{field.name: written[field.name] for field in fields(cls)}, "looks": looks})
        thresholds, nothing = found.thresholds, tuple(found.nothing)
        known = [
            threshold
            for threshold, why in zip(thresholds or (), nothing or [None] * batch, strict=False)
            if threshold is not None or why is None
        ]
        seen = [value for look in looks for name in CRITERIA if (value := getattr(look, name)) is not None]
        sizes = [*found.asked.values(), *seen, *(look.seconds for look in looks)]
        levels = [found.alpha, found.confidence_level]
        counts = [look.n_samples for look in looks]
        fits = (
            found.reason in REASONS
            and found.correction in ANY_TIME
            and bool(found.asked)
            and set(found.asked) <= set(CRITERIA)
            and all(map(_finite, [*sizes, *levels, *known]))
            and min(sizes) >= 0
            and all(0 < level < 1 for level in levels)
            and all(type(count) is int for count in [found.split, found.n_inputs, found.added, *counts])
            and bool(looks)
            and counts == sorted(set(counts))
            and 0 <= found.split <= counts[-1] == n_samples - found.added <= n_samples
            and found.n_inputs >= batch
            and (thresholds is None or len(thresholds) == batch)
            and (not nothing or (thresholds is not None and len(nothing) == batch))
            and all(why is None or isinstance(why, str) for why in nothing)
            and (found.reason != "no_threshold" or any(nothing))
        )
        if not fits:
            raise TypeError("stopping, which does not fit the rest")
        if thresholds is not None:
            thresholds = tuple(math.nan if threshold is None else threshold for threshold in thresholds)
        return cls(**{**vars(found), "thresholds": thresholds, "nothing": nothing})


def of_a_fixed_number(what: str, confidence_level: float) -> ValueError:
    """The error that says why there is no such interval after `Until`, and what to write instead."""
    return ValueError(
        f"{what} for a number of samples that was fixed beforehand, but here it may depend on what was seen: write "
        f"`confidence_interval({confidence_level})`, by `stats.sequence_ranks`, which holds whenever sampling stops"
    )


def _shortened(value: Any) -> str:
    """A threshold in a few letters: a number, or else the name of its type."""
    return f"{value:.6g}" if isinstance(value, int | float) else type(value).__name__


def _finite(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)
