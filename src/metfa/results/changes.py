"""What changed between two explanations of many inputs, in words and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from metfa._base.percents import counted, percent
from metfa._base.provenance import printable
from metfa.results.corrections import family_wise
from metfa.results.thresholds import UNMOVED

__all__ = ["Change", "Changes"]

SHOWN = 100  # changes that a text names; the others are counted


@dataclass(frozen=True)
class Change:
    """One feature of one input whose explanation changed.

    Attributes
    ----------
    input, feature : str
        Their names; a name that several features of the input have, such as a word, with its place.
    direction : str
        "more than before", "less than before", or the same with the names of the two.
    difference : float
        Median of the paired differences, after minus before.
    interval : (float, float) or None
        Interval for the median, at the level `Changes.confidence_level` for all features of the family together; None
        where there are too few samples for that.
    """

    input: str
    feature: str
    direction: str
    difference: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Changes:
    """What changed by more than `delta`, over all inputs and features as one family.

    Its truth value says whether anything is shown to have changed. That nothing is shown does not mean that nothing
    has changed.

    Attributes
    ----------
    delta : float
        Smallest change that matters, in the units of the differences.
    alpha : float
        Level of the family.
    correction : str or None
        Correction over the family.
    family : int
        Number of differences that were tested together, both sides of each.
    inputs : tuple of str
        Names of the inputs.
    n_samples : int
        Paired samples of each difference.
    number : int
        Differences that changed by more than `delta`.
    changes : tuple of Change
        The changes, by input; of more than 10,000 the largest.
    within : int or None
        Differences that are shown to lie within plus and minus `delta`, each at `alpha`; None for the delta 0 and for
        too few samples.
    zone : (float, float) or None
        How near to 0 a difference counts as rounding, so for neither side: the least and the most of all inputs. None
        for another delta than 0, and where every difference counts.
    near_zero : int or None
        Differences of which most samples lie so near to 0; None where `zone` is.
    confidence_level : float
        Level of the intervals, for the family together.
    other_predictions : tuple of (str, int, int)
        Inputs whose predicted class is another one, with the classes before and after.
    other_targets : tuple of (str, str, str)
        Inputs of which another class (or output) was explained, with what was explained before and after: their
        differences are no changes of one explanation.
    equal : tuple of str
        Inputs of which every difference is 0: both samples are the same, number by number.
    untested : tuple of str
        Inputs whose samples are all the same: they are one explanation N times, and no change of them is found.
    noun : str
        What a feature is called.
    scale : str
        How maps were scaled before they were subtracted.
    before, after : dict
        How the two were made: explainer, noise, seed, versions, and what else is known, such as the model's name.
    """

    delta: float
    alpha: float
    correction: str | None
    family: int
    inputs: tuple[str, ...]
    n_samples: int
    number: int
    changes: tuple[Change, ...] = field(repr=False)
    within: int | None
    zone: tuple[float, float] | None
    near_zero: int | None
    confidence_level: float
    other_predictions: tuple[tuple[str, int, int], ...]
    other_targets: tuple[tuple[str, str, str], ...]
    equal: tuple[str, ...]
    untested: tuple[str, ...]
    noun: str
    scale: str
    before: dict[str, Any] = field(default_factory=dict, repr=False)
    after: dict[str, Any] = field(default_factory=dict, repr=False)

    def __bool__(self) -> bool:
        return self.number > 0

    @property
    def changed_inputs(self) -> tuple[str, ...]:
        """Names of the inputs in which something changed."""
        return tuple(dict.fromkeys(change.input for change in self.changes))

    def __str__(self) -> str:
        return "\n".join(f"{name + ':':<17} {text}" for name, text in self.lines())

    def lines(self) -> list[tuple[str, str]]:
        """Names and texts of its lines."""
        by = "" if not self.delta else f" by more than {self.delta:g}"
        of = f"{counted(self.family, self.noun)} of {counted(len(self.inputs), 'input')}"
        if self:
            said = f"{self.number:,} of {of} changed{by}, in {_listed(self.changed_inputs)}"
        else:
            said = f"no change{by} is shown in {of}; this does not mean that nothing has changed"
        lines = [("changed", said)]
        largest = sorted(self.changes, key=lambda change: -abs(change.difference))[:SHOWN]
        for change in self.changes if len(self.changes) <= SHOWN else largest:
            ends = "no interval, too few samples"
            if change.interval is not None:
                ends = "{:+.4g} to {:+.4g}".format(*change.interval)
            where = f"{_name(change.input)}, {_name(change.feature)}"
            lines.append(("change", f"{where}: {change.difference:+.4g} ({ends}), {change.direction}"))
        if self.number > SHOWN:
            lines.append(("change", f"... and {self.number - SHOWN:,} more, the smaller ones"))
        if self.equal:
            of_all = "all inputs" if self.equal == self.inputs else _listed(self.equal)
            lines.append(("equal", f"every sample of {of_all} is the same in both, number by number"))
        if self.untested:
            lines.append(("not tested", f"{UNMOVED} in {_listed(self.untested)}"))
        lines.append(("false alarms", self._promise(by)))
        if self:
            level = percent(self.confidence_level)
            lines.append(
                ("change means", f"median difference, after minus before, and {level} interval of {self._all}")
            )
        if self.about_intervals is not None:
            lines.append(("intervals", self.about_intervals))
        if self.zone is not None:
            low, high = self.zone
            near = f"{high:.2g} of 0" if low == high else f"{low:.2g} to {high:.2g} of 0 (by input)"
            lines.append(
                (
                    "rounding",
                    f"differences within {near} count as rounding: most samples of {self.near_zero:,} of "
                    f"{counted(self.family, self.noun)}",
                )
            )
        if self.within is not None:
            lines.append(
                (
                    "within",
                    f"{self.within:,} of {self.family:,} median differences are shown to lie within {self.delta:g}, "
                    f"each falsely with probability at most {percent(self.alpha)}",
                )
            )
        for name, before, after in self.other_targets[:SHOWN]:
            lines.append(("explained", f"{_name(name)}: {before} before, {after} after, so not the same is compared"))
        if len(self.other_targets) > SHOWN:
            lines.append(("explained", f"... something else in {len(self.other_targets) - SHOWN} more inputs"))
        for name, before, after in self.other_predictions[:SHOWN]:
            lines.append(("prediction", f"{_name(name)}: class {before} before, class {after} after"))
        if len(self.other_predictions) > SHOWN:
            lines.append(("prediction", f"... another class in {len(self.other_predictions) - SHOWN} more inputs"))
        return lines

    @property
    def about_intervals(self) -> str | None:
        """What the level of the intervals is, and how many hold delta although the change is marked; None for none."""
        ends = [(change.interval, -self.delta if change.difference < 0 else self.delta) for change in self.changes]
        held = [interval[0] <= delta <= interval[1] for interval, delta in ends if interval is not None]
        if not held:
            return None
        edge = f"{self.delta:g} or -{self.delta:g}" if self.delta else "0"
        return (
            f"they have a level of their own, {percent(self.confidence_level)} of {self._all}, so that one may hold "
            f"{edge} although the change is marked: {sum(held):,} of {len(held):,} here"
        )

    @property
    def _all(self) -> str:
        return f"all {self.family:,} together" if self.family > 1 else "it"

    def _promise(self, by: str) -> str:
        most = f"with probability at most {percent(self.alpha)}"
        how = f"{self.correction or 'no correction'} over {self._all}, both sides, alpha {self.alpha:g}"
        if self.correction is None:
            return f"each {self.noun} is named falsely {most} on each side ({how})"
        if family_wise(self.correction):
            return f"any {self.noun} is named falsely {most} ({how})"
        condition = ", under positive dependence" if self.correction == "bh" else ""
        return (
            f"of what is named, at most {percent(self.alpha)} on average are false, and if nothing changed{by}, "
            f"anything is named {most}{condition} ({how})"
        )

    def as_dict(self) -> dict[str, Any]:
        """As JSON: all attributes, whether anything changed, and in words what the intervals are."""
        return {"changed": bool(self), "about_intervals": self.about_intervals, **asdict(self)}


def _name(text: str) -> str:
    return printable(text)[:60]


def _listed(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(map(_name, names[:SHOWN])) + (f" and {counted(more, 'more input')}" if more > 0 else "")
