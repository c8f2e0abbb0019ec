"""`metfa show`: results again, also with other levels, without the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from metfa.cli.folders import read_folder
from metfa.cli.kinds import is_of_text
from metfa.cli.options import (
    Alpha,
    Colours,
    Confidence,
    Corrected,
    Correction,
    FlipsFrom,
    Overwrite,
    Palette,
    RegionsOfAny,
    Threshold,
)
from metfa.cli.parsing import threshold_of
from metfa.cli.readings import Kinds, kinds_of
from metfa.cli.regions import check_regions, parts_of
from metfa.cli.report import report
from metfa.cli.run import Analysis
from metfa.cli.views import print_views, print_words, write_views
from metfa.results.cautions import FLIPS_FROM

__all__ = ["analysis_of", "show"]


def show(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder written by metfa.", show_default=False)],
    alpha: Alpha = None,
    confidence: Confidence = 0.95,
    correction: Corrected = None,
    threshold: Threshold = None,
    flips_from: FlipsFrom = FLIPS_FROM,
    regions: RegionsOfAny = None,
    kinds: Kinds = None,
    palette: Palette = Colours.colourblind,
    views: Annotated[
        Path | None, typer.Option("--out", help="Folder for figures, a page and a report with these settings.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Show results again, also with other levels, without the model."""
    sample, about = read_folder(folder)
    analysis = analysis_of(alpha, confidence, correction, threshold, palette, flips_from, regions, kinds)
    if views is None:
        text, figures = report(sample, about, analysis, parts_of(sample, analysis, about)), []
    else:
        text, figures = write_views(sample, about, analysis, views, overwrite=overwrite)
    if is_of_text(sample):
        print_words(sample, about, analysis)
    print_views(text, figures)


def analysis_of(
    alpha: float | None,
    confidence: float,
    correction: Correction | None,
    threshold: str | None,
    palette: Colours,
    flips_from: float,
    regions: str | None = None,
    kinds: Sequence[str] | None = None,
) -> Analysis:
    """How samples are read, from the options of a command."""
    check_regions(regions)
    given = None if correction is None else correction.value
    rule = threshold_of(threshold)
    return Analysis(
        alpha, confidence, given, rule, palette.value, flips_from=flips_from, regions=regions, kinds=kinds_of(kinds)
    )  # fmt: skip
