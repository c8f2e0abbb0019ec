"""Where a drawing goes: into a figure of its own, or into one that holds several side by side."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["new_figure", "one_of_several"]

PLACE: ContextVar[tuple[Any, list[tuple[float, float]]] | None] = ContextVar("place", default=None)


def new_figure(size: tuple[float, float], layout: Any) -> Figure:
    """A figure of this size in inches; within `one_of_several` the place there."""
    from matplotlib.figure import Figure

    place = PLACE.get()
    if place is None:
        return Figure(figsize=size, layout=layout)
    part, sizes = place
    sizes.append(size)
    return part


@contextmanager
def one_of_several(part: Any, sizes: list[tuple[float, float]]) -> Iterator[None]:
    """What is drawn here goes into `part` of a figure; the size that it asks for is added to `sizes`."""
    token = PLACE.set((part, sizes))
    try:
        yield
    finally:
        PLACE.reset(token)
