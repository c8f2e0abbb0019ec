"""What the samples of a result are where they are no noisy copies: the rows of a data set, or models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from metfa._base.percents import counted

__all__ = ["DIFFERENCE", "NUMBERS", "Population", "check_copies"]

NUMBERS = {  # what is taken of each row or model, in words
    "vanilla": "{} without noise",
    "mean": "mean {}",
    "smoothed": "smoothed {}",
    "median": "median {}",
}
ABOUT = {
    "row": "the law of this number over the population of which the rows are a sample",
    "model": "the law of this number over models that are trained as these were",
}
FEATURES = ("feature", "region")
DIFFERENCE = "difference"
SCORES = ("attribution score", DIFFERENCE)


@dataclass(frozen=True)
class Population:
    """What the samples of a result are: one number of each row of a data set, or of each model.

    Attributes
    ----------
    noun : {"row", "model"}
        What one sample is of.
    names : tuple of str
        The rows or models, one for each sample: for rows their `input_names`.
    of : {"vanilla", "mean", "smoothed", "median"}
        Which number is taken of each.
    copies : int
        Noisy copies that this number is taken of; 0 for "vanilla", which has no noise.
    absolute : bool
        Whether it is the absolute value of this number.
    score : str
        What is scored, such as "attribution score" or "mean score of a region"; "difference" of a comparison.
    feature : {"feature", "region"}
        What a feature is called.
    targets : tuple
        What was explained, one entry for each row; empty for models, which share the `target` of the result.
    flips : tuple of float or None
        Share of the noisy copies whose predicted class differs from the clean one, over all rows or models, one for
        each input of the result; None where unknown, and where there is no noise.
    layout : str or None
        Fingerprint of regions without names of their own, which correspond only where they lie alike.
    """

    noun: str
    names: tuple[str, ...]
    of: str
    copies: int
    absolute: bool
    score: str
    feature: str = "feature"
    targets: tuple[Any, ...] = ()
    flips: tuple[float, ...] | None = None
    layout: str | None = None

    @property
    def number(self) -> str:
        """The number that is taken of each, in words."""
        of = f" over {self.copies:,} noisy cop{'y' if self.copies == 1 else 'ies'}" if self.copies else ""
        return f"{'the absolute value of ' * self.absolute}its {self._of}{of}"

    @property
    def short(self) -> str:
        """The same for an axis: what is scored, and the number that is taken of it."""
        of = f"{self._of} of a {self.noun}"
        return f"{'absolute ' * self.absolute}{of}{'' if self.score in SCORES else f': {self.score}'}"

    @property
    def _of(self) -> str:
        return NUMBERS[self.of].format("difference" if self.score == DIFFERENCE else "score")

    @property
    def about(self) -> str:
        """Which law every statement is about."""
        return ABOUT[self.noun]

    def classes(self, in_words: Callable[[Any], str | None]) -> str | None:
        """The classes that were explained, where the rows have different ones."""
        counts = Counter(self.targets)
        if len(counts) < 2:
            return None
        shown = [f"{in_words(target)} for {counted(count, self.noun)}" for target, count in counts.most_common(4)]
        more = f" and {len(counts) - len(shown)} more" if len(counts) > len(shown) else ""
        return f"each {self.noun}'s own: {', '.join(shown)}{more}"

    def of_inputs(self, rows: list[int]) -> Population:
        """The same for some inputs of the batch."""
        return self if self.flips is None else replace(self, flips=tuple(self.flips[row] for row in rows))

    def written(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def read(cls, written: Any, batch: int, n_samples: int) -> Population:
        """From JSON that anybody may have written; TypeError or KeyError if it does not fit."""
        if not isinstance(written, dict):
            raise TypeError("population, which must be an object")
        given = {field.name: written[field.name] for field in fields(cls)}
        targets = given["targets"]
        fits = (
            isinstance(given["noun"], str)
            and given["noun"] in ABOUT
            and isinstance(given["of"], str)
            and given["of"] in NUMBERS
            and given["feature"] in FEATURES
            and isinstance(given["absolute"], bool)
            and type(given["copies"]) is int
            and given["copies"] >= 0
            and isinstance(given["score"], str)
            and isinstance(given["layout"], str | None)
            and _are_texts(given["names"])
            and len(set(given["names"])) == n_samples == len(given["names"])
            and isinstance(targets, list)
            and len(targets) == (n_samples if given["noun"] == "row" else 0)
            and all(map(_is_target, targets))
            and (given["flips"] is None or (len(given["flips"]) == batch and all(map(_is_share, given["flips"]))))
        )
        if not fits:
            raise TypeError("population, which does not fit the rest")
        flips = given["flips"]
        return cls(
            **given
            | {
                "names": tuple(given["names"]),
                "targets": tuple(tuple(one) if isinstance(one, list) else one for one in targets),
                "flips": None if flips is None else tuple(map(float, flips)),
            }
        )


def check_copies(population: Population | None, what: str) -> None:
    """Raise if samples are rows or models: `what` needs noisy copies of an input."""
    if population is not None:
        raise ValueError(
            f"{what} noisy copies of an input, and the samples of this result are {population.noun}s: "
            "`sample.summary()`, `sample.plot()` and `sample.report()` show it"
        )


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_target(value: Any) -> bool:
    parts = value if isinstance(value, list) else [value]
    return value is None or all(type(part) is int for part in parts)


def _is_share(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1
