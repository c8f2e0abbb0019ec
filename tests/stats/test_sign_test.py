"""The sign test: SciPy as oracle, exact comparisons in every dtype, and the cases on which peers failed."""

import itertools
import math
import re
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

from metfa import stats
from metfa._base.warnings import DegenerateAttributionsWarning

ALTERNATIVES = ("two-sided", "greater", "less")


def slow_pvalue(n: int, above: int, below: int, alternative: str) -> float:
    greater, less = (Fraction(sum(math.comb(n, i) for i in range(k, n + 1)), 2**n) for k in (above, below))
    return float({"greater": greater, "less": less, "two-sided": min(1, 2 * min(greater, less))}[alternative])


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_scipy_agrees(alternative):
    rng = np.random.default_rng(0)
    for n in range(1, 61):
        samples = rng.integers(-2, 3, n) / 2  # full of ties
        for threshold in (-0.5, 0.0, 0.2, 3.0):
            ours = stats.sign_test(samples, threshold, alternative=alternative)
            theirs = scipy.stats.quantile_test(samples, q=threshold, p=0.5, alternative=alternative)
            assert ours.pvalue == pytest.approx(theirs.pvalue, rel=1e-12)


def test_all_libraries_and_dtypes(backend):
    rng = np.random.default_rng(1)
    sizes = (1, 2, 5, 10, 33) if backend.library == "jax" else range(1, 61)  # JAX compiles anew for every shape
    for n in sizes:
        values = rng.integers(-8, 9, (n, 3, 2)) / (8 if backend.is_floating else 1)
        thresholds = np.array([[0.1, -0.25], [1 / 3, 0], [np.nan, 0.0625]])
        samples = backend.make(values)
        for alternative in ALTERNATIVES:
            result = stats.sign_test(samples, thresholds, alternative=alternative)
            above, below = (values > thresholds).sum(0), (values < thresholds).sum(0)
            assert type(result.pvalue) is type(result.above) is type(samples)
            np.testing.assert_array_equal(backend.host(result.above), above)
            np.testing.assert_array_equal(backend.host(result.below), below)
            np.testing.assert_array_equal(backend.host(result.sign), np.sign(above - below))
            exact = [slow_pvalue(n, a, b, alternative) for a, b in zip(above.flat, below.flat, strict=True)]
            exact = np.array(exact).astype(np.float32 if backend.library == "jax" else np.float64)
            np.testing.assert_array_equal(backend.host(result.pvalue).ravel(), exact)


def test_torch_results_carry_no_graph(optional):
    torch = optional("torch")
    result = stats.sign_test(torch.ones(6, 2, dtype=torch.bfloat16, requires_grad=True), torch.zeros(2))
    assert not result.pvalue.requires_grad
    assert result.pvalue.dtype is torch.float64


def test_booleans(optional):
    values = np.array([True] * 6 + [False] * 4)
    for samples in (values, optional("torch").asarray(values), optional("array_api_strict").asarray(values)):
        result = stats.sign_test(samples, 0.5)
        assert (int(result.above), int(result.below)) == (6, 4)


FLOAT32 = np.float32(0.1)
NEXT = np.nextafter(FLOAT32, np.float32(1))


@pytest.mark.parametrize(
    ("low", "high", "threshold"),
    [
        (FLOAT32, NEXT, (float(FLOAT32) + float(NEXT)) / 2),
        (FLOAT32, NEXT, math.nextafter(float(FLOAT32), 1)),
        (FLOAT32, NEXT, math.nextafter(float(NEXT), 0)),
        (-NEXT, -FLOAT32, -math.nextafter(float(FLOAT32), 1)),
        (0.0, 1e-45, 1e-46),
        (np.finfo(np.float32).max, np.inf, 1e300),
        (-np.inf, np.finfo(np.float32).min, -1e39),
    ],
)
def test_a_threshold_between_adjacent_float32_values(optional, low, high, threshold):
    values = np.array([low] * 3 + [high] * 4, dtype=np.float32)
    for samples in (values, optional("torch").asarray(values), optional("array_api_strict").asarray(values)):
        result = stats.sign_test(samples, threshold)
        assert (int(result.above), int(result.below)) == (4, 3)


@pytest.mark.parametrize("module", ["torch", "jax.numpy"])
def test_a_threshold_between_adjacent_bfloat16_values(optional, module):
    xp = optional(module)
    samples = xp.asarray([1.0, 1.0, 1.0078125], dtype=xp.bfloat16)
    for threshold in (1.00390625, math.nextafter(1.0, 2), math.nextafter(1.0078125, 1)):
        result = stats.sign_test(samples, threshold)
        assert (int(result.above), int(result.below)) == (1, 2)


def test_a_threshold_close_to_a_float16_value():
    samples = np.array([0.1, 0.1, 0.2], dtype=np.float16)
    result = stats.sign_test(samples, math.nextafter(float(samples[0]), 0))
    assert (result.above, result.below) == (3, 0)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_are_compared_exactly(dtype):
    info = np.iinfo(dtype)
    samples = np.array([info.min, info.min + 1, 5, info.max - 1, info.max], dtype=dtype)
    edges = [float(info.min), float(info.max)]
    thresholds = [*edges, *(e + d for e in edges for d in (-0.5, 0.5)), 5.0, 4.5, 2.0**53, 1e30, -1e30]
    for h in [*thresholds, *(math.nextafter(e, s * np.inf) for e in edges for s in (-1, 1))]:
        result = stats.sign_test(samples, h)
        assert result.above == sum(int(value) > h for value in samples)  # Python compares int and float exactly
        assert result.below == sum(int(value) < h for value in samples)
    result = stats.sign_test(samples, np.nan)
    assert (result.above, result.below, result.pvalue) == (0, 0, 1)


@pytest.mark.parametrize(("threshold", "error", "says"), [
    (np.inf, ValueError, "`threshold` must be finite, got inf: all samples lie on one side"),
    ([0.0, -np.inf, 0.0], ValueError, "`threshold` must be finite, got -inf"),
    (True, TypeError, "`threshold` must be a number, got bool: write 0.0 or 1.0"),
    (np.array([True, False, True]), TypeError, "`threshold` must be a number, got bool"),
])  # fmt: skip
@pytest.mark.parametrize("test", [stats.sign_test, stats.sequential_test])
def test_a_threshold_that_is_no_number_is_refused(test, threshold, error, says):
    with pytest.raises(error, match=re.escape(says)):
        test(np.zeros((5, 3)), threshold)


def test_integers_beyond_what_jax_floats_hold(optional):
    samples = optional("jax.numpy").asarray([2**24, 2**24 + 1, 2**24 + 1])
    result = stats.sign_test(samples, 2.0**24)
    assert (int(result.above), int(result.below)) == (2, 0)


# ---- cases on which others failed


@pytest.mark.parametrize("n", [5, 6, 7])
def test_few_samples_all_above_are_significant(n):
    result = stats.sign_test(np.linspace(1, 2, n), 0.5, alternative="greater")
    assert result.pvalue == 2.0**-n <= 0.05


def test_zeros_at_threshold_zero_are_undecided():
    result = stats.sign_test(np.zeros((10, 3)), 0.0)
    np.testing.assert_array_equal(result.pvalue, 1)
    np.testing.assert_array_equal(result.sign, 0)


def test_zero_one_maps_need_no_jitter():
    samples = np.array([1, 0, 1, 1, 0, 1, 0, 1, 0, 1], dtype=np.float32)
    jittered = samples + np.random.default_rng(0).normal(0, 1e-8, 10).astype(np.float32)
    for values in (samples, jittered):
        result = stats.sign_test(values, 0.5)
        assert (result.above, result.below) == (6, 4)
    at_a_value = stats.sign_test(samples, 1.0)
    assert (at_a_value.above, at_a_value.below, at_a_value.pvalue) == (0, 4, slow_pvalue(10, 0, 4, "two-sided"))


def test_nan_threshold_decides_nothing():
    with pytest.warns(DegenerateAttributionsWarning, match="40 equal values"):
        threshold = stats.jenks(np.ones((10, 4)))
    result = stats.sign_test(np.ones((10, 4)), threshold)
    for array, value in ((result.above, 0), (result.below, 0), (result.pvalue, 1), (result.sign, 0)):
        np.testing.assert_array_equal(array, np.full(4, value))


# ---- decisions


@pytest.mark.parametrize(
    ("n", "unimportant_up_to", "important_from"),
    [
        (5, 0, 5),
        (6, 0, 6),
        (10, 1, 9),
        (20, 5, 15),
        (30, 10, 20),
        (50, 18, 32),
        (70, 27, 43),
        (100, 41, 59),
        (200, 87, 113),
    ],
)
def test_reference_decisions(n, unimportant_up_to, important_from):
    above = np.arange(n + 1)
    samples = np.where(np.arange(n)[:, None] < above, 1.0, -1.0)
    important = stats.sign_test(samples, 0, alternative="greater").pvalue <= 0.05
    unimportant = stats.sign_test(samples, 0, alternative="less").pvalue <= 0.05
    np.testing.assert_array_equal(important, above >= important_from)
    np.testing.assert_array_equal(unimportant, above <= unimportant_up_to)


@pytest.mark.parametrize("n", [5, 7])
def test_level_holds_for_a_law_with_ties(n):
    """All 3**n outcomes of a law on 0, 1, 2 whose median is 1: neither side may be rejected too often."""
    outcomes = np.array(list(itertools.product([0, 1, 2], repeat=n))).T
    chance = np.prod(np.array([0.3, 0.2, 0.5])[outcomes], axis=0)  # median 1 and 2: both are medians
    for alternative, threshold in itertools.product(ALTERNATIVES, (1, 1.5, 2)):
        pvalue = stats.sign_test(outcomes, threshold, alternative=alternative).pvalue
        for alpha in np.unique(pvalue):
            assert chance[pvalue <= alpha].sum() <= alpha * (1 + 1e-12)


# ---- shapes, memory, errors


def test_axis_and_broadcasting():
    rng = np.random.default_rng(2)
    samples, thresholds = rng.normal(size=(12, 4, 5)), rng.normal(size=(4, 1))
    expected = stats.sign_test(samples, np.broadcast_to(thresholds, (4, 5)))
    for axis in (0, 1, 2, -1):
        result = stats.sign_test(np.moveaxis(samples, 0, axis), thresholds, axis=axis)
        np.testing.assert_array_equal(result.above, expected.above)
        np.testing.assert_array_equal(result.pvalue, expected.pvalue)


@pytest.mark.parametrize("shape", [(9, 3000), (2, 9, 3000), (9, 50, 50, 3), (9, 3, 1, 1500), (9, 0), (0, 9, 4)])
def test_blocks_do_not_show(shape):
    axis = shape.index(9)
    samples = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    thresholds = np.random.default_rng(4).normal(size=np.delete(shape, axis))
    result = stats.sign_test(samples, thresholds, axis=axis)
    np.testing.assert_array_equal(result.above, (samples > np.expand_dims(thresholds, axis)).sum(axis))
    np.testing.assert_array_equal(result.below, (samples < np.expand_dims(thresholds, axis)).sum(axis))


def test_order_of_samples_is_irrelevant():
    rng = np.random.default_rng(5)
    samples = rng.normal(size=(20, 30))
    a, b = stats.sign_test(samples, 0.1), stats.sign_test(rng.permuted(samples, axis=0), 0.1)
    np.testing.assert_array_equal(a.pvalue, b.pvalue)


def test_a_file_is_never_loaded_whole(tmp_path):
    samples = np.lib.format.open_memmap(tmp_path / "samples.npy", mode="w+", dtype=np.float32, shape=(300, 40_000))
    samples[:] = np.random.default_rng(6).random(40_000, dtype=np.float32)
    samples[::2] += 1
    tracemalloc.start()
    result = stats.sign_test(samples, 1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(result.above, 150)
    assert peak < samples.nbytes / 8


def test_nan_is_counted_over_all_blocks(optional):
    samples = np.zeros((6, 5000))
    samples[2, [3, 4000]] = samples[5, 4999] = np.nan
    for values in (samples, samples.astype(np.float16), optional("torch").asarray(samples)):
        with pytest.raises(ValueError, match="`samples` must be free of NaN, got 3 such values"):
            stats.sign_test(values, 0)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((np.zeros((5, 3)), np.zeros(2)), ValueError, r"`threshold` must broadcast .*\(3,\), got shape \(2,\)"),
        ((np.zeros((5, 3)), np.zeros((2, 3))), ValueError, r"`threshold` must broadcast .*\(3,\), got shape \(2, 3\)"),
        ((np.zeros((5, 3)), "high"), TypeError, "`threshold` must be an array of real numbers, got str"),
        ((np.zeros((5, 3)), 1j), TypeError, "`threshold` .* got complex of complex128"),
        ((np.zeros((0, 3)), 0), ValueError, r"at least one sample along `axis`=0, got shape \(0, 3\)"),
        ((np.float64(1), 0), ValueError, "`samples` must have an axis"),
        ((np.zeros(3, complex), 0), TypeError, "`samples` must hold real numbers, got ndarray of complex128"),
        ((np.array(["a"]), 0), TypeError, "`samples` must hold numbers, got an array of <U1"),
        ((np.ma.array([1.0], mask=[True]), 0), TypeError, r"masked array.*`samples`.compressed\(\)"),
    ],
)
def test_errors(arguments, error, message):
    with pytest.raises(error, match=message):
        stats.sign_test(*arguments)


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"alternative": "above"}, ValueError, "`alternative` must be one of 'two-sided', .* got 'above'"),
        ({"alternative": None}, TypeError, "`alternative` must be one of .*, got NoneType"),
        ({"axis": 2}, ValueError, r"`axis` must lie in \[-2, 1\] for an array of 2 axes, got 2"),
        ({"axis": -3}, ValueError, "`axis` .* got -3"),
        ({"axis": 0.0}, TypeError, "`axis` must be an integer, got float: 0.0"),
        ({"axis": True}, TypeError, "`axis` must be an integer, got bool: True"),
    ],
)
def test_bad_settings(keywords, error, message):
    with pytest.raises(error, match=message):
        stats.sign_test(np.zeros((5, 3)), 0, **keywords)


def test_result_is_frozen():
    result = stats.sign_test([1.0, 2.0], 0)
    with pytest.raises(AttributeError, match="pvalue"):
        result.pvalue = 0
