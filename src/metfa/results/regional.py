"""What holds for regions that are asked about beside single features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metfa.results.sample import AttributionSample

__all__ = ["levels_of_regions"]


def levels_of_regions(
    sample: AttributionSample, alpha: float | None = None, correction: str | None = None
) -> dict[str, Any]:
    """Alpha and correction for samples of regions: what is given, and what holds where nothing is given.

    They are those by which sampling stopped, if that tested anything. Else the correction is family-wise, "holm",
    because regions are few; after a look it is "e-bh", which holds at any time.
    """
    stopping = sample.stopping
    if stopping is not None and "undecided" in stopping.asked:
        own, usual = stopping.alpha, stopping.correction or "none"
    else:
        own, usual = None, "e-bh" if sample.any_time else "holm"
    return {"alpha": own if alpha is None else alpha, "correction": correction or usual}
