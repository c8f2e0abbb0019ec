"""Whether any feature of a map stands out, beyond noise and beyond rounding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa._arrays import to_host
from metfa._base.mapped import at_features, unload
from metfa._base.threaded import threaded
from metfa._base.validation import check_number
from metfa.stats._order import side_by_side
from metfa.stats.blocks import (
    each_block,
    each_map,
    feature_blocks,
    read_features,
    reduce_rows,
    sums_over,
    value_blocks,
)
from metfa.stats.sign_null import upper_tail_table
from metfa.stats.validation import as_rows

__all__ = ["LEAST_SHARE", "Prominence", "prominence", "smallest_difference"]

LEAST_SHARE = 1e-4  # of the unit: scores that differ by less do not differ
LEAST_Z = 2.1  # the smallest cut that keeps 5 % if all maps vary along one direction: P(chi-square > 1 + 2.1 sqrt 2)
LEVEL = 0.05  # of the test of single features
GROUPS = 32  # of maps whose agreement is compared pair by pair
BLOCK = 2**20  # scores in memory at once
NARROW = 2**8  # features of a block that are scaled at once
CANDIDATES = 32  # features at each end of the mean map, whose medians show that the range is not small


@dataclass(frozen=True)
class Prominence:
    """How far the features of one input differ; see `prominence`.

    Attributes
    ----------
    spread : float
        Largest minus smallest median of the features; a lower bound of it where that is enough to see that it is no
        tiny share of the unit.
    unit : float
        What it is compared with.
    agreement : float
        z-value of the correlations between the maps of different samples: 0 on average if no feature differs.
    single : bool
        Whether a single feature differs from the middle of its map in significantly many samples.
    least_share : float
        Share of the unit below which scores do not differ.
    n_features : int
        Number of features.
    """

    spread: float
    unit: float
    agreement: float
    single: bool
    least_share: float = LEAST_SHARE
    n_features: int = 2

    @property
    def nothing(self) -> str | None:
        """Why no feature stands out, in words; None if one does."""
        if self.n_features == 1:
            return "there is one feature, and it cannot stand out of others"
        if self.spread == 0:
            return "the medians of all features are equal"
        if self.spread < self.least_share * self.unit:
            share = _below(self.spread / self.unit, self.least_share, "g")
            return (
                f"the medians differ by {self.spread:.2g}, which is {share} of {self.unit:.3g}, "
                f"and less than {self.least_share:.2g} of it counts as rounding"
            )
        if self.agreement < LEAST_Z and not self.single:
            return f"the maps agree only by chance (z = {_below(self.agreement, LEAST_Z, 'f')})"
        return None


def _below(value: float, limit: float, kind: str) -> str:
    """A number that is below a limit, with one digit, or so many that it looks so."""
    texts = (f"{value:.{digits}{kind}}" for digits in range(1, 18))
    return next((text for text in texts if float(text) < limit), repr(value))


def smallest_difference(unit: Any, dtype: Any) -> Any:
    """Smallest difference between scores of a dtype that counts: a share of the unit, above the dtype's rounding."""
    return unit * _least_share(np.dtype(dtype))


def _least_share(dtype: np.dtype) -> float:
    return max(LEAST_SHARE, 4 * float(np.finfo(dtype).eps)) if dtype.kind == "f" else LEAST_SHARE


def prominence(samples: Any, *, unit: float | None = None, axis: int = 0) -> Prominence:
    r"""Does any feature stand out of its map, beyond noise and beyond rounding?

    A natural break cuts *any* scores in two, also those that do not differ. So this is asked before:

    1. *Rounding.* The medians of the features must differ by at least :math:`10^{-4}` of a unit (four times the
       spacing of the dtype if that is more).
    2. *Noise.* The maps of different samples must agree. The map of a sample, minus its mean and divided by its norm,
       is a direction :math:`u_i`. If no feature differs, the correlations :math:`u_i^\top u_k` are 0 on average. The
       rule asks whether :math:`z = \sum_{i<k} u_i^\top u_k / (\sum_{i<k} (u_i^\top u_k)^2)^{1/2}`, the sum over its
       standard deviation under random signs of the :math:`u_i`, is at least 2.1. Or a single feature lies on the same
       side of the median of its map in so many samples that a sign test with Bonferroni's correction finds it at .05.

    Parameters
    ----------
    samples : array
        Independent maps of one input, ``(n, *features)`` for ``axis=0``.
    unit : float, optional
        What counts as a whole score, in the units of the maps: 1 for probabilities. None: the largest absolute median.
    axis : int, default: 0
        The axis of `samples` that runs over the samples.

    Returns
    -------
    Prominence
        Its `nothing` says in words why no feature stands out; None if one does.

    Notes
    -----
    The levels hold for features that all have the same law and depend on each other in any way that is the same under
    a random sign; simulated false alarms are at most .07 for the agreement and .05 for single features (5 to 100
    samples, 3 to 400 features, eight laws; see the guide on choosing N). With fewer than 5 samples, z cannot reach 2.1
    by more than chance, and 2 is not asked. More than 32 samples are averaged in 32 groups. NumPy samples may lie in a
    file: they are read in blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from metfa import stats
    >>> rng = np.random.default_rng(0)
    >>> flat = 0.005 + 1e-7 * rng.uniform(-1, 1, 100) + 1e-9 * rng.normal(size=(20, 100))
    >>> stats.prominence(flat).nothing
    'the medians differ by 2e-07, which is 4e-05 of 0.005, and less than 0.0001 of it counts as rounding'
    >>> stats.prominence(rng.random((20, 100))).nothing
    'the maps agree only by chance (z = ...)'
    >>> stats.prominence(rng.random((20, 100)) + np.eye(1, 100)).nothing is None
    True
    """
    rows, n = as_rows(samples, axis)
    values = np.moveaxis(to_host(rows), -1, 0)
    values = values[:, None] if values.ndim == 1 else values
    if not values.size:
        raise ValueError(f"`samples` must have features, got shape {values.shape}")
    if unit is not None:
        unit = check_number(unit, "unit")
    largest = max(each_block(lambda block: max(float(block.max()), -float(block.min())), values, BLOCK))
    exponent = math.frexp(largest)[1]
    far = abs(exponent) > 400
    scale = math.ldexp(1.0, min(-exponent, 1023)) if far else 1.0  # keeps squares within range, rounds nothing
    means, norms, total = _described(values, scale)
    spread, level = _spread(values, total, largest if unit is None else unit, unit is None)
    share, size = _least_share(values.dtype), math.prod(values.shape[1:])
    if n < 5 or spread < share * level:
        return Prominence(spread, level, math.inf, True, share, size)
    agreement = _agreement(values, means, norms, scale)
    single = agreement < LEAST_Z and _single(values)
    return Prominence(spread, level, agreement, single, share, size)


def _described(values: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean of each map times `scale`, its norm about this mean, and the sum of the maps at some features; float64."""

    def described(one: np.ndarray) -> tuple[float, float]:
        mean, norm = float(one.mean(dtype=np.float64)) * scale, 0.0
        for block in value_blocks(one, BLOCK):
            numbers = _scaled(block, scale)
            numbers -= mean
            norm += float(numbers @ numbers)
        return mean, norm

    def add(total: np.ndarray, sample: np.ndarray, _: Any) -> None:
        total += sample if scale == 1 else _scaled(sample, scale)

    means, norms = np.array(list(each_map(described, values))).T
    return means, np.sqrt(norms), sums_over(values, add).ravel()[:: _step(values)]


def _scaled(numbers: np.ndarray, scale: float) -> np.ndarray:
    """The numbers times `scale`, a power of two, in float64."""
    wide = numbers.astype(np.float64)
    if scale != 1:
        wide *= scale
    return wide


def _step(values: np.ndarray) -> int:
    """Every how many features the sum of the maps is kept: it serves only to find features that differ much."""
    return max(1, math.prod(values.shape[1:]) // BLOCK)


def _spread(values: np.ndarray, total: np.ndarray, unit: float, own: bool) -> tuple[float, float]:
    """Range of the medians, and the unit: the largest absolute median if it is the maps' `own`, else as given."""
    ends = _ends(total) * _step(values)
    few = _medians(at_features(values, ends))
    spread = float(few.max()) - float(few.min())
    if spread >= 10 * _least_share(values.dtype) * unit:  # `unit` is not below the largest absolute median here
        return spread, unit if not own else float(np.abs(few).max())
    medians = _medians(values)
    low, high = float(medians.min()), float(medians.max())
    return high - low, max(abs(low), abs(high)) if own else unit


def _ends(flat: np.ndarray) -> np.ndarray:
    """Places of the smallest and the largest numbers."""
    if flat.size <= 2 * CANDIDATES:
        return np.arange(flat.size)
    order = np.argpartition(flat, (CANDIDATES, flat.size - CANDIDATES))
    return np.concatenate([order[:CANDIDATES], order[-CANDIDATES:]])


def _medians(values: np.ndarray) -> np.ndarray:
    """Median over the first axis, the lower of two."""

    def lower(rows: np.ndarray) -> tuple[np.ndarray]:
        middle = (rows.shape[-1] - 1) // 2
        parted = side_by_side(rows)
        parted.partition(middle, axis=-1)
        return (parted[..., middle].astype(np.float64),)

    return reduce_rows(lower, np.moveaxis(values, 0, -1))[0]


def _agreement(values: np.ndarray, means: np.ndarray, norms: np.ndarray, scale: float) -> float:
    """z-value of the products of all pairs of groups of maps."""
    n = len(values)
    size = min(n, GROUPS)
    factors = np.divide(1.0, norms, out=np.zeros(n), where=norms > 0)[:, None]

    def multiplied(index: tuple[slice, ...]) -> np.ndarray:
        block = read_features(values, index).reshape(n, -1)
        groups = np.empty((size, block.shape[1]))
        for start in range(0, block.shape[1], NARROW):
            few = _scaled(block[:, start : start + NARROW], scale)
            few -= means[:, None]
            few *= factors
            for first in range(size, n, size):
                more = few[first : first + size]
                few[: len(more)] += more
            groups[:, start : start + NARROW] = few[:size]
        return groups @ groups.T

    products = np.zeros((size, size))
    for product in threaded(multiplied, feature_blocks(values.shape[1:], max(1, BLOCK // n))):
        products += product
    pairs = products[np.triu_indices(size, 1)]
    deviation = math.sqrt(float((pairs**2).sum()))
    return float(pairs.sum()) / deviation if deviation > 1e-12 else 0.0


def _single(values: np.ndarray) -> bool:
    """Whether one feature lies on one side of the median of its map in significantly many samples."""
    n, size = len(values), math.prod(values.shape[1:])

    def sides(one: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        middle = np.median(one)
        found = one > middle, one < middle
        unload(values)
        return found

    above, below = (np.zeros(values.shape[1:], np.int64) for _ in range(2))
    for higher, lower in each_map(sides, values):
        above += higher
        below += lower
    most = max(int(above.max()), int(below.max()))
    return bool(2 * size * upper_tail_table(n)[most] <= LEVEL)
