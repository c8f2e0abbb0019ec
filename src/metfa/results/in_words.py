"""Which regions were found, in words that a person uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from metfa._base.percents import counted, percent
from metfa._base.provenance import printable

if TYPE_CHECKING:
    from metfa.results.decisions import Decision
    from metfa.results.sample import AttributionSample

__all__ = ["regions_in_words"]

NAMED = 3  # regions of each kind that are named; the others are counted


def regions_in_words(sample: AttributionSample, decision: Decision, row: int = 0, whole: str = "picture") -> str:
    """How many regions have each mark, how large they are together, and the names of the strongest.

    Parameters
    ----------
    sample : AttributionSample
        Samples of regions (`AttributionSample.over`).
    decision : Decision
        Their decision.
    row : int
        Which input of the batch.
    whole : str
        Word for all features together.

    Returns
    -------
    str
        Such as "3 of 37 regions (9% of the picture) get significantly more than the rest: ...".
    """
    if sample.regions is None:
        raise ValueError("`sample` must hold regions: write `sample.over(...)`")
    why = decision.nothing[row]
    if why is not None:
        return f"no region stands out: {why}"
    marks, masks = decision.marks[row], sample.regions.as_masks(row)
    medians = sample.values[:, row].mean(axis=0)
    verb = "are" if decision.terms.sides is None else "get"
    said = []
    for mark in (1, -1, 0):
        chosen = np.flatnonzero(marks == mark)
        of = f"{len(chosen)} of {counted(len(marks), 'region')}" if mark == 1 else str(len(chosen))
        size = f" ({percent(masks[chosen].any(axis=0).mean(), 0)} of the {whole})" if len(chosen) and mark == 1 else ""
        size = size or (f" ({percent(masks[chosen].any(axis=0).mean(), 0)})" if len(chosen) else "")
        how = f"{verb} {'significantly ' * (mark == 1)}{decision.kinds[mark]}" if mark else "are undecided"
        names = [printable(sample.regions.names[i])[:60] for i in chosen[np.argsort(-mark * medians[chosen])]]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        listed = f": {', '.join(names[:NAMED])}{more}" if mark == 1 and names else ""
        said.append(f"{of}{size} {how}{listed}")
    return "; ".join(said)
