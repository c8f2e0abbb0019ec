"""Stability of explanations under noise: one score for each input, from a sample.

Each function returns `Scores`. An input whose maps are all constant gets no score and a warning: it would win.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from metfa._base.validation import positive_int
from metfa.metrics.scores import Scores, warn_of_missing
from metfa.results.population import check_copies
from metfa.results.sample import AttributionSample

__all__ = [
    "Stability",
    "check_sample",
    "interval_width",
    "max_sensitivity",
    "mstd",
    "prediction_agreement",
    "top_k_overlap",
]


@dataclass(frozen=True, eq=False, repr=False)
class Stability(Scores):
    """Spread of every input's maps, and figures that show whether it means something.

    Attributes
    ----------
    raw : numpy.ndarray, (batch,)
        Mean over the features of the standard deviation, without its bias for few draws; NaN where `degenerate` gives a
        reason.
    clean : numpy.ndarray, (batch,)
        Ones: the spread is not divided by anything.
    degenerate : tuple of (str or None), one an input
        The reason is that all maps of the input are constant, which is perfectly stable and worthless.
    level : numpy.ndarray, (batch,)
        Mean of the maps over samples and features: a map near zero varies little.
    constant : numpy.ndarray, (batch,)
        Share of the samples whose map is constant.
    rescaled : numpy.ndarray, (batch,)
        The spread after each map is scaled to [0, 1] by itself, once more, as the paper's released
        ``test_stability.py`` does with smoothed and mean maps. NaN for maps of one feature.
    correlation : numpy.ndarray, (batch,)
        Mean Pearson correlation between the maps of two draws, over all pairs; constant maps are left out, and NaN
        stands where fewer than two are left. It does not depend on the range of the maps: 1 is the same picture.
    """

    level: np.ndarray
    constant: np.ndarray
    rescaled: np.ndarray
    correlation: np.ndarray

    @property
    def over_level(self) -> np.ndarray:
        """The spread over the level, (batch,): NaN where the level is not above 0."""
        return np.divide(self.raw, self.level, out=np.full(len(self.raw), np.nan), where=self.level > 0)


def check_sample(sample: Any, noise: str = "outer") -> None:
    """Raise unless `sample` is an AttributionSample; `noise` names its noise in the message."""
    if not isinstance(sample, AttributionSample):
        raise TypeError(
            f"`sample` must be an AttributionSample, explanations under {noise} noise, got {type(sample).__name__}: "
            "draw it by `metfa.explain(explainer, inputs, target, noise=..., n_samples=10)`"
        )
    check_copies(sample.population, "`sample` must hold")


def mstd(sample: AttributionSample) -> Stability:
    r"""Mean standard deviation of the maps under outer noise (paper, section on the stability metric).

    :math:`\mathrm{mstd} = \mathrm{Mean}_{i}\, \mathrm{std}_{n \sim O_n} E(I + n)_i`, for every input; the paper
    averages over inputs as well. The lower, the more stable.

    The standard deviation is that of a sample (n - 1), as in the paper's code, divided by
    :math:`c_4(n) = \sqrt{2 / (n - 1)}\, \Gamma(n / 2) / \Gamma((n - 1) / 2)`. Its mean is then that of the whole law if
    scores are normal, so that figures of different numbers of draws can be compared. Without it mstd is 20 % too low
    with 2 draws and 2.7 % with the paper's 10: multiply by 0.9727 to compare with the paper's tables.

    A map of a smaller range has a smaller mstd, and medians and means of noisy maps have smaller ranges. So a part of
    what smoothing gains is that shrinkage. Read mstd beside the `correlation` of the maps, which no scaling moves, and
    beside `rescaled`; see :doc:`/background/differences`.

    Parameters
    ----------
    sample : AttributionSample
        Explanations under the *outer* noise, as ``metfa.explain(explainer, inputs, noise=outer, n_samples=10)`` draws
        them (the paper takes 10). For the mstd of smoothed maps, let the explainer be a `metfa.Smoothed` with a noise
        of its own.

    Returns
    -------
    Stability
        `score` (batch,), with the level of the maps, the share that is constant, and what does not depend on the range
        of the maps.

    Warns
    -----
    DegenerateAttributionsWarning
        If all maps of an input are constant: it has no score.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> explainer = lambda inputs, target: np.abs(inputs)
    >>> noise = metfa.noise.Gaussian(0.1)
    >>> x = np.array([[1.0, 2.0, 3.0]])
    >>> single = metfa.explain(explainer, x, 0, noise=noise, n_samples=50, rng=0)
    >>> smooth = metfa.Smoothed(explainer, noise=noise, n_samples=20)
    >>> smoothed = metfa.explain(smooth, x, 0, noise=noise, n_samples=50, rng=0)
    >>> bool(metfa.metrics.mstd(smoothed).score < 1.2 * metfa.metrics.mstd(single).score)
    True
    """
    check_sample(sample)
    if sample.n_samples < 2:
        raise ValueError("`sample` must hold at least 2 samples of each input to have a spread, got 1")
    flat = _flat(sample.values)
    spread = sample.std().reshape(flat.shape[1], -1).mean(axis=1, dtype=np.float64)
    scores = _scores(sample, spread / _c4(sample.n_samples))
    level = flat.mean(axis=(0, 2), dtype=np.float64)
    rescaled, correlation = _without_range(flat)
    return Stability(
        scores.raw, scores.clean, scores.degenerate, level, _constant(sample), rescaled / _c4(len(flat)), correlation
    )


def _without_range(flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of samples (n, batch, features): mean deviation of maps scaled to [0, 1], and mean correlation of two maps."""
    _, batch, n_features = flat.shape
    mean, squares, directions = np.zeros((3, batch, n_features))
    varied = np.zeros(batch)
    for number, maps in enumerate(flat, start=1):
        scores = maps.astype(np.float64)
        low, high = scores.min(axis=1, keepdims=True), scores.max(axis=1, keepdims=True)
        moved = high > low
        scaled = np.divide(scores - low, high - low, out=np.zeros_like(scores), where=moved)
        step = scaled - mean
        mean += step / number
        squares += step * (scaled - mean)
        centred = scaled - scaled.mean(axis=1, keepdims=True)  # a map and its scaled form have one direction
        length = np.linalg.norm(centred, axis=1, keepdims=True)
        directions += np.divide(centred, length, out=np.zeros_like(scores), where=moved)
        varied += moved[:, 0]
    spread = np.sqrt(squares / (len(flat) - 1)).mean(axis=1)
    pairs = varied * (varied - 1)
    correlation = np.divide((directions**2).sum(axis=1) - varied, pairs, out=np.full(batch, np.nan), where=pairs > 0)
    return np.where((n_features > 1) & (varied > 0), spread, np.nan), np.clip(correlation, -1, 1)


def _c4(n: int) -> float:
    """Mean of the standard deviation (n - 1) of n draws from a normal law of deviation 1."""
    return math.sqrt(2 / (n - 1)) * math.exp(math.lgamma(n / 2) - math.lgamma((n - 1) / 2))


def interval_width(sample: AttributionSample, confidence_level: float = 0.95) -> Scores:
    """Mean over the features of the width of the medians' intervals, in the unit of the maps.

    Parameters
    ----------
    sample : AttributionSample
        Explanations under the sampling noise.
    confidence_level : float
        Level of the interval; the level reached is that of the ranks, see `AttributionSample.confidence_interval`.

    Raises
    ------
    ValueError
        If N is too small for the level.
    """
    check_sample(sample, "sampling")
    interval = sample.confidence_interval(confidence_level)
    widths = (interval.high - interval.low).reshape(len(interval.low), -1)
    return _scores(sample, widths.mean(axis=1, dtype=np.float64))


def top_k_overlap(sample: AttributionSample, k: int) -> Scores:
    """Mean overlap of the k features with the highest scores between two samples, from 0 to 1.

    This is the paper's "overlap of the top n" for texts, here for any features: the share of the k highest features
    that two samples have in common, averaged over all pairs of samples. By chance alone it is k over the number of
    features.

    If m features equal the k-th highest score and only c places are left for them, each of them counts c / m. So the
    order of the features decides nothing; the overlap of such a map with itself is below 1.

    Parameters
    ----------
    sample : AttributionSample
        Explanations under the *outer* noise, at least two of each input.
    k : int
        At least 1. Inputs with fewer features, such as short texts among others, have no score.
    """
    check_sample(sample)
    positive_int(k, "k")
    if sample.n_samples < 2:
        raise ValueError("`sample` must hold at least 2 samples of each input to be compared, got 1")
    if k > sample.n_features:
        n_inputs = len(sample.target)
        missing = Scores(np.full(n_inputs, np.nan), np.ones(n_inputs), (f"fewer than {k} features",) * n_inputs)
        warn_of_missing(missing.degenerate, missing.clean)
        return missing
    total = np.zeros((len(sample.target), sample.n_features))
    squares = np.zeros(len(total))
    for scores in _flat(sample.values):
        inside = _membership(scores, k)
        total += inside
        squares += (inside**2).sum(axis=1)
    n = sample.n_samples
    return _scores(sample, ((total**2).sum(axis=1) - squares) / (n * (n - 1) * k))


def max_sensitivity(sample: AttributionSample) -> Scores:
    r"""Largest relative change of the map under the noise: :math:`\max_n \|E(I + n) - E(I)\| / \|E(I)\|`.

    Max-sensitivity (Yeh et al. 2019) in the Euclidean norm: the same number as Captum's ``sensitivity_max`` for the
    same noisy inputs. Captum's own sampling takes no explainer with randomness of its own, and only uniform noise, by
    default with radius 0.02.

    Parameters
    ----------
    sample : AttributionSample
        Explanations under the noise; Captum draws 10. A map of zeros is divided by 1, as in Captum.
    """
    check_sample(sample)
    vanilla = sample.vanilla.reshape(len(sample.vanilla), -1).astype(np.float64)
    size = np.linalg.norm(vanilla, axis=1)
    changes = [np.linalg.norm(maps - vanilla, axis=1) for maps in _flat(sample.values)]
    return _scores(sample, np.max(changes, axis=0) / np.where(size == 0, 1, size))


def prediction_agreement(sample: AttributionSample) -> Scores:
    """Share of the noisy inputs for which the model predicts the class that it predicts for the clean one.

    The paper's condition on a noise is that the output changes little under it.

    Raises
    ------
    ValueError
        If the sample holds no predictions: the explainer returns no scores.
    """
    check_sample(sample)
    if sample.flip_rate is None:
        raise ValueError(
            "`sample` holds no predictions of the noisy inputs: give `metfa.explain` the model by `predict=`, or let "
            "the explainer return (attributions, scores), as those of metfa do"
        )
    n = len(sample.flip_rate)
    return Scores(1 - sample.flip_rate, np.ones(n), (None,) * n)


def _scores(sample: AttributionSample, values: np.ndarray) -> Scores:
    """Scores of a sample's maps; none for an input whose maps are all constant, for it would be the most stable."""
    useless = _constant(sample) == 1
    degenerate = tuple("constant maps only" if flag else None for flag in useless)
    ones = np.ones(len(values))
    warn_of_missing(degenerate, ones)
    return Scores(np.where(useless, np.nan, values), ones, degenerate)


def _constant(sample: AttributionSample) -> np.ndarray:
    """Share of the samples of each input whose map is constant, (batch,); a map of one feature never counts."""
    flat = _flat(sample.values)
    return (flat.min(axis=2) == flat.max(axis=2)).mean(axis=0) * (sample.n_features > 1)


def _membership(scores: np.ndarray, k: int) -> np.ndarray:
    """Whether each feature is among the k highest of its input, (batch, features): shares of 1 at ties."""
    kth = np.partition(scores, -k, axis=1)[:, -k, None]
    above, equal = scores > kth, scores == kth
    left = k - above.sum(axis=1, keepdims=True)
    return above + equal * left / equal.sum(axis=1, keepdims=True)


def _flat(values: np.ndarray) -> np.ndarray:
    """Samples with one axis of features, (samples, batch, features)."""
    return values.reshape(*values.shape[:2], -1)
