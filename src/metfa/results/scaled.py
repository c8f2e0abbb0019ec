"""Samples in which each map is scaled by itself, so that a number such as 2 means the same for every input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from metfa._base.mapped import unload
from metfa._base.validation import one_of
from metfa.results.one_map import ROUNDING
from metfa.results.terms import Terms

if TYPE_CHECKING:
    from typing import TypeVar

    from metfa.results.samples import Samples

    S = TypeVar("S", bound=Samples)

__all__ = ["SCALES", "scaled_sample"]

TOP = 0.95  # the usual threshold of ranks: in the top 5 % of its own map


def _over_mean(scores: np.ndarray, _: float) -> np.ndarray:
    relative = scores / np.abs(scores).max()  # no sum overflows
    return relative / np.abs(relative).mean()


def _share(scores: np.ndarray, zone: float) -> np.ndarray:
    return _over_mean(scores, zone) / scores.size


def _rank(scores: np.ndarray, zone: float) -> np.ndarray:
    """Mean place of all scores that lie within a `zone` of a score, a share of the largest, over their number.

    Each score has a zone of its own. Were neighbours put into groups instead, a smooth map would be one long chain.
    """
    relative = scores / (np.abs(scores).max(initial=0) or 1)
    ordered = np.sort(relative)
    below = np.searchsorted(ordered, relative - zone, "left")
    not_above = np.searchsorted(ordered, relative + zone, "right")
    return (below + not_above + 1) / (2 * scores.size)


SCALES: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {"mean": _over_mean, "share": _share, "rank": _rank}
WORDS = {"mean": "multiples of the mean, ", "share": "shares of the sum, ", "rank": "ranks, "}


def scaled_sample(sample: S, scale: str) -> S:
    """See `AttributionSample.scaled`."""
    one_of(scale, "scale", SCALES)
    if sample.pair is not None:
        raise ValueError(
            f"`scaled` is for maps, and these are differences of maps: write `metfa.compare(..., scale={scale!r})`, "
            "which scales both maps before it subtracts"
        )
    if sample.regions is not None and sample.regions.against is not None:
        raise ValueError(
            "`scaled` is for maps, and these are differences between regions: write `sample.scaled(...).over(regions)` "
            "with the sample of the single features"
        )
    values, noun = np.empty(sample.values.shape), sample.sample_noun
    for number, maps in enumerate(sample.values):
        values[number] = _scaled_maps(maps, scale, sample.input_names, f"{noun} {sample.sample_ids[number]}")
        unload(sample.values)
    own, ranks = sample.default_terms, scale == "rank"
    if ranks:
        own = replace(own or Terms(), threshold=TOP, split=0, unit=1.0, nothing=(), sides=None)
    elif own is not None:  # scaling leaves the sign, and so the threshold 0
        own = replace(own, unit=None) if np.array_equal(own.threshold, 0) or callable(own.threshold) else None
    stopping = sample.stopping
    if stopping is not None:  # the number of samples still depends on what was seen, but its thresholds are of others
        stopping = replace(stopping, thresholds=None, nothing=(), noun=stopping.noun_of("unscaled"))
    made = f"{WORDS[scale]}{sample.provenance.get('explainer')}"
    return replace(
        sample,
        values=values,
        vanilla=None
        if sample.vanilla is None
        else _scaled_maps(sample.vanilla, scale, sample.input_names, "the map without noise"),
        provenance={**sample.provenance, "explainer": made, "signed": sample.signed and not ranks, "unit": None},
        stopping=stopping,
        default_terms=own,
    )


def _scaled_maps(maps: np.ndarray, scale: str, names: tuple[str, ...], what: str) -> np.ndarray:
    r"""Maps (batch, \*features), each by itself, in float64; ValueError for a map of zeros, which has no scale."""
    rows = maps.reshape(len(maps), -1).astype(np.float64)
    if scale != "rank" and rows.shape[1] and not rows.any(axis=1).all():
        row = int(rows.any(axis=1).argmin())
        raise ValueError(
            f"`scale` {scale!r}: {what} of input {row} ({names[row]}) is 0 everywhere, so that it has no mean to "
            "compare with: write `scaled('rank')`, in which all its features share one rank, or leave this input out "
            "(`sample.of_input`)"
        )
    eps = np.finfo(maps.dtype).eps if maps.dtype.kind == "f" else 0
    zone = max(ROUNDING, 4 * float(eps))  # wider for half precision
    return np.array([SCALES[scale](scores, zone) for scores in rows]).reshape(maps.shape)
