"""Guarantees for any region: the bounds of every input, what is refused, and the whole statement in words."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

import metfa
from metfa import stats
from metfa._base.warnings import DegenerateAttributionsWarning
from metfa.results.decisions import TooFewSamplesError
from metfa.stats.sign_null import upper_tail_table

LEVELS = np.array([np.linspace(0, 3, 24).reshape(4, 6), np.linspace(3, 0, 24).reshape(4, 6)])
LEFT = np.arange(6) < np.full((4, 6), 3)


def maps(inputs, target):
    return np.abs(inputs)


maps.rows_independent = True


def sampled(n_samples=30, levels=LEVELS, explainer=maps, **settings):
    return metfa.explain(explainer, levels, 0, noise=metfa.noise.Gaussian(0.5), n_samples=n_samples, rng=0, **settings)


@pytest.fixture(scope="module")
def made():
    return sampled()


@pytest.fixture
def sample(made):
    return part_of(made, slice(None))


def part_of(sample, chosen):
    """Some samples, at which nobody has looked."""
    provenance = {name: value for name, value in sample.provenance.items() if name != "looks"}
    return replace(sample, values=sample.values[chosen], sample_ids=sample.sample_ids[chosen], provenance=provenance)


@pytest.mark.parametrize("dependence", ["any", "positive"])
def test_bounds_are_those_of_the_sign_test_of_each_side(sample, dependence):
    found = sample.guarantee(LEFT, 1.5, alpha=0.1, dependence=dependence)
    for row in range(2):
        for counts, bounds in (
            ((sample.values[:, row] > 1.5).sum(0), found.important),
            ((sample.values[:, row] < 1.5).sum(0), found.unimportant),
        ):
            expected = stats.simes_bounds(upper_tail_table(30)[counts], 0.1, dependence=dependence)
            assert bounds[row] == expected.among(LEFT)
    assert found.important.any()
    assert found.unimportant.any()
    assert found.size.tolist() == [12, 12]
    assert (found.alpha, found.dependence, found.any_time, found.n_samples) == (0.1, dependence, False, 30)
    assert found.thresholds == (1.5, 1.5)


def test_regions_that_are_masks_or_one_for_each_input(sample):
    of_all = sample.guarantee(LEFT, 1.5)
    both = np.stack([LEFT, ~LEFT])
    of_each, of_other = sample.guarantee(both, 1.5), sample.guarantee(~LEFT, 1.5)
    assert of_each.important.tolist() == [of_all.important[0], of_other.important[1]]
    for same in (torch.tensor(LEFT), metfa.Regions(LEFT[None]), metfa.Regions(np.where(LEFT, 0, -1))):
        np.testing.assert_array_equal(sample.guarantee(same, 1.5).important, of_all.important)
    by_input = sample.guarantee(metfa.Regions([LEFT[None], ~LEFT[None]]), 1.5)
    np.testing.assert_array_equal(by_input.unimportant, of_each.unimportant)
    nothing = sample.guarantee(np.zeros((4, 6), bool), 1.5)
    assert nothing.important.tolist() == nothing.unimportant.tolist() == nothing.size.tolist() == [0, 0]
    assert str(nothing).startswith("input 0 of 2: of 0 features, at least 0 important and at least 0 unimportant")


def test_thresholds_of_inputs_and_features(sample):
    alone = [sample.of_input(row).guarantee(LEFT, threshold) for row, threshold in enumerate((1.0, 2.0))]
    found = sample.guarantee(LEFT, np.array([1.0, 2.0]))
    assert found.important.tolist() == [one.important[0] for one in alone]
    assert found.thresholds == (1.0, 2.0)
    own = sample.guarantee(LEFT, np.broadcast_to(LEVELS[:1], LEVELS.shape))
    assert own.thresholds == (None, None)
    assert "and thresholds of each feature" in str(own)
    expected = stats.simes_bounds(upper_tail_table(30)[(sample.values[:, 0] > LEVELS[0]).sum(0)])
    assert own.important[0] == expected.among(LEFT)
    split = sample.guarantee(LEFT, stats.jenks, split=10)
    given = part_of(sample, slice(10, None)).guarantee(LEFT, sample.threshold(stats.jenks, split=10))
    np.testing.assert_array_equal(split.important, given.important)
    assert split.n_samples == given.n_samples == 20


def test_bounds_are_made_once_for_many_regions(sample, monkeypatch):
    made = []
    make = stats.simes_bounds
    monkeypatch.setattr(stats, "simes_bounds", lambda *given, **more: (made.append(1), make(*given, **more))[1])
    fresh = replace(sample)
    for mask in (LEFT, ~LEFT, LEFT):
        fresh.guarantee(mask, 1.5)
    assert len(made) == 4  # two inputs, two sides
    fresh.guarantee(LEFT, 1.0)
    assert len(made) == 8
    fresh.guarantee(LEFT, 1.5, alpha=0.1)
    fresh.guarantee(LEFT, 1.5, dependence="positive")
    assert len(made) == 16
    again = fresh.guarantee(LEFT, 1.5, alpha=0.1)
    np.testing.assert_array_equal(again.important, sample.guarantee(LEFT, 1.5, alpha=0.1).important)


@pytest.fixture(scope="module")
def until():
    return sampled(metfa.Until(undecided=0.3, max_samples=80))


class TestAfterUntil:
    def test_its_first_round_gave_the_threshold_and_the_rest_are_e_values(self, until):
        found = until.guarantee(LEFT)
        assert found.any_time
        assert found.n_samples == until.n_samples - until.stopping.split < until.n_samples
        assert found.thresholds == until.stopping.thresholds
        rest = until.values[until.stopping.split :]
        for row in range(2):
            logs = stats.log_e_values((rest[:, row] > found.thresholds[row]).sum(0), len(rest))
            assert found.important[row] == stats.e_value_bounds(logs).among(LEFT)
        assert str(found).endswith("means of e-values, under any dependence and whenever sampling stops")

    def test_positive_dependence_is_refused(self, until):
        with pytest.raises(ValueError, match=r"'positive' is for a number of samples that was fixed.*leave it out"):
            until.guarantee(LEFT, dependence="positive")

    def test_inputs_of_which_nothing_stands_out(self):
        levels = np.stack([LEVELS[0], np.full((4, 6), 1.0)])
        explainer = lambda inputs, target: np.where(inputs.mean(axis=(1, 2), keepdims=True) > 1.2, abs(inputs), 1.0)  # noqa: E731
        explainer.rows_independent = True
        with pytest.warns(DegenerateAttributionsWarning):
            until = sampled(metfa.Until(undecided=0.5, max_samples=40), levels, explainer)
        found = until.guarantee(np.ones((4, 6), bool))
        assert found.important[1] == found.unimportant[1] == 0
        assert found.important[0] > 0
        assert re.search(r"input 1 of 2: no feature stands out: .*\. Nothing is guaranteed", str(found))

    def test_after_a_look_at_fewer_samples_too(self):
        first = sampled(20)
        first.guarantee(LEFT, 1.5)
        assert first.looks == [20]
        joined = first.concat(sampled(20, run=metfa.Run(first_sample=20)))
        assert joined.guarantee(LEFT, 1.5).any_time


def test_inputs_that_the_noise_does_not_change():
    with pytest.warns(DegenerateAttributionsWarning, match="the noisy copies are all the same"):
        still = metfa.explain(maps, LEVELS, 0, noise=lambda x, rng: x, n_samples=20, rng=0)
    found = still.guarantee(LEFT, 1.5)
    assert found.important.tolist() == found.unimportant.tolist() == [0, 0]
    assert "all samples are the same. Nothing is guaranteed" in str(found)


def test_signed_maps_have_a_threshold_and_words_of_their_own():
    signed = sampled(levels=LEVELS - 1.5, explainer=lambda inputs, target: inputs)
    found = signed.guarantee(LEFT)
    assert found.thresholds == (0.0, 0.0)
    assert re.search(r"at least \d+ \([\d.]+%\) positive and at least \d+ \([\d.]+%\) negative", str(found))
    differences = sampled().over(np.arange(24).reshape(4, 6), against="rest")
    text = str(differences.guarantee(LEFT.ravel()))
    assert "of 12 regions" in text
    assert "more than the rest and" in text


def test_the_whole_statement(sample):
    text = str(sample.of_input(0).guarantee(LEFT, 1.5))
    assert re.fullmatch(
        r"of 12 features, at least \d+ \([\d.]+%\) important and at least \d+ \([\d.]+%\) unimportant, by medians "
        r"under the noise and the threshold 1\.5\nfor all regions at once, also one chosen after a look: each of the "
        r"two statements holds with probability at least 95%, both with at least 90%; 30 samples, Hommel's tests, "
        r"under any dependence",
        text,
    )
    assert "Simes' tests, valid under positive dependence" in str(sample.guarantee(LEFT, 1.5, dependence="positive"))


@pytest.mark.parametrize(
    ("region", "given", "error", "message"),
    [
        (LEFT, {}, ValueError, "`threshold` must not depend on the samples that are tested: it is a rule"),
        (
            LEFT,
            {"threshold": np.mean},
            ValueError,
            "or for twice the mean of each map `sample.scaled('mean').guarantee(",
        ),
        (LEFT, {"threshold": 1.0, "split": 27}, TooFewSamplesError, "got 30 (27 kept for the threshold), at least 34"),
        (LEFT, {"threshold": 1.0, "alpha": 1e-9}, TooFewSamplesError, "(24 features, dependence 'any'): got 30, at le"),
        (LEFT, {"threshold": 1.0, "dependence": "none"}, ValueError, "must be one of 'any', 'positive', got 'none'"),
        (LEFT.astype(int), {"threshold": 1.0}, TypeError, "must be a mask of bool, got int64: write `region > 0`"),
        (
            LEFT[:2],
            {"threshold": 1.0},
            ValueError,
            "shape of one map (4, 6), or of one for each input (2, 4, 6), got (2",
        ),
        (
            [0, 1],
            {"threshold": 1.0},
            TypeError,
            "must be a mask, an array of bool, or a metfa.Regions of one, got list",
        ),
        (metfa.Regions(LEFT * 1), {"threshold": 1.0}, ValueError, "one region, got 2: ask about each of `regions.as_m"),
        (metfa.Regions(LEFT[None, :2]), {"threshold": 1.0}, ValueError, "must have the shape of one map, (4, 6), got"),
    ],
)
def test_what_is_refused(sample, region, given, error, message):
    with pytest.raises(error, match=re.escape(message)):
        sample.guarantee(region, **given)


def test_the_advice_that_is_given(sample):
    sample.guarantee(LEFT, stats.jenks, split=10)
    sample.guarantee(LEFT, split=10)
    assert sample.scaled("mean").guarantee(LEFT, 2).thresholds == (2.0, 2.0)
    for mask in metfa.Regions(LEFT * 1).as_masks():
        sample.guarantee(mask, 1.0)
    sample.guarantee((LEFT * 1) > 0, 1.0)
    just_enough = part_of(sample, slice(7))
    assert just_enough.guarantee(np.ones((4, 6), bool), -1.0).important.tolist() == [24, 24]
    with pytest.raises(TooFewSamplesError, match="got 6, at least 7 are needed for anything to be guaranteed"):
        part_of(sample, slice(6)).guarantee(LEFT, -1.0)


@pytest.mark.slow
def test_why_a_threshold_from_the_tested_samples_is_refused():
    """Features at 20 levels far apart: the best of 20 thresholds breaks the bound in .12 of runs, each in .04."""
    rng, n, runs, alpha = np.random.default_rng(0), 60, 400, 0.05
    medians = np.repeat(np.arange(20.0) * 100, 3)
    table = upper_tail_table(n)
    broken = np.zeros((runs, 20), bool)
    for run in broken:
        values = rng.normal(medians, 1.0, (n, 60))
        for place, h in enumerate(medians[::3]):
            bounds = stats.simes_bounds(table[(values > h).sum(0)], alpha, dependence="positive")
            run[place] = bounds.among(medians <= h) > 0
    assert (broken.mean(0) <= alpha + 4 * np.sqrt(alpha / runs)).all()
    assert broken.any(axis=1).mean() > 1.5 * alpha


class TestSimultaneousIntervals:
    def test_ranks_share_the_level(self, sample):
        together = sample.confidence_interval(0.9, simultaneous=True)
        expected = stats.median_interval(sample.values, ranks=stats.median_ranks(30, 0.9, n_features=24))
        np.testing.assert_array_equal(together.low, expected.low)
        np.testing.assert_array_equal(together.high, expected.high)
        assert together.confidence_level == expected.confidence_level >= 0.9
        assert (together.low <= sample.confidence_interval(0.9).low).all()

    def test_after_until_at_any_time(self):
        until = sampled(metfa.Until(undecided=0.1, max_samples=80))
        together = until.confidence_interval(0.5, simultaneous=True)
        ranks = stats.sequence_ranks(until.n_samples, 0.5, n_features=24)
        np.testing.assert_array_equal(together.low, stats.median_interval(until.values, ranks=ranks).low)

    def test_what_is_refused(self, sample):
        with pytest.raises(ValueError, match="of 24 features together: got 9, at least 10 are needed"):
            part_of(sample, slice(9)).confidence_interval(simultaneous=True)
        with pytest.raises(ValueError, match="give only one of `ranks` and `simultaneous`"):
            sample.confidence_interval(ranks=stats.paper_ranks(30), simultaneous=True)
        with pytest.raises(TypeError, match="`simultaneous` must be True or False, got int: 24"):
            sample.confidence_interval(simultaneous=24)
