"""Statistics in blocks, by threads, of samples sorted once: the same bits as of all samples sorted one by one."""

import os

import numpy as np
import pytest

from metfa import stats
from metfa.results.moments import ends_of, mean_of, median_of, std_of
from metfa.stats import blocks
from metfa.stats.sorted_once import counts_below, interval_and_smoothed

RNG = np.random.default_rng(0)
SHAPE = (12, 2, 5, 20)


def kinds():
    scores = RNG.normal(size=SHAPE)
    yield "single", scores.astype(np.float32)
    yield "double", scores
    yield "half", scores.astype(np.float16)
    yield "integers", RNG.integers(-3, 4, SHAPE)
    yield "bytes", RNG.integers(0, 9, SHAPE).astype(np.uint8)
    yield "equal", np.full(SHAPE, 0.25, np.float32)
    yield "zeros of both signs", np.where(RNG.random(SHAPE) < 0.5, 0.0, -0.0).astype(np.float32)
    yield "infinities", np.where(RNG.random(SHAPE) < 0.1, np.inf, np.where(RNG.random(SHAPE) < 0.1, -np.inf, scores))
    yield "every second feature of a transposed array", np.ascontiguousarray(scores.T).T[..., ::2]
    yield "one sample", scores[:1].astype(np.float32)
    yield "an odd number", scores[:11].astype(np.float32)


@pytest.fixture(params=[1, 3])
def small_blocks(request, monkeypatch):
    """Many blocks, and so many cores."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(request.param)), raising=False)
    for name, size in {"BLOCK_VALUES": 200, "LEAST_FEATURES": 17, "READ_AT_ONCE": 700, "SUMMED_AT_ONCE": 50}.items():
        monkeypatch.setattr(blocks, name, size)


@pytest.mark.parametrize(("kind", "values"), list(kinds()), ids=lambda value: value if isinstance(value, str) else "")
def test_blocks_and_threads_do_not_show(kind, values, small_blocks):
    n, by_hand = len(values), np.sort(values, axis=0)
    ranks = stats.Ranks(n, low=1 + n // 4, high=n - n // 4, first=1 + n // 3, last=n - n // 3, confidence_level=0.5)
    heights = np.unique(np.array([-1.0, -0.1, 0.0, 0.25, 0.3, 2.0], np.float32))
    interval, smoothed, below = interval_and_smoothed(values, ranks, ranks, heights)
    assert np.array_equal(interval.low, by_hand[ranks.low - 1])
    assert np.array_equal(interval.high, by_hand[ranks.high - 1])
    assert interval.low.dtype == values.dtype
    assert below.tolist() == [(values < height).sum(axis=0).tolist() for height in heights]
    assert np.array_equal(counts_below(values, heights), below)
    assert np.array_equal(smoothed, stats.smoothed_median(values, ranks=ranks), equal_nan=True)
    above = stats.sign_test(values, 0.25).above
    assert np.array_equal(above, (values > 0.25).sum(axis=0))
    assert ends_of(values) == (values.min(), values.max())
    if kind != "infinities":
        wide = values.astype(smoothed.dtype)
        lower, upper = np.sort(wide, axis=0)[[(n - 1) // 2, n // 2]]
        assert np.array_equal(median_of(values), lower + (upper - lower) / 2)
        assert np.allclose(smoothed, np.sort(wide, axis=0)[ranks.first - 1 : ranks.last].mean(axis=0))
        assert np.allclose(mean_of(values), wide.mean(axis=0), atol=1e-6)
        if n > 1:
            assert np.allclose(std_of(values), wide.std(axis=0, ddof=1), atol=1e-6)


def test_the_same_bits_by_any_number_of_threads(monkeypatch):
    values = RNG.gamma(2.0, 1.0, (60, 1, 50, 70)).astype(np.float32)
    found = []
    for cores in (1, 2, 4):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cores=cores: set(range(cores)), raising=False)
        apart = stats.prominence(values[:, 0])
        numbers = apart.agreement, apart.spread, stats.jenks(values), stats.jenks_of_medians(values[:, 0])
        maps = mean_of(values), std_of(values), stats.smoothed_median(values), stats.mean_interval(values).high
        found.append((numbers, [scores.tobytes() for scores in maps]))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("place", [(0, 0, 0, 0), (5, 1, 4, 19)])
def test_nan_is_refused_in_any_block(place, small_blocks):
    values = RNG.normal(size=SHAPE).astype(np.float32)
    values[place] = values[(3, *place[1:])] = np.nan
    ranks = stats.median_ranks(len(values))
    for refused in (
        lambda: interval_and_smoothed(values, ranks, ranks),
        lambda: counts_below(values, np.zeros(1, np.float32)),
        lambda: stats.median_interval(values),
        lambda: median_of(values),
        lambda: stats.sign_test(values, 0.0),
    ):
        with pytest.raises(ValueError, match=r"free of NaN, got 2 such values"):
            refused()


def test_no_heights_have_no_counts():
    values = RNG.normal(size=(9, 4)).astype(np.float32)
    ranks = stats.median_ranks(9)
    assert interval_and_smoothed(values, ranks, ranks)[2] is None
    assert interval_and_smoothed(values, ranks, ranks, np.empty(0, np.float32))[2].shape == (0, 4)
    assert counts_below(values, np.empty(0, np.float32)).shape == (0, 4)


@pytest.mark.parametrize("n", [127, 128, 129, 255, 256, 32_767, 32_768])
def test_counts_of_all_samples_fit_their_dtype(n):
    heights = np.array([-1, 1], np.float32)
    assert counts_below(np.zeros((n, 3), np.float32), heights).tolist() == [[0, 0, 0], [n, n, n]]
