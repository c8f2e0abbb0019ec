"""A progress bar for long work, with its rate and the time left."""

from __future__ import annotations

from typing import Any

from metfa._base.lazy import needs_extra

__all__ = ["progress_bar"]


class _Silent:
    def __enter__(self) -> _Silent:
        return self

    def __exit__(self, *_: object) -> None: ...

    def update(self, n: int) -> None: ...

    def set_postfix_str(self, s: str) -> None: ...

    def write(self, text: str, file: Any) -> None: ...


def progress_bar(total: int, done: int, *, shown: bool, unit: str, doing: str, extra: str) -> Any:
    """A bar of tqdm, or one that shows nothing; the rate does not count the part that is already `done`."""
    if not shown:
        return _Silent()
    with needs_extra("`progress`", extra):
        from tqdm.auto import tqdm

    return tqdm(total=total, initial=done, unit=unit, desc=doing, dynamic_ncols=True, smoothing=0.1)
