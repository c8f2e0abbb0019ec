"""Corrections against SciPy and against their definitions, step by step."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
import scipy.stats

from metfa import stats

METHODS = ("bonferroni", "holm", "bh", "by")


def slow_rejections(pvalues, alpha: float, method: str) -> set[int]:
    """Indices of the rejected hypotheses, by the procedure as its authors state it."""
    m = len(pvalues)
    order = sorted(range(m), key=lambda i: pvalues[i])
    if method == "bonferroni":
        return {i for i in range(m) if pvalues[i] <= alpha / m}
    if method == "holm":
        rejected: set[int] = set()
        for step, i in enumerate(order):
            if pvalues[i] > alpha / (m - step):
                break
            rejected.add(i)
        return rejected
    share = alpha / (sum(1 / j for j in range(1, m + 1)) if method == "by" else 1)
    last = max((j for j in range(1, m + 1) if pvalues[order[j - 1]] <= share * j / m), default=0)
    return set(order[:last])


@pytest.mark.parametrize("method", METHODS)
def test_rejections_are_those_of_the_procedure(method):
    rng = np.random.default_rng(0)
    for _ in range(50):
        pvalues = rng.beta(0.3, 2, size=rng.integers(1, 30)).round(3)  # with ties
        for alpha in (0.011, 0.05003, 0.2007):
            adjusted = stats.correct(pvalues, method)
            assert set(np.flatnonzero(adjusted <= alpha)) == slow_rejections(pvalues, alpha, method)


@pytest.mark.parametrize("method", ["bh", "by"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_scipy_agrees(method, axis):
    pvalues = np.random.default_rng(1).beta(0.3, 2, size=(7, 5, 4))
    theirs = scipy.stats.false_discovery_control(pvalues, axis=axis, method=method)
    np.testing.assert_allclose(stats.correct(pvalues, method, axis=axis), theirs.reshape(pvalues.shape), rtol=1e-12)


@pytest.mark.parametrize("method", ["bonferroni", "holm"])
def test_families_along_an_axis(method):
    pvalues = np.random.default_rng(2).beta(0.3, 2, size=(7, 5))
    expected = np.stack([stats.correct(row, method) for row in pvalues])
    np.testing.assert_array_equal(stats.correct(pvalues, method, axis=1), expected)
    np.testing.assert_array_equal(stats.correct(pvalues.T, method, axis=0), expected.T)
    np.testing.assert_array_equal(stats.correct(pvalues, method), stats.correct(pvalues.ravel(), method).reshape(7, 5))


def test_textbook_values():
    pvalues = [0.01, 0.04, 0.03, 0.005]
    np.testing.assert_allclose(stats.bonferroni(pvalues), [0.04, 0.16, 0.12, 0.02])
    np.testing.assert_allclose(stats.holm(pvalues), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(stats.bh(pvalues), [0.02, 0.04, 0.04, 0.02])
    np.testing.assert_allclose(stats.by(pvalues), np.array([0.02, 0.04, 0.04, 0.02]) * 25 / 12)


@pytest.mark.parametrize("method", [None, *METHODS])
def test_same_library_dtype_and_shape(backend, method):
    values = np.array([[0.0, 0.25], [0.5, 1.0]] if backend.is_floating else [[0.0, 1.0], [1.0, 1.0]])
    pvalues = backend.make(values)
    adjusted = stats.correct(pvalues, method)
    assert type(adjusted) is type(pvalues)
    assert adjusted.dtype == (pvalues.dtype if backend.is_floating else stats.sign_test(pvalues, 0).pvalue.dtype)
    assert adjusted.shape == pvalues.shape
    np.testing.assert_allclose(backend.host(adjusted), stats.correct(values, method), rtol=1e-2)


@pytest.mark.parametrize("method", METHODS)
def test_degenerate_families(method):
    assert stats.correct([0.03], method) == [0.03]
    assert stats.correct(np.zeros((0, 3)), method).shape == (0, 3)
    np.testing.assert_array_equal(stats.correct(np.ones(5), method), 1)


@pytest.mark.parametrize("method", [None, *METHODS])
@pytest.mark.parametrize("bad", [-1e-9, 1.001, np.nan, np.inf])
def test_bad_pvalues(method, bad):
    with pytest.raises(ValueError, match=r"`pvalues` must lie in \[0, 1\], got 2 values"):
        stats.correct(np.array([0.5, bad, 0.1, bad]), method)


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"method": "fdr"}, ValueError, "None or one of 'bonferroni', 'holm', 'bh', 'by', got 'fdr'"),
        ({"method": 3}, TypeError, "`method` must be a string or None, got 3 of type int"),
        ({"method": "bh", "axis": 1}, ValueError, r"`axis` must lie in \[-1, 0\] for an array of 1 axes, got 1"),
    ],
)
def test_bad_settings(keywords, error, message):
    with pytest.raises(error, match=message):
        stats.correct(np.array([0.1, 0.2]), **keywords)


# ---- without a correction


@pytest.mark.parametrize(("n", "marks"), [(1, 0), (4, 0), (10, 1078), (30, 4954), (50, 3257), (100, 4447)])
def test_expected_false_marks_of_a_map(n, marks):
    assert round(stats.expected_false_marks(n, 0.05, 224 * 224)) == marks


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.3, 0.6])
def test_expected_false_marks_by_enumeration(alpha):
    for n in range(1, 30):
        tails = [Fraction(sum(comb(n, i) for i in range(k, n + 1)), 2**n) for k in range(n + 1)]
        fires = max((tail for tail in tails if tail <= Fraction(alpha)), default=Fraction(0))
        assert stats.expected_false_marks(n, alpha, 7) == float(14 * fires)


def test_expected_false_marks_happen():
    n, features = 10, 20_000
    samples = np.random.default_rng(3).normal(size=(n, features))
    marks = sum((stats.sign_test(samples, 0, alternative=side).pvalue <= 0.05).sum() for side in ("greater", "less"))
    expected = stats.expected_false_marks(n, 0.05, features)
    assert abs(marks - expected) < 5 * expected**0.5  # false alarm: 6e-7


def test_expected_false_marks_errors():
    with pytest.raises(ValueError, match="`n` must be at least 1, got 0"):
        stats.expected_false_marks(0, 0.05, 3)
    with pytest.raises(ValueError, match=r"`alpha` .* got 0\.0"):
        stats.expected_false_marks(10, 0, 3)
    with pytest.raises(ValueError, match="`n_features` must be at least 1, got -3"):
        stats.expected_false_marks(10, 0.05, -3)
