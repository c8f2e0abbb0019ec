"""`metfa regression`: record explanations, and check later whether those of the present model have changed."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from metfa._base.percents import counted
from metfa._base.provenance import printable
from metfa._base.writing import new_file
from metfa.allocator import keep_freed_memory
from metfa.cli.comparing import CHANGED, MARK_OF_CHANGES, json_of
from metfa.cli.folders import check_new
from metfa.cli.options import Overwrite
from metfa.cli.reported import reported, resumable

__all__ = ["regression"]

regression: typer.Typer = typer.Typer(
    help="Keep explanations, and check later whether those of the present model have changed.", no_args_is_help=True
)

File = Annotated[
    Path, typer.Argument(metavar="FILE.toml", help="What is explained, and what is asked.", show_default=False)
]
Model = Annotated[str | None, typer.Option(help="Another model than the file names.")]
AllowImport = Annotated[bool, typer.Option("--allow-import", help="Run code that the file names.")]
AllowDownload = Annotated[bool, typer.Option("--allow-download", help="Download weights it names.")]


@regression.command("record")
@reported
def record(
    file: File,
    out: Annotated[Path, typer.Option("--out", help="Folder for the record; an interrupted run resumes.")],
    model: Model = None,
    allow_import: AllowImport = False,
    allow_download: AllowDownload = False,
) -> None:
    """Explain the inputs, and keep the samples for later checks."""
    from metfa.evaluation import read_regression

    described = read_regression(file, model=model, allow_import=allow_import, allow_download=allow_download)
    keep_freed_memory()
    with resumable("inputs"):
        done = described.record(out, progress=True)
    if done.was_finished:
        typer.echo(f"{printable(str(out))} holds this record already: nothing is written", err=True)
    number = counted(len(described.data), "input")
    size = f"{done.n_bytes / 1e6:,.1f} MB" if done.n_bytes >= 5e4 else f"{done.n_bytes / 1e3:,.1f} kB"
    typer.echo(f"record: {printable(str(out))}, {described.n_samples} samples of {number}, {size}")


@regression.command("check")
@reported
def check(
    file: File,
    against: Annotated[Path, typer.Option("--against", help="Folder of the record, which is only read.")],
    model: Model = None,
    out: Annotated[Path | None, typer.Option("--out", help="New file for the changes, ending with .json.")] = None,
    overwrite: Overwrite = False,
    allow_import: AllowImport = False,
    allow_download: AllowDownload = False,
) -> None:
    """Explain the same noisy copies with the present model, and compare: exit code 1 if an explanation has changed.

    It has changed if any median differs by more than the file's delta, in all inputs together.
    """
    from metfa.evaluation import read_regression

    if out is not None and out.suffix != ".json":
        raise ValueError(f"`--out` must end with .json, got {out.name!r}")
    if out is not None:
        check_new(out, MARK_OF_CHANGES, overwrite=overwrite, kind="file")
    described = read_regression(file, model=model, allow_import=allow_import, allow_download=allow_download)
    keep_freed_memory()
    with _never_as_a_change():
        changes = described.check(against, progress=True)
    typer.echo(str(changes))
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        with new_file(out, replace=overwrite) as written:
            written.write(json_of(changes))
        typer.echo(f"changes: {printable(str(out))}")
    if changes:
        raise typer.Exit(CHANGED)


@contextmanager
def _never_as_a_change() -> Iterator[None]:
    """Let an error of the model that no command words end with its traceback, but not with the code of a change."""
    try:
        yield
    except (ValueError, TypeError, OSError, ImportError):
        raise
    except Exception:
        traceback.print_exc()
        raise typer.Exit(2) from None
