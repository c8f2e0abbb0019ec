"""Regions: sets of features that are asked about as one, and how a map is pooled over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np

from metfa._arrays import as_array, is_array, to_host
from metfa._base.percents import counted
from metfa._base.validation import as_names, keep, one_of, positive_int, shown
from metfa.results.masks import blocks_of, checked_mask, count_of, frozen, members_of, renumbered, shape_of

__all__ = ["HOW", "Regions", "regions_of"]

HOW = ("mean", "sum", "max")
REST = "the rest"
ROUNDING = 1e-6  # share of a sample's largest score of a region; averages of float32 differ by less if nothing does


@dataclass(frozen=True, eq=False, repr=False)
class Regions:
    r"""Sets of features that are asked about as one each: the parts of a picture, sentences, windows, variables.

    A region's score in a sample is the mean (or sum, or maximum) of that sample's scores in it. So it is a score like
    any other, with a test, an interval and a smoothed value of its own: see `AttributionSample.over`.
    The package `metfa.regions` makes regions. They must not depend on the samples that are tested.

    Parameters
    ----------
    masks : ndarray, or tuple or list of ndarrays
        Labels, integers of the features' shape: 0, 1, ... are the regions, -1 is in none. Or a stack of masks, bool
        (regions, \*features), which may overlap. One array for all inputs, or a tuple or list of one for each input,
        which then hold equally many regions.
    names : sequence of str, optional
        A name for each region; by default "region 0", ....
    how : {"mean", "sum", "max"}
        What is taken over the features of a region.
    against : {None, "rest"} or ndarray of bool
        What is subtracted from each region's mean in the same sample, so that 0 is the threshold and nothing has to be
        chosen. "rest": the mean of all features outside the region. Or a mask of the features' shape, for the mean over
        another region. It asks "more or less than the rest?" and never "important?": where one region has 6 and 49 have
        1, the 49 have less than the rest. For means alone: maxima against a mean differ where the regions are equal.

    Raises
    ------
    TypeError, ValueError
        For regions that are empty, not equally many, or have no rest; for other settings than these.

    Notes
    -----
    Means of signed scores cancel: a region of strong positive and negative scores may have the mean 0. Explain absolute
    values (`metfa.explainers.heatmap`) to ask where scores are large.

    A mean over few features has another law than one over many. Where scores are very skewed, its median lies further
    below the mean, so that small regions may be called "less than the rest" though all features have one law. Ranks
    (`AttributionSample.scaled`) are not skewed.

    A difference below 1e-6 of the largest mean in the sample is rounding, and is set to 0.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> halves = metfa.Regions(np.array([0, 0, 1, 1]), names=["left", "right"], against="rest")
    >>> halves
    Regions(2 regions, mean, against the rest)
    >>> halves.pooled(np.array([[3.0, 5.0, 1.0, 0.0]]))
    array([[ 3.5, -3.5]])
    """

    masks: Any
    names: Any = None
    how: str = "mean"
    against: Any = None

    def __post_init__(self) -> None:
        several = isinstance(self.masks, tuple | list) and any(map(is_array, self.masks))
        masks = tuple(
            checked_mask(one, f"masks[{i}]" if several else "masks")
            for i, one in enumerate(self.masks if several else [self.masks])
        )
        numbers = [count_of(one) for one in masks]
        if len(set(numbers)) > 1:
            raise ValueError(
                f"`masks` must hold equally many regions for each input, got {', '.join(map(str, numbers))}: ask about "
                "one input at a time, `sample.of_input(0).over(...)`"
            )
        one_of(self.how, "how", HOW)
        names = _numbered(numbers[0]) if self.names is None else as_names(self.names, "names")
        if len(names) != numbers[0]:
            raise ValueError(f"`names` must name each of the {numbers[0]} regions, got {len(names)}")
        keep(self, masks=masks, names=names, against=self._checked_against(masks))
        for row, (_, _, sizes) in enumerate(self._of_rows):
            for index, size in enumerate(sizes.tolist()):
                self._check_one(row, index, size, masks[row].size if masks[row].dtype != bool else masks[row][0].size)

    def _checked_against(self, masks: tuple[np.ndarray, ...]) -> Any:
        against = self.against
        if against is not None and not (isinstance(against, str) and against == "rest"):
            if not is_array(against):
                raise TypeError(f"`against` must be None, 'rest' or a mask of bool, got {shown(against)}")
            against = frozen(to_host(as_array(against, "against")))
            if against.dtype != bool or not against.any():
                raise ValueError(f"`against` must be a mask of bool that is True somewhere, got {shown(against)}")
            wrong = next((shape_of(one) for one in masks if shape_of(one) != against.shape), None)
            if wrong is not None:
                raise ValueError(f"`against` must have the features' shape {wrong}, got {against.shape}")
        if against is not None and self.how != "mean":
            raise ValueError(
                f"`against` compares means, got how={self.how!r}: write how='mean', or leave `against` out"
            )
        return against

    def _check_one(self, row: int, index: int, size: int, n_features: int) -> None:
        where = f"{self.names[index]!r}{f' of input {row}' if len(self.masks) > 1 else ''}"
        if not size:
            hint = f"; {renumbered(self.masks[row])}" if self.masks[row].dtype != bool else ""
            raise ValueError(f"`masks`: {where} has no features: leave it out{hint}")
        if size == n_features and isinstance(self.against, str):
            raise ValueError(f"`against`='rest': {where} covers everything and has no rest: leave it out")

    @property
    def feature_shape(self) -> tuple[int, ...]:
        """Shape of the maps that it pools."""
        return shape_of(self.masks[0])

    @property
    def named(self) -> bool:
        """Whether the regions have names of their own, and not numbers alone."""
        return self.names != _numbered(len(self))

    @property
    def score_name(self) -> str:
        """What a score is: of a region, and what was subtracted from it."""
        name = {"mean": "mean score of a region", "sum": "sum of the scores of a region", "max": "maximum of a region"}
        if self.against is None:
            return name[self.how]
        return f"{name[self.how]} less that of {REST if isinstance(self.against, str) else 'the other region'}"

    @property
    def sides(self) -> tuple[str, str] | None:
        """What a region's score above 0 and below 0 means, where something is subtracted."""
        if self.against is None:
            return None
        other = REST if isinstance(self.against, str) else "the other region"
        return f"more than {other}", f"less than {other}"

    @cached_property
    def digest(self) -> str:
        """A fingerprint of all that the pooled scores depend on."""
        parts = [self.how.encode(), repr(self.names).encode()]
        for array in (*self.masks, *([] if self.against is None else [np.asarray(self.against)])):
            parts += [str((array.dtype.kind, array.shape)).encode(), np.ascontiguousarray(array).tobytes()]
        return blake2b(b"\0".join(parts), digest_size=8).hexdigest()

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, Regions) else NotImplemented

    __hash__: ClassVar[None] = None  # pyright: ignore[reportIncompatibleMethodOverride] - it holds arrays

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        against = "" if self.against is None else f", against {REST if isinstance(self.against, str) else 'a region'}"
        return f"Regions({counted(len(self), 'region')}, {self.how}{against})"

    def written(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """As JSON, and the arrays that belong to it."""
        arrays = {f"masks_{row}": mask for row, mask in enumerate(self.masks)}
        against = self.against
        if isinstance(against, np.ndarray):
            against, arrays["against"] = "mask", against
        return {"names": self.names, "how": self.how, "against": against, "inputs": len(self.masks)}, arrays

    @classmethod
    def read(cls, written: Any, array: Callable[[str], np.ndarray]) -> Regions:
        """From JSON that anybody may have written, and a function that reads an array of it."""
        if not isinstance(written, dict) or not isinstance(written["names"], list):
            raise TypeError("regions, which must be an object with names")
        masks = [array(f"masks_{row}") for row in range(positive_int(written["inputs"], "inputs"))]
        against = array("against") if written["against"] == "mask" else written["against"]
        return cls(tuple(masks), tuple(written["names"]), written["how"], against)

    def of_input(self, index: int) -> Regions:
        """The same for one input of the batch."""
        return self.of_inputs([index])

    def of_inputs(self, rows: Sequence[int]) -> Regions:
        """The same for some inputs of the batch, in this order."""
        return self if len(self.masks) == 1 else replace(self, masks=tuple(self.masks[row] for row in rows))

    def shares(self) -> np.ndarray:
        """Share of the features that each region holds, (1 or batch, regions)."""
        return np.array([sizes for _, _, sizes in self._of_rows]) / np.prod(self.feature_shape)

    def members(self, row: int = 0) -> list[np.ndarray]:
        """Flat indices of the features of each region of one input, ascending."""
        members, starts, _ = self._of_rows[row if len(self.masks) > 1 else 0]
        return np.split(members, starts[1:])

    def as_masks(self, row: int = 0) -> np.ndarray:
        r"""Masks of one input, bool (regions, \*features)."""
        mask = self.masks[row if len(self.masks) > 1 else 0]
        return mask if mask.dtype == bool else np.stack([mask == index for index in range(len(self))])

    def check_fits(self, feature_shape: tuple[int, ...], batch: int) -> None:
        """Raise unless it pools maps of that shape of a batch of that size."""
        if self.feature_shape != tuple(feature_shape):
            one = tuple(feature_shape) == (len(self), *self.feature_shape)
            raise ValueError(
                f"`regions` must have the shape of one map, {tuple(feature_shape)}, got {self.feature_shape}"
                f"{'; of a single mask make a stack of one: `mask[None]`' * one}"
            )
        if len(self.masks) not in (1, batch):
            raise ValueError(f"`regions` must hold masks for all or for each of {batch} inputs, got {len(self.masks)}")

    def means(self, maps: np.ndarray, row: int = 0) -> np.ndarray:
        r"""What `pooled` has before it subtracts: the regions' own scores, (n, regions) float64."""
        self.check_fits(maps.shape[1:], len(self.masks))  # other shapes may have as many features
        flat = np.asarray(maps).reshape(len(maps), -1)
        members, starts, sizes = self._of_rows[row if len(self.masks) > 1 else 0]
        reduce = np.maximum if self.how == "max" else np.add
        scores = np.empty((len(flat), len(self)))
        for part in blocks_of(len(flat), len(members)):
            gathered = flat[part].astype(np.float64, copy=False)[:, members]
            with np.errstate(over="ignore"):
                scores[part] = reduce.reduceat(gathered, starts, axis=1)
        return _finite(scores) / sizes if self.how == "mean" else _finite(scores)

    def pooled(self, maps: np.ndarray, row: int = 0) -> np.ndarray:
        r"""Scores of the regions in maps (n, \*features) of input `row`, (n, regions) float64."""
        scores = self.means(maps, row)
        if self.against is None:
            return scores
        flat = np.asarray(maps).reshape(len(maps), -1)
        if isinstance(self.against, str):
            _, _, sizes = self._of_rows[row if len(self.masks) > 1 else 0]
            with np.errstate(over="ignore"):
                total = _finite(flat.sum(axis=1, dtype=np.float64, keepdims=True))
            other = (total - scores * sizes) / (flat.shape[1] - sizes)
        else:
            with np.errstate(over="ignore"):
                other = _finite(flat[:, self.against.ravel()].mean(axis=1, dtype=np.float64, keepdims=True))
        differences = scores - other
        least = ROUNDING * np.maximum(np.abs(scores), np.abs(other)).max(axis=1, keepdims=True)
        return np.where(np.abs(differences) <= least, 0.0, differences)

    @cached_property
    def _of_rows(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """For each input the features of all regions in turn, where each region begins, and their sizes."""
        found = []
        for mask in self.masks:
            members = members_of(mask)
            sizes = np.array([len(one) for one in members])
            found.append((np.concatenate(members), np.cumsum(sizes) - sizes, sizes))
        return found


def regions_of(
    given: Any, how: str | None = None, against: Any = None, feature_shape: tuple[int, ...] | None = None
) -> Regions:
    """`given` as `Regions`, with another `how` or `against` where one is given.

    Where the shape of a map is known, one mask of that shape, or a list of them, are regions too.
    """
    if feature_shape is not None and _is_mask(given, feature_shape):
        given = as_array(given, "regions")[None]
    elif isinstance(given, tuple | list) and given and all(_is_mask(one, feature_shape) for one in given):
        given = np.stack([to_host(one) for one in given])
    if given is None:
        raise TypeError("`regions` must be a metfa.Regions, labels or masks, got None: see `metfa.regions`")
    asked = {name: value for name, value in (("how", how), ("against", against)) if value is not None}
    return replace(given, **asked) if isinstance(given, Regions) else Regions(given, **asked)


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"region {i}" for i in range(count))


def _finite(sums: np.ndarray) -> np.ndarray:
    if not np.isfinite(sums).all():
        raise ValueError("the scores are too large for sums in float64: scale them, `sample.scaled('mean')`")
    return sums


def _is_mask(given: Any, feature_shape: tuple[int, ...] | None) -> bool:
    return is_array(given) and tuple(given.shape) == feature_shape and to_host(given[..., :0]).dtype == bool
