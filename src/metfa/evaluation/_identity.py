"""The identity of a model, noise or function as a text that is equal in every process, for the address of a unit."""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metfa._arrays import is_array, to_host
from metfa.calls.behind import loaded_torch, owner_of

__all__ = ["identity", "model_identity"]

PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, enum.Enum, range)


def identity(thing: Any, name: str, version: str | None) -> str:
    """Import path and settings of a class, a function, a partial of one, or an object whose settings can be seen.

    Raises
    ------
    ValueError
        If a part of it has no import path (a lambda, a function inside a function, anything in a script or notebook) or
        shows no settings, and the study has no `version`: then a change of it could not be noticed.
    """
    return _Reading(name, version).of(thing)


def model_identity(model: Any, version: str | None) -> str:
    """The identity of the model; it includes the weights if the model is a torch module or a method of one.

    Weights of any other object cannot be seen: such a model needs a `version`.
    """
    return _Reading("model", version, trusts_text=False).of(model)


@dataclass
class _Reading:
    """Reads one object with all its parts; a part whose text does not identify it is refused without a `version`."""

    name: str
    version: str | None
    trusts_text: bool = field(default=True, kw_only=True)

    def of(self, thing: Any) -> str:
        if isinstance(thing, PLAIN):
            return repr(thing)
        if isinstance(thing, functools.partial):
            arguments = [self.of(part) for part in thing.args]
            arguments += [f"{key}={self.of(thing.keywords[key])}" for key in sorted(thing.keywords)]
            return f"{self.of(thing.func)}({', '.join(arguments)})"
        if inspect.ismethod(thing) and not inspect.isclass(thing.__self__):
            return f"{self.of(owner_of(thing))}.{thing.__name__}"
        if inspect.isroutine(thing) or inspect.isclass(thing):
            return self.path(thing)
        if isinstance(thing, Mapping):
            return f"{{{', '.join(sorted(f'{self.of(key)}: {self.of(value)}' for key, value in thing.items()))}}}"
        if isinstance(thing, tuple | list):
            return f"({', '.join(map(self.of, thing))})"
        if isinstance(thing, set | frozenset):
            return f"{{{', '.join(sorted(map(self.of, thing)))}}}"
        if is_array(thing):
            host = to_host(thing)
            content = repr(host.tolist()).encode() if host.dtype.hasobject else host.tobytes()
            return f"array({thing.dtype}, {host.shape}, {_digest(content)})"
        return self.of_object(thing)

    def of_object(self, thing: Any) -> str:
        path, torch = self.path(type(thing)), loaded_torch()
        text = repr(thing)
        plain = re.sub(r" at 0x[0-9A-Fa-f]+", "", text)
        if torch is not None and isinstance(thing, torch.nn.Module):
            # the text of the layers shows what the weights do not: activations, strides, ...
            return f"{path} {_digest(plain.encode())} {_weights_digest(thing)}"
        if dataclasses.is_dataclass(thing):
            return f"{path}({', '.join(self.fields(thing))})"
        if not self.trusts_text or plain != text:
            self.doubt(f"shows no settings ({path})")
        return f"{path} {plain}"

    def fields(self, thing: Any) -> Iterator[str]:
        """Texts of the fields; a field `rng` is left out, because the study's generators replace it."""
        for entry in dataclasses.fields(thing):
            if entry.repr or (entry.init and entry.name != "rng"):
                yield f"{entry.name}={self.of(getattr(thing, entry.name))}"

    def path(self, thing: Any) -> str:
        path = f"{getattr(thing, '__module__', None)}:{getattr(thing, '__qualname__', type(thing).__name__)}"
        if "<" in path:
            self.doubt(f"has no import path ({path})")
        if path.startswith("__main__:"):
            self.doubt(f"comes from a script or notebook ({path}), and other scripts may use the same name")
        return path

    def doubt(self, reason: str) -> None:
        if self.version is None:
            raise ValueError(
                f"`{self.name}` {reason}, so results of something else could be mistaken for its own: use a function "
                "or dataclass at the top of a module, or give the study a `version=` that you change with its code"
            )


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _weights_digest(module: Any) -> str:
    """Digest of parameters and buffers, including those that a state dict leaves out."""
    digest = hashlib.blake2b(digest_size=16)
    tensors = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    for name, tensor in sorted(tensors.items()):
        host = tensor.detach().cpu().contiguous()
        digest.update(f"{name}|{host.dtype}|{tuple(host.shape)}|".encode())
        digest.update(host.reshape(-1).view(loaded_torch().uint8).numpy().tobytes())
    return digest.hexdigest()
