"""Where a drawing goes: into a figure of its own, into the axes or the figure that are given, or beside others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from metfa._base.validation import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["are_axes", "new_axes", "new_figure", "one_of_several", "room_of"]

PLACE: ContextVar[tuple[Any, list[tuple[float, float]]] | None] = ContextVar("place", default=None)
PER_INCH = 14  # small letters


def new_figure(size: tuple[float, float], layout: Any, given: Any = None) -> Any:
    """A figure of this size in inches, or the empty one that is given; within `one_of_several` the place there."""
    from matplotlib.figure import Figure

    if given is not None:
        return _checked_figure(given)
    place = PLACE.get()
    if place is None:
        return Figure(figsize=size, layout=layout)
    part, sizes = place
    sizes.append(size)
    return part


def new_axes(size: tuple[float, float], given: Any = None, *, named: str = "") -> tuple[Any, Axes]:
    """What a drawing of one panel returns, and the panel: a new figure and its axes, or the axes that are given.

    `named`: the axes, "y" or "xy", whose ticks have the names of features.
    """
    if given is None:
        fig = new_figure(size, "constrained")
        return fig, fig.subplots()
    return given, _checked_axes(given, named)


def room_of(place: Any, most: int) -> int:
    """How many small letters fit beside each other in a figure of ours (`most`), or in axes that were given."""
    if not are_axes(place):
        return most
    return min(most, max(30, int(PER_INCH * place.bbox.width / place.figure.dpi)))


def are_axes(place: Any) -> bool:
    """Whether a drawing goes into axes that were given."""
    from matplotlib.axes import Axes

    return isinstance(place, Axes)


@contextmanager
def one_of_several(part: Any, sizes: list[tuple[float, float]]) -> Iterator[None]:
    """What is drawn here goes into `part` of a figure; the size that it asks for is added to `sizes`."""
    token = PLACE.set((part, sizes))
    try:
        yield
    finally:
        PLACE.reset(token)


def _checked_axes(given: Any, named: str) -> Any:
    """The axes that are given; raises unless they are plain, and where names would stand at bars of other drawings."""
    if not are_axes(given):
        hint = ", with `.subplots()` of that figure" * hasattr(given, "subplots")
        raise TypeError(f"`ax` must be axes of matplotlib, such as `plt.subplots()[1]`, got {shown(given)}{hint}")
    if given.name != "rectilinear":
        raise ValueError(f"`ax` must be plain axes, got {given.name} ones: leave `projection` out")
    if named and given.has_data():
        raise ValueError("`ax` has a drawing already, which would get other names at its ticks: give empty axes")
    for name in named:
        if len(getattr(given, f"get_shared_{name}_axes")().get_siblings(given)) > 1:
            raise ValueError(
                f"`ax` shares its {name} axis, so that the names of its features would stand at those of other axes, "
                f"too: write `plt.subplots(..., share{name}=False)`"
            )
    return given


def _checked_figure(given: Any) -> Any:
    """The figure or subfigure that is given; raises unless it is empty and makes room for titles and legends."""
    from matplotlib.figure import FigureBase
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    if not isinstance(given, FigureBase):
        raise TypeError(
            f"`fig` must be a figure or subfigure of matplotlib, as there are several panels, got {shown(given)}: "
            "write `fig=plt.figure(layout='constrained')`, or one of its `.subfigures(1, 2)`"
        )
    if given.axes or given.subfigs:
        raise ValueError("`fig` has axes already: give an empty figure, or one of its `.subfigures(1, 2)`")
    root: Any = given.figure
    if not isinstance(root.get_layout_engine(), ConstrainedLayoutEngine):
        raise ValueError(
            "`fig` must make room for titles and legends, or they hide each other: write "
            "`plt.figure(layout='constrained')`"
        )
    return given
