"""How much is decided, and how far it holds: by hand from the maps of a sample."""

import numpy as np
import pytest

import metfa
from metfa import stats
from metfa.metrics import certified_radius, certified_share, undecided

ROWS = np.random.default_rng(1).random((3, 40))


def absolute(inputs, target):
    return np.abs(inputs - 0.3)


def sample_of(n_samples=40, noise=None):
    return metfa.explain(absolute, ROWS, 0, noise=noise or metfa.noise.Gaussian(0.1), n_samples=n_samples, rng=0)


@pytest.mark.parametrize(
    "terms",
    [
        {"threshold": 0.3},
        {"threshold": 0.3, "alpha": 0.2, "correction": "bh"},
        {"threshold": metfa.stats.jenks, "split": 10},
        {"threshold": 0.3, "correction": "e-bh"},
    ],
)
def test_means_over_the_features_of_each_input(terms):
    sample = sample_of()
    marks, radii = sample.significance_map(**terms), sample.certified_radius(**terms)
    np.testing.assert_array_equal(undecided(sample, **terms).score, (marks == 0).mean(axis=1))
    np.testing.assert_allclose(certified_radius(sample, **terms).score, radii.mean(axis=1))
    shares = certified_share(sample, 0.05, **terms).score
    np.testing.assert_array_equal(shares, (radii >= 0.05).mean(axis=1))
    assert (shares > 0).all()
    assert (shares < 1 - undecided(sample, **terms).score).all()


def test_thresholds_left_open():
    sample = sample_of()
    np.testing.assert_array_equal(undecided(sample).score, (sample.significance_map() == 0).mean(axis=1))
    of_first = (sample.significance_map(stats.jenks_of_medians, split=10) == 0).mean(axis=1)
    np.testing.assert_array_equal(undecided(sample, split=10).score, of_first)
    with pytest.raises(ValueError, match="`threshold` must not depend on the samples that are tested"):
        certified_radius(sample)


def test_the_thresholds_of_until():
    sample = sample_of(metfa.Until(undecided=0.2, max_samples=200))
    thresholds, split = np.array(sample.stopping.thresholds), sample.stopping.split
    given = {"threshold": thresholds, "alpha": 0.05, "correction": sample.stopping.correction, "split": split}
    expected = (sample.significance_map(**given) == 0).mean(axis=1)
    np.testing.assert_array_equal(undecided(sample).score, expected)
    assert expected.max() <= 0.2
    radii = sample.certified_radius(**given)
    np.testing.assert_allclose(certified_radius(sample).score, radii.mean(axis=1))


def test_what_cannot_be():
    with pytest.raises(TypeError, match="`sample` must be an AttributionSample, explanations under Gaussian sampling"):
        certified_radius(np.zeros((3, 3)), 0.1)
    for radius, error in ((0, ValueError), (-1, ValueError), (np.nan, ValueError), ("1", TypeError)):
        with pytest.raises(error, match="`radius` must be"):
            certified_share(sample_of(10), radius, 0.3)
    with pytest.raises(ValueError, match="a certificate needs Gaussian noise"):
        certified_radius(sample_of(noise=metfa.noise.Uniform(0.1)), 0.3)
