"""`metfa evaluate`: a study over a data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from metfa._base.lazy import needs_extra
from metfa._base.provenance import printable
from metfa._base.writing import new_file
from metfa.allocator import keep_freed_memory
from metfa.cli.drawing import MARK_OF_FIGURES, png_of
from metfa.cli.folders import check_new
from metfa.cli.options import Correction, Overwrite
from metfa.cli.reported import resumable

if TYPE_CHECKING:
    from metfa.evaluation.tables import Table

__all__ = ["evaluate"]


def evaluate(
    study: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="What to measure.", show_default=False)],
    store: Annotated[str, typer.Option(help="Folder or URL (s3://bucket/folder, ...) of the results; runs resume.")],
    executor: Annotated[str, typer.Option(help="local, or ray: actors on this machine or a cluster.")] = "local",
    workers: Annotated[int, typer.Option(min=1, help="Actors of Ray.")] = 1,
    tables: Annotated[Path | None, typer.Option("--out", help="New folder for the tables.")] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="An explainer, or vanilla or mean: also show differences to it, input by input, tested.",
        ),
    ] = None,
    correction: Annotated[
        Correction | None, typer.Option(help="Of the tests of --against, over each table; by default holm.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Picture of the differences to --against, such as differences.png.")
    ] = None,
    overwrite: Overwrite = False,
    only_estimate: Annotated[bool, typer.Option("--estimate", help="Say what it will cost, and stop.")] = False,
    allow_import: Annotated[bool, typer.Option("--allow-import", help="Run code that the study names.")] = False,
    allow_download: Annotated[bool, typer.Option("--allow-download", help="Download weights it names.")] = False,
) -> None:
    """Measure explainers over a data set: stability, faithfulness, robust faithfulness, with 95% intervals."""
    from metfa.evaluation import prepare, read_study
    from metfa.evaluation.paired import checked_correction
    from metfa.evaluation.references import named_in
    from metfa.evaluation.run import check_executor
    from metfa.evaluation.written import ROWS, write_tables

    check_executor(executor, workers)
    if against is None and (correction is not None or figure is not None):
        raise ValueError(f"`--{'figure' if figure is not None else 'correction'}` is of differences: give `--against`")
    corrected = "holm" if correction is None else correction.value
    checked_correction(corrected)
    if store.startswith("memory:"):
        raise ValueError(f"`--store` {store!r} is this process's memory, which keeps nothing: give a folder or a URL")
    if tables is not None:
        with needs_extra("`--out`", "study"):
            import pandas as pd  # noqa: F401 - the tables need it at the end, perhaps hours later
    described = read_study(study, allow_import=allow_import, allow_download=allow_download)
    if against is not None:
        named_in(described, against)
    if figure is not None and (figure.suffix.lower() != ".png" or not figure.absolute().parent.is_dir()):
        raise ValueError(f"`--figure` must be a new .png file in a folder that exists, got {str(figure)!r}")
    if figure is not None:
        check_new(figure, MARK_OF_FIGURES, "--figure", overwrite=overwrite, kind="file")
    keep_freed_memory()
    with resumable("units"):
        prepared = prepare(described, store=store)
        if prepared.todo and tables is not None:
            check_new(tables, ROWS, overwrite=overwrite)
        typer.echo(
            f"{len(prepared.done):,} of {len({unit.address for unit in prepared.units}):,} units are in the store",
            err=True,
        )
        if prepared.todo:
            typer.echo("measuring what a unit costs ...", err=True)
            typer.echo(str(prepared.estimate()), err=True)
        if only_estimate:
            return
        result = prepared.run(executor, workers, progress=True)
    for table in result.tables():
        typer.echo(f"\n{table}")
    differences = [] if against is None else result.tables(against=against, correction=corrected)
    for table in differences:
        typer.echo(f"\n{table}")
    if tables is not None:
        write_tables(result, tables, against=against, correction=corrected, overwrite=overwrite)
        typer.echo(f"tables: {printable(str(tables))}")
    if figure is not None:
        _draw(differences, figure, overwrite=overwrite)
    if result.failures:
        raise typer.Exit(1)


def _draw(differences: list[Table], figure: Path, *, overwrite: bool) -> None:
    from metfa.plot import study_differences

    decided = [table for table in differences if table.holds_differences]
    if not decided:
        typer.echo(f"{printable(str(figure))} is not drawn: no input has both figures", err=True)
        return
    with new_file(figure, replace=overwrite) as file:
        file.write(png_of(study_differences(decided)))
    typer.echo(f"figure: {printable(str(figure))}")
