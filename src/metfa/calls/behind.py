"""The torch modules behind a model, an explainer or a function that uses them."""

from __future__ import annotations

import functools
import inspect
import sys
from collections import deque
from collections.abc import Iterator
from itertools import islice
from types import CodeType, ModuleType
from typing import Any

__all__ = ["PassesOn", "function_behind", "is_surrogate", "loaded_torch", "modules_behind", "owner_of", "variation_of"]

DEPTH = 6  # steps from the function to the module
MOST = 2000  # objects that are looked at
OF_EACH = 64  # entries of a container that are looked at
LIBRARIES = {
    *("builtins", "metfa", "torch", "numpy", "captum", "shap", "lime", "transformers", "torchvision", "timm"),
    *("sklearn", "xgboost", "lightgbm", "catboost", "scipy", "joblib", "pandas", "polars"),
}
PLAIN = (str, bytes, int, float, complex, bool, type(None))


def loaded_torch() -> Any:
    """The torch module if the process has loaded it; metfa's own layers below `models` never load it."""
    return sys.modules.get("torch")


class PassesOn:
    """A function that returns the scores of its `model` as they are."""

    model: Any


def function_behind(function: Any) -> Any:
    """The function whose scores these are: without partial applications and those that pass its scores on."""
    while isinstance(function, functools.partial | PassesOn):
        function = function.func if isinstance(function, functools.partial) else function.model
    return function


def owner_of(function: Any) -> Any:
    """`function` itself, or the object whose method it is, without partial applications."""
    while isinstance(function, functools.partial):
        function = function.func
    return function.__self__ if inspect.ismethod(function) else function


def variation_of(explainer: Any) -> str | None:
    """What an explainer says of itself where its maps vary though the generators are the same; None for nothing."""
    text = getattr(owner_of(explainer), "if_it_varies", None)
    return text if isinstance(text, str) else None


def is_surrogate(module: Any) -> bool:
    """Whether a module is one of Captum's linear models, which it fits, in training mode, and does not explain."""
    return type(module).__module__.startswith("captum.")


def modules_behind(*things: Any) -> list[Any]:
    """Torch modules that the things are, hold or name, with all their parts.

    Looked at are attributes, the entries of containers, arguments of partial functions, the object of a method, and
    what a function names: variables around it, globals in its code and in the functions inside it, and its defaults.
    Attributes of a class count where the function names the class, or is a method of it.
    Nothing is called, so a module that a function makes or loads by itself is not found.
    """
    torch = loaded_torch()
    if torch is None:
        return []
    found: dict[int, Any] = {}
    seen: dict[int, Any] = {}  # keeps what it has seen, so that no id is used twice
    waiting = deque((thing, 0) for thing in things)
    while waiting and len(seen) < MOST:
        thing, depth = waiting.popleft()
        if id(thing) in seen or isinstance(thing, PLAIN):
            continue
        seen[id(thing)] = thing
        if isinstance(thing, torch.nn.Module):
            if is_surrogate(thing):
                continue
            found.update((id(part), part) for part in thing.modules())
        elif depth < DEPTH and not isinstance(thing, torch.Tensor):
            waiting.extend((part, depth + 1) for part in _parts(thing))
    return list(found.values())


def _parts(thing: Any) -> Iterator[Any]:
    if isinstance(thing, functools.partial):
        yield from (thing.func, *thing.args, *thing.keywords.values())
    elif inspect.ismethod(thing):
        yield from (thing.__self__, thing.__func__)
    elif inspect.isfunction(thing):
        yield from _named_by(thing)
    elif isinstance(thing, dict):
        yield from islice(thing.values(), OF_EACH)
    elif isinstance(thing, list | tuple | set | frozenset):
        yield from islice(thing, OF_EACH)
    elif isinstance(thing, type):
        yield from _held_by_class(thing)
    elif not isinstance(thing, ModuleType):
        yield from _held_by_class(type(thing))
        yield from islice(getattr(thing, "__dict__", {}).values(), OF_EACH)
        for kind in type(thing).__mro__:
            slots = vars(kind).get("__slots__", ())
            yield from (getattr(thing, name, None) for name in ((slots,) if isinstance(slots, str) else slots))
            if not _of_a_library(kind):
                methods = (getattr(value, "fget", value) for value in vars(kind).values())
                yield from (method for method in methods if inspect.isfunction(method))


def _held_by_class(kind: type) -> Iterator[Any]:
    """Modules, and containers that may hold some, among the attributes of a class."""
    held = (loaded_torch().nn.Module, dict, list, tuple)
    for base in kind.__mro__:
        if not _of_a_library(base):
            yield from (value for value in vars(base).values() if isinstance(value, held))


def _named_by(function: Any) -> Iterator[Any]:
    """What a function's code can reach by name, without the names of libraries, which are large."""
    yield from map(_content, function.__closure__ or ())
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    yield getattr(function, "__wrapped__", None)
    if _of_a_library(function):
        return
    torch: Any = loaded_torch()
    names = set(_names_in(function.__code__))
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType):  # `networks.model(inputs)`
            yield from (found for other in names if isinstance(found := vars(value).get(other), torch.nn.Module))
        else:
            yield value
        if isinstance(value, type) and not _of_a_library(value):  # `Networks.ask(inputs)`
            methods = (inspect.getattr_static(value, other, None) for other in names)
            methods = (getattr(method, "__func__", method) for method in methods)
            yield from (method for method in methods if inspect.isfunction(method))


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable without a value yet
        return None


def _of_a_library(thing: Any) -> bool:
    return (thing.__module__ or "").partition(".")[0] in LIBRARIES


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)
