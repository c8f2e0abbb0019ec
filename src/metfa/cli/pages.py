"""`metfa report`: one page from several folders of results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from metfa._base.provenance import printable
from metfa.cli.folders import check_new, read_folder
from metfa.cli.options import Alpha, Confidence, Corrected, FlipsFrom, Overwrite, RegionsOfAny, Threshold
from metfa.cli.parsing import threshold_of
from metfa.cli.readings import Kinds, in_options, kind_for, kinds_of
from metfa.cli.regions import check_regions, parts_of
from metfa.cli.run import Analysis
from metfa.cli.titles import title_of
from metfa.results.cautions import FLIPS_FROM
from metfa.results.regions import Regions
from metfa.text.answers.tree import AnswerTree

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
    regions: RegionsOfAny = None,
    kinds: Kinds = None,
    overwrite: Overwrite = False,
) -> None:
    """Write one HTML file that shows results and lets readers try other levels and thresholds, without the model.

    A result of --until starts with its own threshold, alpha and correction. If results were decided at different
    levels, give --alpha and --correction, which hold for all of them.
    """
    from metfa.report.writing import MARK, numbered, write

    check_regions(regions)
    if out.suffix.lower() in (".html", ".htm"):  # else `write` says what is wrong
        check_new(out, MARK, overwrite=overwrite, kind="file")
    rule, given = threshold_of(threshold), None if correction is None else correction.value
    analysis = Analysis(
        alpha, confidence, given, rule, "", flips_from=flips_from, regions=regions, split=split, kinds=kinds_of(kinds)
    )  # fmt: skip
    read = [(folder, *read_folder(folder)) for folder in folders]
    asked = numbered(
        (heading, (folder, one, about))
        for folder, result, about in read
        for heading, one in _headed(folder, result, about)
    )
    beside, known = {}, {}
    for name, (folder, result, about) in asked.items():
        with _of_folder(folder):
            beside[name], kind = _regions_of(result, analysis, about), kind_for(result, analysis.kinds)
            known |= {} if kind is None else {name: kind}
    with in_options():
        path = write(
            out,
            {name: result for name, (_, result, _) in asked.items()},
            title=title,
            regions=beside,
            threshold=rule,
            alpha=alpha,
            correction=given,
            split=split,
            confidence_level=confidence,
            flips_from=flips_from,
            kind=known or None,
            overwrite=overwrite,
        )
    typer.echo(f"report: {printable(str(path))}")


def _headed(folder: Path, result: Any, about: dict[str, Any]) -> list[tuple[str, Any]]:
    """A result with its heading; each level of a tree of an answer."""
    title = title_of(about) or folder.name
    if isinstance(result, AnswerTree):
        return [(f"{title} {heading}", level) for heading, level in result.headed.items()]
    return [(title, result)]


@contextmanager
def _of_folder(folder: Path) -> Iterator[None]:
    """Errors name the folder."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from error


def _regions_of(result: Any, analysis: Analysis, about: dict[str, Any]) -> Regions | None:
    parts = parts_of(result, analysis, about)
    return None if parts is None else parts.regions
