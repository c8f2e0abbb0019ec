"""Where samples are kept while they are made: in memory, or in a folder from which an interrupted run resumes."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from metfa.results.layout import Layout
from metfa.results.rules import USUAL
from metfa.results.sample import AttributionSample
from metfa.sampling.folder import RUN, StoreSink
from metfa.sampling.request import Request

__all__ = ["RUN", "MemorySink", "Sink", "StoreSink", "sink_of"]


class Sink(Protocol):
    """What the sampling loop needs from the place of its samples, which nothing else uses within its context."""

    root: int  # of the streams; when a run is resumed, its root
    n_done: int
    laid_out: str | None  # the memory layout in which the model is asked; when a run is resumed, its own
    first_copy: dict[str, Any] | None  # what it changes, see `FirstCopy`; set before the sink is opened
    usual: str  # name of the threshold rule where none is given; when a run is resumed, its own

    def __enter__(self) -> Any: ...

    def __exit__(self, *error: object) -> None: ...

    def open(
        self, most_samples: int, vanilla: np.ndarray, targets: list[Any], layout: Layout | None = None
    ) -> AttributionSample | None:
        """Prepare for at most `most_samples` maps like each of `vanilla`; or the result, if this call was finished.

        `layout`: how maps of several inputs lie in one row.
        """
        ...

    def make_room(self, n_samples: int) -> None:
        """Make room for the first `n_samples`."""
        ...

    def is_done(self, job: int) -> bool:
        """Whether job number ``sample * batch + input`` was finished by an earlier, interrupted run."""
        ...

    def write(self, places: list[tuple[int, int]], maps: np.ndarray, predictions: np.ndarray | None) -> None:
        """Keep maps (and predicted classes) at their places (sample, input)."""
        ...

    def values(self, start: int, stop: int) -> np.ndarray:
        """Samples that have been written."""
        ...

    def result(self, n_samples: int, **fields: Any) -> AttributionSample:
        """The finished result, with the first `n_samples`."""
        ...


class MemorySink:
    """Samples in memory."""

    n_done: int = 0
    usual: str = USUAL
    laid_out: str | None = None
    first_copy: dict[str, Any] | None = None

    def __init__(self, root: int) -> None:
        self.root = root

    def __enter__(self) -> MemorySink:
        return self

    def __exit__(self, *error: object) -> None:
        """See `Sink`; there is nothing to close."""

    def open(
        self,
        most_samples: int,
        vanilla: np.ndarray,
        targets: list[Any],  # noqa: ARG002
        layout: Layout | None = None,  # noqa: ARG002
    ) -> None:
        """See `Sink`."""
        self._most = most_samples
        self._values = np.empty((0, *vanilla.shape), dtype=vanilla.dtype)
        self._predictions: np.ndarray | None = None

    def make_room(self, n_samples: int) -> None:
        """See `Sink`."""
        if n_samples > len(self._values):
            room = n_samples if len(self._values) == 0 else min(max(n_samples, 2 * len(self._values)), self._most)
            self._values = _longer(self._values, room)
            if self._predictions is not None:
                self._predictions = _longer(self._predictions, room)

    def is_done(self, job: int) -> bool:  # noqa: ARG002
        """See `Sink`."""
        return False

    def write(self, places: list[tuple[int, int]], maps: np.ndarray, predictions: np.ndarray | None) -> None:
        """See `Sink`."""
        samples, inputs = map(list, zip(*places, strict=True))
        self._values[samples, inputs] = maps
        if predictions is not None:
            if self._predictions is None:
                self._predictions = np.empty(self._values.shape[:2], dtype=np.int64)
            self._predictions[samples, inputs] = predictions

    def values(self, start: int, stop: int) -> np.ndarray:
        """See `Sink`."""
        return self._values[start:stop]

    def result(self, n_samples: int, **fields: Any) -> AttributionSample:
        """See `Sink`."""
        predictions = None if self._predictions is None else self._predictions[:n_samples]
        return AttributionSample(values=self._values[:n_samples], predictions=predictions, **fields)


def sink_of(request: Request) -> Sink:
    """Memory, or the folder of the request, which may hold a part of its samples already."""
    return MemorySink(request.root) if request.run.store is None else StoreSink(request.run.store, request)


def _longer(array: np.ndarray, length: int) -> np.ndarray:
    """A copy of `array` with room for `length` entries."""
    longer = np.empty((length, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
