"""Natural breaks: exact against brute force in fractions, and against two other libraries."""

import math
import subprocess
import sys
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from metfa import stats
from metfa._base.warnings import DegenerateAttributionsWarning
from metfa.stats import _large_breaks, _thresholds

reproducible = settings(deadline=None, database=None, derandomize=True, max_examples=150)


def within(values) -> Fraction:
    values = [Fraction(float(value)) for value in values]
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values)


def slow_cut(values) -> int:
    """The lowest of the best cuts, by brute force in exact arithmetic."""
    ordered = sorted(values)
    cuts = [i for i in range(1, len(ordered)) if ordered[i - 1] < ordered[i]]
    return min(cuts, key=lambda i: (within(ordered[:i]) + within(ordered[i:]), i))


@pytest.mark.slow
@reproducible
@given(st.lists(st.integers(-20, 20), min_size=2, max_size=25), st.integers(1, 8))
def test_integers_with_ties_are_cut_exactly(values, chunk):
    assume(len(set(values)) > 1)
    ordered, cut = sorted(values), slow_cut(values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_thresholds, "CHUNK", chunk)
        assert stats.jenks(np.array(values)) == (ordered[cut - 1] + ordered[cut]) / 2


@reproducible
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=2, max_size=25))
def test_no_cut_of_float32_values_is_better(values):
    assume(len(set(values)) > 1)
    threshold = stats.jenks(np.array(values, dtype=np.float32))
    lower, upper = [v for v in values if v < threshold], [v for v in values if v > threshold]
    assert len(lower) + len(upper) == len(values)
    cut, ordered = slow_cut(values), sorted(values)
    best = within(ordered[:cut]) + within(ordered[cut:])
    assert within(lower) + within(upper) <= best + within(values) * Fraction(1, 10**12)


def test_chunks_do_not_show():
    values = np.random.default_rng(0).integers(0, 1000, 3 * _thresholds.CHUNK + 1)
    ordered = np.sort(values).astype(float)
    i = np.arange(1, values.size)
    between = (values.size * ordered.cumsum()[:-1] - i * ordered.sum()) ** 2 / (i * (values.size - i))
    between[ordered[1:] == ordered[:-1]] = 0
    cut = between.argmax() + 1
    assert stats.jenks(values) == (ordered[cut - 1] + ordered[cut]) / 2


def test_jenkspy_agrees(optional):
    jenkspy = optional("jenkspy")
    for seed in range(20):
        values = np.random.default_rng(seed).exponential(size=300)
        largest_of_lower = jenkspy.jenks_breaks(values, n_classes=2)[1]
        threshold = stats.jenks(values)
        assert values[values < threshold].max() == largest_of_lower


def test_kmeans1d_agrees_on_all_values_of_a_map(optional):
    values = np.random.default_rng(0).gamma(0.5, size=50_176 * 5).astype(np.float32)
    labels = np.asarray(optional("kmeans1d").cluster(values, 2).clusters)
    np.testing.assert_array_equal(values > stats.jenks(values), labels == 1)


def test_three_values():
    assert stats.jenks([0, 1, -2]) == -1
    assert stats.jenks([0, 1, 2]) == 0.5  # two equal optima: the lowest


def test_any_library_dtype_and_shape(backend):
    values = np.array([[0, 1, 1], [0, 7, 8]])
    assert stats.jenks(backend.make(values)) == 4


def test_booleans():
    assert stats.jenks(np.array([True, False, True])) == 0.5


def test_all_values_count_and_their_order_does_not():
    rng = np.random.default_rng(1)
    values = rng.exponential(size=(10, 50_176)).astype(np.float32)
    threshold = stats.jenks(values)
    assert threshold == stats.jenks(rng.permutation(values.ravel()))
    assert threshold == stats.jenks_sorted(np.sort(values, axis=None))
    assert threshold != stats.jenks(values[:, :1000])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_threshold_lies_between_adjacent_values(optional, dtype):
    torch = optional("torch")
    low = torch.tensor(0.1, dtype=getattr(torch, dtype))
    high = torch.nextafter(low, torch.ones_like(low))
    samples = torch.stack([low] * 4 + [high] * 3)
    threshold = stats.jenks(samples)
    assert low.item() < threshold < high.item()
    result = stats.sign_test(samples, threshold)
    assert (int(result.above), int(result.below)) == (3, 4)


@pytest.mark.parametrize(
    ("values", "threshold"),
    [
        ([-1.7e308, 1.7e308], 0.0),
        ([1.5e308, 1.5e308, 1.7e308], 1.6e308),
        ([-1.7e308, -1.7e308, 1.6e308, 1.7e308], -5e306),
        ([1e-300, 2e-300, 9e-300], 5.5e-300),
        ([0.0, 0.0, 4e-323], 2e-323),
        ([1e15, 1e15 + 1, 1e15 + 8], 1e15 + 4.5),
    ],
)
def test_extreme_magnitudes(values, threshold):
    assert stats.jenks(np.array(values)) == pytest.approx(threshold, rel=1e-14)


@pytest.mark.parametrize("values", [np.zeros(1), np.full((3, 4), 7), np.array([0.0, -0.0]), [True, True]])
def test_equal_values_have_no_threshold(values):
    message = f"no threshold separates {np.size(values)} equal values"
    with pytest.warns(DegenerateAttributionsWarning, match=message) as record:
        assert math.isnan(stats.jenks(values))
    assert record[0].filename == __file__


@pytest.mark.parametrize("function", [stats.jenks, stats.jenks_sorted])
def test_bad_values(function):
    with pytest.raises(ValueError, match=r"must hold at least one number, got shape \(0,\)"):
        function(np.zeros(0))
    with pytest.raises(ValueError, match="must be finite, got 3 values"):
        function(np.array([-np.inf, 0.0, np.inf, np.nan]))
    with pytest.raises(TypeError, match="must hold real numbers, got ndarray of complex128"):
        function(np.zeros(3, complex))


def test_sorted_values_are_checked():
    with pytest.raises(ValueError, match=r"`sorted_values` must be in ascending order"):
        stats.jenks_sorted(np.array([0.0, 2.0, 1.0, 3.0]))
    with pytest.raises(ValueError, match=r"`sorted_values` must have one axis, got shape \(2, 2\)"):
        stats.jenks_sorted(np.zeros((2, 2)))


def test_a_sorted_file_is_scanned_in_pieces(tmp_path):
    values = np.lib.format.open_memmap(tmp_path / "sorted.npy", mode="w+", dtype=np.float32, shape=(4_000_000,))
    values[:] = np.linspace(0, 1, values.size)
    tracemalloc.start()
    threshold = stats.jenks_sorted(values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert threshold == pytest.approx(0.5, abs=1e-6)
    assert peak < values.nbytes / 4


LARGE = {
    "normal": lambda rng: rng.normal(size=5000).astype(np.float32),
    "skewed, two axes": lambda rng: rng.exponential(size=(7, 999)),
    "halves": lambda rng: rng.exponential(size=3000).astype(np.float16),
    "zeros and ones": lambda rng: (rng.random(3000) < 0.1).astype(np.float32),
    "integers": lambda rng: rng.integers(0, 9, 4000),
    "bytes": lambda rng: rng.integers(0, 255, 5000).astype(np.uint8),
    "wild": lambda rng: rng.standard_cauchy(5000),
    "one far away": lambda rng: np.append(rng.random(5000), 1e6),
    "two equal cuts": lambda rng: np.array([0.0, 1.0, 2.0]),
    "hardly different": lambda rng: 0.005 + 1e-7 * rng.random(3000),
    "large numbers": lambda rng: rng.normal(size=500) * 1e200,
}


@pytest.mark.parametrize("law", LARGE)
@pytest.mark.parametrize(("bins", "sampled", "gathered", "block"), [(2**16, 2**20, 2**23, 2**22), (4, 8, 100, 700)])
def test_many_values_have_the_same_break_in_blocks(law, bins, sampled, gathered, block, monkeypatch):
    values = LARGE[law](np.random.default_rng(0))
    expected = stats.jenks(values)
    monkeypatch.setattr(_thresholds, "SORTED_IN_MEMORY", 0)
    monkeypatch.setattr(_thresholds, "BLOCK", block)
    for name, value in {"BINS": bins, "SAMPLED": sampled, "GATHERED": gathered}.items():
        monkeypatch.setattr(_large_breaks, name, value)
    assert stats.jenks(values) == expected


def test_many_equal_values_in_blocks(monkeypatch):
    monkeypatch.setattr(_thresholds, "SORTED_IN_MEMORY", 0)
    with pytest.warns(DegenerateAttributionsWarning, match="no threshold separates 50 equal values"):
        assert math.isnan(stats.jenks(np.full(50, 0.1)))
    with pytest.raises(ValueError, match="must be finite, got 1 values"):
        stats.jenks(np.array([0.0, 1.0, np.nan]))


@pytest.mark.slow
def test_a_large_file_is_never_in_memory_as_a_whole(tmp_path):
    """The process, pages of the file included, stays far below the size of the file."""
    written = (
        "import numpy as np; rng = np.random.default_rng(0);"
        f"values = np.lib.format.open_memmap({str(tmp_path / 'values.npy')!r}, 'w+', np.float32, (400, 1, 512, 512));"
        "values[:] = rng.gamma(0.5, 1.0, (1, 1, 512, 512)) * (1 + rng.random((400, 1, 1, 1)))"
    )
    measured = (
        "import resource; import numpy as np; from pathlib import Path; import metfa;"
        "from metfa.results.arrays import map_array; from metfa.results.decisions import decide;"
        f"path = Path({str(tmp_path / 'values.npy')!r});"
        "values = map_array(path, np.dtype(np.float32), (400, 1, 512, 512));"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "decide(values, metfa.Terms(), unmoved=np.zeros(1, bool));"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**10)"
    )
    for code in (written, measured):
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert float(done.stdout) < 250  # MiB; the file has 400


def samples_of(n=9, features=40, spread=1.0):
    """Scores that differ between features, under noise."""
    rng = np.random.default_rng(3)
    strength = np.where(np.arange(features) < features // 5, 3.0, 1.0)
    return np.abs(strength + spread * rng.normal(size=(n, features)))


@pytest.mark.parametrize("n", [1, 2, 9, 10])
def test_breaks_of_medians_and_means(n):
    samples = samples_of(n).reshape(n, 4, 10)
    assert stats.jenks_of_medians(samples) == stats.jenks(np.median(samples, axis=0))
    assert stats.jenks_of_means(samples) == stats.jenks(samples.mean(axis=0))


def test_noise_moves_the_break_of_all_values_and_hardly_that_of_medians():
    """Why there is another rule: with the spread of the noise the break of all values climbs past the strong ones."""
    for spread, above_all in ((0.1, False), (3.0, True)):
        samples = samples_of(200, spread=spread)
        medians = np.median(samples, axis=0)
        strong, weak = medians[:8].mean(), medians[8:].mean()
        assert weak < stats.jenks_of_medians(samples) < strong
        assert (stats.jenks(samples) > strong) == above_all


@pytest.mark.parametrize("rule", [stats.jenks_of_medians, stats.jenks_of_means, stats.TimesMean(1.5)])
def test_rules_take_any_library_and_dtype(rule, backend):
    values = np.array([[0, 1, 8], [0, 3, 10], [0, 2, 12]])
    assert rule(backend.make(values)) == 6
    assert isinstance(rule(backend.make(values)), float)


@pytest.mark.parametrize("rule", [stats.jenks_of_medians, stats.jenks_of_means])
def test_equal_features_have_no_break(rule):
    with pytest.warns(DegenerateAttributionsWarning, match="no threshold separates 3 equal values"):
        assert math.isnan(rule(np.full((4, 3), 0.5)))
    with pytest.raises(ValueError, match="must hold"):
        rule(np.zeros((0, 3)))
    with pytest.raises(TypeError, match="must hold real numbers"):
        rule(np.zeros((2, 3), complex))
    with pytest.raises(ValueError, match=r"must be (finite|free of NaN)"):
        rule(np.array([[0.0, np.nan], [1.0, 2.0]]))


def test_a_multiple_of_the_mean():
    values = samples_of()
    assert stats.TimesMean(2)(values) == pytest.approx(2 * values.mean(), rel=1e-14)
    assert stats.TimesMean(2)(1e-3 * values) == pytest.approx(2e-3 * values.mean(), rel=1e-14)
    assert stats.TimesMean(2) == stats.TimesMean(2.0) != stats.TimesMean(3)
    assert repr(stats.TimesMean(2)) == "TimesMean(factor=2.0)"


@pytest.mark.parametrize("values", [np.zeros((3, 4)), np.array([[-1.0, 0.5]])])
def test_a_mean_that_is_not_above_zero_is_no_threshold(values):
    with pytest.warns(DegenerateAttributionsWarning, match="no threshold where the mean is .*, not above 0"):
        assert math.isnan(stats.TimesMean(2)(values))


def test_bad_multiples_of_the_mean():
    for factor in (0, -1, math.inf, math.nan):
        with pytest.raises(ValueError, match="`factor` must be finite and above 0"):
            stats.TimesMean(factor)
    with pytest.raises(TypeError, match="`factor` must be a number, got str: 'two'"):
        stats.TimesMean("two")
    with pytest.raises(ValueError, match=r"`values` must hold at least one number, got shape \(0, 2\)"):
        stats.TimesMean(2)(np.zeros((0, 2)))
    with pytest.raises(ValueError, match="`values` must be finite"):
        stats.TimesMean(2)(np.array([1.0, math.inf]))


@pytest.mark.parametrize("rule", [stats.jenks_of_medians, stats.jenks_of_means, stats.TimesMean(2)])
def test_rules_read_a_file_in_blocks(rule, tmp_path):
    shape = (40, 300, 300)
    values = np.lib.format.open_memmap(tmp_path / "values.npy", mode="w+", dtype=np.float32, shape=shape)
    values[:] = np.random.default_rng(0).gamma(0.5, size=shape[1:])
    tracemalloc.start()
    found = rule(values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    expected = stats.jenks(values[0]) if rule != stats.TimesMean(2) else 2 * values[0].mean(dtype=np.float64)
    assert found == pytest.approx(expected, rel=1e-6)
    assert peak < values.nbytes / 2
