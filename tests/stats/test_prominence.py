"""Whether anything stands out: what the rule finds, what it must not find, and a slow second implementation."""

import math

import numpy as np
import pytest
import scipy.stats
from scipy.ndimage import gaussian_filter1d

from metfa import stats
from metfa.stats import prominences as module

RNG = np.random.default_rng(0)
FLAT = 0.005 + 1e-7 * RNG.uniform(-1, 1, 100) + 1e-9 * RNG.normal(size=(20, 100))
LAWS = {
    "normal": lambda rng, n, m: rng.normal(size=(n, m)),
    "skewed": lambda rng, n, m: rng.exponential(size=(n, m)),
    "wild": lambda rng, n, m: rng.standard_cauchy((n, m)),
    "very skewed": lambda rng, n, m: np.exp(2 * rng.normal(size=(n, m))),
    "smooth": lambda rng, n, m: gaussian_filter1d(rng.normal(size=(n, m)), m / 8, axis=1, mode="wrap"),
    "smooth, absolute": lambda rng, n, m: np.abs(
        gaussian_filter1d(rng.normal(size=(n, m)), m / 16, axis=1, mode="wrap")
    ),
    "few ones": lambda rng, n, m: (rng.random((n, m)) < 2 / m).astype(float),
    "scaled to [0, 1]": lambda rng, n, m: (lambda e: e / e.max(axis=1, keepdims=True))(rng.exponential(size=(n, m))),
}


def by_hand(samples):
    """z and the single feature, one pair of maps and one feature after the other."""
    n, flat = len(samples), samples.reshape(len(samples), -1).astype(float)
    directions = [(one - one.mean()) / math.dist(one, [one.mean()] * one.size) for one in flat]
    pairs = [float(a @ b) for i, a in enumerate(directions) for b in directions[i + 1 :]]
    smallest = 1.0
    for feature in range(flat.shape[1]):
        above = sum(one[feature] > np.median(one) for one in flat)
        below = sum(one[feature] < np.median(one) for one in flat)
        tail = scipy.stats.binom.sf(max(above, below) - 1, n, 0.5)
        smallest = min(smallest, 2 * flat.shape[1] * tail)
    return sum(pairs) / math.sqrt(sum(pair**2 for pair in pairs)), smallest <= 0.05


@pytest.mark.parametrize("shape", [(6, 5), (20, 3, 4), (9, 2), (12, 30)])
@pytest.mark.parametrize("shift", [0, 1.5])
def test_as_by_hand(shape, shift):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        samples = rng.normal(size=shape) + shift * np.eye(1, math.prod(shape[1:])).reshape(shape[1:])
        found, (z, single) = stats.prominence(samples), by_hand(samples)
        assert found.agreement == pytest.approx(z)
        assert found.single == (single and z < 2.1)  # it is asked only where the maps do not agree
        stands_out = z >= 2.1 or single
        assert (found.nothing is None) == stands_out
        medians = np.sort(samples, axis=0)[(len(samples) - 1) // 2]
        assert found.spread == pytest.approx(np.ptp(medians))


class TestWhatIsFound:
    def test_scores_that_agree_but_hardly_differ(self):
        """The reported case: .005 +- 1e-7. The copies agree; the contrast is 4e-5 of the level."""
        found = stats.prominence(FLAT)
        assert found.nothing == (
            "the medians differ by 2e-07, which is 4e-05 of 0.005, and less than 0.0001 of it counts as rounding"
        )
        assert stats.prominence(FLAT, unit=2e-7).nothing is None

    def test_scores_about_zero_that_are_nothing_in_their_unit(self):
        tiny = RNG.uniform(-7e-6, 1e-6, 100) + 1e-8 * RNG.normal(size=(20, 100))
        assert stats.prominence(tiny).nothing is None
        assert "of 1, and less than 0.0001 of it counts as rounding" in stats.prominence(tiny, unit=1.0).nothing

    def test_one_feature_of_many(self):
        samples = RNG.normal(size=(30, 20000))
        assert "agree only by chance" in stats.prominence(samples).nothing
        samples[:, 7] += 3
        found = stats.prominence(samples)
        assert (found.agreement < 2.1, found.single, found.nothing) == (True, True, None)

    def test_one_feature(self):
        assert stats.prominence(RNG.random((20, 1))).nothing.startswith("there is one feature")

    @pytest.mark.parametrize("samples", [np.zeros((20, 30)), np.repeat(RNG.random((20, 1)), 30, axis=1)])
    def test_equal_features(self, samples):
        assert stats.prominence(samples).nothing == "the medians of all features are equal"

    @pytest.mark.parametrize("dtype", [np.float16, np.float32])
    def test_rounding_of_the_dtype(self, dtype):
        rounded = (1 + 0.4 * np.finfo(dtype).eps * np.arange(10) * np.ones((20, 1))).astype(dtype)
        assert "counts as rounding" in stats.prominence(rounded).nothing

    def test_few_samples_are_not_asked_whether_they_agree(self):
        assert stats.prominence(np.random.default_rng(0).random((4, 30))).nothing is None


class TestInvariance:
    def test_order_scale_shift_and_library(self):
        samples = RNG.normal(size=(15, 4, 6)) + np.arange(6) / 4
        found = stats.prominence(samples)
        for other in (samples[::-1], samples * 1e200, samples * 1e-200, np.asfortranarray(samples)):
            again = stats.prominence(other)
            assert (again.agreement, again.nothing) == (pytest.approx(found.agreement), found.nothing)
        assert stats.prominence(samples + 3).agreement == pytest.approx(found.agreement)
        assert stats.prominence(np.moveaxis(samples, 0, 1), axis=1) == found

    def test_wild_maps_hide_nothing(self):
        samples = RNG.normal(size=(20, 50)) + np.linspace(0, 3, 50)
        samples[3:5] *= 1e6
        assert stats.prominence(samples).agreement > 5

    def test_in_blocks_and_from_a_file(self, tmp_path, monkeypatch):
        samples = RNG.normal(size=(70, 3, 50)).astype(np.float32) + np.linspace(0, 1, 50, dtype=np.float32)
        whole = stats.prominence(samples)
        np.save(tmp_path / "samples.npy", samples)
        monkeypatch.setattr(module, "BLOCK", 200)
        mapped = np.load(tmp_path / "samples.npy", mmap_mode="r")
        assert stats.prominence(mapped).agreement == pytest.approx(whole.agreement)
        assert stats.prominence(mapped).nothing is None


def false_alarms(law, n, m, runs, seed):
    rng = np.random.default_rng(seed)
    return np.mean([stats.prominence(LAWS[law](rng, n, m)).nothing is None for _ in range(runs)])


@pytest.mark.parametrize("law", LAWS)
def test_false_alarms(law):
    """Features that all have the same law: at most .07 by agreement and .05 by single ones."""
    assert scipy.stats.binom.sf(17, 60, 0.12) < 1e-3
    assert false_alarms(law, 10, 20, 60, 0) <= 17 / 60


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("n", "m"), [(6, 10), (20, 3), (20, 200), (60, 30)])
def test_false_alarms_are_rare(law, n, m):
    """P(Bin(150, .12) > 31) < 1e-3: the two parts together, each at about .05."""
    assert scipy.stats.binom.sf(31, 150, 0.12) < 1e-3
    assert false_alarms(law, n, m, 150, 1) <= 31 / 150


@pytest.mark.parametrize(
    ("n", "m", "share", "shift", "least"),
    [(10, 400, 0.1, 1.0, 0.95), (10, 20, 0.1, 2.0, 0.9), (20, 400, 0.02, 1.0, 0.9), (50, 400, 0.0025, 1.5, 0.9)],
)
def test_power(n, m, share, shift, least):
    """Shifts in standard deviations, of a share of the features; what the documentation's table says."""
    rng = np.random.default_rng(2)
    medians = np.where(np.arange(m) < round(share * m), shift, 0)
    found = [stats.prominence(rng.normal(medians, 1, (n, m))).nothing is None for _ in range(50)]
    assert np.mean(found) >= least


def test_a_number_that_is_below_a_limit_looks_so():
    assert "(z = 2.098)" in stats.prominences.Prominence(1.0, 1.0, 2.098, False).nothing
    assert "which is 9.99e-05 of 1" in stats.prominences.Prominence(9.99e-5, 1.0, 5.0, True).nothing
