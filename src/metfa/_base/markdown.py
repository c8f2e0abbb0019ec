"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from metfa._base.provenance import printable

__all__ = ["aligned", "escaped"]

SPECIAL = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", **{character: f"\\{character}" for character in "\\|`*_[]~#$"}}
)


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown; the first line holds the names of the columns, and cells are padded to equal width."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = [
        "| " + " | ".join(entry.ljust(width) for entry, width in zip(line, widths, strict=True)) + " |"
        for line in lines
    ]
    shown.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return shown


def escaped(text: str) -> str:
    """A name with its special characters escaped, so that Markdown shows it as it is."""
    return printable(text).translate(SPECIAL)
