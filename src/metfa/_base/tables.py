"""Tables as text: in Markdown; and in CSV, whose names no spreadsheet takes for formulas."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from metfa._base.provenance import printable

__all__ = ["aligned", "as_cell", "csv_of", "escaped", "from_cell"]

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


FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")


def as_cell(text: str) -> str:
    """`text` as a cell that a spreadsheet shows and does not compute.

    A text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line end gets an apostrophe in front, which is the
    usual way (OWASP, "CSV injection"). So does one that begins with an apostrophe, so that `from_cell` finds each text
    again.
    """
    return f"'{text}" if text.startswith((*FORMULAS, "'")) else text


def from_cell(text: str) -> str:
    """The text that `as_cell` made a cell of."""
    return text[1:] if text.startswith("'") and text[1:].startswith((*FORMULAS, "'")) else text


def csv_of(lines: Sequence[Sequence[Any]]) -> str:
    """Lines as CSV, texts as of `as_cell`, None as an empty cell."""
    texts = [entry for line in lines for entry in line if isinstance(entry, str)]
    # A carriage return ends a line for readers, and Python quotes it only from version 3.13 on.
    quoting = csv.QUOTE_NONNUMERIC if any("\r" in text for text in texts) else csv.QUOTE_MINIMAL
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n", quoting=quoting)
    writer.writerows([as_cell(entry) if isinstance(entry, str) else entry for entry in line] for line in lines)
    return buffer.getvalue()
