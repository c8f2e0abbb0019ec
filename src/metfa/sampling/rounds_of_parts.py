"""Rounds for several maps of each input: they grow until a rule is met in each part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from metfa._base.warnings import said_of
from metfa.results.layout import Layout
from metfa.results.stopping import Look, Stopping
from metfa.results.until import CRITERIA, Until
from metfa.sampling.rounds import RoundsUntil

__all__ = ["RoundsOfParts"]


class RoundsOfParts:
    """The rounds of a rule in each part, with thresholds and a unit of its own; the slowest part decides."""

    most: int

    def __init__(self, rule: Until, batch: int, layout: Layout, *, signed: bool | None) -> None:
        self.most = rule.max_samples
        self._rounds = {name: RoundsUntil(rule, batch, signed=signed) for name in layout.names}

    def check(self, seen: Any, usual: str) -> None:
        """See `Rounds`; what is seen is a `SeenParts`."""
        for name, rounds in self._rounds.items():
            with said_of(f"part {name!r}"):
                rounds.check(seen.parts[name], usual)

    def next(self, taken: int, made: float) -> int | None:
        """See `Rounds`."""
        wanted = [rounds.next(taken, made) for rounds in self._rounds.values()]
        return max((upto for upto in wanted if upto is not None), default=None)

    def look(self, seen: Any, taken: int, unmoved: Sequence[int]) -> str:
        """See `Rounds`; a part that was content is looked at again, because it must be when the others are."""
        shown = []
        for name, rounds in self._rounds.items():
            with said_of(f"part {name!r}"):
                shown.append(f"{name}: {rounds.look(seen.parts[name], taken, unmoved)}")
        return "; ".join(shown)

    def stopping(self) -> Stopping:
        """How it ended for all parts together: the worst of them at each look. Thresholds are those of the parts.

        As with inputs, a part for which the rule finds no threshold does not count where others have one.
        """
        of_parts = self.of_parts()
        counted = [one for one in of_parts if one.reason != "no_threshold"] or of_parts
        reason = next((one.reason for one in counted if one.reason != "reached"), counted[0].reason)
        looks = tuple(map(_worst, *(one.looks for one in counted)))
        return replace(counted[0], reason=reason, thresholds=None, nothing=(), split=0, looks=looks)

    def of_parts(self) -> tuple[Stopping, ...]:
        """How it ended for each part."""
        return tuple(rounds.stopping() for rounds in self._rounds.values())


def _worst(*looks: Look) -> Look:
    """One look for those at each part, which know the same of what was asked for."""
    known = {name: [value for look in looks if (value := getattr(look, name)) is not None] for name in CRITERIA}
    worst = {name: max(values, default=None) for name, values in known.items()}
    return replace(looks[0], **worst, seconds=max(look.seconds for look in looks))
