"""A mixture of linear regressions with fused neighbours, fitted by expectation and maximisation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from metfa.text._fused_lasso import fused_lasso

__all__ = ["Mixture", "fit_mixture"]

ENOUGH = 1e-2  # change of the log-likelihood at which EM stops
ITERATIONS = 200
GONE = 1e-4  # a component that holds fewer rows than this is dropped
NARROWEST = 1e-2  # least standard deviation, as a share of the response's: a component must not fit a single answer


@dataclass(frozen=True, eq=False)
class Mixture:
    """K linear regressions, the share of the rows that each fits, and its residual deviation.

    Attributes
    ----------
    shares, intercepts, deviations : ndarray, (K,)
    coefficients : ndarray, (K, p)
    likelihood : float
        Logarithm of the likelihood of the fitted rows, as it was last computed.
    """

    shares: np.ndarray
    intercepts: np.ndarray
    coefficients: np.ndarray
    deviations: np.ndarray
    likelihood: float = -np.inf

    def predictions(self, features: np.ndarray) -> np.ndarray:
        """The prediction of each regression for the rows, (n, K)."""
        return features @ self.coefficients.T + self.intercepts

    def responsibilities(self, features: np.ndarray, response: np.ndarray) -> tuple[np.ndarray, float]:
        """Probability that each row belongs to each regression, (n, K), and the log-likelihood of the rows."""
        distances = (response[:, None] - self.predictions(features)) / self.deviations
        with np.errstate(divide="ignore"):
            logs = np.log(self.shares) - np.log(self.deviations) - distances**2 / 2
        top = logs.max(axis=1, keepdims=True)
        parts = np.exp(logs - top)
        sums = parts.sum(axis=1, keepdims=True)
        return parts / sums, float((top + np.log(sums)).sum() - len(response) / 2 * np.log(2 * np.pi))


def fit_mixture(features: np.ndarray, response: np.ndarray, n_components: int, strength: float) -> Mixture:
    r"""Fit a mixture of K fused regressions by EM.

    A row's weight in a component is the probability that it belongs there. Each component is the fused lasso of the
    weighted rows with the penalty κσₖ. Its deviation σₖ is the root of their weighted mean squared residual. With one
    component this is the scaled lasso (Sun and Zhang 2012) with steps in place of coefficients, a convex problem. If
    the units of the response change, the fit changes with them.

    Nothing is random. The start is one regression. Its sorted residuals are cut into K parts, and the regression is
    moved up or down to each part, so that components explain what one regression cannot. Other starts (rows cut by the
    response, or hard cuts of any kind) more often end in components without regressors, one for low and one for high
    answers. In these the strongest words get no score.
    """
    one = Mixture(np.ones(1), np.array([response.mean()]), np.zeros((1, features.shape[1])), np.array([response.std()]))
    single = _em(one, features, response, strength)
    if n_components == 1:
        return single
    parts = np.array_split(np.sort(response - single.predictions(features)[:, 0]), n_components)
    start = Mixture(
        shares=np.full(n_components, 1 / n_components),
        intercepts=single.intercepts + [part.mean() for part in parts],
        coefficients=np.repeat(single.coefficients, n_components, axis=0),
        deviations=np.maximum([part.std() for part in parts], NARROWEST * response.std()),
    )
    return _em(start, features, response, strength)


def _em(mixture: Mixture, features: np.ndarray, response: np.ndarray, strength: float) -> Mixture:
    for _ in range(ITERATIONS):
        responsibilities, likelihood = mixture.responsibilities(features, response)
        change, mixture = abs(likelihood - mixture.likelihood), replace(mixture, likelihood=likelihood)
        if change < ENOUGH:
            break
        mixture = _maximised(mixture, responsibilities, features, response, strength)
    return mixture


def _maximised(
    mixture: Mixture, responsibilities: np.ndarray, features: np.ndarray, response: np.ndarray, strength: float
) -> Mixture:
    """The mixture with each component fitted to its share of the rows: regression, then deviation, then share."""
    responsibilities = np.where(responsibilities.sum(axis=0) < GONE, 0, responsibilities)
    intercepts, coefficients = mixture.intercepts.copy(), mixture.coefficients.copy()
    for k, weights in enumerate(responsibilities.T):
        coefficients[k], intercepts[k] = fused_lasso(
            features, response, weights, strength * mixture.deviations[k], mixture.coefficients[k]
        )
    fitted = replace(mixture, intercepts=intercepts, coefficients=coefficients)
    totals = responsibilities.sum(axis=0)
    squares = (responsibilities * (response[:, None] - fitted.predictions(features)) ** 2).sum(axis=0)
    with np.errstate(invalid="ignore"):
        deviations = np.sqrt(squares / totals)
    deviations = np.fmax(deviations, NARROWEST * response.std())  # replaces the NaN of a component without rows too
    return replace(fitted, shares=totals / totals.sum(), deviations=deviations)
