"""The fused lasso against a general convex solver, least squares, and its own optimality conditions."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from metfa.text._fused_lasso import fused_lasso, fused_lasso_of_moments


def data(n, p, seed=0, *, collinear=False):
    """Zeros and ones as of words left out, and a response in which neighbours count alike."""
    rng = np.random.default_rng([seed, n, p])
    features = np.ones((n, p))
    for row in features[1:]:
        row[rng.permutation(p)[: rng.integers(1, p + 1)]] = 0
    if collinear:
        features[:, p // 2] = features[:, p // 2 - 1]
        features[:, 0] = 1
    response = features[:, p // 3 : p // 2 + 1].mean(axis=1) / 3 + 0.3 * features[:, -1] + rng.normal(0, 0.05, n)
    weights = rng.random(n) * (np.arange(n) % 5 > 0)
    return features, response, weights


def objective(features, response, weights, penalty, coefficients, intercept):
    residuals = response - intercept - features @ coefficients
    return weights @ residuals**2 / 2 + penalty * np.abs(np.diff(coefficients)).sum()


def by_cvxpy(features, response, weights, penalty):
    cvxpy = pytest.importorskip("cvxpy")
    coefficients, intercept = cvxpy.Variable(features.shape[1]), cvxpy.Variable()
    residuals = cvxpy.multiply(np.sqrt(weights), response - intercept - features @ coefficients)
    steps = cvxpy.norm1(cvxpy.diff(coefficients)) if features.shape[1] > 1 else 0
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(residuals) / 2 + penalty * steps))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return coefficients.value, float(intercept.value)


@pytest.mark.parametrize("penalty", [0, 0.01, 0.3, 3, 1e6])
@pytest.mark.parametrize(("n", "p"), [(40, 1), (40, 2), (60, 12), (300, 40), (400, 120), (40, 60)])
@pytest.mark.parametrize("collinear", [False, True])
def test_equals_a_general_solver(n, p, penalty, collinear):
    problem = (*data(n, p, collinear=collinear and p > 2), penalty)
    ours, theirs = fused_lasso(*problem), by_cvxpy(*problem)
    best = objective(*problem, *theirs)
    assert objective(*problem, *ours) <= best + 1e-6 * max(best, 1e-3)  # where n < p and there is no penalty, best is 0
    if not collinear and n > p:  # or the optimum is no single point
        np.testing.assert_allclose(ours[0], theirs[0], atol=1e-5)
        assert ours[1] == pytest.approx(theirs[1], abs=1e-5)


@pytest.mark.parametrize("penalty", [0.01, 0.3, 3])
@pytest.mark.parametrize(("n", "p"), [(60, 2), (300, 40), (600, 300), (100, 150)])
def test_meets_the_conditions_of_an_optimum(n, p, penalty):
    features, response, weights = data(n, p)
    coefficients, intercept = fused_lasso(features, response, weights, penalty)
    residuals = response - intercept - features @ coefficients
    assert abs(weights @ residuals) < 1e-9
    sums = -np.cumsum(features.T @ (weights * residuals))
    steps = np.diff(coefficients)
    assert abs(sums[-1]) < 1e-7
    assert np.abs(sums[:-1]).max() <= penalty + 1e-7
    np.testing.assert_allclose(sums[:-1][steps != 0], penalty * np.sign(steps[steps != 0]), atol=1e-7)


def test_without_penalty_it_is_least_squares():
    features, response, weights = data(200, 15)
    coefficients, intercept = fused_lasso(features, response, weights, 0)
    expected = LinearRegression().fit(features, response, weights)
    np.testing.assert_allclose(coefficients, expected.coef_, atol=1e-8)
    assert intercept == pytest.approx(expected.intercept_, abs=1e-8)


def test_a_huge_penalty_leaves_one_coefficient():
    features, response, weights = data(200, 15)
    coefficients, intercept = fused_lasso(features, response, weights, 1e9)
    expected = LinearRegression().fit(features.sum(axis=1, keepdims=True), response, weights)
    np.testing.assert_allclose(coefficients, np.full(15, expected.coef_[0]), rtol=1e-8)
    assert np.ptp(coefficients) == 0
    assert intercept == pytest.approx(expected.intercept_, abs=1e-8)


def test_equal_columns_share_their_effect():
    features, response, weights = data(200, 6)
    features[:, 3] = features[:, 2]
    coefficients, _ = fused_lasso(features, response, weights, 0)
    assert coefficients[2] == pytest.approx(coefficients[3], abs=1e-6)


def test_rows_without_weight_do_not_count():
    features, response, weights = data(200, 15)
    counted = weights > 0
    expected, _ = fused_lasso(features[counted], response[counted], weights[counted], 0.3)
    response[~counted] = 1e3
    np.testing.assert_allclose(fused_lasso(features, response, weights, 0.3)[0], expected, atol=1e-9)


def test_nothing_to_fit():
    features, response, weights = data(20, 4)
    coefficients, intercept = fused_lasso(features, response, 0 * weights, 0.3)
    assert not coefficients.any()
    assert intercept == 0
    coefficients, intercept = fused_lasso(np.ones((20, 4)), response, weights, 0.3)
    assert not coefficients.any()
    assert intercept == pytest.approx(np.average(response, weights=weights))


@pytest.mark.parametrize("seed", range(5))
def test_the_start_does_not_matter(seed):
    features, response, weights = data(300, 30)
    cold, _ = fused_lasso(features, response, weights, 0.3)
    start = np.random.default_rng(seed).normal(size=30).round(seed % 2)
    warm, _ = fused_lasso(features, response, weights, 0.3, start)
    np.testing.assert_allclose(warm, cold, atol=1e-9)


def test_of_moments_alone():
    """Two words of unit variance: the step between them shrinks by the penalty at both ends."""
    np.testing.assert_allclose(fused_lasso_of_moments(np.eye(2), np.array([1.0, 3.0]), 0.25), [1.25, 2.75])
    np.testing.assert_allclose(fused_lasso_of_moments(np.eye(2), np.array([1.0, 3.0]), 2.0), [2, 2])
