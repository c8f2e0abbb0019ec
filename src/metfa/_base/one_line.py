"""A `repr` that fits a line: what somebody wrote to make an object, without the content of models and arrays."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

__all__ = ["in_short", "one_line"]

LONGEST, OF_A_PART = 100, 50  # characters
PLAIN = (bool, int, float, str, tuple, dict, type(None))  # values that are compared with a default


def one_line(thing: Any, **instead: Any) -> str:
    """The class of a dataclass with its first parts, and with the settings that are not the usual ones.

    Parameters
    ----------
    thing : dataclass
        The object.
    **instead
        What to show in place of a field's own value.
    """
    shown = []
    for field in fields(thing):
        value = instead.get(field.name, getattr(thing, field.name))
        if field.repr and field.init and not _is_usual(value, field):
            required = field.default is MISSING and field.default_factory is MISSING and not field.kw_only
            shown.append(in_short(value) if required else f"{field.name}={in_short(value)}")
    text = f"{type(thing).__name__}({', '.join(shown)})"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 4]}...)"


def _is_usual(value: Any, field: Field[Any]) -> bool:
    usual = field.default if field.default_factory is MISSING else field.default_factory()
    return value is usual or (type(value) is type(usual) and isinstance(value, PLAIN) and value == usual)


def in_short(value: Any) -> str:
    """A value in a few letters: its repr, or where that is long only what it is."""
    if inspect.isroutine(value) or inspect.isclass(value):
        return str(getattr(value, "__qualname__", type(value).__name__)).replace(".<locals>", "")
    if hasattr(value, "named_modules"):
        return type(value).__name__
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {in_short(one)}' for key, one in value.items())}}}"
    if isinstance(value, tuple | list):
        return f"({', '.join(map(in_short, value))}{',' * (len(value) == 1)})"
    text = re.sub(r" at 0x[0-9A-Fa-f]+", "", " ".join(repr(value).split()))
    return text if len(text) <= OF_A_PART or hasattr(value, "__dataclass_fields__") else type(value).__name__
