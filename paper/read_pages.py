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
    """Attributes: its heading, its tables that were written by hand, and its paragraphs beside them.

    `sentences` are those that no "Setting" or "Aside" begins; parts that are made from the tables are left out.
    """

    heading: str
    tables: list[Table]
    sentences: list[str]


def sections(text: str) -> list[Section]:
    """Of a page; what stands above the first of them is left out."""
    text = re.sub(r"<!-- made: \w+ -->.*?<!-- end -->", "", text, flags=re.DOTALL)
    found = []
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        lines = body.split("\n")
        tables = [_table(list(group)) for is_row, group in groupby(lines, lambda line: line.startswith("|")) if is_row]
        words = "\n".join("" if line.startswith("|") else line for line in lines)
        paragraphs = [one for one in re.split(r"\n\s*\n|\n(?=- )", words) if one.strip()]
        sentences = [plain(one.strip()) for one in paragraphs if not one.strip().startswith(FREE)]
        found.append(Section(heading.strip(), tables, sentences))
    return found


def _table(lines: list[str]) -> Table:
    cells = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    return Table(cells[0], cells[2:])
