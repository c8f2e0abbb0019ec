"""Intervals and smoothed values: SciPy, sorting and enumeration as oracles."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from metfa import stats


def test_scipy_agrees():
    rng = np.random.default_rng(0)
    for n, level in itertools.product(range(1, 61), (0.8, 0.95, 0.99)):
        samples = rng.integers(-2, 3, n) / 2 if n % 2 else rng.normal(size=n)
        theirs = scipy.stats.quantile_test(samples, p=0.5).confidence_interval(level)
        if n < stats.min_samples(1 - level):
            assert math.isnan(theirs.low)
            with pytest.raises(ValueError, match=f"`confidence_level`={level}: got {n}, at least"):
                stats.median_interval(samples, level)
        else:
            ours = stats.median_interval(samples, level)
            assert (ours.low, ours.high) == (theirs.low, theirs.high)


def test_all_libraries_and_dtypes(backend):
    rng = np.random.default_rng(1)
    for n in (6, 9, 30) if backend.library == "jax" else range(6, 61):
        values = rng.integers(-8, 9, (n, 3, 2)) / (8 if backend.is_floating else 1)
        samples, ordered = backend.make(values), np.sort(values, axis=0)
        ranks = stats.median_ranks(n)
        interval, average = stats.median_interval(samples), stats.smoothed_median(samples)
        assert type(interval.low) is type(average) is type(samples)
        assert interval.low.dtype == interval.high.dtype == samples.dtype
        assert interval.confidence_level == ranks.confidence_level
        np.testing.assert_array_equal(backend.host(interval.low), ordered[ranks.low - 1])
        np.testing.assert_array_equal(backend.host(interval.high), ordered[ranks.high - 1])
        expected = ordered[ranks.first - 1 : ranks.last].mean(axis=0)
        np.testing.assert_allclose(backend.host(average), expected, rtol=1e-6, atol=1e-7)
    about_mean = stats.mean_interval(samples, 0.9)
    assert type(about_mean.low) is type(samples)
    theirs = scipy.stats.norm.interval(0.9, values.mean(0), scipy.stats.sem(values))
    np.testing.assert_allclose(backend.host(about_mean.low), theirs[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(backend.host(about_mean.high), theirs[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_averaged_in_float32(optional, dtype):
    torch = optional("torch")
    samples = torch.tensor([2048.0] * 9 + [2050.0], dtype=torch.float16).to(getattr(torch, dtype))
    average = stats.smoothed_median(samples, ranks=stats.Ranks(10, 1, 10, 1, 10, 0.9))
    assert average.dtype is torch.float32
    assert average == (2048.2 if dtype == "float16" else 2048.0)  # 2050 is 2048 in bfloat16
    assert stats.smoothed_median(samples.float().numpy().astype(np.float16)).dtype == np.float32


def test_booleans(optional):
    values = np.array([[True] * 3, [False] * 3] * 5)
    for samples in (values, optional("torch").asarray(values), optional("array_api_strict").asarray(values)):
        interval = stats.median_interval(samples)
        assert interval.low.dtype == samples.dtype
        np.testing.assert_array_equal(np.asarray(interval.low), np.zeros(3))
        np.testing.assert_array_equal(np.asarray(interval.high), np.ones(3))
        np.testing.assert_array_equal(np.asarray(stats.smoothed_median(samples)), 0.5)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_the_interval_holds_what_the_test_does_not_reject(level):
    rng = np.random.default_rng(2)
    for n in range(stats.min_samples(1 - level), 40):
        samples = np.sort(rng.integers(0, n, n).astype(float) if n % 2 else rng.normal(size=n))
        interval = stats.median_interval(samples, level)
        thresholds = np.concatenate([samples, np.nextafter(samples, -np.inf), np.nextafter(samples, np.inf)])
        pvalue = stats.sign_test(np.broadcast_to(samples[:, None], (n, 3 * n)), thresholds).pvalue
        inside = (interval.low <= thresholds) & (thresholds <= interval.high)
        np.testing.assert_array_equal(pvalue > 1 - level, inside)


@pytest.mark.parametrize("n", [6, 7, 8])
@pytest.mark.parametrize(
    ("chances", "medians"), [((0.3, 0.4, 0.3), (1,)), ((0.5, 0.1, 0.4), (0, 0.5, 1)), ((0.5, 0, 0.5), (0, 1, 2))]
)
def test_coverage_of_a_law_with_ties_by_enumeration(n, chances, medians):
    outcomes = np.array(list(itertools.product(range(3), repeat=n))).T
    chance = np.prod(np.array(chances)[outcomes], axis=0)
    interval = stats.median_interval(outcomes)
    for median in medians:
        covered = chance[(interval.low <= median) & (median <= interval.high)].sum()
        assert covered >= interval.confidence_level - 1e-12 >= 0.95 - 1e-12


def test_coverage_of_a_continuous_law_by_enumeration():
    """Only which samples lie below the median matters: 2**n equally likely cases."""
    n = 10
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=n))).T
    samples = signs * np.random.default_rng(3).exponential(size=(n, 1))
    for ranks in (stats.median_ranks(n), stats.paper_ranks(n)):
        interval = stats.median_interval(samples, ranks=ranks)
        assert np.mean((interval.low < 0) & (interval.high > 0)) == ranks.confidence_level


# ---- the smoothed value


def expected_average(n: int, first: int, last: int) -> float:
    """Mean of the expected order statistics of n standard normal samples, by quadrature."""

    def density(x, rank):
        below, above = scipy.stats.norm.cdf(x), scipy.stats.norm.sf(x)
        return rank * math.comb(n, rank) * below ** (rank - 1) * above ** (n - rank) * scipy.stats.norm.pdf(x)

    grid = np.linspace(-10, 10, 20_001)
    return float(np.mean([scipy.integrate.simpson(grid * density(grid, r), grid) for r in range(first, last + 1)]))


@pytest.mark.parametrize(("n", "bias"), [(10, -1.00136 / 7), (50, -0.026)])  # E e_(9) of 10 is 1.00136 (Harter, 1961)
def test_smoothed_value_is_unbiased_and_that_of_the_paper_is_not(n, bias):
    ours, papers = stats.median_ranks(n), stats.paper_ranks(n)
    assert expected_average(n, ours.first, ours.last) == pytest.approx(0, abs=1e-9)
    expected = expected_average(n, papers.first, papers.last)
    assert expected == pytest.approx(bias, abs=5e-4)
    samples = np.random.default_rng(4).normal(size=(n, 20_000))
    for ranks, mean in ((ours, 0), (papers, expected)):
        average = stats.smoothed_median(samples, ranks=ranks)
        assert abs(average.mean() - mean) < 5 * average.std() / 20_000**0.5  # false alarm: 6e-7


def test_gradient_reaches_the_averaged_samples_only(optional):
    torch = optional("torch")
    samples = torch.randn(10, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    stats.smoothed_median(samples).sum().backward()
    place = samples.detach().argsort(0).argsort(0)
    torch.testing.assert_close(samples.grad, ((place >= 1) & (place <= 8)) / 8.0, check_dtype=False)
    assert torch.autograd.gradcheck(stats.smoothed_median, samples)
    assert stats.smoothed_median(samples.bfloat16()).requires_grad


def test_zero_one_maps_stay_within_zero_and_one():
    samples = np.array([1, 0, 1, 1, 0, 1, 0, 1, 0, 1], dtype=np.float32)
    interval = stats.median_interval(samples)
    assert (interval.low, interval.high) == (0, 1)
    assert stats.smoothed_median(samples) == 5 / 8


@pytest.mark.parametrize("n", [10, 20, 30])
def test_constants(backend, n):
    samples = backend.make(np.full((n, 4), 0.3 if backend.is_floating else 3))
    interval, about_mean = stats.median_interval(samples), stats.mean_interval(samples)
    for array in (interval.low, interval.high, stats.smoothed_median(samples), about_mean.low, about_mean.high):
        np.testing.assert_array_equal(backend.host(array), backend.host(samples)[0])


def test_infinities_are_ordered_like_any_number():
    samples = np.array([-np.inf, 1, 2, 3, 4, 5, 6, 7, 8, np.inf])
    interval = stats.median_interval(samples)
    assert (interval.low, interval.high, stats.smoothed_median(samples)) == (1, 8, 4.5)


# ---- shapes, memory, errors


def test_order_of_samples_is_irrelevant():
    rng = np.random.default_rng(5)
    samples = rng.normal(size=(20, 30)).astype(np.float32)
    shuffled = rng.permuted(samples, axis=0)
    np.testing.assert_array_equal(stats.smoothed_median(samples), stats.smoothed_median(shuffled))  # to the bit
    for function, tolerance in ((stats.median_interval, 0), (stats.mean_interval, 1e-6)):
        np.testing.assert_allclose(function(samples).low, function(shuffled).low, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(function(samples).high, function(shuffled).high, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "shape", [(9, 3000), (2, 9, 3000), (9, 50, 50, 3), (3000, 9), (9, 3, 1, 1500), (9, 0), (0, 9, 4)]
)
@pytest.mark.parametrize("dtype", ["float16", "float32", "int16"])
def test_blocks_do_not_show(shape, dtype):
    axis = shape.index(9)
    samples = (100 * np.random.default_rng(7).normal(size=shape)).astype(dtype)
    before = samples.copy()
    ordered = np.moveaxis(np.sort(samples, axis=axis), axis, 0)
    interval, average = stats.median_interval(samples, axis=axis), stats.smoothed_median(samples, axis=axis)
    np.testing.assert_array_equal(interval.low, ordered[1])
    np.testing.assert_array_equal(interval.high, ordered[7])
    np.testing.assert_allclose(average, ordered[1:8].mean(axis=0, dtype=np.float64), rtol=1e-5, atol=1e-4)
    mean = stats.mean_interval(samples, axis=axis)
    np.testing.assert_allclose((mean.low + mean.high) / 2, samples.mean(axis, dtype=np.float64), rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(samples, before)  # the samples themselves stay unsorted


@pytest.mark.parametrize("function", [stats.median_interval, stats.smoothed_median, stats.mean_interval])
def test_a_file_is_never_loaded_whole(tmp_path, function):
    samples = np.lib.format.open_memmap(tmp_path / "samples.npy", mode="w+", dtype=np.float32, shape=(300, 40_000))
    samples[:] = 1
    tracemalloc.start()
    function(samples)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < samples.nbytes / 6


@pytest.mark.parametrize("function", [stats.median_interval, stats.smoothed_median])
def test_nan_is_counted_over_all_blocks(optional, function):
    samples = np.zeros((6, 5000))
    samples[2, [3, 4000]] = samples[5, 4999] = np.nan
    for values in (samples, samples.astype(np.float16), optional("torch").asarray(samples)):
        with pytest.raises(ValueError, match="`samples` must be free of NaN, got 3 such values"):
            function(values)


def test_ranks_of_another_number_of_samples():
    for function in (stats.median_interval, stats.smoothed_median):
        with pytest.raises(ValueError, match=r"`ranks` are for 12 samples, got 10 samples; write median_ranks\(10\)"):
            function(np.zeros(10), ranks=stats.median_ranks(12))
        with pytest.raises(TypeError, match=r"`ranks` must be a Ranks, .* got tuple"):
            function(np.zeros(10), ranks=(2, 9))


@pytest.mark.parametrize("function", [stats.median_interval, stats.smoothed_median])
def test_too_few_samples(function):
    with pytest.raises(ValueError, match=r"`confidence_level`=0.95: got 5, at least 6 .* confidence_level=0.9375"):
        function(np.zeros((5, 3)))
    function(np.zeros((5, 3)), 0.9375)


# ---- the mean


def test_jackknife_standard_error_of_a_mean():
    samples = np.random.default_rng(8).exponential(size=12)
    left_out = np.array([np.delete(samples, i).mean() for i in range(12)])
    jackknife = np.sqrt(11 / 12 * ((left_out - left_out.mean()) ** 2).sum())
    interval = stats.mean_interval(samples, 0.9)
    assert interval.confidence_level == 0.9
    assert interval.high - samples.mean() == pytest.approx(scipy.stats.norm.ppf(0.95) * jackknife)
    assert samples.mean() - interval.low == pytest.approx(scipy.stats.norm.ppf(0.95) * jackknife)


def test_mean_interval_errors():
    with pytest.raises(ValueError, match="at least 2 samples for a standard deviation, got 1"):
        stats.mean_interval(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="`samples` must be free of NaN and infinity, got 2 such values"):
        stats.mean_interval(np.array([[1.0, np.inf], [np.nan, 2], [0, 0]]))
    with pytest.raises(ValueError, match=r"`confidence_level` .* got 1\.5"):
        stats.mean_interval(np.zeros((2, 3)), 1.5)


@pytest.mark.parametrize("function", [stats.median_interval, stats.smoothed_median])
def test_a_level_beside_ranks_is_refused(function):
    ranks = stats.median_ranks(20, 0.8)
    with pytest.raises(ValueError, match=r"`confidence_level`=0.99 would not be used beside `ranks`"):
        function(np.arange(20.0), 0.99, ranks=ranks)
    function(np.arange(20.0), ranks=ranks)  # as the message says
    function(np.arange(20.0), 0.99)
