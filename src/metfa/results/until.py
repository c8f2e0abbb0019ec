"""When to stop sampling: the rule."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from metfa._base.validation import check_number, keep, positive_int
from metfa.results.corrections import check_alpha, check_correction
from metfa.results.regions import regions_of
from metfa.results.terms import checked_threshold
from metfa.stats.sequential import MOST_SAMPLES
from metfa.stats.validation import as_level

__all__ = ["CRITERIA", "Until"]

CRITERIA = ("undecided", "width", "change")


@dataclass(frozen=True, kw_only=True)
class Until:
    r"""Sample until enough is known: give it as `n_samples` of `metfa.explain`, `metfa.compare` or `metfa.contrast`.

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
        None: 0 for signed attributions, else the natural break of the medians. Whether they are signed, the explainer
        says (an attribute `signed`), or the clean maps show it, which costs no samples. If neither does, the first
        round decides, and its samples are not tested: where they choose the threshold, be it 0, their e-values are too
        large on average. An input for which the rule finds none stays undecided, the others go on; if there is no
        other, sampling ends.
    alpha : float
        For `undecided`: level of the tests, as in `AttributionSample.significance_map`.
    correction : {"closed-e-bh", "e-bh", "bonferroni", None}
        For `undecided`: correction for many features, one that holds at any time. The first two keep the false
        discovery rate of each statement under any dependence; closed e-BH marks no fewer features. "none" is None.
    confidence_level : float
        Level of the intervals and of the smoothed map.
    max_samples : int
        Most samples of an input.
    max_seconds : float, optional
        Seconds after which no further round begins. Rounds after the first are made smaller, to end by then.
    first : int, optional
        Samples of the first round. By default as few as could decide anything, or for a rule 10; for natural breaks at
        least 5, as fewer cannot show whether anything stands out (`stats.prominence`).
    over : Regions or array, optional
        The regions that every criterion is about; see `AttributionSample.over`. Single features are kept too; to keep
        the regions' scores alone, give `over` to `metfa.explain` instead.
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
    8 samples, 2 looks: at most 0.0% undecided, as asked (5%); tested at alpha 0.05 by closed-e-bh, threshold 1
    """

    undecided: float | None = None
    width: float | None = None
    change: float | None = None
    threshold: Any = None
    alpha: float = 0.05
    correction: str | None = "closed-e-bh"
    confidence_level: float = 0.95
    max_samples: int = 500
    max_seconds: float | None = None
    first: int | None = None
    over: Any = None
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
        if self.over is not None:
            keep(self, over=regions_of(self.over))
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
            elif entry.name == "over":
                written += [] if value is None else [f"over={value!r}"]
            elif entry.name in always or value != entry.default:
                written.append(f"{entry.name}={f'{value:.6g}' if isinstance(value, float) else value}")
        return f"Until({', '.join(written)})"

    def after(self, n_samples: int) -> int:
        """Number of samples at the look after the one with `n_samples`."""
        return min(max(n_samples + 1, math.ceil(n_samples * self.growth)), self.max_samples)


def _shortened(value: Any) -> str:
    """A threshold in a few letters: a number, or else the name of its type."""
    return f"{value:.6g}" if isinstance(value, int | float) else type(value).__name__
