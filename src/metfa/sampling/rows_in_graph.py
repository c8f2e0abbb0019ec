"""Rows that stay in the graph of the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metfa._arrays import first_not_finite, is_array, namespace
from metfa.sampling.fitting import like_row, require_finite
from metfa.sampling.rows import Rows

__all__ = ["RowsInGraph"]


class RowsInGraph(Rows):
    """The same in the library, on the device and in the graph of the inputs, for maps that are differentiable in the
    inputs.

    The inputs are not copied. Noise is applied in the caller's thread, to which the graph and the device's stream
    belong.
    """

    on_host = False

    def _held(self, part: Any, name: str) -> Any:  # noqa: ARG002
        return part

    def _entry(self, part: Any, index: int) -> Any:
        return part[index, ...] if is_array(part) else part[index]

    def _fitting_part(self, noisy: Any, row: Any, where: Any) -> Any:
        noisy = like_row(noisy, row, where)
        require_finite(first_not_finite(noisy[None, ...]) is None, where)
        return noisy

    def _stacked(self, entries: Sequence[Any], part: Any) -> Any:
        return entries if is_array(entries) else namespace(part).stack(entries)
