"""A result as a pandas table, a line for each input and feature."""

import numpy as np
import pandas as pd
import pytest

import metfa
from metfa._base.warnings import DegenerateAttributionsWarning

WEIGHTS = np.array([2.0, 0.0, -1.0])
COLUMNS = [
    *("input", "input_name", "target", "feature", "feature_name", "value", "score", "lower", "upper", "vanilla"),
    *("threshold", "above", "below", "n", "pvalue_above", "pvalue_below", "mark", "kind", "caution"),
]


def explained(n=20, rows=4, **settings):
    inputs = np.random.default_rng(0).normal(size=(rows, 3))
    run = metfa.Run(feature_names=("age", "size", "=1+1\n"))
    given = {"noise": metfa.noise.Gaussian(0.5), "n_samples": n, "rng": 0, "run": run}
    return metfa.explain(lambda x, target: x * WEIGHTS, inputs, 0, **{**given, **settings})


@pytest.fixture(scope="module")
def sample():
    return explained()


def test_a_line_for_each_row_and_feature(sample):
    frame = sample.to_dataframe()
    assert list(frame.columns) == COLUMNS
    assert frame["input"].tolist() == np.repeat(range(4), 3).tolist()
    assert frame["feature"].tolist() == list(range(3)) * 4
    assert frame["feature_name"].tolist()[:3] == ["age", "size", "=1+1\n"]  # as given, to be joined by
    assert frame["input_name"].tolist()[::3] == list(sample.input_names)
    interval, test = sample.confidence_interval(), sample.test(0)
    expected = {
        "value": sample.inputs, "score": sample.smoothed(), "lower": interval.low, "upper": interval.high,
        "vanilla": sample.vanilla, "above": test.above, "below": test.below, "mark": sample.significance_map(),
    }  # fmt: skip
    for name, values in expected.items():
        np.testing.assert_array_equal(frame[name], values.ravel(), err_msg=name)
    assert set(frame["n"]) == {20}
    assert set(frame["threshold"]) == {0.0}
    words = {1: "positive", 0: "undecided", -1: "negative"}
    assert frame["kind"].tolist() == [words[mark] for mark in frame["mark"]]
    assert set(frame["target"]) == {0}


def test_uncorrected_marks_are_decided_by_the_pvalues_of_each_side(sample):
    frame = sample.to_dataframe(alpha=0.02)
    above, below = frame["pvalue_above"] <= 0.02, frame["pvalue_below"] <= 0.02
    np.testing.assert_array_equal(frame["mark"], above.astype(int) - below.astype(int))


def test_terms_and_levels_are_those_that_are_given(sample):
    given = {"threshold": 0.3, "alpha": 0.1, "correction": "holm"}
    frame = sample.to_dataframe(**given, confidence_level=0.8)
    np.testing.assert_array_equal(frame["mark"], sample.significance_map(**given).ravel())
    np.testing.assert_array_equal(frame["lower"], sample.confidence_interval(0.8).low.ravel())
    assert set(frame["kind"]) <= {"important", "unimportant", "undecided"}
    assert frame.attrs["confidence_level"] == sample.confidence_interval(0.8).confidence_level
    assert frame.attrs["decision"].endswith("holm; over the 3 features of each input)")
    assert sample.to_dataframe().attrs["decision"].endswith("; 3 features of each input)")
    assert sample.of_input(0).to_dataframe(correction="holm").attrs["decision"].endswith("holm; 3 features)")
    assert frame.attrs["score"].startswith("attribution score: smoothed over 20 samples")
    assert pd.concat([frame, frame]).attrs == frame.attrs


def test_each_input_has_its_own_threshold():
    sample = explained(noise=metfa.noise.Uniform(0.1)).over(np.array([0, 1, 1]), how="max")
    frame = sample.to_dataframe([0.1, 0.2, 0.3, 0.4])
    assert frame["threshold"].tolist() == np.repeat([0.1, 0.2, 0.3, 0.4], 2).tolist()
    assert frame["feature_name"].tolist()[:2] == ["region 0", "region 1"]
    assert "value" not in frame
    assert "mean" not in frame.attrs["score"]


def test_too_few_samples():
    frame = explained(5).to_dataframe(alpha=0.2)
    assert frame["lower"].isna().all()
    assert "5 samples are too few" in frame.attrs["intervals"]
    assert "confidence_level" not in frame.attrs
    np.testing.assert_array_equal(frame["score"], explained(5).median().ravel())
    with pytest.raises(metfa.TooFewSamplesError, match="at least 5 are needed"):
        explained(4).to_dataframe()


def test_features_of_maps_have_indices():
    images = np.random.default_rng(0).random((2, 2, 3))
    sample = metfa.explain(lambda x, target: x**2, images, 0, noise=metfa.noise.Uniform(0.1), n_samples=6, rng=0)
    frame = sample.to_dataframe()
    assert "feature_name" not in frame
    assert frame[["index_0", "index_1"]].values.tolist() == [
        [i, j] for _ in range(2) for i in range(2) for j in range(3)
    ]
    np.testing.assert_array_equal(frame["value"], images.ravel())


def test_differences_have_the_words_of_their_sides():
    noise, inputs = metfa.noise.Gaussian(0.5), np.ones((1, 3))
    pair = [lambda x, target: x * WEIGHTS, lambda x, target: x * WEIGHTS[::-1]]
    sample = metfa.compare(*pair, inputs, 0, noise=noise, n_samples=12, rng=0, names=("old", "new"))
    frame = sample.to_dataframe()
    assert frame["kind"].tolist() == ["less in new than in old", "undecided", "more in new than in old"]
    np.testing.assert_array_equal(frame["before"], sample.pair[0].smoothed().ravel())
    np.testing.assert_array_equal(frame["after"], sample.pair[1].smoothed().ravel())
    assert "new minus old" in frame.attrs["difference"]


def test_populations_say_what_they_are_about():
    frame = explained(2, rows=30).across_inputs().to_dataframe()
    assert "vanilla" not in frame
    assert "value" not in frame
    assert "population" in frame.attrs["about"]
    assert set(frame["n"]) == {30}


def test_what_must_not_be_missed_stands_beside_each_line():
    with pytest.warns(DegenerateAttributionsWarning):
        sample = explained(noise=lambda x, rng: x)
    frame = sample.to_dataframe()
    assert set(frame["caution"]) == {"Nothing is decided: all samples are the same"}
    assert frame.attrs["intervals"] == "all samples are the same"


def test_values_of_frames_are_labels():
    frame = pd.DataFrame({"age": [30.0, np.nan], "town": ["Ulm", None], "=x": [True, False], "z": [1.0, 2.0]})
    sample = metfa.explain(
        lambda rows, target: np.stack([rows["z"] * k for k in range(4)], axis=1), frame, 0,
        noise=lambda row, rng: np.array([*row[:3], row[3] + rng.normal()]), n_samples=5, rng=0,
    )  # fmt: skip
    values = sample.to_dataframe()["value"].tolist()
    assert values[:4] == [30.0, "Ulm", "true", 1.0]
    assert values[6:] == ["false", 2.0]
    assert all(np.isnan(value) for value in values[4:6])
