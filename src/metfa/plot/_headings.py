"""The heading and the legend of a figure or of given axes: plain text from anybody, and what must not be missed."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.validation import shown
from metfa.plot._canvas import are_axes, room_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["LITERAL", "columns_that_fit", "draw_heading", "draw_legend"]

LITERAL: dict[str, Any] = {"parse_math": False, "usetex": False}  # text of others: no mathematics, no TeX
ALARM = "#a11212"
LINE = 11  # points from one line of small letters to the next
BESIDE = 6  # characters: the room of an entry's mark and its distance from the next


def draw_heading(
    place: Figure | Axes, title: str | None, width: int = 80, *, about: str | None = None, cautions: Sequence[str] = ()
) -> None:
    """Write lines of at most `width` characters above a figure or given axes; nothing if there are none.

    Below the `title` stands what the figure is `about`: the row and its class. With `cautions` the heading is red. Call
    it last: all texts there become plain, as names of others may be in them.
    """
    _make_plain(place)
    if title is not None and not isinstance(title, str):
        raise TypeError(f"`title` must be a text or None, got {shown(title)}")
    lines = [line for line in (title, about, *cautions) if line]
    if not lines:
        return
    small = title is None and not cautions
    width = room_of(place, width)
    write: Any = getattr(place, "set_title" if are_axes(place) else "suptitle")
    write(
        "\n".join(textwrap.fill(line, width) for line in lines),
        fontsize="medium" if small else "large",
        **({"color": ALARM} if cautions else {}),
        **LITERAL,
    )


def _make_plain(artist: Any) -> None:
    """Make all texts within an artist plain.

    Where axes are off, their ticks are left out: they have no names, and nobody sees them, but to look is to make them.
    So are ticks that matplotlib numbers by itself, where powers of ten may be its own mathematics.
    """
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.text import Text
    from matplotlib.ticker import LogFormatter, LogitFormatter, ScalarFormatter

    if isinstance(artist, Text):
        artist.set(**LITERAL)
    bare = isinstance(artist, Axes) and not artist.axison
    parts = artist.get_children()
    numbers = (ScalarFormatter, LogFormatter, LogitFormatter)
    if isinstance(artist, Axis) and isinstance(artist.get_major_formatter(), numbers):
        parts = [artist.label]
    for part in parts:
        if not (bare and isinstance(part, Axis)):
            _make_plain(part)


def draw_legend(
    place: Figure | Axes,
    handles: Sequence[Any],
    said: Sequence[str],
    *,
    room: int,
    width: int,
    most: int = 3,
    loc: Any = "outside lower center",
    **look: Any,
) -> None:
    """Write the entries of a legend below a figure or axes, under what is said, in lines of `width` characters.

    The entries stand in as many columns, at most `most`, as fit in `room` characters. Below axes the label of the
    horizontal axis is left free: call it after that is set.
    """
    room, width = room_of(place, room), room_of(place, width)
    place.legend(
        handles=handles,
        ncols=columns_that_fit(handles, room, most),
        frameon=False,
        fontsize="small",
        title="\n".join(textwrap.fill(line, width) for line in said) or None,
        title_fontsize="small",
        **(_below(place) if are_axes(place) else {"loc": loc}),
        **look,
    )


def _below(ax: Any) -> dict[str, Any]:
    """Where a legend stands below axes, their ticks and their label."""
    from matplotlib.transforms import ScaledTranslation

    label = ax.get_xlabel()
    lines = 2 * (ax.xaxis.get_ticks_position() != "top") + (label.count("\n") + 1 if label else 0)
    down = ScaledTranslation(0, -(LINE * lines + 4) / 72, ax.figure.dpi_scale_trans)
    return {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "bbox_transform": ax.transAxes + down}


def columns_that_fit(handles: Sequence[Any], width: int, most: int = 3) -> int:
    """Number of columns, at most `most`, with which a legend's entries fit in `width` characters."""
    lengths = [len(str(handle.get_label())) + BESIDE for handle in handles]
    for columns in range(most, 1, -1):
        parts = np.array_split(lengths, columns)  # as matplotlib does
        if sum(int(part.max(initial=0)) for part in parts) <= width:
            return columns
    return 1
