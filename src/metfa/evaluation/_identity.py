"""What a thing is, as text that is equal in every process: the part of a unit's address that stands for it."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
from typing import Any

from metfa._guard import loaded_torch
from metfa._provenance import describe

__all__ = ["identity", "weights_digest"]


def identity(thing: Any, name: str, version: str | None) -> str:
    """Import path and settings of a class, a function, a partial of one, or an object whose settings can be seen.

    Raises
    ------
    ValueError
        If it has no import path (a lambda, a function within a function) and the study no `version`, so that a change
        of its code could not be told.
    """
    root = thing
    while isinstance(root, functools.partial):
        root = root.func
    where = root if inspect.isroutine(root) or inspect.isclass(root) else type(root)
    path = f"{where.__module__}:{where.__qualname__}"
    nameless = "<" in path
    unseen = where is not root and not dataclasses.is_dataclass(root) and type(root).__repr__ is object.__repr__
    if (nameless or unseen) and version is None:
        reason = "has no import path" if nameless else "shows no settings"
        raise ValueError(
            f"`{name}` {reason} ({path}), so that results of another one could be taken for its own: use a function or "
            "dataclass at the top of a module, or give the study a `version=` that you change with its code"
        )
    return f"{path} {describe(thing)}"


def weights_digest(module: Any) -> str | None:
    """Digest of a torch module's parameters and buffers; None for anything else."""
    torch = loaded_torch()
    if torch is None or not isinstance(module, torch.nn.Module):
        return None
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(module.state_dict().items()):
        host = tensor.detach().cpu().contiguous()
        digest.update(f"{name}|{host.dtype}|{tuple(host.shape)}|".encode())
        digest.update(host.view(torch.uint8).numpy().tobytes() if host.ndim else repr(host.item()).encode())
    return digest.hexdigest()
