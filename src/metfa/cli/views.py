"""The figures, the page and the report of a result, in a folder."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import typer

from metfa._base.provenance import printable
from metfa._base.writing import new_file, sweep
from metfa.cli.drawing import VIEWS, drawn_views
from metfa.cli.folders import REPORT, is_finished
from metfa.cli.regions import parts_of
from metfa.cli.report import report
from metfa.cli.run import Analysis
from metfa.cli.titles import title_of
from metfa.results.arrays import require_plain_file

__all__ = ["check_finished", "print_views", "print_words", "views_of_call", "write_files", "write_views"]


def write_views(
    sample: Any, about: dict[str, Any], analysis: Analysis, folder: Path, *, overwrite: bool = False
) -> tuple[str, list[Path]]:
    """Write the figures, the page, and last the report, into a folder that has none of them.

    Returns the report's text, and where the figures are.
    """
    parts = parts_of(sample, analysis, about)
    text, drawn = report(sample, about, analysis, parts), drawn_views(sample, about, analysis, parts)
    for name in (REPORT, *drawn):
        if (folder / name).exists() and not overwrite:
            raise FileExistsError(f"{folder / name} exists already: give another `--out`, or --overwrite")
    folder.mkdir(parents=True, exist_ok=True)
    if is_finished(folder):
        _remove_others(folder, drawn)
    return text, write_files(folder, drawn, text)


def views_of_call(
    sample: Any, about: dict[str, Any], analysis: Analysis, folder: Path, *, overwrite: bool = False
) -> tuple[str, list[Path]]:
    """The same in the folder of the samples: what an interrupted command has left is written again.

    If the command was finished, nothing is written, and it says so.
    """
    parts = parts_of(sample, analysis, about)
    text = report(sample, about, analysis, parts)
    if overwrite or not is_finished(folder):
        drawn = drawn_views(sample, about, analysis, parts)
        _remove_others(folder, drawn)
        return text, write_files(folder, drawn, text)
    check_finished(folder, text, "give another `--out`, or --overwrite")
    return text, sorted(path for path in folder.iterdir() if path.suffix in (".png", ".html"))


def _remove_others(folder: Path, drawn: Collection[str]) -> None:
    """Remove views of an earlier call on other terms, those of single inputs too, which nothing replaces."""
    for path in folder.iterdir():
        if path.name not in drawn and re.sub(r"-\d+(?=\.)", "", path.name) in VIEWS:
            path.unlink()


def check_finished(folder: Path, text: str, instead: str = "give another `--out`") -> None:
    """Say that a folder holds this report already; raises a FileExistsError if it holds another."""
    require_plain_file(folder / REPORT)
    if (folder / REPORT).read_bytes() != f"{text}\n".encode():
        raise FileExistsError(
            f"{folder} holds a finished result on other terms: `metfa show {folder}` reads it; {instead}"
        )
    typer.echo(f"{printable(str(folder))} holds the finished result of this command: nothing is written", err=True)


def write_files(folder: Path, drawn: dict[str, bytes], text: str) -> list[Path]:
    """Write files of one command in place of those that it may have left, and last the report; where the others are."""
    sweep(folder)
    for name, content in {**drawn, REPORT: f"{text}\n".encode()}.items():
        with new_file(folder / name, replace=True) as file:
            file.write(content)
    return [folder / name for name in drawn]


def print_words(sample: Any, about: dict[str, Any], analysis: Analysis) -> None:
    """Print a text with its significant words marked."""
    from metfa.text import render_terminal

    typer.echo(f"{render_terminal(sample, title=title_of(about), **analysis.settings)}\n")


def print_views(text: str, figures: list[Path]) -> None:
    """Print a report, and where the figures and pages are."""
    typer.echo(f"{text}\n" if figures else text)
    for path in figures:
        typer.echo(f"{'page' if path.suffix == '.html' else 'figure'}: {printable(str(path))}")
