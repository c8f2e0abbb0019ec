"""The heading of a figure: plain text from anybody, in lines that fit."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from metfa.plot._palettes import LITERAL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_heading"]


def draw_heading(fig: Figure, title: str | None, width: int = 80) -> None:
    """Write `title` above a figure, at most `width` characters in a line; write nothing for None."""
    if title is None:
        return
    if not isinstance(title, str):
        raise TypeError(f"`title` must be a text or None, got {type(title).__name__}: {title!r:.80}")
    fig.suptitle(textwrap.fill(title, width), fontsize="large", **LITERAL)
