"""Further samples of a result that somebody looks at, round by round."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from metfa._base.validation import check_function, shown
from metfa.results.sample import AttributionSample
from metfa.sampling.run import Run

__all__ = ["More", "check_more", "further", "round_of", "seconds_each"]

More = Callable[..., AttributionSample]
CALL = "more(n_samples=..., rng=..., run=...)"
LEAST = 10  # samples of a round: each round explains the clean inputs, too
QUICKEST = 1e-4  # seconds of a sample that took none
SECONDS = 2.0  # that a round takes about, after which it may be stopped


def check_more(more: Any, sample: AttributionSample) -> None:
    """Raise unless `more` can be asked for further samples of this result."""
    if sample.population is not None:
        raise ValueError(
            f"`more` is for samples of the same inputs, and these are {sample.sample_noun}s: explain further "
            f"{sample.sample_noun}s, and join both results by `concat`"
        )
    if not isinstance(sample.provenance.get("rng"), str):
        raise ValueError("`more` needs the seed of the samples, and these do not say it in their `provenance`")
    check_function(more, "more", CALL, n_samples=1, rng=0, run=Run())


def further(more: More, sample: AttributionSample, n_samples: int) -> AttributionSample:
    """The result with so many further samples, which begin after its last one and have its seed."""
    given = getattr(more, "keywords", {}).get("run")  # of a partial
    run = replace(given or Run(), first_sample=max(sample.sample_ids) + 1, store=None, progress=False)
    made = more(n_samples=n_samples, rng=int(sample.provenance["rng"], 16), run=run)
    if not isinstance(made, AttributionSample):
        raise TypeError(f"`more` must return an AttributionSample, got {shown(made)}")
    if made.n_samples != n_samples:
        raise ValueError(f"`more` must return as many samples as `n_samples` says, {n_samples}, got {made.n_samples}")
    return sample.concat(made)


def seconds_each(sample: AttributionSample) -> float | None:
    """Seconds that a further sample of all inputs takes about; None if the result does not say it."""
    seconds, maps = (sample.provenance.get(name) for name in ("seconds", "maps_made"))
    return None if seconds is None or not maps else seconds / maps * len(sample.target)


def round_of(sample: AttributionSample, wanted: int) -> int:
    """How many of the `wanted` samples the next round makes."""
    each = seconds_each(sample)
    return min(wanted, LEAST if each is None else max(LEAST, math.ceil(SECONDS / max(each, QUICKEST))))
