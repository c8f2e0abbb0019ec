"""Who may use what all threads share: a model's modules, and the global random generators.

A thread that guards a model owns all its modules until it lets go, and other threads that guard one of them wait. A
thread may take again what it owns. Threads that take different models do not meet.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager

from metfa._base.warnings import ModelStateWarning, warn

__all__ = ["acting_for", "current_owner", "owned"]

PATIENCE = 60.0  # seconds of waiting after which the thread says that it waits

_changed = threading.Condition()
_owners: dict[Hashable, tuple[int, int]] = {}  # what is owned: by whom, and how often it was taken
_wanted: dict[int, Sequence[Hashable]] = {}  # what an owner waits for
_acting = threading.local()


def current_owner() -> int:
    """The owner as which this thread takes things: itself, or the one that it acts for."""
    return getattr(_acting, "owner", None) or threading.get_ident()


def acting_for(owner: int) -> None:
    """Let this thread, a worker, use what `owner` owns."""
    _acting.owner = owner


@contextmanager
def owned(things: Sequence[Hashable]) -> Iterator[None]:
    """Own all the things, or wait until no other thread owns any of them.

    Raises
    ------
    RuntimeError
        If two threads wait for each other, because each owns what the other one wants.
    """
    me, taken = current_owner(), []
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
        with _changed:
            for thing in taken:
                times = _owners[thing][1]
                if times == 1:
                    del _owners[thing]
                else:
                    _owners[thing] = me, times - 1
            _changed.notify_all()


def _wait(things: Sequence[Hashable], me: int) -> None:
    since, said = time.monotonic(), False
    while in_the_way := _others(things, me):
        _wanted[me] = things
        if _waits_for(in_the_way, me):
            raise RuntimeError(
                "two threads wait for each other's model: each explains one and asks for the other's. Ask for the "
                "models in the same order in all threads, or give each thread copies of its own (`copy.deepcopy`)"
            )
        _changed.wait(timeout=1.0)
        if not said and time.monotonic() - since > PATIENCE:
            said = True
            warn(
                f"this thread has waited {PATIENCE:.0f} seconds for a model that another thread explains; if that "
                "thread waits for this one in turn, neither will end: give each thread a copy of the model "
                "(`copy.deepcopy`)",
                ModelStateWarning,
            )


def _others(things: Sequence[Hashable], me: int) -> set[int]:
    return {owner for thing in things if (owner := _owners.get(thing, (me, 0))[0]) != me}


def _waits_for(owners: set[int], me: int) -> bool:
    """Whether one of the owners waits, perhaps through others, for what I own."""
    seen: set[int] = set()
    while owners:
        owner = owners.pop()
        if owner == me:
            return True
        if owner not in seen:
            seen.add(owner)
            owners |= _others(_wanted.get(owner, ()), owner)
    return False
