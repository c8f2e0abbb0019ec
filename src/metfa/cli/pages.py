"""`metfa report`: folders of results into one page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from metfa._base.provenance import printable
from metfa.cli.options import AlphaOrOwn, Confidence, CorrectedOrOwn, Correction, ThresholdOrOwn
from metfa.cli.parsing import threshold_of
from metfa.cli.run import read_folder, title_of

__all__ = ["write_page"]


def write_page(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="Folders written by metfa.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="New file, ending with .html.")] = Path("metfa-report.html"),
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Explanations with error bars",
    alpha: AlphaOrOwn = None,
    confidence: Confidence = 0.95,
    correction: CorrectedOrOwn = None,
    threshold: ThresholdOrOwn = None,
    split: Annotated[
        int | None, typer.Option(min=1, help="Take a rule's threshold from so many first samples, and test the others.")
    ] = None,
) -> None:
    """Write one HTML file to look at results in and to try other levels and thresholds, without the model.

    A result of --until starts with its own threshold, alpha and correction.
    """
    from metfa.report.writing import told_apart, write

    read = ((folder.name, *read_folder(folder)) for folder in folders)
    results = told_apart((title_of(about) or name, result) for name, result, about in read)
    decided = _as_sampled(results.values())
    if correction is not None:
        decided["correction"] = None if correction is Correction.none else correction.value
    if alpha is not None:
        decided["alpha"] = alpha
    path = write(
        out,
        results,
        title=title,
        threshold=None if threshold is None else threshold_of(threshold),
        split=split,
        confidence_level=confidence,
        **decided,
    )
    typer.echo(f"report: {printable(str(path))}")


def _as_sampled(results: Iterable[Any]) -> dict[str, Any]:
    """Alpha and correction by which `--until` decided, where it did so in the same way for all results."""
    terms = set()
    for result in results:
        stopping = getattr(result, "stopping", None)
        terms.add((stopping.alpha, stopping.correction) if stopping is not None and stopping.tested else None)
    first = terms.pop()
    return {} if terms or first is None else {"alpha": first[0], "correction": first[1]}
