"""Writing an evaluation into a folder: its rows, its tables and its failures."""

from __future__ import annotations

import json
from pathlib import Path

from metfa._base.validation import as_path, check_kind
from metfa._base.writing import new_folder
from metfa.evaluation.results import Evaluation

__all__ = ["write_tables"]


def write_tables(evaluation: Evaluation, folder: str | Path) -> Path:
    """Write rows.csv, tables.md, tables.tex, one CSV a table, and failures.json if there are failures.

    It writes all files or nothing, into a new folder. The bytes depend only on the study and the figures of its units:
    a folder that holds the same bytes already is not changed.

    Raises
    ------
    FileExistsError
        If the folder exists and holds something else.
    """
    folder = as_path(folder, "folder")
    tables = check_kind(evaluation, "evaluation", Evaluation, "`metfa.evaluate`").tables()
    contents = {
        "rows.csv": evaluation.to_dataframe().to_csv(index=False, lineterminator="\n"),
        "tables.md": "\n".join(table.to_markdown() for table in tables),
        "tables.tex": "\n".join(table.to_latex() for table in tables),
        **{f"table-{number}.csv": table.to_csv() for number, table in enumerate(tables, start=1)},
    }
    if evaluation.failures:
        contents["failures.json"] = json.dumps(dict(evaluation.failures), indent=1, sort_keys=True)
    if folder.exists():
        if _holds(folder, contents):
            return folder
        raise FileExistsError(f"{folder} exists already and holds something else than these tables: give another one")
    with new_folder(folder) as temporary:
        for name, content in contents.items():
            (temporary / name).write_text(content, encoding="utf-8", newline="\n")
    return folder


def _holds(folder: Path, contents: dict[str, str]) -> bool:
    if not folder.is_dir() or {path.name for path in folder.iterdir()} != contents.keys():
        return False
    return all((folder / name).read_bytes() == content.encode() for name, content in contents.items())
