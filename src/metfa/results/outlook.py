"""How many samples a decision will likely need, estimated from the present ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from metfa._base.percents import percent
from metfa._base.validation import check_number, positive_int
from metfa.results.decisions import marks_of
from metfa.results.terms import Terms
from metfa.stats import sequential, sign_tests

if TYPE_CHECKING:
    from metfa.results.sample import AttributionSample

__all__ = ["Outlook", "outlook"]

GROWTH = 1.1  # factor from one number of samples that is tried to the next


@dataclass(frozen=True)
class Outlook:
    """What more samples would likely bring, an extrapolation.

    Attributes
    ----------
    asked : float
        Share of undecided features that is wanted.
    n_samples : int or None
        Samples of each input with which the worst input likely reaches this share; None: more than were tried.
    undecided : tuple of (int, float)
        Numbers of samples, each with the share that is likely undecided, of the worst input. The first is the present.
    more_maps : int or None
        Further explanations that this needs, for all inputs together.
    seconds : float or None
        Time that these would take, at the rate of the call that made the samples; None where the rate is not known, as
        after a resumed call that found all samples made.
    """

    asked: float
    n_samples: int | None
    undecided: tuple[tuple[int, float], ...]
    more_maps: int | None
    seconds: float | None

    def __str__(self) -> str:
        most, least = self.undecided[-1]
        if self.n_samples is None or self.more_maps is None:
            there = percent(least, 1)
            return f"{percent(self.asked)} undecided would likely take more than {most:,} samples ({there} there)"
        if self.more_maps == 0:
            return f"{percent(self.asked)} undecided is reached with the {self.n_samples:,} samples that there are"
        cost = "" if self.seconds is None else f", about {self.seconds:.3g} s"
        return (
            f"{percent(self.asked)} undecided likely takes about {self.n_samples:,} samples: {self.more_maps:,} more "
            f"explanations{cost}"
        )


def outlook(sample: AttributionSample, asked: float, terms: Terms, max_samples: int) -> Outlook:
    """See `AttributionSample.plan`."""
    check_number(asked, "undecided")
    if asked >= 1:
        raise ValueError(f"`undecided` must be a share below 1, got {asked}: for 5 % write 0.05")
    most = positive_int(max_samples, "max_samples")
    if most < sample.n_samples:
        raise ValueError(f"`max_samples` must be at least the {sample.n_samples} samples that there are, got {most}")
    decision = sample.decide(terms)
    counted = decision.test
    path = [(sample.n_samples, float(decision.undecided.max()))]
    rng = np.random.default_rng(0)
    above_more = rng.beta(counted.above + 0.5, counted.n - counted.above + 0.5)
    below_of_rest = (counted.below + 0.5) / (counted.n - counted.above + 1)
    result_of = sequential.result_of if decision.any_time else sign_tests.result_of
    while path[-1][1] > asked and path[-1][0] < most:
        n = min(max(path[-1][0] + 1, int(path[-1][0] * GROWTH)), most)
        more = n - sample.n_samples
        above = rng.binomial(more, above_more)
        below = counted.below + rng.binomial(more - above, below_of_rest)
        outcome = result_of(counted.above + above, below, counted.n + more, "two-sided")
        path.append((n, _worst(marks_of(outcome, terms.alpha, terms.correction))))
    reached = path[-1][0] if path[-1][1] <= asked else None
    maps = None if reached is None else (reached - sample.n_samples) * len(decision.marks)
    seconds, made = (sample.provenance.get(name) for name in ("seconds", "maps_made"))
    rate = seconds / made if isinstance(seconds, float) and type(made) is int and made > 0 else None
    return Outlook(asked, reached, tuple(path), maps, None if maps is None or rate is None else maps * rate)


def _worst(marks: np.ndarray) -> float:
    return float((marks == 0).reshape(len(marks), -1).mean(axis=1).max())
