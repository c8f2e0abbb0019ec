"""At which numbers of samples somebody looked: a number that was chosen after a look is not a fixed number."""

from __future__ import annotations

from typing import Any

__all__ = ["grown", "with_looks"]


def with_looks(provenance: dict[str, Any]) -> dict[str, Any]:
    """The provenance with the list "looks", which results of the same samples share; TypeError for another thing."""
    looks = provenance.get("looks")
    if looks is None:
        return {**provenance, "looks": []}
    if not isinstance(looks, list) or not all(type(size) is int and size > 0 for size in looks):
        raise TypeError(f"looks in the provenance, which must be a list of numbers of samples, got {looks!r:.80}")
    return provenance


def grown(looks: list[int], n_samples: int) -> str | None:
    """At which numbers below `n_samples` somebody looked before more were joined, in words; None if nobody did."""
    sizes = sorted({size for size in looks if size < n_samples})
    if not sizes:
        return None
    listed = ("..., " if len(sizes) > 5 else "") + ", ".join(map(str, sizes[-5:]))
    return f"joined from parts after looks at {listed} samples"
