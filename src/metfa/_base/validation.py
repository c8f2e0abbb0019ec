"""Checks of arguments that all layers share: one for each kind, each with the argument's name in its message.

A wrong kind is a TypeError, a wrong value a ValueError. What a check returns is what should be used and kept: an `int`
for NumPy's int8, which would overflow, or a `float` for float16.
"""

from __future__ import annotations

import difflib
import inspect
import math
import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

__all__ = [
    "MOST",
    "MOST_CALLS",
    "as_list",
    "as_names",
    "as_path",
    "brief",
    "check_flag",
    "check_function",
    "check_kind",
    "check_number",
    "did_you_mean",
    "digits",
    "is_text",
    "is_whole",
    "keep",
    "one_of",
    "positive_int",
    "shown",
    "with_article",
]

MOST = 10**9  # no count of samples, masks, rows or pixels is larger: a number beyond it is a slip
MOST_CALLS = 10**7  # of a model in one explanation: at a millisecond each, more take days
LONGEST_NAME = 255  # bytes of a file's name, on nearly every file system
LONGEST = 80  # characters of a value in a message
Thing = TypeVar("Thing")


def shown(value: Any) -> str:
    """What came, for a message: its type and the beginning of its repr on one line; only the type if repr fails."""
    kind = type(value).__name__
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a foreign object may raise anything
        return kind
    return f"{kind}: {text if len(text) <= LONGEST else text[:LONGEST] + '...'}"


def with_article(name: str) -> str:
    """A name of code with "a" or "an" before it, by its first letter."""
    return f"{'an' if name[:1].lower() in tuple('aeiou') else 'a'} {name}"


def brief(value: Any) -> str:
    """The beginning of the repr of a value on one line, for a message; its type if repr fails."""
    return shown(value).partition(": ")[2] or type(value).__name__


def is_whole(value: Any) -> bool:
    """Whether this is an integer of Python or NumPy. Arrays and tensors of one integer are not, and bool is not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def positive_int(value: Any, name: str, minimum: int = 1, maximum: int = MOST) -> int:
    """`value` as an int from `minimum` to `maximum`; else a TypeError or ValueError that names the argument."""
    if not is_whole(value):
        hint = f"; write `int({name})` if it holds one" if hasattr(value, "__index__") and _one_entry(value) else ""
        raise TypeError(f"`{name}` must be an integer, got {shown(value)}{hint}")
    number = int(value)
    if number < minimum:
        raise ValueError(f"`{name}` must be at least {minimum}, got {digits(number)}")
    if number > maximum:
        raise ValueError(f"`{name}` must be at most {maximum:,}, got {digits(number)}")
    return number


def _one_entry(value: Any) -> bool:
    return getattr(value, "shape", None) == ()


def digits(number: int) -> str:
    """An integer for a message, and of a huge one only its size: Python refuses to write more than 4300 digits."""
    return str(number) if number.bit_length() < 128 else f"an integer of {number.bit_length()} bits"


def check_number(
    value: Any, name: str, *, least: float = 0.0, above: float = -math.inf, most: float = math.inf
) -> float:
    """`value` as a float; raises unless it is finite, from `least` (-inf allows any) to `most`, and above `above`."""
    if not (isinstance(value, float | np.floating) or is_whole(value)):
        raise TypeError(f"`{name}` must be a number, got {shown(value)}")
    try:
        number = float(value)
    except OverflowError:  # an integer of more than 1024 bits
        number = math.inf
    if not (math.isfinite(number) and least <= number <= most and number > above):
        allowed = f" and at least {least:g}" if least else " and not negative"
        if above >= least:
            allowed = f" and above {above:g}" if math.isfinite(above) else ""
        if math.isfinite(most):
            allowed += f" and at most {most:g}"
        raise ValueError(f"`{name}` must be finite{allowed}, got {digits(value) if isinstance(value, int) else value}")
    return number


def check_flag(value: Any, name: str) -> bool:
    """`value` as a bool; raises unless it is True or False, of Python or NumPy."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"`{name}` must be True or False, got {shown(value)}")
    return bool(value)


def one_of(value: Any, name: str, allowed: Collection[str]) -> str:
    """`value`, which must be one of a few texts."""
    written = ", ".join(map(repr, allowed))
    if not isinstance(value, str):
        raise TypeError(f"`{name}` must be one of {written}, got {shown(value)}")
    if value not in allowed:
        raise ValueError(f"`{name}` must be one of {written}, got {value[:LONGEST]!r}{did_you_mean(value, allowed)}")
    return str(value)


def as_path(value: Any, name: str) -> Path:
    """`value` as a Path, a leading ~ expanded; raises unless it is a text or a path that a file system can hold."""
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise TypeError(f"`{name}` must be a path, a str or pathlib.Path, got {shown(value)}")
    text = os.fspath(value)
    try:
        if not text or "\0" in text or any(len(os.fsencode(part)) > LONGEST_NAME for part in Path(text).parts):
            raise ValueError
        return Path(text).expanduser()
    except (ValueError, RuntimeError):  # a text that cannot be encoded is a ValueError, an unknown ~user the other
        what = "that no file system can hold" if text else "that is empty"
        raise ValueError(f"`{name}` must be a path, got a text {what}: {shown(text)}") from None


def as_list(value: Any, name: str, what: str) -> list[Any]:
    """`value` as a list; raises unless it is a list, a tuple, an array along one axis or another sequence."""
    if isinstance(value, str | bytes | bytearray | memoryview | set | frozenset | dict) or not hasattr(
        value, "__len__"
    ):
        raise TypeError(f"`{name}` must be {what}, got {shown(value)}")
    try:
        return list(value)
    except Exception as error:  # an array without an axis, or the object's own
        raise TypeError(f"`{name}` must be {what}, got {shown(value)}: {error}") from None


def as_names(value: Any, name: str) -> tuple[str, ...]:
    """Names in a list, tuple, array or index."""
    names = as_list(value, name, "a list of texts")
    for one in names:
        if not isinstance(one, str):
            raise TypeError(f"`{name}` must be a list of texts, but holds {shown(one)}")
    return tuple(map(str, names))


def check_kind(value: Any, name: str, kind: type[Thing], made_by: str) -> Thing:
    """`value`, which must be an object of metfa's own; `made_by` says where it comes from, such as `metfa.explain`."""
    if not isinstance(value, kind):
        raise TypeError(f"`{name}` must be {with_article(kind.__name__)}, made by {made_by}, got {shown(value)}")
    return value


def check_function(value: Any, name: str, call: str, *args: Any, **kwargs: Any) -> None:
    """Raise unless `value` can be called as `call` says, such as ``noise(x, rng)``.

    The arguments are bound to its signature, not called; a function that shows no signature passes.
    """
    if not callable(value):
        raise TypeError(f"`{name}` must be a function, called as {call}, got {shown(value)}")
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        if isinstance(value, type):  # such as int
            raise TypeError(f"`{name}` must be a function, called as {call}, got the {shown(value)}") from None
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"`{name}` must be a function that is called as {call}, got {shown(value)}: {error}") from None


def keep(owner: Any, **values: Any) -> None:
    """Put checked values into the fields of a frozen dataclass."""
    for name, value in values.items():
        object.__setattr__(owner, name, value)


def did_you_mean(name: Any, known: Iterable[str]) -> str:
    """End of an error message: the known name that is nearest to `name`, ignoring case, or nothing."""
    if not isinstance(name, str):
        return ""
    spelt = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(name[:LONGEST].casefold(), spelt, n=1)
    return f", did you mean {spelt[close[0]]!r}?" if close else ""


def is_text(row: Any) -> bool:
    """Whether this is one text: a str, or the list of its tokens."""
    return isinstance(row, str) or (isinstance(row, list | tuple) and all(isinstance(token, str) for token in row))
