"""The refusal of a folder that holds the samples of another call, model or input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["OTHER_MODEL", "OTHER_NOISE", "OtherRunError", "differing", "finished_run", "unfinished_run"]

OTHER_MODEL = "of another model: the clean input's attributions differ"
OTHER_NOISE = "of another noise, though of the same name: it makes other copies"


class OtherRunError(FileExistsError, ValueError):
    """A folder holds what another call has made.

    Attributes
    ----------
    held : str
        Of what it is, or with which setting: an end of "samples ...".
    """

    def __init__(self, message: str, held: str) -> None:
        super().__init__(message)
        self.held = held


def differing(name: str, kept: Any, asked: Any) -> str:
    """What is held, by a setting in which it is not this call's."""
    how = "of another input:" if name == "input_ids" else "with"
    return f"{how} {name}={kept}, this call has {asked}"


def finished_run(folder: Path, held: str) -> OtherRunError:
    """The refusal of a finished result."""
    return OtherRunError(
        f"`store` holds a finished result {held}: metfa.load({str(folder)!r}) reads it; give another folder for "
        "a new run",
        held,
    )


def unfinished_run(held: str) -> OtherRunError:
    """The refusal of an interrupted run, which this call cannot go on with."""
    return OtherRunError(
        f"`store` holds an unfinished run {held}; repeat the call as it was to resume, or give another folder", held
    )
