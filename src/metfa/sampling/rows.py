"""The inputs of one call as rows: one array, a tuple or dict of arrays, or a list of objects such as texts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from metfa._arrays import as_array, first_not_finite, from_host, is_array, namespace, to_host
from metfa._base.validation import is_text
from metfa.sampling.streams import numbered_ids

__all__ = ["Rows", "check_like_text", "count_rows", "like_row", "one_entry", "one_row"]

KINDS = ("bool", "unsigned integer", "signed integer", "real floating")  # each holds the numbers of those before it


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
            names = ["`inputs`" if self.kind == "array" else f"`inputs[{key!r}]`" for key in self.keys]
            self._like = tuple(_array_part(part, name) for part, name in zip(self._like, names, strict=True))
            self.hosts = tuple(_frozen(part, name) for part, name in zip(self._like, names, strict=True))
        lengths = {len(host) for host in self.hosts}
        if len(lengths) != 1:
            raise ValueError(f"`inputs` must have one batch axis in common, got lengths {sorted(lengths)}")
        self._length = lengths.pop()
        if self._length == 0:
            raise ValueError("`inputs` is empty: there is nothing to explain")

    def __len__(self) -> int:
        return self._length

    @property
    def host(self) -> Any:
        """All inputs on the host, in the form in which they came."""
        return self._formed(self.hosts)

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
            noisy = noise(row, rng)
            check_like_text(noisy, row, where)
            return noisy
        if self.kind == "array":
            return _noisy_host(noise(row, rng), row, where)
        changed: Any = noise(row, rng) if callable(noise) else self._noisy_parts(row, noise, rng)
        if _keys(changed) != set(self.keys):
            raise TypeError(
                f"`noise` must return a {self.kind} of {list(self.keys)} like the input, got "
                f"{type(changed).__name__} for {where}"
            )
        return self._formed([_noisy_host(changed[key], row[key], f"{where}, part {key!r}") for key in self.keys])

    def _noisy_parts(self, row: Any, noises: Any, rng: np.random.Generator) -> dict[Any, Any]:
        return {key: row[key] if noises[key] is None else noises[key](row[key], rng) for key in self.keys}

    @property
    def some_noise(self) -> str:
        """What to write for a noise of such inputs, for messages."""
        texts = self.kind == "list" and all(map(is_text, self.hosts[0]))
        return "metfa.text.Synonyms(0.3)" if texts else "metfa.noise.Uniform(0.1)"

    def check_noise(self, noise: Any) -> None:
        """Raise where `noise` cannot be a noise for inputs of this kind."""
        if isinstance(noise, type):
            raise TypeError(f"`noise` must be a noise, such as {self.some_noise}, got the class {noise.__name__}")
        if noise is None or callable(noise):
            return
        keys = _keys(noise)
        if self.kind not in ("tuple", "dict") or keys is None:
            raise TypeError(
                f"`noise` must be a function f(x, rng) -> x, such as {self.some_noise}, got {type(noise).__name__}: "
                f"{noise!r}"
            )
        if keys != set(self.keys):
            raise ValueError(
                f"`noise` must have one entry (a noise, or None to leave that part alone) for each of "
                f"{list(self.keys)}, got {sorted(keys, key=str)}"
            )
        for key in self.keys:
            if noise[key] is not None and not callable(noise[key]):
                raise TypeError(f"`noise[{key!r}]` must be a function f(x, rng) -> x or None, got {noise[key]!r}")

    def ids(self) -> tuple[str, ...]:
        """Ids from the rows' content: equal content, equal id, wherever in the batch it stands."""
        return numbered_ids(_digest(self[index]) for index in range(len(self)))

    def _formed(self, parts: Sequence[Any]) -> Any:
        if self.kind in ("array", "list"):
            return parts[0]
        return tuple(parts) if self.kind == "tuple" else dict(zip(self.keys, parts, strict=True))


def check_like_text(noisy: Any, row: Any, where: str) -> None:
    """Raise where the `row` is a text, or a list of tokens, and what a noise made of it is not."""
    if not is_text(row) or (is_text(noisy) and isinstance(noisy, str) == isinstance(row, str)):
        return
    kind = "a text" if isinstance(row, str) else "a list of tokens"
    raise TypeError(f"`noise` must return {kind} for {kind}, got {type(noisy).__name__} for {where}: {noisy!r:.80}")


def count_rows(inputs: Any) -> int:
    """Length of the batch axis of inputs that are known to have one."""
    if isinstance(inputs, Mapping):
        return count_rows(next(iter(inputs.values())))
    if isinstance(inputs, tuple):
        return count_rows(inputs[0])
    return inputs.shape[0] if is_array(inputs) else len(inputs)


def one_row(inputs: Any, index: int) -> Any:
    """The batch that holds row `index` alone, in the library and the graph of `inputs`."""
    if isinstance(inputs, Mapping):
        return {key: one_row(part, index) for key, part in inputs.items()}
    if isinstance(inputs, tuple):
        return tuple(one_row(part, index) for part in inputs)
    return one_entry(inputs, index)


def one_entry(values: Any, index: int) -> Any:
    """Entry `index` of an array, list or tuple with one entry a row, as such of length one."""
    return values[index : index + 1, ...] if is_array(values) else values[index : index + 1]


def like_row(noisy: Any, row: Any, where: str) -> Any:
    """What a noise returned, in the dtype of its `row`; raises where it does not fit the row."""
    noisy = as_array(noisy, "noise(x, rng)")
    if tuple(noisy.shape) != tuple(row.shape):
        raise ValueError(f"`noise` changed the shape of {where} from {tuple(row.shape)} to {tuple(noisy.shape)}")
    if _kind(noisy) > _kind(row):
        raise TypeError(
            f"`noise` returned {noisy.dtype} for {where}, which is {row.dtype}: it must return numbers of the input's "
            "kind; scale images to floats first, as in `image.astype('float32') / 255`"
        )
    return namespace(noisy).astype(noisy, row.dtype, copy=False)


def _noisy_host(noisy: Any, row: np.ndarray, where: str) -> np.ndarray:
    with np.errstate(over="ignore"):  # found below
        host = like_row(to_host(as_array(noisy, "noise(x, rng)")), row, where)
    if not np.isfinite(host).all():
        raise ValueError(f"`noise` made NaN or infinity of {where}")
    return host


def _kind(x: Any) -> int:
    xp = namespace(x)
    return next((rank for rank, kind in enumerate(KINDS) if xp.isdtype(x.dtype, kind)), len(KINDS))


def _keys(thing: Any) -> set[Any] | None:
    if isinstance(thing, Mapping):
        return set(thing)
    return set(range(len(thing))) if isinstance(thing, tuple) else None


def _array_part(part: Any, name: str) -> Any:
    if isinstance(part, str):
        raise TypeError(f"{name} must have a batch axis, got the text {part[:40]!r}: write a list, such as [text]")
    array = as_array(part, name.strip("`"))
    if array.ndim == 0:
        raise ValueError(f"{name} must have a batch axis, got a single number")
    return array


def _frozen(part: Any, name: str) -> np.ndarray:
    """A host copy of `part` that nobody can change."""
    if isinstance(part, np.ma.MaskedArray):
        raise TypeError(f"{name} must not be a masked array, whose mask would be ignored")
    host = np.array(to_host(part))
    if host.dtype.kind not in "fiubc":
        raise TypeError(f"{name} must hold numbers, got an array of {host.dtype}: write texts as a list (`.tolist()`)")
    row = first_not_finite(host)
    if row is not None:
        raise ValueError(f"{name} must be finite, but input {row} holds NaN or infinity")
    host.flags.writeable = False
    return host


def _digest(row: Any) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for piece in _content(row):
        digest.update(piece)
    return digest.hexdigest()


def _content(part: Any) -> Iterator[bytes]:
    """Bytes that two plain objects share if, and only if, they are equal."""
    if is_array(part):
        host = to_host(part)
        yield f"{host.dtype.str}|{host.shape}|".encode()
        yield host.tobytes()
    elif isinstance(part, tuple | list):
        yield f"{type(part).__name__} of {len(part)}|".encode()
        for entry in part:
            yield from _content(entry)
    elif isinstance(part, Mapping):
        yield f"dict of {len(part)}|".encode()
        for key, entry in sorted(part.items(), key=lambda item: repr(item[0])):
            yield from _content(key)
            yield from _content(entry)
    elif isinstance(part, str | bytes | int | float | complex | None):
        text = repr(part)
        yield f"{type(part).__name__}|{len(text)}|{text}".encode()
    else:
        raise TypeError(
            f"`inputs` holds a {type(part).__name__}, whose content cannot address its random streams: pass "
            "`input_ids=` with one id for each input"
        )
