"""Names of files and folders that are being written."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["is_temporary", "new_name"]

BEGINNING = ".metfa-"


def is_temporary(name: str) -> bool:
    """Whether a file or folder of this name is one that is being written, or was left by a killed process."""
    return name.startswith(BEGINNING)


def new_name(folder: Path) -> Path:
    """A name in `folder` that nobody has yet."""
    return folder / f"{BEGINNING}{os.urandom(8).hex()}"
