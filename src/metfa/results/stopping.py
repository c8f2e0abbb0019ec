"""How a result followed the rule that stopped its sampling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from metfa.results.corrections import ANY_TIME
from metfa.results.how_it_ended import how_it_ended
from metfa.results.regions import Regions
from metfa.results.terms import Terms
from metfa.results.until import CRITERIA

__all__ = ["Look", "Stopping", "of_a_fixed_number"]

REASONS = ("reached", "max_samples", "max_seconds", "no_threshold", "unmoved")
NOUNS = (
    *("feature", "region", "single feature", "unscaled feature", "unscaled region"),
    *("difference", "uncompared feature", "uncompared region"),
)


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
        Whether all criteria were met, which budget ended it, that no input has a threshold, or that neither noise nor
        draws change any input. Inputs without a threshold do not count for `undecided` where others have one.
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
    over : Regions or None
        The regions that `Until` asked about, where the features of the result are not these.
    noun : {"feature", "region", "single feature", "unscaled feature", "unscaled region", "difference", ...}
        What the looks were about; "single feature" where they were pooled afterwards, "unscaled" and "uncompared" where
        their maps were scaled or compared afterwards, "difference" in the two parts of a comparison.

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
    over: Regions | None = None
    noun: str = "feature"

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

    def noun_of(self, kind: str) -> str:
        """What the looks were about, where scores were made of another `kind` afterwards: "unscaled", "uncompared"."""
        return self.noun if self.noun == "difference" else f"{kind} {self.noun.split()[-1]}"

    def of_input(self, index: int) -> Stopping:
        """The same for one input of the batch; the looks still show the worst of all."""
        return self.of_inputs([index])

    def of_inputs(self, rows: Sequence[int]) -> Stopping:
        """The same for some inputs of the batch, in this order."""
        over = None if self.over is None else self.over.of_inputs(rows)
        if self.thresholds is None:
            return replace(self, over=over)
        nothing = tuple(self.nothing[row] for row in rows) if self.nothing else ()
        reason = "no_threshold" if nothing and None not in nothing else self.reason
        thresholds = tuple(self.thresholds[row] for row in rows)
        return replace(self, thresholds=thresholds, nothing=nothing, reason=reason, over=over)

    def __str__(self) -> str:
        return how_it_ended(self)

    def written(self) -> dict[str, Any]:
        """As JSON, without the regions, whose arrays are files of their own."""
        written = asdict(replace(self, over=None))
        del written["over"]
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
        written = {"nothing": (), "noun": "feature", **written, "over": None}  # older files have no such entries
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
            and (found.reason != "no_threshold" or thresholds is None or any(nothing))
            and found.noun in NOUNS
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


def _finite(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)
