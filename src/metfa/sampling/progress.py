"""What a long call shows of itself: a bar that also moves within a map, and before a long run how long it will take.

An explainer that asks its model many times for one map declares it: ``n_forwards``, the rows that it asks about for one
map, and ``forwards``, what it calls them ("masks"). Every `Called` counts the rows that it asks about. Nothing that is
computed depends on the time.
"""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from typing import Any

from metfa._base.progress import check_bar, progress_bar
from metfa._base.provenance import describe, method_of
from metfa.sampling.explainer_attributes import known_forwards

__all__ = ["Progress"]

LONG = 60.0  # seconds from which on a run is announced
DELAY = 0.3  # seconds from which on the bar moves within maps
FIRST = 2.0  # seconds after which it is known how fast the model is


class Progress:
    """Shows how far a call is.

    Parameters
    ----------
    maps : int
        Maps to make, those that are `done` included.
    done : int
    shown : bool
        Whether there is a bar. Without one a long run is only announced to the log "metfa", at the level of
        information.
    doing : str
    explainers : explainers, each of which makes as many of the maps
    """

    def __init__(self, maps: int, done: int, *, shown: bool, doing: str, explainers: tuple[Any, ...]) -> None:
        self._maps, self._left, self._shown = maps, maps - done, shown
        names = dict.fromkeys(method_of(describe(one)) for one in explainers)
        self._method, self._started, self._said = " and ".join(names), time.monotonic(), False
        found = [known_forwards(one) for one in explainers]
        self._each, self._noun = 1, "maps"
        self._counts = all(n > 1 for n, _ in found)  # else maps are counted, and what is within them is only said
        if self._counts:
            self._each, self._noun = round(sum(n for n, _ in found) / len(found)), found[0][1]
        self._within, self._done, self._doing = 0, done, doing
        self._stack, self._made = ExitStack(), None
        if shown:
            check_bar("image")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        """Leave the bar as it is."""
        self._stack.close()

    @property
    def _bar(self) -> Any:
        """The bar, which is made when there is something to show: a call that is refused at once shows none."""
        if self._made is None:
            settings = {"shown": self._shown, "unit": self._unit, "doing": self._doing, "extra": "image"}
            bar = progress_bar(self._maps * self._each, self._done * self._each, **settings)
            self._made = self._stack.enter_context(bar)
        return self._made

    @property
    def _unit(self) -> str:
        return self._noun.removesuffix("s")

    def asked(self, n_rows: int) -> None:
        """See `Watcher`."""
        self._within += n_rows
        if self._counts and time.monotonic() - self._started >= DELAY:
            bar, now = self._bar, self._done * self._each + self._within
            bar.total = self._beyond(now, bar.total)
            bar.update(now - bar.n)
            self._announce(self._within / (self._left * self._each or 1))

    def expected(self, n_forwards: int, noun: str) -> None:
        """See `Watcher`."""
        if n_forwards > 1 and (not self._counts or n_forwards != self._each) and self._left:
            self._counts, self._each, self._noun = True, n_forwards, noun
            self._bar.unit, self._bar.n = self._unit, self._done * n_forwards + self._within
            self._bar.total = self._beyond(self._bar.n, self._maps * n_forwards)
            self._bar.refresh()

    def _beyond(self, now: int, total: int) -> int:
        """The total, or while maps are left one that is not reached: looks at the explainer ask too, unannounced."""
        return now + self._each if self._left and now >= total else total

    def update(self, n_maps: int) -> None:
        """So many maps more are made."""
        self._left -= n_maps
        if self._counts:  # what was asked for the clean map and the looks at the explainer made none of the maps
            self._bar.n = self._done * self._each + self._within
            self._bar.total = self._bar.n + self._left * self._each
            self._bar.refresh()
        else:
            self._bar.update(n_maps)
            self._announce((self._maps - self._left) / self._maps)

    def set_postfix_str(self, text: str) -> None:
        """Text behind the bar."""
        self._bar.set_postfix_str(text)

    def _announce(self, share: float) -> None:
        """Say once how long a long run takes, as soon as it is known."""
        passed = time.monotonic() - self._started
        if self._said or passed < FIRST or not share:
            return
        self._said, whole = True, passed / min(share, 1.0)
        if whole < LONG:
            return
        of_each = f" × {self._each:,} {self._noun}" if self._counts else " maps"
        text = f"about {_in_words(whole)}; {self._method}, {self._maps:,}{of_each}"
        import logging  # which takes a while

        logging.getLogger("metfa").info(text)
        if self._shown:
            self._bar.write(text, file=sys.stderr)


def _in_words(seconds: float) -> str:
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 1.5 * size or (unit == "min" and seconds >= size):
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
