"""Differences of all pairs of features, and the ranking that they give."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import metfa


def made(values, **fields):
    n, batch, *features = values.shape
    arguments = {
        "inputs": np.zeros((batch, *features)),
        "target": (0,) * batch,
        "vanilla": values[0].copy(),
        "scores": None,
        "predictions": None,
        "sample_ids": tuple(range(n)),
        "input_names": tuple(f"input {row}" for row in range(batch)),
    }
    return metfa.AttributionSample(values=values, **(arguments | fields))


def planted(means, n=40, batch=1, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(n, batch, 1))  # of the whole sample: pairing removes it
    return made(np.asarray(means) + 3 * shared + noise * rng.normal(size=(n, batch, len(means))))


def test_differences_of_all_pairs():
    sample = planted([3.0, 2.0, 1.0, 0.0], batch=2)
    pairs = sample.pairwise()
    for place, (j, k) in enumerate(combinations(range(4), 2)):
        np.testing.assert_array_equal(pairs.values[..., place], sample.values[..., j] - sample.values[..., k])
        np.testing.assert_array_equal(pairs.vanilla[..., place], sample.vanilla[..., j] - sample.vanilla[..., k])
        assert pairs.feature_names[place] == f"feature {j} - feature {k}"
    assert pairs.noun == "pair"
    assert pairs.terms().threshold == 0
    assert pairs.terms().sides == ("higher in the first", "higher in the second")
    assert pairs.signed
    assert pairs.values.shape == (40, 2, 6)


def test_maps_are_compared_place_by_place():
    values = np.random.default_rng(0).random((12, 1, 2, 3))
    pairs = made(values).pairwise()
    assert pairs.feature_names[0] == "feature (0, 0) - feature (0, 1)"
    np.testing.assert_array_equal(pairs.values[:, 0, 4], values[:, 0, 0, 0] - values[:, 0, 1, 2])


def test_the_planted_order_is_found():
    means = [0.0, 4.0, 2.0, 6.0]
    ranking = planted(means, n=60).ranking()
    np.testing.assert_array_equal(ranking.marks, np.sign(np.subtract.outer(means, means)).astype(int))
    assert ranking.order.tolist() == [3, 1, 2, 0]
    assert ranking.undecided == 0
    assert str(ranking).startswith(
        "feature 3 above feature 1, feature 2, feature 0; feature 1 above feature 2, feature 0; "
        "feature 2 above feature 0 ("
    )


def test_equal_features_are_not_shown_to_differ():
    ranking = planted([5.0, 0.0, 0.0], n=60).ranking()
    assert ranking.marks.tolist() == [[0, 1, 1], [-1, 0, 0], [-1, 0, 0]]
    assert "1 of 3 pairs not shown to differ" in str(ranking)
    assert "equal" not in str(ranking)
    assert "same" not in str(ranking)


def test_a_false_order_is_at_most_as_likely_as_alpha():
    means = np.array([0.0, 0.0, 0.0, 0.0, 0.5])
    false = 0
    for seed in range(200):
        marks = planted(means, n=30, seed=seed).ranking(alpha=0.1).marks
        false += bool((marks * np.sign(np.subtract.outer(means, means)) < (marks != 0)).any())
    assert false / 200 <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 200)


def test_the_default_is_one_family_of_all_pairs_and_both_sides():
    pairs = planted([1.0, 0.0, 0.0, 0.0]).pairwise()
    assert pairs.terms().level == "alpha 0.05, bonferroni over both sides together"
    with pytest.raises(metfa.TooFewSamplesError, match=r"over 6 pairs, both sides together.* at least 8 are needed"):
        planted([1.0, 0.0, 0.0, 0.0], n=7).ranking()
    assert planted([9.0, 0.0, 0.0, 0.0], n=8).ranking().marks[0].tolist() == [0, 1, 1, 1]
    assert pairs.significance_map(correction="none").shape == (1, 6)


def test_after_until_pairs_are_tested_at_any_time():
    def explainer(inputs, target):
        return inputs * np.array([3.0, 1.0, 0.0])

    sample = metfa.explain(
        explainer, np.ones((1, 3)), 0, noise=metfa.noise.Gaussian(0.2), rng=0,
        n_samples=metfa.Until(undecided=0.1, threshold=1.0, max_samples=60),
    )  # fmt: skip
    pairs = sample.pairwise()
    assert pairs.any_time
    assert pairs.stopping.noun == "single feature"
    assert pairs.decide(pairs.terms()).any_time
    assert "single features" in str(pairs.summary()[0])
    with pytest.raises(ValueError, match="whenever sampling stops"):
        pairs.significance_map(correction="holm")


def test_a_certificate_holds_for_pairs_of_one_input():
    sample = metfa.explain(
        lambda inputs, target: inputs * np.array([3.0, 1.0]), np.ones((1, 2)), 0,
        noise=metfa.noise.Gaussian(0.2), n_samples=30, rng=0,
    )  # fmt: skip
    radius = sample.pairwise().certified_radius(0.0)
    assert radius.shape == (1, 1)
    assert radius[0, 0] > 0


def test_saved_and_read(tmp_path):
    pairs = planted([3.0, 2.0, 1.0], batch=2).pairwise()
    pairs.save(tmp_path / "pairs")
    read = metfa.load(tmp_path / "pairs")
    assert read.pairs_of == ("feature 0", "feature 1", "feature 2")
    assert read.noun == "pair"
    assert [str(one) for one in read.summary()] == [str(one) for one in pairs.summary()]


@pytest.mark.parametrize("dtype", [np.float16, np.int64])
def test_differences_do_not_overflow(dtype):
    most = np.finfo(dtype).max if dtype == np.float16 else 2**40
    values = np.tile(np.array([most, -most], dtype=dtype), (10, 1, 1))
    np.testing.assert_array_equal(made(values).pairwise().values[:, 0, 0], 2.0 * float(most))


def test_scores_that_are_too_large_are_refused():
    with pytest.raises(ValueError, match=r"too large for differences.*scaled\('mean'\)"):
        made(np.tile([1.5e308, -1.5e308], (10, 1, 1))).pairwise()


def test_refusals():
    sample = planted([3.0, 2.0, 1.0])
    with pytest.raises(ValueError, match="differences already"):
        sample.pairwise().pairwise()
    with pytest.raises(ValueError, match="differences already"):
        sample.over(np.array([0, 1, 1]), against="rest").pairwise()
    with pytest.raises(ValueError, match=r"2 to 100 features.* got 200: pool them first"):
        planted(np.zeros(200)).pairwise()
    with pytest.raises(ValueError, match="got 1: there is nothing to compare"):
        planted([1.0]).pairwise()
    with pytest.raises(ValueError, match="comes first"):
        planted([3.0, 2.0, 1.0], batch=2).pairwise().across_inputs()


def test_names_are_those_of_the_features_or_regions():
    sample = replace(planted([3.0, 2.0, 1.0]), feature_names=("age", "income", "tenure"))
    assert sample.pairwise().feature_names == ("age - income", "age - tenure", "income - tenure")
    pooled = sample.over(metfa.Regions(np.array([0, 1, 1]), names=["person", "money"]))
    assert pooled.pairwise().feature_names == ("person - money",)
    assert pooled.pairwise().noun == "pair"


def test_long_rankings_are_short_texts():
    means = np.arange(30.0)[::-1] * 6
    text = str(planted(means, n=60).ranking())
    assert text.startswith("feature 0 above all 29 others; feature 1 above feature 2, feature 3, feature 4 and 25 more")
    assert "24 more above others" in text
    assert len(text) < 600
