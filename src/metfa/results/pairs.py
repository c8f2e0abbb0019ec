"""Differences of all pairs of features in the same sample: which feature has the higher score?"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from metfa._base.mapped import unload
from metfa.results.corrections import BOTH
from metfa.results.joining import check_plain
from metfa.results.terms import Terms

if TYPE_CHECKING:
    from typing import TypeVar

    from metfa.results.samples import Samples

    S = TypeVar("S", bound=Samples)

__all__ = ["MOST_FEATURES", "names_of", "paired"]

MOST_FEATURES = 100  # 4,950 pairs
AT_A_TIME = 64  # samples that are read from a file before their memory is given back
SIDES = "higher in the first", "higher in the second"


def paired(sample: S) -> S:
    """See `AttributionSample.pairwise`."""
    check_plain(sample, "pairwise")
    if sample.pairs_of is not None or (sample.default_terms is not None and sample.default_terms.of_differences):
        raise ValueError(
            "`pairwise` compares scores, and these are differences already: write `pairwise()` of the result that they "
            "were made of"
        )
    m = sample.n_features
    if not 2 <= m <= MOST_FEATURES:
        hint = "there is nothing to compare" if m < 2 else "pool them first, `sample.over(regions).pairwise()`"
        raise ValueError(f"`pairwise` compares 2 to {MOST_FEATURES} features with each other, got {m:,}: {hint}")
    names = names_of(sample)
    stopping = sample.stopping
    if stopping is not None:  # its thresholds are for other features
        noun = stopping.noun if sample.regions is not None or stopping.over is not None else "single feature"
        stopping = replace(stopping, thresholds=None, nothing=(), over=None, noun=noun)
    own = sample.default_terms or Terms()
    # One family for both sides, by the only correction that bounds a wrong order on any side, at any time.
    terms = replace(
        own, threshold=0.0, split=0, unit=sample.unit, nothing=(), sides=SIDES, correction="bonferroni", families=BOTH
    )
    return replace(
        sample,
        values=_differences(sample.values),
        vanilla=None if sample.vanilla is None else _differences(sample.vanilla[None])[0],
        feature_names=tuple(f"{a} - {b}" for a, b in combinations(names, 2)),
        provenance={**sample.provenance, "signed": True, "unit": None},
        stopping=stopping,
        default_terms=terms,
        regions=None,
        pairs_of=names,
    )


def names_of(sample: Samples) -> tuple[str, ...]:
    """A name for each feature of one map."""
    if sample.feature_names is not None:
        return sample.feature_names
    places = np.ndindex(sample.feature_shape)
    return tuple(f"feature {place[0] if len(place) == 1 else place}" for place in places)


def _differences(values: np.ndarray) -> np.ndarray:
    r"""First score less second score of each pair, (n, batch, pairs) float64, in samples (n, batch, \*features).

    The pairs are (0, 1), (0, 2), ..., (1, 2), ....
    """
    n, batch, *features = values.shape
    m = math.prod(features)
    found = np.empty((n, batch, m * (m - 1) // 2))
    for start in range(0, n, AT_A_TIME):
        part = slice(start, start + AT_A_TIME)
        flat = values[part].reshape(-1, batch, m).astype(np.float64)
        begin = 0
        with np.errstate(over="ignore"):
            for first in range(m - 1):
                end = begin + m - 1 - first
                np.subtract(flat[..., first : first + 1], flat[..., first + 1 :], out=found[part, :, begin:end])
                begin = end
        unload(values)
    if not np.isfinite(found).all():
        raise ValueError("the scores are too large for differences in float64: scale them, `sample.scaled('mean')`")
    return found
