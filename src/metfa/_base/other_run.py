"""The refusal of a folder that holds the samples of another call, model or input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["OTHER_INPUT", "OTHER_MODEL", "OTHER_NOISE", "OtherRunError", "finished_run", "unfinished_run"]

OTHER_INPUT = "another input"
OTHER_MODEL = "another model: the clean input's attributions differ"
OTHER_NOISE = "another noise, though of the same name: it makes other copies"


class OtherRunError(FileExistsError, ValueError):
    """A folder holds what another call has made.

    Attributes
    ----------
    held : str
        Of what it is, such as "another model: the clean input's attributions differ".
    """

    def __init__(self, message: str, held: str) -> None:
        super().__init__(message)
        self.held = held


def finished_run(folder: Path, how: str, held: str, in_short: str | None = None) -> OtherRunError:
    """The refusal of a finished result; `how` is "of" or "with"."""
    return OtherRunError(
        f"`store` holds a finished result {how} {held}: metfa.load({str(folder)!r}) reads it; give another folder for "
        "a new run",
        in_short or (held if how == "of" else f"another call: {held}"),
    )


def unfinished_run(how: str, held: str, asked: Any = None) -> OtherRunError:
    """The refusal of an interrupted run, which this call cannot go on with."""
    if how == "of":
        return OtherRunError(f"`store` holds an unfinished run of {held}; give another folder", held)
    return OtherRunError(
        f"`store` holds an unfinished run with {held}, this call has {asked}: repeat the call as it was to resume, or "
        "give another folder",
        f"another call: {held}, this call has {asked}",
    )
