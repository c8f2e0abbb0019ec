"""`metfa report`: folders of results into one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from metfa._provenance import printable
from metfa.cli.options import AlphaOrOwn, Confidence, Corrected, Correction, ThresholdOrOwn
from metfa.cli.parsing import threshold_of
from metfa.cli.run import read_folder, title_of

__all__ = ["write_page"]


def write_page(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="Folders written by metfa.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="New file, ending with .html.")] = Path("metfa-report.html"),
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Explanations with error bars",
    alpha: AlphaOrOwn = None,
    confidence: Confidence = 0.95,
    correction: Corrected = Correction.none,
    threshold: ThresholdOrOwn = None,
) -> None:
    """Write one HTML file to look at results in and to try other levels and thresholds, without the model."""
    from metfa.report.writing import told_apart, write

    read = ((folder.name, *read_folder(folder)) for folder in folders)
    path = write(
        out,
        told_apart((title_of(about) or name, result) for name, result, about in read),
        title=title,
        threshold=None if threshold is None else threshold_of(threshold),
        alpha=alpha,
        correction=None if correction is Correction.none else correction.value,
        confidence_level=confidence,
    )
    typer.echo(f"report: {printable(str(path))}")
