"""Samples of regions, from samples of features."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from metfa._base.mapped import unload
from metfa.results.differences import subtracted
from metfa.results.joining import both, check_plain
from metfa.results.moments import of_both_signs
from metfa.results.regions import Regions
from metfa.results.rules import RULES, USUAL
from metfa.results.terms import Terms

if TYPE_CHECKING:
    from typing import TypeVar

    from metfa.results.samples import Samples

    S = TypeVar("S", bound=Samples)

__all__ = ["facts_of", "pooled_maps", "pooled_sample", "pooled_samples", "terms_of"]

AT_A_TIME = 64  # samples that are read from a file before their memory is given back


def pooled_sample(sample: S, regions: Regions) -> S:
    """See `AttributionSample.over`."""
    check_plain(sample, "over")
    usual = sample.default_terms
    if sample.pair is None and usual is not None and usual.sides is not None and usual.of_differences:
        raise ValueError(
            f"`over` needs scores, and these are differences already ({usual.sides[0]!r}): ask about the single "
            "features, `sample.over(...)` of the result that was pooled"
        )
    regions.check_fits(sample.feature_shape, sample.values.shape[1])
    stopping = sample.stopping
    if stopping is not None and stopping.over != regions:  # its thresholds are for other features
        noun = stopping.noun if stopping.over is not None or stopping.noun == "difference" else "single feature"
        stopping = replace(stopping, thresholds=None, nothing=(), over=None, noun=noun)
    if sample.pair is not None:
        found = subtracted(*both(pooled_sample, sample.pair, regions), sample.provenance["compared"])
        return replace(found, stopping=stopping, provenance={**found.provenance, "looks": sample.looks})
    known = sample.provenance.get("signed"), sample.provenance.get("unit")
    signed, unit = facts_of(regions, sample.vanilla, *known)
    clean = sample.median() if sample.vanilla is None else sample.vanilla
    usual = 0.0 if sample.signed else sample.usual_rule
    provenance = {**sample.provenance, "signed": signed, "unit": unit}
    return replace(
        sample,
        values=pooled_samples(sample.values, regions),
        vanilla=None if sample.vanilla is None else pooled_maps(sample.vanilla, regions),
        feature_names=regions.names,
        provenance=provenance,
        stopping=stopping,
        default_terms=terms_of(regions, clean, sample.default_terms, usual),
        regions=regions,
    )


def pooled_samples(values: np.ndarray, regions: Regions) -> np.ndarray:
    r"""Scores of regions, (n, batch, regions) float64, in samples (n, batch, \*features)."""
    found = np.empty((*values.shape[:2], len(regions)))
    for start in range(0, len(values), AT_A_TIME):
        part = slice(start, start + AT_A_TIME)
        for row in range(values.shape[1]):
            found[part, row] = regions.pooled(values[part, row], row)
        unload(values)
    return found


def pooled_maps(maps: np.ndarray, regions: Regions, rows: Any = None) -> np.ndarray:
    r"""Scores of regions, (maps, regions) float64, in maps (maps, \*features) of the inputs `rows`."""
    rows = range(len(maps)) if rows is None else rows
    found = [regions.pooled(maps[i : i + 1], row) for i, row in enumerate(rows)]
    return np.concatenate(found) if found else np.empty((0, len(regions)))


def facts_of(
    regions: Regions, vanilla: np.ndarray | None, signed: bool | None, unit: float | None
) -> tuple[bool | None, float | None]:
    r"""Whether the regions' scores are signed, and their unit; None where their samples have to show it.

    From what the explainer says of its scores, and from its clean maps (batch, \*features) if there are some: means of
    signed scores may all be above 0, and are signed.
    """
    if regions.against is not None:
        return True, None
    if signed is None and vanilla is not None and of_both_signs(vanilla[None]) is not None:
        signed = True
    return signed, None if regions.how == "sum" else unit


def terms_of(
    regions: Regions, vanilla: np.ndarray, own: Terms | None = None, usual: Any = RULES[USUAL]
) -> Terms | None:
    r"""Default terms of the regions' scores; `vanilla` (batch, \*features), `own` and `usual` are of the features.

    Differences are compared with 0. Their unit is the largest score of a region before something was subtracted. A
    number for single features, such as .95 for ranks, is none for regions, but 0 is.
    """
    if regions.against is not None:
        unit = np.array([np.abs(regions.means(vanilla[row : row + 1], row)).max() for row in range(len(vanilla))])
        return replace(own or Terms(), threshold=0.0, split=0, unit=unit, nothing=(), sides=regions.sides)
    if own is None:
        return None
    unit = None if regions.how == "sum" else own.unit
    kept = callable(own.threshold) or np.array_equal(own.threshold, 0)
    return replace(own, threshold=own.threshold if kept else usual, unit=unit, nothing=())
