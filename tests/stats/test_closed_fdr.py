"""Closed e-BH against its definition over every intersection, and its rate."""

import itertools

import numpy as np
import pytest

from metfa import stats
from metfa.stats import closed_fdr


def by_definition(e, alpha):
    """Places that the definition rejects, equal e-values together and none of at most 1."""
    m, order = len(e), np.argsort(-e, kind="stable")
    subsets = [set(chosen) for k in range(1, m + 1) for chosen in itertools.combinations(range(m), k)]
    for r in range(m, 0, -1):
        cut = e[order[r - 1]] <= 1 or (r < m and e[order[r - 1]] == e[order[r]])
        rejected = set(order[:r].tolist())
        means = ((e[list(chosen)].mean(), len(rejected & chosen)) for chosen in subsets)
        if not cut and all(mean * (1 + 1e-12) >= count / (alpha * r) for mean, count in means):
            return rejected
    return set()


def logs_of(e):
    with np.errstate(divide="ignore"):
        return np.log(e)


@pytest.mark.parametrize("m", [1, 2, 3, 5, 6, pytest.param(8, marks=pytest.mark.slow)])
def test_against_every_intersection(m):
    rng = np.random.default_rng(m)
    for _ in range(20):
        for e in (np.exp(rng.normal(1, 2.5, m)), rng.choice([0, 0.5, 2, 5, 20, 60, 1e200], m)):
            alpha = float(rng.choice([0.05, 0.2, 0.4]))
            rejected = stats.closed_e_bh(logs_of(e), alpha)
            assert set(np.flatnonzero(rejected)) == by_definition(e, alpha)
            assert (rejected >= (stats.e_bh(logs_of(e)) <= alpha)).all()


def checks_made(monkeypatch):
    made = []
    forbidden = closed_fdr._numbers_forbidden
    monkeypatch.setattr(closed_fdr, "_numbers_forbidden", lambda *given: (made.append(given[-1]), forbidden(*given))[1])
    return made


def number_by_number(logs, alpha):
    """The same, with no number of rejections skipped."""
    e = np.sort(np.exp(logs + np.log(alpha)))
    m = len(e)
    for r in range(np.count_nonzero(logs > 0), 0, -1):
        top, rest = e[m - r :], e[: m - r]
        t = np.arange(1, r + 1) / r
        owed = np.maximum(t[:, None] - rest, 0).sum(1)
        if (np.cumsum(top) - t * np.arange(1, r + 1) >= owed).all():
            return r
    return 0


def test_larger_families_number_by_number(monkeypatch):
    made = checks_made(monkeypatch)
    rng = np.random.default_rng(0)
    more = 0
    for effect in np.repeat([1.0, 2.0, 3.0, 4.0], 8):
        logs = rng.normal(np.where(np.arange(120) < 60, effect, -3), 1.5)
        found = np.count_nonzero(stats.closed_e_bh(logs))
        assert found == number_by_number(logs, 0.05)
        more += found > np.count_nonzero(stats.e_bh(logs) <= 0.05)
    assert more >= 8
    assert len(made) < 10 * 32  # few numbers are looked at


def test_of_a_photograph_few_numbers_are_checked(monkeypatch):
    made = checks_made(monkeypatch)
    rng = np.random.default_rng(1)
    logs = stats.log_e_values(rng.binomial(100, np.where(rng.random(50_176) < 0.1, 0.65, 0.46)), 100)
    rejected = stats.closed_e_bh(logs + rng.normal(0, 0.01, len(logs)))
    assert rejected.sum() > (stats.e_bh(logs) <= 0.05).sum() > 100
    assert len(made) < 60


def test_equal_e_values_are_rejected_together_and_in_any_order():
    logs = np.log([1e9, 12.5, 12.5])  # of the two equal ones, one alone might be rejected
    np.testing.assert_array_equal(stats.closed_e_bh(logs), [True, False, False])
    rng = np.random.default_rng(2)
    logs = stats.log_e_values(rng.binomial(30, rng.beta(2, 2, 500)), 30)
    order = rng.permutation(500)
    np.testing.assert_array_equal(stats.closed_e_bh(logs[order]), stats.closed_e_bh(logs)[order])


def test_what_does_not_speak_for_a_feature_is_not_rejected():
    """The definition alone would reject an e-value of 0.5 among 999 huge ones."""
    logs = np.append(np.full(999, 1e3), np.log(0.5))
    np.testing.assert_array_equal(stats.closed_e_bh(logs), logs > 0)
    assert stats.closed_e_bh(np.append(logs[:-1], np.log(1.5))).all()


def test_families_along_an_axis():
    logs = np.random.default_rng(3).normal(2, 3, (7, 5))
    by_row = np.stack([stats.closed_e_bh(row) for row in logs])
    np.testing.assert_array_equal(stats.closed_e_bh(logs, axis=1), by_row)
    np.testing.assert_array_equal(stats.closed_e_bh(logs.T, axis=0), by_row.T)
    np.testing.assert_array_equal(stats.closed_e_bh(logs), stats.closed_e_bh(logs.ravel()).reshape(7, 5))


def test_degenerate_families():
    assert stats.closed_e_bh(np.zeros((0, 3)), axis=1).shape == (0, 3)
    assert stats.closed_e_bh(np.zeros((3, 0)), axis=1).shape == (3, 0)
    assert not stats.closed_e_bh(np.full(5, -np.inf)).any()
    assert stats.closed_e_bh(np.full(5, 1e6)).all()
    assert stats.closed_e_bh([np.log(21.0)]).all()
    assert not stats.closed_e_bh([np.log(19.0)]).any()
    assert stats.closed_e_bh([1e6, -np.inf]).tolist() == [True, False]


def test_all_libraries_and_dtypes(backend):
    logs = np.array([[5.0, 3, -1], [2, 9, 90]])
    given = backend.make(logs)
    found = stats.closed_e_bh(given, axis=1)
    assert type(found) is type(given)
    assert found.shape == given.shape
    assert "bool" in str(found.dtype)
    np.testing.assert_array_equal(backend.host(found), [stats.closed_e_bh(row) for row in logs])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: stats.closed_e_bh([1.0, np.nan]),
            r"`log_e_values` must be below infinity, got 1 that are NaN or \+inf",
        ),
        (lambda: stats.closed_e_bh([1.0], 1.5), "`alpha` must lie strictly between 0 and 1, got 1.5"),
        (lambda: stats.closed_e_bh([1.0], axis=1), "`axis` must lie in"),
        (
            lambda: stats.correct([0.1], "closed-e-bh"),
            r"corrects e-values.*write metfa.stats.closed_e_bh\(log_e_values\)",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.slow
def test_false_discoveries_of_dependent_features_that_are_looked_at():
    """Blocks of 16 equal pixels, half of them at the threshold, stopped at the look with the most discoveries."""
    rng = np.random.default_rng(4)
    null = np.repeat(np.arange(20) < 10, 16)
    shares, more = [], 0
    for _ in range(300):
        drawn = np.repeat(rng.normal(0, 1, (60, 20)), 16, axis=1) + np.where(null, 0.0, 0.8)
        best = (-1, 0.0)
        for n in (8, 12, 20, 35, 60):
            logs = stats.log_e_values((drawn[:n] > 0).sum(0), n)
            rejected = stats.closed_e_bh(logs, 0.1)
            more += rejected.sum() > (stats.e_bh(logs) <= 0.1).sum()
            best = max(best, (int(rejected.sum()), float(rejected[null].sum() / max(rejected.sum(), 1))))
        shares.append(best[1])
    assert np.mean(shares) <= 0.1 + 3.8 * np.std(shares) / np.sqrt(len(shares))
    assert more > 100


@pytest.mark.parametrize(
    ("e_values", "rejected"),
    [
        ([686.03, 364.29, 19.33, 15.0, 6.77, 2.24], {0.05: 4, 0.1: 6, 0.2: 6}),
        ([811.48, 20.74, 20.09, 19.89, 12.83, 8.93, 8.75, 8.26, 5.87, 0.74], {0.05: 1, 0.1: 9, 0.2: 9}),
        ([7557.75, 385.28, 107.48, 81.62, 24.34, 6.9, 6.82, 3.91, 3.58, 3.58, 2.29, 1.89, 1.17, 0.97],
         {0.05: 5, 0.1: 7, 0.2: 13}),
    ],
)  # fmt: skip
def test_values_of_the_authors_package(e_values, rejected):
    """The numbers of rejections of eclosure 0.1.1 (PyPI), checked with its `closedeBH(e, subset=...)`.

    On 5,000 random families of 1 to 59 hypotheses, with and without ties, at alpha .05, .1 and .2, it allowed the same
    sets as this function, with the two conditions of our own: of equal e-values all or none, and none of at most 1.
    """
    for alpha, number in rejected.items():
        assert stats.closed_e_bh(np.log(e_values), alpha).sum() == number
