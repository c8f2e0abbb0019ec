"""What a level promises about false marks, in words: one sentence for each correction, the same in every view."""

from __future__ import annotations

from collections.abc import Mapping

from metfa._base.percents import counted, percent
from metfa.results.corrections import UNPROVEN

__all__ = ["promise"]


def promise(
    correction: str | None,
    alpha: float,
    n_features: int,
    *,
    expected: float | None,
    unproven: bool,
    kinds: Mapping[int, str],
    noun: str = "feature",
) -> str:
    """What is promised about false marks, and which marks a rate is of.

    Parameters
    ----------
    correction, alpha
        As for `Terms`.
    n_features : int
        Number of features that were tested together.
    expected : float or None
        Without a correction: `stats.expected_false_marks`; None where sampling stopped because of what was seen.
    unproven : bool
        `Terms.unproven`.
    kinds : mapping of int to str
        Names of the marks +1 and -1.
    noun : str
        Word for a feature.
    """
    most = f"at most {percent(alpha)}"
    if correction is None:
        if expected is None:
            return f"each {noun} is marked falsely on either side with probability {most}, whenever sampling stops"
        share = expected / n_features if n_features else 0.0
        return (
            f"up to {_number(expected)} of {counted(n_features, noun)} marked falsely on average "
            f"({percent(share, 1)}), if every median lay at the threshold"
        )
    if correction == "bonferroni":
        return f"the probability of any false mark at all is {most}"
    if correction == "holm":
        return f"the probability that any {noun} with its median at the threshold is marked is {most}"
    condition = {
        "bh": "under positive dependence" + f" ({UNPROVEN})" * unproven,
        "by": "under any dependence",
        "e-bh": "under any dependence and whenever sampling stops",
    }[correction]
    return (
        f"on average {most} of all marks together ({kinds[1]} and {kinds[-1]}) are false, {condition}; of the "
        f"{kinds[1]} ones alone it may be more"
    )


def _number(expected: float) -> str:
    """An expected number, with digits behind the point where it is small."""
    return f"{expected:,.0f}" if expected >= 10 else f"{expected:.2g}"
