"""`metfa --version`."""

from __future__ import annotations

from typing import Annotated

import typer

from metfa._base.version import __version__

__all__ = ["options_of_all"]


def _show(asked: bool) -> None:
    if asked:
        typer.echo(f"metfa {__version__}")
        raise typer.Exit


def options_of_all(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show, is_eager=True)
    ] = False,
) -> None:
    """Options before a command."""
