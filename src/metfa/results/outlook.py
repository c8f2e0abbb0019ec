"""How many samples a decision will likely need, estimated from the present ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from metfa._base.percents import percent
from metfa._base.validation import check_number, positive_int
from metfa.results.families import undecided_share
from metfa.results.sides_law import SidesLaw
from metfa.results.terms import Terms

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
        Explanations that this needs, for all inputs together: further ones, or if `afresh` all of a new call.
    seconds : float or None
        Time that these would take, at the rate of the call that made the samples; None where the rate is not known, as
        after a resumed call that found all samples made.
    afresh : bool
        Whether the number is for a new call with a fixed number of samples, tested exactly. The present samples chose
        this number, so they do not belong to it. False where tests hold at any time: more samples may be joined then.
    noun : str
        Word for a sample: for rows and models `more_maps` counts these.
    """

    asked: float
    n_samples: int | None
    undecided: tuple[tuple[int, float], ...]
    more_maps: int | None
    seconds: float | None
    afresh: bool = False
    noun: str = "sample"

    def __str__(self) -> str:
        most, least = self.undecided[-1]
        if self.n_samples is None or self.more_maps is None:
            there = percent(least, 1)
            return f"{percent(self.asked)} undecided would likely take more than {most:,} {self.noun}s ({there} there)"
        if self.more_maps == 0:
            return f"{percent(self.asked)} undecided is reached with the {self.n_samples:,} {self.noun}s that there are"
        cost = "" if self.seconds is None else f", about {self.seconds:.3g} s"
        takes = f"{percent(self.asked)} undecided likely takes about {self.n_samples:,} {self.noun}s"
        if self.noun != "sample":
            return f"{takes}{', none of them among the present ones' * self.afresh}: {self.more_maps:,} more"
        if not self.afresh:
            return f"{takes}: {self.more_maps:,} more explanations{cost}"
        return (
            f"{takes}: {self.more_maps:,} explanations{cost}, in a new call with `n_samples={self.n_samples}` "
            "and another `rng`. (Samples that are joined to the present ones are decided by e-values, which need more: "
            "these have been looked at.)"
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
    test, afresh = decision.test, not decision.any_time
    path = [(sample.n_samples, float(decision.undecided.max()))]
    laws = [SidesLaw.of(test.above[row], test.below[row]) for row in range(len(decision.marks))]
    while path[-1][1] > asked and path[-1][0] < most:
        n = min(max(path[-1][0] + 1, int(path[-1][0] * GROWTH)), most)
        more = n - terms.split if afresh else n - sample.n_samples
        expected = [law.counts(test.n, more, afresh=afresh) for law in laws]
        shares = [undecided_share(up, down, decision.terms, any_time=decision.any_time) for up, down in expected]
        path.append((n, max(shares)))
    reached = path[-1][0] if path[-1][1] <= asked else None
    done = reached == sample.n_samples
    each = len(laws) if sample.population is None else 1  # a row or a model counts once
    maps = None if reached is None else 0 if done else (reached - (0 if afresh else sample.n_samples)) * each
    seconds, made = (sample.provenance.get(name) for name in ("seconds", "maps_made"))
    rate = seconds / made if isinstance(seconds, float) and type(made) is int and made > 0 else None
    cost = None if maps is None or rate is None else maps * rate
    return Outlook(asked, reached, tuple(path), maps, cost, afresh, sample.sample_noun)
