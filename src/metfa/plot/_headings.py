"""The heading and the legend of a figure: plain text from anybody, and what must not be missed."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.validation import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LITERAL", "columns_that_fit", "draw_heading", "draw_legend"]

LITERAL: dict[str, Any] = {"parse_math": False, "usetex": False}  # text of others: no mathematics, no TeX
ALARM = "#a11212"
BESIDE = 6  # characters: the room of an entry's mark and its distance from the next


def draw_heading(
    fig: Figure, title: str | None, width: int = 80, *, about: str | None = None, cautions: Sequence[str] = ()
) -> None:
    """Write lines of at most `width` characters above a figure; nothing if there are none.

    Below the `title` stands what the figure is `about`: the row and its class. With `cautions` the heading is red. Call
    it last: all texts of the figure become plain, as names of others may be in them.
    """
    _make_plain(fig)
    if title is not None and not isinstance(title, str):
        raise TypeError(f"`title` must be a text or None, got {shown(title)}")
    lines = [line for line in (title, about, *cautions) if line]
    if not lines:
        return
    small = title is None and not cautions
    fig.suptitle(
        "\n".join(textwrap.fill(line, width) for line in lines),
        fontsize="medium" if small else "large",
        **({"color": ALARM} if cautions else {}),
        **LITERAL,
    )


def _make_plain(artist: Any) -> None:
    """Make all texts within an artist plain.

    Where axes are off, their ticks are left out: they have no names, and nobody sees them, but to look is to make them.
    """
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.text import Text

    if isinstance(artist, Text):
        artist.set(**LITERAL)
    bare = isinstance(artist, Axes) and not artist.axison
    for part in artist.get_children():
        if not (bare and isinstance(part, Axis)):
            _make_plain(part)


def draw_legend(
    fig: Figure,
    handles: Sequence[Any],
    said: Sequence[str],
    *,
    room: int,
    width: int,
    most: int = 3,
    loc: Any = "outside lower center",
    **look: Any,
) -> None:
    """Write the entries of a legend below a figure, under what is said, in lines of at most `width` characters.

    The entries stand in as many columns, at most `most`, as fit in `room` characters.
    """
    fig.legend(
        handles=handles,
        loc=loc,
        ncols=columns_that_fit(handles, room, most),
        frameon=False,
        fontsize="small",
        title="\n".join(textwrap.fill(line, width) for line in said) or None,
        title_fontsize="small",
        **look,
    )


def columns_that_fit(handles: Sequence[Any], width: int, most: int = 3) -> int:
    """Number of columns, at most `most`, with which a legend's entries fit in `width` characters."""
    lengths = [len(str(handle.get_label())) + BESIDE for handle in handles]
    for columns in range(most, 1, -1):
        parts = np.array_split(lengths, columns)  # as matplotlib does
        if sum(int(part.max(initial=0)) for part in parts) <= width:
            return columns
    return 1
