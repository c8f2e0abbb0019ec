"""N explanations of one object in a scene, and every question about its context that needs no model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa import stats
from metfa._base.validation import as_path, check_flag
from metfa._base.warnings import DegenerateAttributionsWarning, warn
from metfa._base.writing import new_folder
from metfa.results import files
from metfa.results.cautions import FLIPS_FROM
from metfa.results.decisions import Decision
from metfa.results.regions import regions_of
from metfa.results.rules import is_break
from metfa.results.sample import AttributionSample
from metfa.results.terms import Terms, checked_threshold
from metfa.results.thresholds import half, resolved
from metfa.sampling.store import RUN
from metfa.segmentation._object import checked_region
from metfa.segmentation.kept import CONTEXT, SAMPLE, read_classes, read_region, save_classes, save_region
from metfa.segmentation.surroundings import in_the_context, objects_around

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from metfa.plot.settings import CommonSettings, InFigure
    from metfa.report.settings import ReportSettings
    from metfa.results.settings import TermSettings
    from metfa.results.summary import Summary

__all__ = ["ContextExplanation", "check_threshold", "load_context"]

EQUAL = 1e-4  # scores in [0, 1] that differ less count as equal: a break between them would come from rounding


@dataclass(frozen=True, repr=False, eq=False)
class ContextExplanation:
    """N explanations of one segmented object under noise, and the statistics of its surroundings.

    Everything below is about the context alone: the object's pixels are not tested, do not enter a threshold, and are
    not counted by a correction. Maps are (height, width), 0 within the object. A threshold is one number, or a rule
    that computes one from the context's scores, such as `metfa.stats.jenks`, the paper's. If all scores are 0 (to
    1e-4), there is no natural break: the threshold is then 0.5, and nothing is needed. If all scores are equal to
    another number, there is no threshold.

    Attributes
    ----------
    sample : AttributionSample
        Samples of the whole image, a batch of one, features (height, width).
    region : ndarray of bool, (height, width)
        The object's pixels, fixed for all samples.
    classes : ndarray of int, (height, width), optional
        The network's class of each pixel of the clean image; None where it is not known.
    """

    sample: AttributionSample
    region: np.ndarray
    classes: np.ndarray | None = None

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
        if self.classes is not None:
            classes = np.array(self.classes)
            if classes.dtype.kind not in "iu" or classes.shape != region.shape:
                raise ValueError(
                    f"`classes` must be integers of the region's size {region.shape}, got {classes.dtype} of shape "
                    f"{classes.shape}"
                )
            classes.flags.writeable = False
            object.__setattr__(self, "classes", classes)

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
        """Share of noisy images in which the object's best class differs from the clean one's; None if unknown."""
        return None if self.sample.flip_rate is None else float(self.sample.flip_rate[0])

    @cached_property
    def of_context(self) -> AttributionSample:
        """The samples of the context's pixels alone, in the order of ``~region``: features along one axis."""
        context = ~self.region
        return replace(
            self.sample,
            values=self.sample.values[:, :, context],
            vanilla=self.sample.vanilla[:, context],
            provenance={**self.sample.provenance, "signed": self.sample.signed},
        )

    def over(self, regions: Any = None, *, how: str | None = None, against: Any = None) -> AttributionSample:
        """The samples of parts of the context, see `AttributionSample.over`.

        The object's own pixels are left out of every region, and of the rest.

        Parameters
        ----------
        regions : Regions or array, optional
            As for `AttributionSample.over`, of the whole scene. By default what the network finds around the object,
            all pixels of one class as one region.
        how, against
            Instead of those of `regions`; see `Regions`.
        """
        asked = objects_around(self.classes, self.region) if regions is None else regions
        found = regions_of(asked, feature_shape=self.region.shape)
        return self.of_context.over(in_the_context(found, self.region), how=how, against=against)

    @property
    def vanilla(self) -> np.ndarray:
        """Explanation of the clean image, (height, width)."""
        return self._map(self.of_context.vanilla)

    def smoothed(self, confidence_level: float = 0.95) -> np.ndarray:
        """Smoothed map, see `AttributionSample.smoothed`."""
        return self._map(self.of_context.smoothed(confidence_level))

    def confidence_interval(self, confidence_level: float | None = None) -> stats.ConfidenceInterval:
        """Exact interval of each pixel's median, see `AttributionSample.confidence_interval`."""
        found = self.of_context.confidence_interval(confidence_level)
        return replace(found, low=self._map(found.low), high=self._map(found.high))

    def threshold(self, rule: Callable[[np.ndarray], Any] | None = None, *, split: int | None = None) -> float:
        """Threshold from the context's scores, see `AttributionSample.threshold`."""
        rule = self.of_context.usual_rule if rule is None else rule
        return float(self.of_context.threshold(self._meant(rule), split=split)[0])

    def terms(self, threshold: Any = None, **given: Unpack[TermSettings]) -> Terms:
        """Terms on which the context is decided, see `AttributionSample.terms`; a threshold is one number or a rule."""
        if threshold is not None:
            check_threshold(threshold)
        return self.of_context.terms(threshold, **given)

    def decide(self, terms: Terms) -> Decision:
        """The decision on the context's pixels on these terms, see `AttributionSample.decide`."""
        return self.of_context.decide(replace(terms, threshold=self._meant(terms.threshold)))

    def threshold_on(self, terms: Terms) -> float:
        """The threshold of these terms as a number, also if it is a rule; nan if there is none."""
        meant = replace(terms, threshold=self._meant(terms.threshold))
        return float(resolved(self.of_context.values, meant, self.sample.unmoved)[0].flat[0])

    def _meant(self, threshold: Any) -> Any:
        """`threshold`; or, if it is a natural break and the scores have none, a rule that says so."""
        low, high = self._ends
        if not is_break(threshold) or high - low > EQUAL:
            return threshold
        return half if max(abs(low), abs(high)) <= EQUAL else _none

    @cached_property
    def _ends(self) -> tuple[float, float]:
        values = self.of_context.values
        return float(values.min()), float(values.max())

    def significance_map(self, threshold: Any = None, **given: Unpack[TermSettings]) -> np.ndarray:
        """Context that is needed (+1), not needed (-1) or undecided (0), int8; 0 within the object.

        Parameters
        ----------
        threshold, alpha, correction, split
            As for `AttributionSample.terms`.
        """
        return self._map(self.decide(self.terms(threshold, **given)).marks)

    def significant(self, threshold: Any = None, **given: Unpack[TermSettings]) -> np.ndarray:
        """The context that is significantly needed, (height, width) bool: the paper's M of one-sided MeTFA."""
        return self.significance_map(threshold, **given) == 1

    def above(self, threshold: Any = None, *, split: int | None = None) -> np.ndarray:
        """The context above the same threshold in the single explanation of the clean image, bool."""
        return self._map(self.of_context.vanilla > self.threshold_on(self.terms(threshold, split=split)))

    def area_ratio(self, threshold: Any = None, **given: Unpack[TermSettings]) -> float:
        """Significant context over that of the single explanation, in pixels (paper, table on context bias).

        NaN if the single explanation marks none.
        """
        marked = self.significant(threshold, **given).sum()
        single = self.above(threshold, split=given.get("split")).sum()
        return float(marked / single) if single else float("nan")

    def summary(
        self,
        threshold: Any = None,
        *,
        confidence_level: float = 0.95,
        flips_from: float = FLIPS_FROM,
        **given: Unpack[TermSettings],
    ) -> tuple[Summary, ...]:
        """The numbers to read first, about the context's pixels: one summary, as for a sample with one input."""
        from metfa.results.summary import summarise

        decision = self.decide(self.terms(threshold, **given))
        return summarise(self.of_context, decision, confidence_level, flips_from)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write a new folder `path` (the region, and the sample in a folder of its own), all or nothing.

        Raises
        ------
        FileExistsError
            If `path` exists, and is no saved explanation of a context or `overwrite` is not given.
        """
        with new_folder(path, replaces=CONTEXT if check_flag(overwrite, "overwrite") else None) as folder:
            save_region(self.region, folder)
            if self.classes is not None:
                save_classes(self.classes, folder)
            self.sample.save(folder / SAMPLE)
        return as_path(path, "path")

    def plot(self, *, fig: InFigure | None = None, **settings: Unpack[CommonSettings]) -> InFigure:
        """Draw the scene, the object's outline and its significant context; see `metfa.plot.context`."""
        from metfa.plot import context

        return context(self, fig=fig, **settings)

    def report(self, path: str | Path, **settings: Unpack[ReportSettings]) -> Path:
        """Write one HTML file that shows it and lets readers try settings: the arguments of `metfa.report.write`."""
        from metfa.report import write

        return write(path, self, **settings)

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


def _none(values: np.ndarray) -> float:
    warn(
        f"no threshold separates scores that are all {float(values.flat[0]):.4g} to rounding: everything is undecided",
        DegenerateAttributionsWarning,
    )
    return math.nan


def check_threshold(threshold: Any) -> None:
    """Raise unless `threshold` is a rule or one number."""
    checked = checked_threshold(threshold)
    if isinstance(checked, np.ndarray):
        raise TypeError(f"`threshold` must be one number or a rule for a context, got an array of {checked.shape}")


def load_context(path: str | Path) -> ContextExplanation:
    """Read a folder written by `ContextExplanation.save`, ``explain_context(..., store=)`` or the command line.

    Every file is checked against its digest, as by `metfa.load`.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such folder, or if it is unfinished, damaged or tampered with; see `metfa.load`.
    """
    folder = as_path(path, "path")
    if not folder.is_dir():
        raise FileNotFoundError(f"no such folder: {folder}")
    if not (folder / CONTEXT).exists():
        hint = ": it holds samples alone, which `metfa.load` reads" if (folder / files.MANIFEST).is_file() else ""
        raise ValueError(f"`path`: {folder} is no saved explanation of a context: it has no {CONTEXT}{hint}")
    if (folder / SAMPLE / RUN).exists() and not (folder / SAMPLE / files.MANIFEST).exists():
        raise ValueError(
            f"{folder} holds an unfinished run: repeat the call with `run=metfa.Run(store={str(folder)!r})` to resume "
            "it"
        )
    return ContextExplanation(files.load(folder / SAMPLE), read_region(folder), read_classes(folder))
