"""What the differences of a comparison are, in words: which is subtracted from which, in what units, what is tested."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from metfa._base.percents import percent
from metfa.results.cautions import named_parts
from metfa.results.one_map import is_noisy

if TYPE_CHECKING:
    from metfa.results.sample import AttributionSample

__all__ = ["STATEMENT", "Compared"]

STATEMENT = "marks and intervals are about the median of the differences, not the difference of the medians"
SCORES = {
    "raw": "attribution score",
    "mean": "score over the mean absolute score of its map",
    "share": "share of its map's sum of absolute scores",
    "rank": "rank in its map, over the number of features",
}


@dataclass(frozen=True)
class Compared:
    """The two parts of one input of a comparison, as sentences name them.

    Attributes
    ----------
    before, after : str
        Their names.
    scale : str
        How their maps were scaled before one was subtracted from the other (`AttributionSample.scaled`), or "raw".
    changed : bool
        Whether the inputs were changed too.
    flips : tuple of (str, float)
        Name of each part and share of its noisy inputs with another prediction, where that is known.
    noisy : bool
        Whether the samples are of noisy copies; else they differ by the explainers' own draws alone.
    """

    before: str
    after: str
    scale: str
    changed: bool
    flips: tuple[tuple[str, float], ...]
    noisy: bool = True

    @classmethod
    def of(cls, sample: AttributionSample, row: int) -> Compared | None:
        """Of one input of a result; None unless it holds differences."""
        if sample.pair is None:
            return None
        made, parts = sample.provenance["compared"], named_parts(sample, *sample.pair)
        flips = tuple((name, float(part.flip_rate[row])) for name, part in parts if part.flip_rate is not None)
        (before, _), (after, _) = parts
        noisy = is_noisy(sample.provenance)
        return cls(before, after, made["scale"], made["inputs"] == "changed", flips, noisy)

    @property
    def names(self) -> tuple[str, str]:
        """Both names."""
        return self.before, self.after

    @property
    def score(self) -> str:
        """What a score of either part is."""
        return SCORES[self.scale]

    @property
    def subtraction(self) -> str:
        """Which is subtracted from which, such as "after minus before"."""
        return f"{self.after} minus {self.before}"

    @property
    def about(self) -> str:
        """What a difference is, and what is stated about it."""
        inputs = ", of changed inputs" * self.changed
        where = "in the same noisy copy" if self.noisy else "in each of the explainers' own draws"
        return f"{self.subtraction} {where} ({self.score}{inputs}); {STATEMENT}"

    @property
    def flipped(self) -> str:
        """Share of the noisy inputs with another prediction, of each part; empty where it is unknown."""
        return ", ".join(f"{name} {percent(rate, 0)}" for name, rate in self.flips)
