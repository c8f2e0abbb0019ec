"""Without noise only the explainer draws: where it draws nothing, N maps are one, of which nothing is decided."""

import numpy as np
import pytest

import metfa
from metfa import DegenerateAttributionsWarning
from metfa.text import LIME, explain_answer, explain_text

ROWS = np.random.default_rng(0).random((3, 6))
SAME = r"without noise, the 20 maps are all the same for 3 of 3 inputs: the explainer draws no random numbers there"
SETTINGS = {"noise": None, "n_samples": 20, "rng": 0}


@metfa.randomised
def ignores(inputs, target, *, rngs):
    return inputs * 1.0


@metfa.randomised
def draws(inputs, target, *, rngs):
    return inputs * np.stack([1 + 0.1 * rng.random(inputs.shape[1:]) for rng in rngs])


def same_numbers(inputs, target):
    return inputs + np.random.default_rng(0).normal(size=inputs.shape)


@pytest.mark.parametrize("explainer", [ignores, metfa.seeded(same_numbers), metfa.seeded(lambda x, target: x)])
@pytest.mark.parametrize("threshold", [None, 0.0, 0.1])
def test_one_map_again_and_again_decides_nothing(explainer, threshold):
    with pytest.warns(DegenerateAttributionsWarning, match=SAME):
        sample = metfa.explain(explainer, ROWS, 0, **SETTINGS)
    assert sample.unmoved.all()
    assert not sample.significance_map(threshold).any()
    assert [one.undecided for one in sample.summary(threshold)] == [1, 1, 1]
    assert sample.decide(sample.terms(threshold)).nothing == ("all samples are the same",) * 3
    with pytest.warns(DegenerateAttributionsWarning, match="intervals of width 0 say nothing"):
        sample.confidence_interval()


def test_draws_are_tested_even_if_they_move_a_map_by_rounding_alone():
    @metfa.randomised
    def fitted(inputs, target, *, rngs):
        return inputs + 1e-14 * np.stack([rng.random(inputs.shape[1:]) for rng in rngs])

    for explainer in (draws, fitted):
        sample = metfa.explain(explainer, ROWS, 0, **SETTINGS)
        assert not sample.unmoved.any()
        assert sample.significance_map(-1.0).all()


def test_draws_that_agree_are_a_finding():
    @metfa.randomised
    def mask(inputs, target, *, rngs):
        return np.stack([row + 0.1 * rng.random(6) > 0.5 for row, rng in zip(inputs, rngs, strict=True)])

    rows = np.array([[0.0, 0.2, 0.3, 0.7, 0.8, 0.9]])
    sample = metfa.explain(mask, rows, 0, **SETTINGS)
    assert (sample.values == sample.values[0]).all()
    assert not sample.unmoved.any()
    assert sample.significance_map(0.5).tolist() == [[-1, -1, -1, 1, 1, 1]]


def test_one_sample_is_no_case():
    assert not metfa.explain(ignores, ROWS, 0, noise=None, rng=0, n_samples=1).unmoved.any()


@pytest.mark.filterwarnings("ignore:20 of 40 maps are constant")
def test_each_input_is_looked_at_by_itself():
    @metfa.randomised
    def now_and_then(inputs, target, *, rngs):
        rows = zip(inputs, rngs, strict=True)
        return np.stack([row * (1 + 0.1 * rng.random(6)) if row.any() else row for row, rng in rows])

    rows = np.stack([np.zeros(6), np.ones(6)])
    with pytest.warns(DegenerateAttributionsWarning, match="for 1 of 2 inputs"):
        sample = metfa.explain(now_and_then, rows, 0, **SETTINGS)
    assert sample.unmoved.tolist() == [True, False]
    marks = sample.significance_map(0.5)
    assert not marks[0].any()
    assert marks[1].all()


def test_rules_end_at_once():
    for rule in (metfa.Until(undecided=0.05), metfa.Until(width=0.1), metfa.Until(undecided=0.05, threshold=0.1)):
        with pytest.warns(DegenerateAttributionsWarning, match="for 3 of 3 inputs"):
            sample = metfa.explain(ignores, ROWS, 0, noise=None, n_samples=rule, rng=0)
        assert sample.stopping.reason == "unmoved"
        assert len(sample.stopping.looks) == 1
        assert not sample.significance_map().any()


def test_regions_of_one_map_are_one_map():
    regions = metfa.Regions(np.array([0, 0, 0, 1, 1, 1]))
    with pytest.warns(DegenerateAttributionsWarning, match=SAME):
        pooled = metfa.explain(ignores, ROWS, 0, over=regions, **SETTINGS)
    with pytest.warns(DegenerateAttributionsWarning, match=SAME):
        sample = metfa.explain(ignores, ROWS, 0, **SETTINGS)
    for found in (pooled, sample.over(regions), sample.over(regions, against="rest"), sample.scaled("share")):
        assert not found.significance_map(0.0).any()


def test_differences_are_tested_where_one_of_the_two_draws():
    with pytest.warns(DegenerateAttributionsWarning, match=SAME):
        still = metfa.compare(ignores, metfa.seeded(same_numbers), ROWS, 0, **SETTINGS)
    assert still.unmoved.all()
    assert not still.significance_map().any()
    with pytest.warns(DegenerateAttributionsWarning, match=SAME):
        found = metfa.compare(ignores, draws, ROWS, 0, **SETTINGS)
    assert not found.unmoved.any()
    assert found.significance_map().any(axis=1).all()


def test_it_is_saved_and_joined(tmp_path):
    parts = []
    for first in (0, 20):
        run = metfa.Run(first_sample=first)
        with pytest.warns(DegenerateAttributionsWarning, match=SAME):
            parts.append(metfa.explain(ignores, ROWS, 0, run=run, **SETTINGS))
    loaded = metfa.load(parts[0].save(tmp_path / "first"))
    assert loaded.unmoved.all()
    assert loaded.concat(parts[1]).unmoved.all()


def test_joined_samples_of_one_map_each_are_looked_at_together():
    def joined(explainer):
        settings = {"noise": None, "n_samples": 1, "rng": 0}
        ones = [metfa.explain(explainer, ROWS, 0, run=metfa.Run(first_sample=k), **settings) for k in range(8)]
        whole = ones[0]
        for one in ones[1:]:
            whole = whole.concat(one)
        return whole

    assert joined(ignores).unmoved.all()
    assert not joined(ignores).significance_map(0.1).any()
    assert not joined(draws).unmoved.any()


def test_all_parts_are_looked_at_together():
    @metfa.randomised
    def explainer(inputs, target, *, rngs):
        return {"a": inputs["a"] * 1.0, "b": inputs["b"] * 1.0}

    with pytest.warns(DegenerateAttributionsWarning, match=SAME):
        found = metfa.explain(explainer, {"a": ROWS, "b": ROWS}, 0, **SETTINGS)
    for part in found.values():
        assert not part.significance_map(-1.0).any()


def test_lime_draws_where_it_cannot_ask_about_every_part_of_a_text():
    def model(texts):
        long = [[len(word) for word in text.split()] for text in texts]
        return np.array([0.1 + 0.4 * np.tanh(sum(some) / 50) for some in long])

    with pytest.warns(DegenerateAttributionsWarning, match="without noise, the 8 maps are all the same for 1 of 1"):
        explain_text(model, "the of and with", method=LIME, noise=None, n_samples=8, rng=0)
    words = " ".join("x" * k for k in range(1, 20)) + " of"
    for asked in (model, lambda texts: np.array([0.3 + 0.4 * ("of" in text.split()) for text in texts])):
        long = explain_text(asked, words, method=LIME, noise=None, n_samples=8, rng=0)
        assert not long.unmoved.any()
    assert long.significance_map()[0, -1] == 1  # each draw finds the one word that matters


def test_equal_effects_are_draws():
    """A source that adds the same to each prompt has the same contribution in each, which is a finding."""

    def score(prompts):
        return np.array([0.25 * ("one" in "".join(prompt)) for prompt in prompts])

    sample = explain_answer(score, ["one. ", "two. "], delta=0.1, n_samples=20, rng=0)
    assert not sample.unmoved.any()
    assert sample.significance_map()[0, 0] == 1
