"""Lines of a terminal: broken at blanks, as wide as their characters are."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

__all__ = ["broken", "columns_of", "cut", "flow"]


def flow(text: str) -> Iterator[tuple[str, str]]:
    """Pieces of a text that may be broken at its blanks, each as plain text and as it is shown."""
    return ((piece, piece) for piece in re.findall(r"\n| +|[^ \n]+", text))


def broken(pieces: Iterable[tuple[str, str]], width: int) -> list[str]:
    """Lines of at most `width` columns, broken at blanks where there are any."""
    lines, line, used = [], "", 0
    run, run_columns, blanks = "", 0, 0  # text since the last blanks, its columns, and the number of these blanks
    for plain, shown in [*pieces, ("\n", "\n")]:
        if not plain.isspace():
            run, run_columns = run + shown, run_columns + columns_of(plain)
            continue
        if run:
            if line and used + blanks + run_columns > width:
                lines.append(line)
                line, used, blanks = "", 0, 0
            line, used = line + " " * blanks + run, used + blanks + run_columns
            run, run_columns, blanks = "", 0, 0
        if plain == "\n":
            lines.append(line)
            line, used, blanks = "", 0, 0
        elif line:
            blanks = min(blanks + len(plain), width)
    return lines


def columns_of(text: str) -> int:
    """Columns that a terminal needs for a text."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.category(c) in ("Mn", "Me", "Cf") else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def cut(word: str, longest: int = 24) -> str:
    """A word of at most so many characters."""
    return word if len(word) <= longest else word[: longest - 1] + "…"
