"""How much of a map is decided, and how far the decisions hold: one score for each input, from a sample under noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from metfa._base.validation import check_number
from metfa.metrics.scores import Scores
from metfa.metrics.stability import check_sample
from metfa.results.sample import AttributionSample

__all__ = ["certified_radius", "certified_share", "undecided"]


def undecided(
    sample: AttributionSample,
    threshold: Any = None,
    *,
    alpha: float | None = None,
    correction: str | None = None,
    split: int | None = None,
) -> Scores:
    """Share of the features that the test puts on neither side of the threshold.

    Parameters
    ----------
    sample : AttributionSample
        Explanations under the sampling noise.
    threshold, alpha, correction, split
        As for `AttributionSample.terms`.

    Raises
    ------
    ValueError
        If N is too small for anything to become significant.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> noise = metfa.noise.Gaussian(0.1)
    >>> x = np.array([[1.0, 2.0, 3.0, 4.0]])
    >>> sample = metfa.explain(lambda inputs, target: inputs, x, 0, noise=noise, n_samples=30, rng=0)
    >>> metfa.metrics.undecided(sample, 2.0).score
    array([0.25])
    """
    check_sample(sample, "sampling")
    marks = sample.significance_map(threshold, alpha=alpha, correction=correction, split=split)
    return _means(marks == 0)


def certified_radius(
    sample: AttributionSample,
    threshold: Any = None,
    *,
    alpha: float | None = None,
    correction: str | None = None,
    split: int | None = None,
) -> Scores:
    """Mean over the features of the L2 radius within which a decision holds; 0 for features without one.

    For classifiers this is called average certified radius (Zhai et al. 2020); here it is for features of an
    explanation.

    Parameters
    ----------
    sample : AttributionSample
        Explanations under Gaussian noise.
    threshold, alpha, correction, split
        As for `AttributionSample.certified_radius`.

    Returns
    -------
    Scores
        In the units of the input; with `metfa.noise.in_pixel_space` in pixel values.

    Raises
    ------
    ValueError
        As `AttributionSample.certified_radius` does.
    """
    check_sample(sample, "Gaussian sampling")
    return _means(sample.certified_radius(threshold, alpha=alpha, correction=correction, split=split))


def certified_share(
    sample: AttributionSample,
    radius: float,
    threshold: Any = None,
    *,
    alpha: float | None = None,
    correction: str | None = None,
    split: int | None = None,
) -> Scores:
    """Share of the features whose decision holds for any change of the input up to an L2 radius.

    For classifiers this is called certified accuracy at a radius (Cohen et al. 2019); here it is for features of an
    explanation.

    Parameters
    ----------
    sample : AttributionSample
        Explanations under Gaussian noise.
    radius : float
        Above 0, in the units of the input; with `metfa.noise.in_pixel_space` in pixel values.
    threshold, alpha, correction, split
        As for `AttributionSample.certified_radius`.

    Raises
    ------
    ValueError
        As `AttributionSample.certified_radius` does.
    """
    check_sample(sample, "Gaussian sampling")
    check_number(radius, "radius", above=0)
    found = sample.certified_radius(threshold, alpha=alpha, correction=correction, split=split)
    return _means(found >= radius)


def _means(of_features: np.ndarray) -> Scores:
    means = of_features.reshape(len(of_features), -1).mean(axis=1, dtype=np.float64)
    return Scores(means, np.ones(len(means)), (None,) * len(means))
