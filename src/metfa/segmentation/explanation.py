"""N explanations of one object in a scene: what can be asked of its context, without the model."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa import io, stats
from metfa.result import AttributionSample
from metfa.segmentation._object import checked_region

if TYPE_CHECKING:
    from metfa.summary import Summary

__all__ = ["REGION", "SAMPLE", "ContextExplanation", "load_context", "save_region"]

REGION, SAMPLE = "region.npy", "sample"


@dataclass(frozen=True, repr=False, eq=False)
class ContextExplanation:
    """N explanations of one segmented object under noise, and the statistics of its surroundings.

    Everything below is of the context alone: the object's pixels are not tested, take no part in a threshold, and are
    not counted by a correction. Maps are (height, width), 0 within the object.

    Attributes
    ----------
    sample : AttributionSample
        Of the whole image, a batch of one, features (height, width).
    region : ndarray of bool, (height, width)
        The object's pixels, fixed for all samples.
    """

    sample: AttributionSample
    region: np.ndarray

    def __post_init__(self) -> None:
        if not isinstance(self.sample, AttributionSample):
            raise TypeError(f"`sample` must be an AttributionSample, got {type(self.sample).__name__}")
        region = checked_region(self.region)
        if self.sample.vanilla.shape != (1, *region.shape):
            raise ValueError(
                f"`sample` must be of one image with a map of the region's size, {region.shape}, got maps "
                f"{self.sample.vanilla.shape}; `metfa.explainers.heatmap(explainer)` reduces channels"
            )
        region.flags.writeable = False
        object.__setattr__(self, "region", region)

    @property
    def target(self) -> int:
        """Class of the object."""
        return self.sample.target[0]

    @property
    def n_samples(self) -> int:
        """The paper's N."""
        return self.sample.n_samples

    @property
    def provenance(self) -> dict[str, Any]:
        """Explainer, noise, seed, versions, time."""
        return self.sample.provenance

    @property
    def flip_rate(self) -> float | None:
        """Share of noisy images in which the object's best class differs from the clean one; None where unknown."""
        return None if self.sample.flip_rate is None else float(self.sample.flip_rate[0])

    @cached_property
    def of_context(self) -> AttributionSample:
        """The samples of the context's pixels alone, in the order of ``~region``: features along one axis."""
        context = ~self.region
        return replace(self.sample, values=self.sample.values[:, :, context], vanilla=self.sample.vanilla[:, context])

    @property
    def vanilla(self) -> np.ndarray:
        """Explanation of the clean image, (height, width)."""
        return self._map(self.of_context.vanilla)

    def smoothed(self, confidence_level: float = 0.95) -> np.ndarray:
        """Smoothed map, see `AttributionSample.smoothed`."""
        return self._map(self.of_context.smoothed(confidence_level))

    def confidence_interval(self, confidence_level: float = 0.95) -> stats.ConfidenceInterval:
        """Exact interval of each pixel's median, see `AttributionSample.confidence_interval`."""
        found = self.of_context.confidence_interval(confidence_level)
        return replace(found, low=self._map(found.low), high=self._map(found.high))

    def threshold(self, rule: Callable[[np.ndarray], Any] = stats.jenks, *, split: int | None = None) -> float:
        """Threshold from the context's scores, see `AttributionSample.threshold`."""
        return float(self.of_context.threshold(rule, split=split)[0])

    def significance_map(self, threshold: Any = stats.jenks, **settings: Any) -> np.ndarray:
        """Context that is needed (+1), not needed (-1) or undecided (0), int8; 0 within the object.

        Parameters
        ----------
        threshold, **settings
            As for `AttributionSample.significance_map`: `alpha`, `correction`, `split`.
        """
        return self._map(self.of_context.significance_map(threshold, **settings))

    def significant(self, threshold: Any = stats.jenks, **settings: Any) -> np.ndarray:
        """The significantly needed context, (height, width) bool: the paper's M of one-sided MeTFA."""
        return self.significance_map(threshold, **settings) == 1

    def above(self, threshold: Any = stats.jenks) -> np.ndarray:
        """The context that a single explanation of the clean image puts above the same threshold, bool."""
        height = self.threshold(threshold) if callable(threshold) else threshold
        return self._map(self.of_context.vanilla > height)

    def area_ratio(self, threshold: Any = stats.jenks, **settings: Any) -> float:
        """Significant context over that of the single explanation, in pixels (paper, table on context bias).

        NaN where the single explanation has none.
        """
        single = self.above(threshold).sum()
        return float(self.significant(threshold, **settings).sum() / single) if single else float("nan")

    def summary(self, threshold: Any = stats.jenks, **settings: Any) -> tuple[Summary, ...]:
        """Figures a person reads first, of the context's pixels: one summary, as of a sample with one input."""
        return self.of_context.summary(threshold, **settings)

    def save(self, path: str | Path) -> Path:
        """Write a new folder `path`, the sample in it and the region; see `load_context`."""
        folder = Path(path).expanduser()
        folder.mkdir(parents=True)
        try:
            save_region(self.region, folder)
            self.sample.save(folder / SAMPLE)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return folder

    def plot(self, **settings: Any) -> Any:
        """Draw the scene, the object's outline and its significant context; see `metfa.plot.context`."""
        from metfa.plot import context

        return context(self, **settings)

    def _map(self, of_context: np.ndarray) -> np.ndarray:
        found = np.zeros(self.region.shape, of_context.dtype)
        found[~self.region] = of_context[0]
        return found

    def __repr__(self) -> str:
        height, width = self.region.shape
        return (
            f"ContextExplanation({self.n_samples} samples, class {self.target}, an object of {self.region.sum():,} of "
            f"{height} x {width} pixels)"
        )


def save_region(region: np.ndarray, folder: Path) -> None:
    """Write the region beside the samples that are streamed to ``folder / "sample"``, where `load_context` finds it."""
    np.save(folder / REGION, region, allow_pickle=False)


def load_context(path: str | Path) -> ContextExplanation:
    """Read a folder written by `ContextExplanation.save`.

    The sample is checked as by `metfa.load`, the region for its type, shape and size; it has no digest.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such folder, or if it is damaged; see `metfa.load`.
    """
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"no such folder: {folder}")
    sample = io.load(folder / SAMPLE)
    if sample.vanilla.ndim != 3:
        raise ValueError(f"{folder / SAMPLE} holds no maps of one image: {sample.vanilla.shape}")
    shape = sample.vanilla.shape[1:]
    offset = io.array_offset(folder / REGION, np.dtype(bool), shape)
    bits = np.fromfile(folder / REGION, np.uint8, offset=offset)
    if bits.max(initial=0) > 1:
        raise ValueError(f"{folder / REGION} is damaged: it holds no booleans")
    return ContextExplanation(sample, bits.astype(bool).reshape(shape))
