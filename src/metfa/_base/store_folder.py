"""Whether a folder that somebody gives as `store` may be used."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from metfa._base.owner import LOCK
from metfa._base.temporary import is_temporary

__all__ = ["check_free", "check_store"]


def check_store(folder: Path) -> None:
    """Raise unless this is a folder, or nothing yet."""
    if folder.is_symlink():
        raise ValueError(f"`store` must be a folder, and {folder} is a link: write {str(folder.resolve())!r}")
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"`store` must be a folder, but {folder} is a file")


def check_free(folder: Path, held: Iterable[Path], marks: Iterable[str], what: str) -> None:
    """Raise if the folder holds anything of others, and none of the `marks` by which `what` is known.

    `held`: files and folders there, without those that `what` may have before it has a mark.
    """
    names = {entry.name for entry in held if entry.name != LOCK and not is_temporary(entry.name)}
    if names and not any((folder / mark).exists() for mark in marks):
        raise FileExistsError(f"`store` holds files, but no {what}: {folder}; give a new or empty folder")
