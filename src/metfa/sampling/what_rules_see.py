"""What a rule looks at while there are more samples to come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from metfa.results.layout import Layout
from metfa.results.pooling import facts_of, pooled_maps, pooled_samples, terms_of
from metfa.results.regions import Regions
from metfa.results.units import unit_of

__all__ = ["Seen", "SeenMaps", "SeenParts", "SeenRegions"]


class Seen(Protocol):
    """Maps of one explainer, the scores of regions in them, or the differences of two explainers."""

    @property
    def vanilla(self) -> np.ndarray:
        r"""The same of the clean inputs, (batch, \*features)."""
        ...

    def values(self, start: int, stop: int, /) -> np.ndarray:
        r"""Samples (stop - start, batch, \*features)."""
        ...

    def unit(self, taken: int) -> Any:
        """What counts as a whole score (see `Terms`) when the first `taken` samples are known."""
        ...


class SeenMaps:
    """Samples as they are kept; `kept` gives those from start to stop. `unit` is None where nobody says it."""

    vanilla: np.ndarray

    def __init__(self, kept: Callable[[int, int], np.ndarray], vanilla: np.ndarray, unit: Any) -> None:
        self.vanilla, self._unit = vanilla, unit
        self.values: Callable[[int, int], np.ndarray] = kept

    def unit(self, taken: int) -> Any:
        """See `Seen`."""
        return unit_of(self.vanilla, self.values(0, taken)) if self._unit is None else self._unit


class SeenRegions(SeenMaps):
    """Scores of regions in kept samples of single features; each sample is pooled once."""

    def __init__(
        self, kept: Callable[[int, int], np.ndarray], vanilla: np.ndarray, unit: Any, regions: Regions
    ) -> None:
        regions.check_fits(vanilla.shape[1:], len(vanilla))
        terms = terms_of(regions, vanilla)
        unit = facts_of(regions, None, None, unit)[1] if terms is None else terms.unit
        super().__init__(self._pooled, pooled_maps(vanilla, regions), unit)
        self._maps, self._regions = kept, regions
        self._scores = np.empty((0, *self.vanilla.shape))

    def _pooled(self, start: int, stop: int) -> np.ndarray:
        if stop > len(self._scores):
            new = pooled_samples(self._maps(len(self._scores), stop), self._regions)
            self._scores = np.concatenate([self._scores, new])
        return self._scores[start:stop]


class SeenParts(SeenMaps):
    """Samples of the parts of several inputs, as they are kept in one row; `parts` are what is looked at."""

    parts: dict[str | int, SeenMaps]

    def __init__(self, kept: Callable[[int, int], np.ndarray], vanilla: np.ndarray, unit: Any, layout: Layout) -> None:
        super().__init__(kept, vanilla, unit)
        self.parts = {
            name: SeenMaps(lambda start, stop, name=name: layout.split(kept(start, stop))[name], clean, unit)
            for name, clean in layout.split(vanilla).items()
        }
