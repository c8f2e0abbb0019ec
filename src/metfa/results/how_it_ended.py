"""How sampling by a rule ended, in one sentence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from metfa._base.percents import percent
from metfa.results.thresholds import UNMOVED

if TYPE_CHECKING:
    from metfa.results.stopping import Stopping

__all__ = ["how_it_ended"]


def how_it_ended(stopping: Stopping) -> str:
    """The numbers of samples and looks, what was seen at the last one, and the terms of the decisions."""
    last, n = stopping.looks[-1], len(stopping.looks)
    made = f"{last.n_samples} samples, {n} look{'s' * (n != 1)}"
    more = f"; {stopping.added} more samples were added later" if stopping.added else ""
    if stopping.reason == "no_threshold":
        advice = "give a number, or a larger `first`"
        return f"{made}: nothing can be decided, as {_without(stopping)}: {advice}{more}"
    met = stopping.reason == "reached"
    seen = ", ".join(
        _seen(name, getattr(last, name), asked, stopping.noun, met=met) for name, asked in stopping.asked.items()
    )
    ended = "" if met else f" ({UNMOVED if stopping.reason == 'unmoved' else f'{stopping.reason} ended it'})"
    worst = f", the worst of {stopping.n_inputs} inputs" if stopping.n_inputs > 1 else ""
    return f"{made}{worst}: {seen}{ended}{_terms(stopping)}{more}"


def _seen(name: str, value: float | None, asked: float, noun: str, *, met: bool) -> str:
    """What the last look saw of a criterion."""
    limit, most = percent(asked) if name == "undecided" else f"{asked:.3g}", "at most " * met
    of = "" if noun == "feature" else f"of the {noun}s "
    if value is None:
        return f"nothing known about {name} ({limit} asked)"
    seen = {
        "undecided": f"{most}{percent(value, 1)} {of}undecided",
        "width": f"intervals {of}{most}{value:.3g} wide",
        "change": f"a change {of}of {most}{value:.3g}",
    }[name]
    return f"{seen}, as asked ({limit})" if met else f"{seen}, {limit} asked"


def _terms(stopping: Stopping) -> str:
    """The terms of the decisions."""
    if stopping.thresholds is None:
        return ""
    if not stopping.tested:
        return f"; nothing tested: the first {stopping.split} samples gave the threshold"
    found = [threshold for threshold in stopping.thresholds if not math.isnan(threshold)]
    if not found:
        return f"; {_without(stopping)}"
    low, high = (f"{threshold:.3g}" for threshold in (min(found), max(found)))
    by = "a side, uncorrected" if stopping.correction is None else f"by {stopping.correction}"
    at = f"threshold {low}" if low == high else f"thresholds {low} to {high}"
    without = f"; {_without(stopping)}" if len(found) < len(stopping.thresholds) else ""
    return f"; tested at alpha {stopping.alpha:g} {by}, {at}{without}"


def _without(stopping: Stopping) -> str:
    """That the rule found no threshold, and why."""
    whys = [why for why in stopping.nothing if why is not None]
    if not whys:  # it was about other features than those of the result
        return f"the rule found no threshold for the {stopping.noun}s"
    batch = len(stopping.nothing)
    return f"the rule found no threshold{f' for {len(whys)} of {batch} inputs' * (batch > 1)} ({whys[0]})"
