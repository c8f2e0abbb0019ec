"""How several maps of an input lie in one row of numbers: a part of the row for each of several inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from metfa.results.stopping import Stopping

__all__ = ["Layout", "Part", "sizes_of"]

SMALLEST = 1e-4


@dataclass(frozen=True)
class Part:
    """One part of a row: the map of one input.

    Attributes
    ----------
    name : str or int
        Key of the input in a dict, or its place in a tuple.
    shape : tuple of int
        Of its map.
    feature_names : tuple of str or None
    signed : bool or None
        As of `AttributionSample`, where the batch that says it is no longer there.
    stopping : Stopping or None
        How `metfa.Until` saw this part.
    """

    name: str | int
    shape: tuple[int, ...]
    feature_names: tuple[str, ...] | None = None
    signed: bool | None = None
    stopping: Stopping | None = None


@dataclass(frozen=True)
class Layout:
    """The parts of a row, in the order of the inputs."""

    parts: tuple[Part, ...]

    @property
    def names(self) -> list[str | int]:
        """Names of the parts."""
        return [part.name for part in self.parts]

    @property
    def shapes(self) -> dict[str | int, tuple[int, ...]]:
        """Shape of each part's map."""
        return {part.name: part.shape for part in self.parts}

    def split(self, rows: Any) -> dict[str | int, Any]:
        r"""The maps (..., \*features) of each part in rows (..., n), as views."""
        ends = accumulate((math.prod(part.shape) for part in self.parts), initial=0)
        return {
            part.name: rows[..., start:stop].reshape(*rows.shape[:-1], *part.shape)
            for part, (start, stop) in zip(self.parts, pairwise(ends), strict=True)
        }

    def balanced(self, rows: np.ndarray, like: np.ndarray) -> np.ndarray:
        """Rows with the parts at one scale, by their sizes in `like`, so that a distance of rows sees each part.

        A part that is smaller than `SMALLEST` of the largest is not enlarged further: it may be rounding.
        """
        sizes = np.array([np.abs(part).sum() for part in self.split(like).values()])
        sizes = np.maximum(sizes, SMALLEST * sizes.max()) if sizes.any() else np.ones(len(sizes))
        return rows / np.repeat(sizes.astype(rows.dtype), [math.prod(part.shape) for part in self.parts])

    def with_stopping(self, of_parts: Sequence[Stopping | None]) -> Layout:
        """The same with what `metfa.Until` saw of each part."""
        return Layout(tuple(replace(part, stopping=one) for part, one in zip(self.parts, of_parts, strict=True)))

    def of_input(self, index: int, signed: Mapping[str | int, bool]) -> Layout:
        """The same for one input of the batch; `signed` is what the batch says of each part."""
        return Layout(
            tuple(
                replace(part, signed=signed[part.name], stopping=part.stopping and part.stopping.of_input(index))
                for part in self.parts
            )
        )

    def written(self) -> list[dict[str, Any]]:
        """As JSON."""
        return [
            {
                "name": part.name,
                "shape": list(part.shape),
                "feature_names": None if part.feature_names is None else list(part.feature_names),
                "signed": part.signed,
                "stopping": None if part.stopping is None else part.stopping.written(),
            }
            for part in self.parts
        ]

    @classmethod
    def read(cls, written: Any, shape: Sequence[int], stopping: Stopping | None) -> Layout:
        """From JSON that anybody may have written, for samples of this shape; TypeError if it does not fit.

        `stopping` is that of all parts together.
        """
        n, batch = shape[:2]
        looked = n - (0 if stopping is None else stopping.added)
        if not isinstance(written, list) or not written or not all(isinstance(one, dict) for one in written):
            raise TypeError("parts, which must be a list of objects")
        parts = []
        for one in written:
            names, of_part = one["feature_names"], one["stopping"]
            parts.append(
                Part(
                    one["name"],
                    tuple(one["shape"]),
                    None if names is None else tuple(names),
                    one["signed"],
                    None if of_part is None else Stopping.read(of_part, batch, looked),
                )
            )
        found = cls(tuple(parts))
        fits = (
            all(type(part.name) in (int, str) for part in parts)
            and len(set(found.names)) == len(parts)
            and all(part.shape and all(type(size) is int and size > 0 for size in part.shape) for part in parts)
            and len(shape) == 3
            and sum(math.prod(part.shape) for part in parts) == shape[2]
            and all(part.signed is None or isinstance(part.signed, bool) for part in parts)
            and all((part.stopping is None) == (stopping is None) for part in parts)
            and all(_are_names(part.feature_names, part.shape) for part in parts)
        )
        if not fits:
            raise TypeError("parts, which do not fit the rest")
        return found


def sizes_of(layout: Layout | list[dict[str, Any]] | None) -> list[list[Any]] | None:
    """Names and shapes of the parts, as JSON; of a layout or of what is written of it."""
    written = layout.written() if isinstance(layout, Layout) else layout
    return None if written is None else [[one["name"], one["shape"]] for one in written]


def _are_names(names: Any, shape: tuple[int, ...]) -> bool:
    return names is None or (shape == (len(names),) and all(isinstance(name, str) for name in names))
