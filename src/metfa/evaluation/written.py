"""Writing an evaluation into a folder: its rows, its tables and its failures."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from metfa._base.tables import csv_of, from_cell
from metfa._base.validation import as_path, check_flag, check_kind
from metfa._base.writing import new_file, new_folder
from metfa.evaluation.differences import check_alone
from metfa.evaluation.results import ALL_COLUMNS, FIGURES, Evaluation, frame_of
from metfa.evaluation.tables import Table

__all__ = ["ROWS", "read_rows", "write_tables"]

ROWS = "rows.csv"


def write_tables(
    evaluation: Evaluation,
    folder: str | Path,
    *,
    against: str | Evaluation | None = None,
    correction: str | None = "holm",
    overwrite: bool = False,
) -> Path:
    """Write rows.csv, tables.md, tables.tex, one CSV a table, and failures.json if there are failures.

    With `against` it also writes the tables of differences: differences.md, differences.tex and one CSV a table; see
    `Evaluation.table` for `against` and `correction`.

    It writes all files or nothing, into a new folder. The bytes depend only on the study and the figures of its units:
    a folder that holds the same bytes already is not changed, and with `overwrite` other tables of a study are
    replaced. In the CSV files a name that a spreadsheet would take for
    a formula, one that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line end, has an apostrophe in front, and so
    has one that begins with an apostrophe; `read_rows` removes it.

    Raises
    ------
    FileExistsError
        If the folder exists and holds something else than tables of a study, or other ones without `overwrite`.
    """
    folder = as_path(folder, "folder")
    tables = check_kind(evaluation, "evaluation", Evaluation, "`metfa.evaluate`").tables()
    contents = {ROWS: _rows_of(evaluation), **_texts_of(tables, "table")}
    if against is not None:
        contents |= _texts_of(evaluation.tables(against=against, correction=correction), "difference")
    else:
        check_alone(correction)
    if evaluation.failures:
        contents["failures.json"] = json.dumps(dict(evaluation.failures), indent=1, sort_keys=True)
    if folder.exists() and _holds(folder, contents):
        return folder
    if not check_flag(overwrite, "overwrite") and folder.exists():
        raise FileExistsError(
            f"{folder} exists already and holds something else than these tables: give another one, or overwrite=True"
        )
    with new_folder(folder, replaces=ROWS if overwrite else None) as temporary:
        for name, content in contents.items():
            with new_file(temporary / name) as file:
                file.write(content.encode())
    return folder


def _texts_of(tables: Sequence[Table], noun: str) -> dict[str, str]:
    """Tables in all forms, by the names of their files."""
    return {
        f"{noun}s.md": "\n".join(table.to_markdown() for table in tables),
        f"{noun}s.tex": "\n".join(table.to_latex() for table in tables),
        **{f"{noun}-{number}.csv": table.to_csv() for number, table in enumerate(tables, start=1)},
    }


def read_rows(path: str | Path) -> Any:
    """Read the rows that `write_tables` wrote: a pandas.DataFrame equal to `Evaluation.to_dataframe`.

    Parameters
    ----------
    path : path
        The folder of the tables, or its file ``rows.csv``.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it has other columns.
    """
    path = Path(path).expanduser()
    path = path / ROWS if path.is_dir() else path
    with path.open(encoding="utf-8", newline="") as file:
        columns, *lines = csv.reader(file)
    if tuple(columns) != ALL_COLUMNS:
        raise ValueError(f"{path} holds no rows of a study: its columns are {', '.join(columns)}")
    return frame_of([{name: _read(name, text) for name, text in zip(columns, line, strict=True)} for line in lines])


def _read(name: str, text: str) -> Any:
    if not text:
        return None
    return from_cell(text) if _kind(name) is str else _kind(name)(text)


def _kind(name: str) -> type:
    return float if name in FIGURES else int if name == "n_samples" else str


def _rows_of(evaluation: Evaluation) -> str:
    lines = [
        [None if (value := row[name]) is None else _kind(name)(value) for name in ALL_COLUMNS]
        for row in evaluation.rows
    ]
    return csv_of([ALL_COLUMNS, *lines])


def _holds(folder: Path, contents: dict[str, str]) -> bool:
    if not folder.is_dir() or {path.name for path in folder.iterdir()} != contents.keys():
        return False
    return all((folder / name).read_bytes() == content.encode() for name, content in contents.items())
