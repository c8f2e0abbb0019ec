"""Import of an object by its path, ``package.module:callable``."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

__all__ = ["also_of_current_folder", "imported"]

_ALSO_HERE = ContextVar("_ALSO_HERE", default=False)


@contextmanager
def also_of_current_folder() -> Iterator[None]:
    """In this context `imported` also finds modules of the current folder, as who types a command expects."""
    token = _ALSO_HERE.set(True)
    try:
        yield
    finally:
        _ALSO_HERE.reset(token)


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
        with _current_folder(source.partition(".")[0]):
            return pkgutil.resolve_name(path)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{subject} {path!r} cannot be imported as package.module:callable: {error}") from error


@contextmanager
def _current_folder(name: str) -> Iterator[None]:
    """The current folder as the last place of modules, so that no file in it hides an installed module.

    It stays only if the module of that name was found there, and may import others of the folder when it is called.
    Else what the library looks for later, such as an optional package, is not there.
    """
    here = str(Path.cwd()) if _ALSO_HERE.get() else None
    if here is None or here in sys.path:
        yield
        return
    sys.path.append(here)
    try:
        yield
    finally:
        found = getattr(sys.modules.get(name), "__file__", None)
        if here in sys.path and (found is None or Path(here) not in Path(found).parents):
            sys.path.remove(here)  # if it is there: the module may have changed the list
