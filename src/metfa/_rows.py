"""The inputs of one call as rows: one array, a tuple or dict of arrays, or a list of objects such as texts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from metfa._arrays import as_array, from_host, is_floating, namespace, to_host
from metfa._streams import numbered_ids

__all__ = ["Rows"]


class Rows:
    """Inputs with a batch axis, seen as `len(rows)` single inputs that can be noised and stacked into batches.

    A row is a host (NumPy) array, a tuple or dict of them, or any object of a list; `batch` stacks rows into what the
    explainer takes: the library, device and dtype of the caller's inputs.
    """

    def __init__(self, inputs: Any) -> None:
        if isinstance(inputs, list):
            self.kind, self.keys, self._like = "list", (), ()
            self.hosts: tuple[Any, ...] = (list(inputs),)
        elif isinstance(inputs, Mapping):
            self.kind, self.keys, self._like = "dict", tuple(inputs), tuple(inputs.values())
        elif isinstance(inputs, tuple):
            self.kind, self.keys, self._like = "tuple", tuple(range(len(inputs))), inputs
        else:
            self.kind, self.keys, self._like = "array", (0,), (inputs,)
        if self.kind != "list":
            self._like = tuple(
                _array_part(part, key, self.kind) for key, part in zip(self.keys, self._like, strict=True)
            )
            self.hosts = tuple(np.array(to_host(part)) for part in self._like)  # a copy: the result is frozen
            for host in self.hosts:
                host.flags.writeable = False
        lengths = {len(host) for host in self.hosts}
        if len(lengths) != 1:
            raise ValueError(f"`inputs` must have one batch axis in common, got lengths {sorted(lengths)}")
        self._length = lengths.pop()
        if self._length == 0:
            raise ValueError("`inputs` is empty: there is nothing to explain")
        for key, host in zip(self.keys, self.hosts, strict=False):
            if self.kind != "list" and host.dtype.kind == "f" and not np.isfinite(host).all():
                row = int(np.flatnonzero(~np.isfinite(host.reshape(len(host), -1)).all(axis=1))[0])
                part = "" if self.kind == "array" else f"[{key!r}]"
                raise ValueError(f"`inputs`{part} must be finite, but input {row} holds NaN or infinity")

    def __len__(self) -> int:
        return self._length

    @property
    def host(self) -> Any:
        """All inputs on the host, in the form in which they came."""
        return self._formed(self.hosts) if self.kind != "list" else self.hosts[0]

    @property
    def array(self) -> Any:
        """An array that tells library and device, or None for a list of objects."""
        return self._like[0] if self._like else None

    def __getitem__(self, index: int) -> Any:
        return self._formed([host[index] for host in self.hosts])

    def batch(self, rows: Sequence[Any]) -> Any:
        """Stack rows into a batch like the caller's inputs."""
        if self.kind == "list":
            return list(rows)
        columns = [rows] if self.kind == "array" else [[row[key] for row in rows] for key in self.keys]
        return self._formed([from_host(np.stack(c), like=part) for c, part in zip(columns, self._like, strict=True)])

    def noisy(self, index: int, noise: Any, rng: np.random.Generator, where: str) -> Any:
        """Row `index` under `noise`, checked; `where` names input and sample in errors."""
        row = self[index]
        if noise is None:
            return row
        if self.kind == "list":
            return noise(row, rng)
        if self.kind == "array":
            return _noised(row, noise, rng, where)
        if callable(noise):
            changed = noise(row, rng)
            return self._formed([_checked(changed[key], row[key], where) for key in self.keys])
        return self._formed(
            [row[k] if noise[k] is None else _noised(row[k], noise[k], rng, f"{where}, part {k!r}") for k in self.keys]
        )

    def check_noise(self, noise: Any) -> None:
        """Raise where `noise` cannot be a noise for inputs of this kind."""
        if noise is None or callable(noise):
            return
        keys = (
            set(noise) if isinstance(noise, Mapping) else set(range(len(noise))) if isinstance(noise, tuple) else None
        )
        if self.kind not in ("tuple", "dict") or keys is None:
            raise TypeError(
                f"`noise` must be a function f(x, rng) -> x, such as metfa.noise.Uniform(0.1), got "
                f"{type(noise).__name__}: {noise!r}"
            )
        if keys != set(self.keys):
            raise ValueError(
                f"`noise` must have one entry (a noise, or None to leave that part alone) for each of "
                f"{list(self.keys)}, got {sorted(keys, key=str)}"
            )

    def ids(self) -> tuple[str, ...]:
        """Ids from the rows' content: equal content, equal id, wherever in the batch it stands."""
        return numbered_ids(_digest(self[index]) for index in range(len(self)))

    def _formed(self, parts: Sequence[Any]) -> Any:
        if self.kind in ("array", "list"):
            return parts[0]
        return tuple(parts) if self.kind == "tuple" else dict(zip(self.keys, parts, strict=True))


def _array_part(part: Any, key: Any, kind: str) -> Any:
    name = "inputs" if kind == "array" else f"inputs[{key!r}]"
    if isinstance(part, str):
        raise TypeError(f"`{name}` must have a batch axis, got the text {part[:40]!r}: write a list, such as [text]")
    array = as_array(part, name)
    if array.ndim == 0:
        raise ValueError(f"`{name}` must have a batch axis, got a single number")
    return array


def _noised(row: np.ndarray, noise: Callable[..., Any], rng: np.random.Generator, where: str) -> np.ndarray:
    return _checked(noise(row, rng), row, where)


def _checked(noisy: Any, row: np.ndarray, where: str) -> np.ndarray:
    host = to_host(as_array(noisy, "noise"))
    if host.shape != row.shape:
        raise ValueError(f"`noise` changed the shape of {where} from {row.shape} to {host.shape}")
    if is_floating(row) and not np.isfinite(host).all():
        raise ValueError(f"`noise` made NaN or infinity of {where}")
    if not namespace(row).isdtype(host.dtype, ("real floating", "integral", "bool")):
        raise TypeError(f"`noise` must return real numbers, got {host.dtype} for {where}")
    return host.astype(row.dtype, copy=False)


def _digest(row: Any) -> str:
    digest = hashlib.blake2b(digest_size=16)
    parts = row.items() if isinstance(row, Mapping) else enumerate(row) if isinstance(row, tuple) else [("", row)]
    for key, part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{key}|{part.dtype.str}|{part.shape}|".encode())
            digest.update(np.ascontiguousarray(part).data if part.size else b"")
        else:
            digest.update(f"{key}|{type(part).__name__}|{part!r}|".encode())
    return digest.hexdigest()
