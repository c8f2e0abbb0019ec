"""CSV files whose names no spreadsheet takes for formulas, and which are read as they were written."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

__all__ = ["as_cell", "csv_of", "from_cell"]

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
