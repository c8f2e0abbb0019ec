"""A progress bar for long work, and word from deep inside of how far a step is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from metfa._base.lazy import needs_extra

__all__ = ["Watcher", "asked", "check_bar", "expected", "progress_bar", "watched_by"]


class Watcher(Protocol):
    """Who shows how far a step is."""

    def asked(self, n_rows: int) -> None:
        """A model has been asked about so many rows."""
        ...

    def expected(self, n_forwards: int, noun: str) -> None:
        """One map will ask about so many rows, which are called so, such as "masks"."""
        ...


_watcher: ContextVar[Watcher | None] = ContextVar("metfa_watcher", default=None)


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Context in which `asked` and `expected` reach the watcher."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def asked(n_rows: int) -> None:
    """Say that a model has been asked about so many rows."""
    if (watcher := _watcher.get()) is not None:
        watcher.asked(n_rows)


def expected(n_forwards: int, noun: str) -> None:
    """Say how many rows one map asks about, where only the explainer's first steps show it."""
    if (watcher := _watcher.get()) is not None:
        watcher.expected(n_forwards, noun)


class _Silent:
    n = total = 0
    unit = ""

    def __enter__(self) -> _Silent:
        return self

    def __exit__(self, *_: object) -> None: ...

    def update(self, n: int) -> None: ...

    def refresh(self) -> None: ...

    def set_postfix_str(self, s: str) -> None: ...

    def write(self, text: str, file: Any) -> None: ...


def progress_bar(total: int, done: int, *, shown: bool, unit: str, doing: str, extra: str) -> Any:
    """A bar of tqdm, or one that shows nothing; the rate does not count the part that is already `done`."""
    if not shown:
        return _Silent()
    bars = _bars(extra)
    return bars(total=total, initial=done, unit=unit, desc=doing, dynamic_ncols=True, smoothing=0.1)


def check_bar(extra: str) -> None:
    """Raise if no bar can be shown."""
    _bars(extra)


def _bars(extra: str) -> Any:
    with needs_extra("`progress`", extra):
        from tqdm.auto import tqdm
    return tqdm
