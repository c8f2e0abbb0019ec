"""What a level promises about false marks, in words: one sentence for each correction, the same in every view."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal

from metfa._base.percents import counted, percent
from metfa.results.certified import assumption_of
from metfa.results.corrections import UNPROVEN, family_wise
from metfa.results.terms import Terms

__all__ = ["expected_number", "promise"]


def promise(
    terms: Terms,
    n_features: int,
    *,
    expected: float | None,
    kinds: Mapping[int, str],
    unproven: bool = True,
    noun: str = "feature",
) -> str:
    """What is promised about false marks, and which marks a rate is of.

    Parameters
    ----------
    terms : Terms
        Alpha, correction and families.
    n_features : int
        Number of features that were tested together.
    expected : float or None
        Without a correction: `stats.expected_false_marks`; None where sampling stopped because of what was seen.
    kinds : mapping of int to str
        Names of the marks +1 and -1.
    unproven : bool
        Whether to say what no proof covers (`Terms.unproven`), if anything.
    noun : str
        Word for a feature.
    """
    above, below = (f'"{kind}"' if " " in kind else kind for kind in (kinds[1], kinds[-1]))
    alpha, correction = terms.alpha, terms.correction
    most = f"at most {percent(alpha)}"
    if correction is None:
        if expected is None or terms.of_effects:
            stops = ", whenever sampling stops" if expected is None else ""
            return f"each {noun} is called {above} falsely with probability {most}{stops}; the same for {below}"
        share = expected / n_features if n_features else 0.0
        return (
            f"up to {expected_number(expected)} of {counted(n_features, noun)} marked falsely on average "
            f"({percent(share, 1)}), if every median lay at the threshold"
        )
    if family_wise(correction):
        sure = f"with probability at least {_rest(alpha)}"
        if not terms.together:
            return (
                f"no {noun} is called {above} falsely, {sure}; the same for {below}; both together with at least "
                f"{_rest(2 * alpha)}"
            )
        if correction == "holm":
            return f"no {noun} with its median at the threshold is marked, {sure}"
        return f"no {noun} is called {above} or {below} falsely, {sure}"
    condition = {
        "bh": "under positive dependence",
        "by": "under any dependence",
        "e-bh": "under any dependence and whenever sampling stops",
        "closed-e-bh": "under any dependence and whenever sampling stops",
    }[correction]
    if unproven and terms.unproven:
        condition += f" ({UNPROVEN}{' and so decided by e-bh' * (terms.in_effect != correction)})"
    elif correction == "closed-e-bh" and (assumed := assumption_of(terms)) is not None:
        condition += f" ({assumed})"
    if terms.together:
        return (
            f"on average {most} of all marks together ({above} and {below}) are false, {condition}; of the {above} "
            "ones alone it may be more"
        )
    return f"of those called {above}, {most} on average are false, {condition}; the same for those called {below}"


def _rest(alpha: float) -> str:
    """What is missing to 1, in percent, without the error of floats."""
    return percent(float(1 - Decimal(repr(alpha))))


def expected_number(expected: float) -> str:
    """An expected number, with digits behind the point where it is small."""
    return f"{math.floor(expected + 0.5):,}" if expected >= 10 else f"{expected:.2g}"  # a half goes up
