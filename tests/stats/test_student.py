"""Student's t against SciPy, and the coverage of error bars of few inputs, simulated."""

import math

import numpy as np
import pytest
import scipy.stats

from metfa.evaluation.tables import Cell
from metfa.stats.student import half_width, t_quantile


@pytest.mark.parametrize("degrees", [1, 2, 3, 7, 30, 1000, 100_000])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99, 0.9999])
def test_the_quantile_is_scipys(level, degrees):
    assert t_quantile(level, degrees) == pytest.approx(scipy.stats.t.ppf((1 + level) / 2, degrees), rel=1e-10)


@pytest.mark.parametrize("n", [2, 3, 8, 30])
def test_error_bars_of_few_normal_inputs_hold_the_mean_as_often_as_they_say(n):
    """100,000 studies: four standard errors of a share of .95 are .0028; ±1.96 standard errors hold it less often."""
    values = np.random.default_rng(n).normal(size=(100_000, n))
    error = values.std(axis=1, ddof=1) / math.sqrt(n)
    held = np.abs(values.mean(axis=1)) <= error * half_width(1.0, n)
    assert abs(held.mean() - 0.95) < 0.0028
    assert (np.abs(values.mean(axis=1)) <= 1.96 * error).mean() < 0.945


def test_error_bars_of_eight_skewed_inputs_are_better_but_not_exact():
    values = np.random.default_rng(0).exponential(size=(100_000, 8))
    error = values.std(axis=1, ddof=1) / math.sqrt(8)
    off = np.abs(values.mean(axis=1) - 1)
    assert (off <= 1.96 * error).mean() == pytest.approx(0.856, abs=0.005)
    assert (off <= half_width(1.0, 8) * error).mean() == pytest.approx(0.896, abs=0.005)


def test_a_cell_shows_the_half_width():
    values = [0.2, 0.4, 0.9]
    cell = Cell.of(values)
    low, high = scipy.stats.t.interval(0.95, 2, np.mean(values), scipy.stats.sem(values))
    assert cell.half_width == pytest.approx((high - low) / 2)
    assert str(cell) == f"{np.mean(values):.4f} ± {(high - low) / 2:.4f}"
    assert str(Cell.of([0.5])) == "0.5000"
    assert math.isnan(half_width(0.1, 1))


def test_bad_levels_are_refused():
    with pytest.raises(ValueError, match=r"a level in \(0, 1\) and at least 1 degree of freedom, got 1, 3"):
        t_quantile(1, 3)
