"""Mean, deviation and median of numbers near the largest that there are, and ordinary ones."""

import numpy as np
import pytest

from metfa import stats
from metfa.results.moments import mean_of, median_of, std_of

BIG = np.finfo(float).max / 2


@pytest.mark.parametrize("scale", [1.0, 1e-300, BIG])
def test_near_the_largest_number(scale):
    """Twenty numbers in [-1, 1] times the scale: no infinity where the answer is a number."""
    ordinary = np.random.default_rng(0).uniform(-1, 1, (20, 1, 3))
    ordinary[::2, 0, 0], ordinary[1::2, 0, 0] = 1.9, -1.9
    for function in (mean_of, std_of, median_of):
        np.testing.assert_allclose(
            function(ordinary * scale), function(ordinary) * scale, rtol=1e-12, atol=1e-15 * scale
        )


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_intervals_of_a_mean_near_the_largest_and_smallest_number(dtype, sign):
    ordinary = np.random.default_rng(0).uniform(-1, 1, (20, 3)).astype(dtype)
    scale = dtype(2) ** (np.finfo(dtype).maxexp - 3 if sign > 0 else np.finfo(dtype).minexp + 30)
    found, expected = stats.mean_interval(ordinary * scale), stats.mean_interval(ordinary)
    rtol = 1e-4 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(found.low / scale, expected.low, rtol=rtol)
    np.testing.assert_allclose(found.high / scale, expected.high, rtol=rtol)
    smoothed = stats.smoothed_median(ordinary * scale)
    np.testing.assert_allclose(smoothed / scale, stats.smoothed_median(ordinary), rtol=rtol)


def test_constants_are_exact():
    assert (mean_of(np.full((7, 1, 2), 0.1)) == 0.1).all()
    assert (std_of(np.full((7, 1, 2), 0.1)) == 0).all()
