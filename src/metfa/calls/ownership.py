"""Who may use what all threads share: a model's modules, and the global random generators.

A thread that guards a model owns all its modules until it lets go, and other threads that guard one of them wait. A
thread may take again what it owns. Threads that take different models do not meet.

Ownership belongs to a context of `contextvars`. So a thread that runs in a copy of its starter's context may use what
the starter owns.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from metfa._base.warnings import ModelStateWarning, warn

__all__ = ["owned"]

PATIENCE = 60.0  # seconds of waiting after which the thread says that it waits
STUCK = 30.0  # seconds in one wait for other threads, after which an owner counts as waiting for this one
CHECK = 1.0  # seconds from one look at the owners to the next


class _Owner:
    """Somebody who owns things; a new one each time that a thread takes its first."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()


_changed = threading.Condition()
_owners: dict[Hashable, tuple[_Owner, int]] = {}  # what is owned: by whom, and how often it was taken
_wanted: dict[_Owner, Sequence[Hashable]] = {}  # what an owner waits for
_current: ContextVar[_Owner | None] = ContextVar("metfa_owner", default=None)


@contextmanager
def owned(things: Sequence[Hashable]) -> Iterator[None]:
    """Own all the things, or wait until nobody else owns any of them.

    Raises
    ------
    RuntimeError
        If two threads wait for each other, because each owns what the other one wants, or because the owner waits for
        threads that it has started.
    """
    outer = _current.get()
    me = outer or _Owner()
    taken = []
    _current.set(me)
    try:
        with _changed:
            try:
                _wait(things, me)
            finally:
                _wanted.pop(me, None)
            for thing in things:
                _owners[thing] = me, _owners.get(thing, (me, 0))[1] + 1
                taken.append(thing)
        yield
    finally:
        _current.set(outer)
        with _changed:
            for thing in taken:
                times = _owners[thing][1]
                if times == 1:
                    del _owners[thing]
                else:
                    _owners[thing] = me, times - 1
            _changed.notify_all()


def _wait(things: Sequence[Hashable], me: _Owner) -> None:
    since, said = time.monotonic(), False
    waits: dict[_Owner, tuple[Any, float]] = {}  # in which wait for other threads each owner stands, and since when
    while in_the_way := _others(things, me):
        _wanted[me] = things
        if _waits_for(set(in_the_way), me):
            raise RuntimeError(
                "two threads wait for each other's model: each explains one and asks for the other's. Ask for the "
                "models in the same order in all threads, or give each thread copies of its own (`copy.deepcopy`)"
            )
        now = time.monotonic()
        waits = {owner: _wait_of(owner, waits.get(owner), now) for owner in in_the_way - _wanted.keys()}
        if any(wait is not None and now - begun > STUCK for wait, begun in waits.values()):
            raise RuntimeError(
                "this thread asks for a model that another thread explains, and that one waits for other threads. If "
                "an explainer starts threads that ask its model, write `pool.submit(contextvars.copy_context().run, "
                "function, ...)`; otherwise give each thread a copy of the model (`copy.deepcopy`)"
            )
        _changed.wait(timeout=CHECK)
        if not said and time.monotonic() - since > PATIENCE:
            said = True
            warn(
                f"this thread has waited {PATIENCE:.0f} seconds for a model that another thread explains; to work at "
                "the same time, give each thread a copy of the model (`copy.deepcopy`)",
                ModelStateWarning,
            )


def _wait_of(owner: _Owner, before: tuple[Any, float] | None, now: float) -> tuple[Any, float]:
    """The call in which an owner's thread waits for other threads, None if it does not, and since when."""
    frame = sys._current_frames().get(owner.thread)
    if frame is None or frame.f_globals.get("__name__") != "threading":
        return None, now
    return before if before is not None and before[0] is frame else (frame, now)


def _others(things: Sequence[Hashable], me: _Owner) -> set[_Owner]:
    return {owner for thing in things if (owner := _owners.get(thing, (me, 0))[0]) is not me}


def _waits_for(owners: set[_Owner], me: _Owner) -> bool:
    """Whether one of the owners waits, perhaps through others, for what I own."""
    seen: set[_Owner] = set()
    while owners:
        owner = owners.pop()
        if owner is me:
            return True
        if owner not in seen:
            seen.add(owner)
            owners |= _others(_wanted.get(owner, ()), owner)
    return False
