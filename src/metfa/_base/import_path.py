"""Import of an object by its path, ``package.module:callable``."""

from __future__ import annotations

import pkgutil
from typing import Any

__all__ = ["imported"]


def imported(path: str, subject: str) -> Any:
    """The object at the path; importing runs its code.

    Raises
    ------
    ValueError
        If the import fails; `subject` begins the message, such as "the method".
    """
    source, colon, name = path.partition(":")
    try:
        if not (source and colon and name):
            raise ValueError("a module and a name in it are needed")
        return pkgutil.resolve_name(path)
    except (ImportError, AttributeError, ValueError) as error:
        hint = ""
        if isinstance(error, ModuleNotFoundError) and error.name == source.partition(".")[0]:
            hint = "; for a module of the current folder, set PYTHONPATH=."
        raise ValueError(f"{subject} {path!r} cannot be imported as package.module:callable: {error}{hint}") from error
