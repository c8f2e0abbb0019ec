"""How a command reports warnings, mistakes and interruptions: in one line, with an exit code."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from metfa._base.import_path import also_of_current_folder
from metfa._base.provenance import printable

__all__ = ["as_options", "complain", "naming", "reported", "resumable"]


def complain(text: str) -> None:
    """Print what was wrong, in one line that cannot harm a terminal."""
    typer.echo(f"error: {printable(text)}", err=True)


def reported(command: Callable[..., None]) -> Callable[..., None]:
    """Print warnings, and errors that a user can mend (exit code 2), in one line; other errors keep their traceback.

    Equal warnings are printed once: a report, its figures and its page ask the same questions.
    """

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        said: set[str] = set()

        def show_warning(message: Warning | str, *_: Any) -> None:
            text = printable(str(message))
            if text not in said:
                said.add(text)
                typer.echo(f"warning: {text}", err=True)

        try:
            with warnings.catch_warnings(), also_of_current_folder():
                warnings.showwarning = show_warning
                command(*args, **kwargs)
        except BrokenPipeError:  # nobody reads on, as after `| head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nor may Python's own flush complain
            raise typer.Exit(1) from None
        except KeyboardInterrupt as interrupt:
            typer.echo(f"interrupted{interrupt}", err=True)
            raise typer.Exit(130) from None
        except (ValueError, TypeError, OSError, ImportError) as error:
            system = isinstance(error, OSError) and error.strerror and error.filename
            complain(f"{error.filename}: {error.strerror}" if system else str(error))  # pyright: ignore[reportAttributeAccessIssue]
            raise typer.Exit(2) from None

    return run


def as_options(text: str) -> str:
    """Advice of the library as the command line takes it."""
    return text.replace("or write confidence_level=", "or write --confidence ")


@contextmanager
def naming(option: str, argument: str) -> Iterator[None]:
    """Let errors about an argument of the library name the option that gave it."""
    try:
        yield
    except (ValueError, TypeError, OSError, ImportError) as error:
        if f"`{argument}`" not in str(error):
            raise
        raise ValueError(str(error).replace(f"`{argument}`", f"`{option}`")) from error


@contextmanager
def resumable(what: str) -> Iterator[None]:
    """After an interruption, say that the work so far is kept and can be resumed."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f": the {what} so far are kept; repeat the command to resume") from None
