"""Names, settings and versions that a result came from, without memory addresses or model dumps."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import platform
import re
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["describe", "made_by", "method_of", "printable", "versions"]

LONGEST = 300
LONGEST_SAID = 120
# These pass on what another explainer finds, which they hold first: a reader knows the method by the other's name.
PASSING_ON = ("seeded", "randomised", "OfOutput", "ShapExplainer", "LimeExplainer", "CaptumMethod", "GradCAMMethod")
OPENING = re.compile(rf"(?:{'|'.join(PASSING_ON)})\((?:\w+=)?(?=[\w<])")


def describe(thing: Any, instead: tuple[str, str] = ("", "")) -> str:
    """Short name of an explainer or a noise with its settings, equal in every process.

    Different settings give different names where the settings can be seen: in the fields of a dataclass, the arguments
    of a partial function, the content of an array, or the object's own one-line repr. Longer content is cut.
    `instead`: words, and those that stood in their place in an earlier version.
    """
    now, before = instead
    text = printable(_described(thing))
    text = text.replace(now, before) if now else text
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}... [{_digest(text.encode())}]"


def method_of(described: Any) -> str:
    """Name of the method in what `describe` made of an explainer: what is inside of wrappers, without its settings."""
    text = str(described or "explanation")
    name = text.partition("(")[0]
    words = name[: name.rfind(" ") + 1]  # such as those that say how its maps were scaled
    name, rest = name[len(words) :], text[len(words) :]
    while opening := OPENING.match(rest):
        rest = rest[opening.end() :]
        name = re.split(r"[(,)]", rest, maxsplit=1)[0]
    return words + name


def _described(thing: Any) -> str:
    if isinstance(thing, functools.partial):
        settings = [*map(_described, thing.args), *(f"{key}={_described(v)}" for key, v in thing.keywords.items())]
        return f"{_described(thing.func)}({', '.join(settings)})"
    if inspect.ismethod(thing):
        return f"{_described(thing.__self__)}.{thing.__name__}"
    if inspect.isroutine(thing) or inspect.isclass(thing):
        return thing.__qualname__.replace(".<locals>", "")
    if isinstance(thing, tuple | list):
        return f"({', '.join(map(_described, thing))})"
    if isinstance(thing, dict):
        return f"{{{', '.join(f'{key}: {_described(value)}' for key, value in thing.items())}}}"
    if isinstance(thing, np.ndarray):
        content = repr(thing.tolist()).encode() if thing.dtype.hasobject else thing.tobytes()
        return f"ndarray({thing.dtype}, {thing.shape}, {_digest(content)})"
    if dataclasses.is_dataclass(thing):
        shown = [f for f in dataclasses.fields(thing) if f.repr]
        return f"{type(thing).__name__}({', '.join(f'{f.name}={_described(getattr(thing, f.name))}' for f in shown)})"
    own = "" if type(thing).__repr__ is object.__repr__ else re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(thing))
    return type(thing).__name__ if not own or "\n" in own else own


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def printable(text: str) -> str:
    """`text` on one line without control characters, so that it cannot write to a terminal."""
    return "".join(character if character.isprintable() else "?" for character in " ".join(text.split()))


def made_by(provenance: Mapping[str, Any]) -> str:
    """Explainer, noise and seed of a result, for its repr; long ones end with …"""
    said = {name: printable(str(provenance.get(name))) for name in ("explainer", "noise", "rng")}
    return ", ".join(f"{name}={text[:LONGEST_SAID]}{'…' * (len(text) > LONGEST_SAID)}" for name, text in said.items())


def versions() -> dict[str, str]:
    """Versions of Python, NumPy, metfa and of the model libraries in use."""
    found = {"python": platform.python_version(), "numpy": np.__version__, "metfa": _own_version()}
    for name in ("torch", "jax", "captum", "zennit", "skimage", "sklearn", "shap", "lime", "onnxruntime"):
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "__version__"):
            found[name] = str(module.__version__)
    return found


@functools.cache
def _own_version() -> str:
    """It is read from a file, which takes as long as a small explanation."""
    from metfa._base.version import __version__

    return __version__
