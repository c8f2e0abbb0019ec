"""`metfa report`: one page from several folders of results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from metfa._base.provenance import printable
from metfa.cli.options import Alpha, Confidence, Corrected, FlipsFrom, RegionsOf, Threshold
from metfa.cli.parsing import threshold_of
from metfa.cli.regions import check_regions, regions_named
from metfa.cli.run import read_folder, title_of
from metfa.results.cautions import FLIPS_FROM

__all__ = ["write_page"]


def write_page(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="Folders written by metfa.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="New file, ending with .html.")] = Path("metfa-report.html"),
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Explanations with error bars",
    alpha: Alpha = None,
    confidence: Confidence = 0.95,
    correction: Corrected = None,
    threshold: Threshold = None,
    flips_from: FlipsFrom = FLIPS_FROM,
    split: Annotated[
        int | None, typer.Option(min=1, help="Take a rule's threshold from this many first samples; test the others.")
    ] = None,
    regions: RegionsOf = "none",
) -> None:
    """Write one HTML file that shows results and lets readers try other levels and thresholds, without the model.

    A result of --until starts with its own threshold, alpha and correction. If results were decided at different
    levels, give --alpha and --correction, which hold for all of them.
    """
    from metfa.report.writing import numbered, write

    check_regions(regions)
    read = ((folder.name, *read_folder(folder)) for folder in folders)
    results = numbered((title_of(about) or name, result) for name, result, about in read)
    path = write(
        out,
        results,
        title=title,
        regions=None if regions == "none" else lambda sample: regions_named(regions, sample)[0],
        threshold=threshold_of(threshold),
        alpha=alpha,
        correction=None if correction is None else correction.value,
        split=split,
        confidence_level=confidence,
        flips_from=flips_from,
    )
    typer.echo(f"report: {printable(str(path))}")
