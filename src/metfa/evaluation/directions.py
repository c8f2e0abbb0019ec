"""Which direction of a figure is better, and which figures have the units of the maps."""

from __future__ import annotations

__all__ = ["HIGHER", "LOWER", "better_of"]

HIGHER = {
    *("insertion", "overall", "RI", "RO", "ST", "FAT", "RST", "RFAT"),
    *("top_k_overlap", "prediction_agreement", "rule_met", "region_score", "certified_radius", "certified_share"),
    "correlation",
}
LOWER = {
    *("deletion", "RD", "FDT", "RFDT", "infidelity"),
    *("mstd", "over level", "rescaled", "max_sensitivity", "interval_width", "sample_size", "undecided"),
}
IN_UNITS_OF_MAPS = {"mstd", "interval_width"}  # lower by a factor of 1000 if the map is


def better_of(metric: str, *, same_units: bool) -> str | None:
    """The better direction, "higher" or "lower", or None where neither is better.

    `same_units` says whether the maps that are compared have the same units. Two explainers may not, so that the lower
    mstd of one of them means nothing. A user's own metric has no known direction.
    """
    if metric in IN_UNITS_OF_MAPS and not same_units:
        return None
    return "higher" if metric in HIGHER else "lower" if metric in LOWER else None
