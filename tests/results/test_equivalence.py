"""Changed by more than a number, or shown to be within it: against SciPy, and the rates that are promised."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

import metfa
from metfa.results.differences import difference_of

N, BATCH, FEATURES = 30, 3, 5


def compared(differences):
    """A comparison with these differences, (n, batch, features)."""
    n, batch, features = differences.shape
    inputs = np.random.default_rng(0).normal(size=(batch, features))
    before = metfa.explain(
        lambda inputs, target: inputs, inputs, 0, noise=metfa.noise.Gaussian(0.1), n_samples=n, rng=0
    )
    before = replace(before, values=np.zeros_like(differences), vanilla=np.zeros((batch, features)))
    return difference_of(before, replace(before, values=differences)).with_unit(1e-9)


def drawn(medians, seed=0, n=N):
    return np.random.default_rng(seed).normal(medians, 1.0, (n, BATCH, FEATURES))


def tails(counts, n=N):
    return scipy.stats.binom.sf(counts - 1, n, 0.5)


def holm(pvalues, alpha):
    """Which are rejected, step by step."""
    flat, found = pvalues.ravel(), np.zeros(pvalues.size, bool)
    for rank, place in enumerate(np.argsort(flat, kind="stable")):
        if flat[place] > alpha / (flat.size - rank):
            break
        found[place] = True
    return found.reshape(pvalues.shape)


@pytest.mark.parametrize("delta", [0.0, 0.3])
def test_changed_is_holm_over_both_sides_of_all_inputs(delta):
    values = drawn(np.linspace(-2, 2, BATCH * FEATURES).reshape(BATCH, FEATURES))
    above, below = tails((values > delta).sum(0)), tails((values < -delta).sum(0))
    rejected = holm(2 * np.minimum(above, below), 0.05)
    expected = np.where(above < below, 1, -1) * rejected
    found = compared(values).changed(delta)
    assert np.array_equal(found, expected)
    assert {-1, 0, 1} <= set(found.ravel().tolist())


def test_unchanged_is_two_one_sided_tests_of_each_input():
    values = drawn(np.linspace(-1, 1, BATCH * FEATURES).reshape(BATCH, FEATURES)) * 0.5
    pvalues = np.maximum(tails((values < 0.4).sum(0)), tails((values > -0.4).sum(0)))
    sample = compared(values)
    assert np.array_equal(sample.unchanged(0.4), pvalues <= 0.05)
    by_holm = np.array([holm(row, 0.05) for row in pvalues])
    assert np.array_equal(sample.unchanged(0.4, correction="holm"), by_holm)
    assert by_holm.any()
    assert not by_holm.all()


def test_not_shown_to_differ_is_not_unchanged():
    sample = compared(drawn(0.0, n=6))
    assert not sample.changed(alpha=0.45, correction="none").all()
    assert not sample.unchanged(0.01).any()


def test_at_most_alpha_of_unchanged_sets_raise_an_alarm():
    rng, alarms, trials = np.random.default_rng(0), 0, 400
    sample = compared(drawn(0.0))
    for _ in range(trials):
        differences = rng.normal(size=sample.values.shape)
        part = replace(sample.pair[1], values=differences)
        alarms += difference_of(sample.pair[0], part).with_unit(1e-9).changed().any()
    assert scipy.stats.binomtest(alarms, trials, 0.05, alternative="greater").pvalue > 1e-3


def test_a_change_of_exactly_delta_is_shown_to_be_within_it_at_most_at_alpha():
    rng, shown, trials = np.random.default_rng(1), 0, 400
    sample = compared(drawn(0.0))
    for _ in range(trials):
        differences = rng.normal(0.5, 0.2, size=sample.values.shape)
        found = difference_of(sample.pair[0], replace(sample.pair[1], values=differences)).unchanged(0.5)
        shown += found[0, 0]
    assert scipy.stats.binomtest(int(shown), trials, 0.05, alternative="greater").pvalue > 1e-3


def test_one_changed_input_of_twenty_is_found_alone():
    values = np.random.default_rng(0).normal(size=(40, 20, FEATURES))
    values[:, 7, 2] += 3
    found = compared(values).changed()
    assert np.argwhere(found).tolist() == [[7, 2]]


def test_e_values_decide_after_a_look():
    values = drawn(2.0)
    sample = compared(values)
    sample = replace(sample, provenance={**sample.provenance, "looks": [10]})
    assert sample.any_time
    assert sample.changed().all()
    with pytest.raises(ValueError, match="holm"):
        sample.changed(correction="holm")
    assert sample.unchanged(50.0).all()


def test_too_few_samples_are_refused_with_the_least_number():
    with pytest.raises(ValueError, match=r"holm over 15 differences, both sides together.*got 8, at least 10"):
        compared(drawn(0.0, n=8)).changed()
    with pytest.raises(ValueError, match=r"uncorrected.*got 4, at least 5"):
        compared(drawn(0.0, n=4)).unchanged(1.0)


@pytest.mark.parametrize(
    ("call", "delta"), [("changed", -1.0), ("unchanged", 0.0), ("changed", np.nan), ("unchanged", "1")]
)
def test_a_delta_that_is_none_is_refused(call, delta):
    with pytest.raises((TypeError, ValueError), match="`delta`"):
        getattr(compared(drawn(0.0)), call)(delta)


def test_scores_are_no_differences():
    sample = compared(drawn(0.0)).pair[0]
    for call in (sample.changed, sample.unchanged):
        with pytest.raises(ValueError, match=r"metfa.compare\(before, after\)"):
            call(0.5)
