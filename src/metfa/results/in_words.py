"""Which regions were found, in words that a person uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from metfa._base.percents import counted, percent
from metfa._base.provenance import printable
from metfa.results.decisions import samples_for_interval
from metfa.results.thresholds import flat_in_words

if TYPE_CHECKING:
    from metfa.results.decisions import Decision
    from metfa.results.sample import AttributionSample

__all__ = ["regions_in_words"]

LEVEL = 0.95  # of the smoothed scores by which regions are sorted
NAMED = 3  # regions of each kind that are named; the others are counted


def regions_in_words(
    sample: AttributionSample, decision: Decision, row: int = 0, *, noun: str = "region", whole: str = "picture"
) -> str:
    """How many regions have each mark, how large they are together, and the names of the strongest.

    Parameters
    ----------
    sample : AttributionSample
        Samples of regions (`AttributionSample.over`).
    decision : Decision
        Their decision.
    row : int
        Which input of the batch.
    noun, whole : str
        Words for a region, and for all features together.

    Returns
    -------
    str
        Such as "3 of 37 regions (9% of the picture) get significantly more than the rest: ...".
    """
    if sample.regions is None:
        raise ValueError("`sample` must hold regions: write `sample.over(...)`")
    why = decision.nothing[row]
    if why is not None:
        return flat_in_words(why, noun)
    marks, members = decision.marks[row], sample.regions.members(row)
    n_features = np.prod(sample.regions.feature_shape)
    few = sample.n_samples < samples_for_interval(LEVEL)  # a rule with a large alpha may stop so early
    strength = (sample.median() if few else sample.smoothed(LEVEL))[row]
    said = []
    for mark in (1, -1, 0):
        chosen = np.flatnonzero(marks == mark)
        first, one = mark == 1, len(chosen) == 1
        of = f"{len(chosen)} of {counted(len(marks), noun)}" if first else str(len(chosen))
        held = np.unique(np.concatenate([members[i] for i in chosen])).size if len(chosen) else 0  # they may overlap
        share = percent(held / n_features, 0) if held else ""
        size = f" ({share}{f' of the {whole}' * first})" if share else ""
        verb = ("is" if one else "are") if not decision.terms.of_differences or not mark else ("gets" if one else "get")
        strongest = chosen[np.argsort(-strength[chosen], kind="stable")]
        names = [_quoted(printable(sample.regions.names[i])[:60]) for i in strongest]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        listed = f": {', '.join(names[:NAMED])}{more}" if first and names else ""
        said.append(f"{of}{size} {verb} {'significantly ' * first}{decision.kinds[mark]}{listed}")
    return "; ".join(said)


def _quoted(name: str) -> str:
    """A name that has a comma of its own in quotes, since commas separate the names."""
    return f'"{name}"' if "," in name else name
