"""Pages as sections with tables and paragraphs, for `paper.claims`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby

__all__ = ["Section", "Table", "numbers", "plain", "sections"]

NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?!\w)")
FREE = ("*Setting:*", "*Aside:*")


def numbers(text: str) -> list[float]:
    """The numbers in a text, in their order."""
    return [float(found.replace(",", "").rstrip(".")) for found in NUMBER.findall(text)]


def plain(text: str) -> str:
    """Without line breaks and emphasis."""
    return " ".join(re.sub(r"\*+", "", text).removeprefix("- ").split())


@dataclass(frozen=True)
class Table:
    header: list[str]
    rows: list[list[str]]

    def at(self, row: str | int, column: str | int, place: int = 0) -> float:
        """A number in a cell, the first by default; rows and columns by their place or by how they begin."""
        line = self.rows[row] if isinstance(row, int) else _one(self.rows, row)
        where = column if isinstance(column, int) else next(
            k for k, name in enumerate(self.header) if name.startswith(column)
        )  # fmt: skip
        return numbers(line[where])[place]

    def column(self, column: str | int, place: int = 0) -> list[float]:
        return [self.at(row, column, place) for row in range(len(self.rows))]


def _one(rows: list[list[str]], start: str) -> list[str]:
    (found,) = [row for row in rows if " | ".join(row).startswith(start)]
    return found


@dataclass(frozen=True)
class Section:
    """Part of a page.

    Attributes
    ----------
    heading : str
    has_table : bool
        Whether a table stands in it, or the place of one that is made.
    tables : list of Table
        Those that were written by hand.
    sentences : list of str
        Paragraphs and items that no "Setting" or "Aside" begins, without what is made from the tables.
    asides : list of str
        Paragraphs that "Aside" begins; of what stands above the first heading, all but settings.
    """

    heading: str
    has_table: bool
    tables: list[Table]
    sentences: list[str]
    asides: list[str]


def sections(text: str) -> list[Section]:
    """Of a page; the first is what stands above the first heading."""
    first, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    above = [one for one in re.split(r"\n\s*\n", first) if one.strip() and not one.startswith(FREE[0])]
    found = [Section("", False, [], [], [plain(one) for one in above])]
    for part in parts:
        heading, _, whole = part.partition("\n")
        body = re.sub(r"<!-- made: \w+ -->.*?<!-- end -->", "", whole, flags=re.DOTALL)
        lines = body.split("\n")
        tables = [_table(list(group)) for is_row, group in groupby(lines, lambda line: line.startswith("|")) if is_row]
        words = "\n".join("" if line.startswith("|") else line for line in lines)
        paragraphs = [one for one in re.split(r"\n\s*\n|\n(?=- )", words) if one.strip()]
        sentences = [plain(one.strip()) for one in paragraphs if not one.strip().startswith(FREE)]
        asides = [plain(one.strip()) for one in paragraphs if one.strip().startswith(FREE[1])]
        found.append(Section(heading.strip(), bool(tables) or body != whole, tables, sentences, asides))
    return found


def _table(lines: list[str]) -> Table:
    cells = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    return Table(cells[0], cells[2:])
