"""The inputs of one call as rows: one array, a frame, a tuple or dict of arrays, or a list of objects such as texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from metfa._arrays import as_array, copied, first_not_finite, from_host, to_host
from metfa._base.validation import check_function, is_text, shown
from metfa._frames.columns import Columns, is_frame, is_series
from metfa._frames.row_names import row_names
from metfa.noise.many import many_of
from metfa.sampling.entries import count_rows, taken
from metfa.sampling.fitting import check_like_text, host_like, require_finite, same_kind
from metfa.sampling.streams import content_digest, numbered_ids

__all__ = ["Rows"]


class Rows:
    """Inputs with a batch axis, seen as `len(rows)` single inputs that can be noised and stacked into batches.

    A row is a host (NumPy) array, a tuple or dict of them, or any object of a list; `batch` stacks rows for the
    explainer, in the library, on the device and in the dtype of the caller's inputs. A row of a frame is an array of
    codes, and a batch is a frame again.

    Attributes
    ----------
    columns : Columns or None
        What the codes of a frame stand for.
    names : tuple of str or None
        Names of a frame's rows.
    """

    kind: str
    keys: tuple[Any, ...]

    on_host = True
    columns: Columns | None = None
    names: tuple[str, ...] | None = None

    def __init__(self, inputs: Any) -> None:
        if isinstance(inputs, list):
            self.kind, self.keys, self._like = "list", (), ()
            self._parts: tuple[Any, ...] = (list(inputs),)
        elif isinstance(inputs, Mapping):
            self.kind, self.keys, self._like = "dict", tuple(inputs), tuple(inputs.values())
        elif isinstance(inputs, tuple):
            self.kind, self.keys, self._like = "tuple", tuple(range(len(inputs))), inputs
        elif is_frame(inputs):
            self.kind, self.keys = "frame", (0,)
            self.columns, codes = Columns.of(inputs)
            self.names = row_names(inputs)
            self._contents = self.columns.contents(inputs, codes)
            codes.flags.writeable = False
            self._like = self._parts = (codes,)
        else:
            self.kind, self.keys, self._like = "array", (0,), (inputs,)
        if self.kind not in ("list", "frame"):
            names = ["`inputs`" if self.kind == "array" else f"`inputs[{key!r}]`" for key in self.keys]
            self._like = tuple(_array_part(part, name) for part, name in zip(self._like, names, strict=True))
            self._parts = tuple(self._held(part, name) for part, name in zip(self._like, names, strict=True))
        lengths = {count_rows(part) for part in self._parts}
        if len(lengths) != 1:
            raise ValueError(f"`inputs` must have one batch axis in common, got lengths {sorted(lengths)}")
        self._length = lengths.pop()
        if self._length == 0:
            raise ValueError("`inputs` is empty: there is nothing to explain")

    def __len__(self) -> int:
        return self._length

    @property
    def host(self) -> Any:
        """All inputs on the host, in their original form."""
        return self._formed(self._parts)

    @property
    def array(self) -> Any:
        """An array that shows library and device; None for a list of objects."""
        return self._like[0] if self._like else None

    def __getitem__(self, index: int) -> Any:
        if self.kind in ("array", "frame"):
            return self._entry(self._parts[0], index)
        return self._formed([self._entry(part, index) for part in self._parts])

    def batch(self, rows: Sequence[Any]) -> Any:
        """Stack rows into a batch like the caller's inputs."""
        if self.kind == "list":
            return list(rows)
        if self.columns is not None:
            return self.columns.frame(_together(rows))
        columns = [rows] if self.kind == "array" else [[row[key] for row in rows] for key in self.keys]
        return self._formed([self._stacked(entries, part) for entries, part in zip(columns, self._like, strict=True)])

    def noisy(
        self, indices: Sequence[int], noise: Any, rngs: Iterable[np.random.Generator], wheres: Sequence[Any]
    ) -> Sequence[Any]:
        """Rows `indices` under `noise`, checked, each with the numbers of its own generator.

        They are an array if the noise makes many rows at once, else a list. `wheres`, as texts, name input and sample
        in errors.
        """
        if noise is None or not len(indices):
            return [self[index] for index in indices]
        many = many_of(noise) if self.kind in ("array", "frame") else None
        if many is None:
            draw = noise if callable(noise) else partial(_noisy_parts, noise)
            made = (draw(self[index], rng) for index, rng in zip(indices, rngs, strict=True))
        else:
            rows = taken(self._parts[0], indices)
            made = many(rows, rngs)
            fit = _all_finite if self.columns is None else self.columns.fit
            if same_kind(made, rows) and fit(made, rows):
                return copied(made)  # a noise may write its next ones to the same place
            if count_rows(made) != len(rows):
                raise ValueError(f"`noise.many` must return a row for each of {len(rows)}, got {count_rows(made)}")
        return [self._fitting(one, self[index], where) for one, index, where in zip(made, indices, wheres, strict=True)]

    def as_given(self, row: Any) -> Any:
        """A row in the dtype of the caller's inputs, which may have fewer digits than the host's (bfloat16)."""
        if self.kind in ("list", "frame"):
            return row
        parts = [row] if self.kind == "array" else [row[key] for key in self.keys]
        return self._formed([to_host(from_host(one, like=like)) for one, like in zip(parts, self._like, strict=True)])

    def matched(self, noise: Any) -> tuple[Rows, Any]:
        """These rows, and the noise for them: one that knows columns is matched to those of a frame by name."""
        if self.columns is None or not hasattr(noise, "for_columns"):
            return self, noise
        columns, noise = noise.for_columns(self.columns)
        found = copy(self)
        found.columns, codes = columns, columns.recoded(self._parts[0], self.columns)
        codes.flags.writeable = False
        found._like = found._parts = (codes,)
        return found, noise

    @property
    def facts(self) -> dict[str, Any]:
        """What a result says of the inputs in its provenance: what the columns of a frame are."""
        return {} if self.columns is None else {"columns": self.columns.described()}

    @property
    def some_noise(self) -> str:
        """An example of a noise for such inputs, for messages."""
        if self.columns is not None:
            return "metfa.noise.per_column(table, 0.1)"
        texts = self.kind == "list" and all(map(is_text, self._parts[0]))
        return "metfa.text.Synonyms(0.3)" if texts else "metfa.noise.Uniform(0.1)"

    def check_noise(self, noise: Any) -> None:
        """Raise if `noise` cannot be a noise for inputs of this kind."""
        if isinstance(noise, type):
            raise TypeError(f"`noise` must be a noise, such as {self.some_noise}, got the class {noise.__name__}")
        if noise is None:
            return
        if callable(noise):
            check_function(noise, "noise", "noise(x, rng)", None, None)
            return
        keys = _keys(noise)
        if self.kind not in ("tuple", "dict") or keys is None:
            several = (
                ", but `inputs` is a list, a batch of objects: for several inputs write `tuple(inputs)`"
                if self.kind == "list" and keys is not None
                else ""
            )
            raise TypeError(
                f"`noise` must be a function f(x, rng) -> x, such as {self.some_noise}, got {shown(noise)}{several}"
            )
        if keys != set(self.keys):
            raise ValueError(
                f"`noise` must have one entry (a noise, or None to keep that part as it is) for each of "
                f"{list(self.keys)}, got {sorted(keys, key=str)}"
            )
        for key in self.keys:
            if noise[key] is not None and not callable(noise[key]):
                raise TypeError(f"`noise[{key!r}]` must be a function f(x, rng) -> x or None, got {noise[key]!r}")

    def ids(self) -> tuple[str, ...]:
        """Names of a frame's rows, else ids of their content, wherever the rows are; repeated ones are numbered."""
        if self.names is not None:
            return numbered_ids(self.names)
        contents = [self[index] for index in range(len(self))] if self.columns is None else self._contents
        return numbered_ids(map(content_digest, contents))

    def _formed(self, parts: Sequence[Any]) -> Any:
        if self.kind in ("array", "frame", "list"):
            return parts[0]
        return tuple(parts) if self.kind == "tuple" else dict(zip(self.keys, parts, strict=True))

    def _held(self, part: Any, name: str) -> Any:
        """A host copy of `part` that nobody can change."""
        if isinstance(part, np.ma.MaskedArray):
            raise TypeError(f"{name} must not be a masked array, whose mask would be ignored")
        host = np.array(to_host(part))
        if host.dtype.kind not in "fiubc":
            raise TypeError(
                f"{name} must hold numbers, got an array of {host.dtype}: write texts as a list (`.tolist()`)"
            )
        row = first_not_finite(host)
        if row is not None:
            remedy = ""
            if self.kind == "array" and host.ndim == 2 and not np.isinf(host).any():
                remedy = ": if the model takes missing values, give a data frame, such as `pandas.DataFrame(inputs)`"
            raise ValueError(f"{name} must be finite, but input {row} holds NaN or infinity{remedy}")
        host.flags.writeable = False
        return host

    def _entry(self, part: Any, index: int) -> Any:
        return part[index]

    def _fitting(self, noisy: Any, row: Any, where: Any) -> Any:
        """What a noise returned for one row, in its form; raises if it does not fit."""
        if self.kind == "list":
            check_like_text(noisy, row, where)
            return noisy
        if self.columns is not None:
            noisy = host_like(noisy, row, where)
            self.columns.check_row(noisy, row, where)
            return noisy
        if self.kind == "array":
            return self._fitting_part(noisy, row, where)
        if _keys(noisy) != set(self.keys):
            raise TypeError(
                f"`noise` must return a {self.kind} of {list(self.keys)} like the input, got "
                f"{type(noisy).__name__} for {where}"
            )
        return self._formed([self._fitting_part(noisy[key], row[key], f"{where}, part {key!r}") for key in self.keys])

    def _fitting_part(self, noisy: Any, row: Any, where: Any) -> Any:
        noisy = host_like(noisy, row, where)
        require_finite(np.isfinite(noisy).all(), where)
        return noisy

    def _stacked(self, entries: Sequence[Any], part: Any) -> Any:
        return from_host(_together(entries), like=part)


def _all_finite(noisy: Any, rows: Any) -> bool:  # noqa: ARG001
    return first_not_finite(noisy) is None


def _together(rows: Sequence[Any]) -> np.ndarray:
    """Rows on the host as one array that may be written to."""
    return np.require(rows, requirements="W") if isinstance(rows, np.ndarray) else np.stack(rows)


def _noisy_parts(noises: Any, row: Any, rng: np.random.Generator) -> dict[Any, Any]:
    """Parts of a row in its own order, each under its noise."""
    keys = row if isinstance(row, Mapping) else range(len(row))
    return {key: row[key] if noises[key] is None else noises[key](row[key], rng) for key in keys}


def _keys(thing: Any) -> set[Any] | None:
    if isinstance(thing, Mapping):
        return set(thing)
    return set(range(len(thing))) if isinstance(thing, tuple) else None


def _array_part(part: Any, name: str) -> Any:
    if isinstance(part, str):
        raise TypeError(f"{name} must have a batch axis, got the text {part[:40]!r}: write a list, such as [text]")
    if is_series(part):
        raise TypeError(
            f"{name} must have a batch axis, got a Series of a data frame: write `frame.iloc[[0]]` for one row, or "
            "`series.to_numpy()` for a batch of numbers"
        )
    if is_frame(part):
        raise TypeError(
            f"{name} must be an array, as a part of several inputs, got a data frame: write `frame.to_numpy()`, and "
            "name its features by `run=metfa.Run(feature_names={...: list(frame.columns)})`"
        )
    array = as_array(part, name.strip("`"))
    if array.ndim == 0:
        raise ValueError(f"{name} must have a batch axis, got a single number")
    return array
