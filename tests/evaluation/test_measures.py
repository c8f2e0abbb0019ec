"""What a measure makes of a metric: rows of one input, with a reason wherever there is no figure."""

import warnings

import numpy as np
import pytest
import torch

import metfa
from metfa import metrics
from metfa.evaluation._figures import number
from metfa.evaluation._measures import MEASURES, check_measures
from metfa.noise import Gaussian, Uniform

NOISES = {"u": Uniform(0.1)}


def model(rows):
    scores = rows[:, :3]
    return scores - scores.max(axis=1, keepdims=True)


X = np.array([[1.0, 0.5, 0.2, 0.9]])
MAP = np.array([[4.0, 3.0, 2.0, 1.0]])


def one(name, settings=None):
    (measure,) = check_measures({name: settings or {}}, NOISES, NOISES)
    return measure


def sample_of(explainer, n=6):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return metfa.explain(explainer, X, 0, noise=Gaussian(0.1), n_samples=n, rng=0)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1.0), (np.float32(0.5), 0.5), (np.array([2.0]), 2.0), (torch.tensor([[3.0]], requires_grad=True), 3.0),
        (torch.tensor(0.5, dtype=torch.bfloat16), 0.5), (np.nan, None), (np.inf, None), (-np.inf, None), ([4], 4.0),
    ],
)  # fmt: skip
def test_a_number_for_json(value, expected):
    assert number(value) == expected
    assert type(number(value)) in (float, type(None))


def test_more_than_one_number_is_an_error():
    with pytest.raises(ValueError, match="one score an input, got 2 for 1 input"):
        number(np.zeros(2))


def test_faithfulness_is_three_rows_of_one_question():
    rows = one("faithfulness", {"steps": 4}).rows(model, X, MAP, [0], steps=4)
    assert [row["metric"] for row in rows] == ["insertion", "deletion", "overall"]
    for row in rows:
        by_hand = getattr(metrics, row["metric"])(model, X, MAP, [0], steps=4)
        assert row["score"] == by_hand.score[0]
        assert row["raw"] == by_hand.raw[0]
        assert row["clean"] == by_hand.clean[0]
        assert row["reason"] is None
    assert rows[2]["raw"] == pytest.approx(rows[0]["raw"] - rows[1]["raw"])


def test_robust_faithfulness_equals_each_metric_by_itself():
    settings = {"noise": Gaussian(0.3), "rng": 5, "n_outer": 4}
    rows = one("robust_faithfulness").rows(model, X, MAP, [0], steps=4, **settings)
    for row, name in zip(rows, ("insertion", "deletion", "overall"), strict=True):
        judged = metrics.robust(getattr(metrics, name), **settings)(model, X, MAP, [0], steps=4)
        assert row["metric"] == {"insertion": "RI", "deletion": "RD", "overall": "RO"}[name]
        for column in ("score", "raw", "clean", "mean_of_ratios", "median_of_ratios"):
            assert row[column] == pytest.approx(getattr(judged, column)[0]), (name, column)


def test_no_noise_makes_the_robust_form_the_plain_one():
    plain = one("faithfulness").rows(model, X, MAP, [0], steps=4)
    robust = one("robust_faithfulness").rows(
        model, X, MAP, [0], steps=4, noise=Gaussian(0.0), rng=0, n_outer=3
    )  # fmt: skip
    assert [row["score"] for row in robust] == pytest.approx([row["score"] for row in plain])


def sure(rows):
    """A model that is sure of class 1."""
    return np.array([[0.0, 50.0, 0.0]]).repeat(len(rows), axis=0)


@pytest.mark.filterwarnings("ignore::metfa._base.warnings.MetfaWarning")
def test_a_row_without_a_figure_has_a_reason():
    flat = np.ones((1, 4))
    for row in one("faithfulness").rows(model, X, flat, [0], steps=4):
        assert (row["score"], row["raw"], row["reason"]) == (None, None, "constant attributions")
    for row in one("faithfulness").rows(sure, X, MAP, [0], steps=4):
        assert (row["score"], row["reason"]) == (None, "clean score below 1e-6")
        assert row["raw"] is not None
    nothing = sample_of(lambda inputs, target: np.ones_like(inputs))
    for name, settings in (("mstd", {}), ("top_k_overlap", {"k": 2}), ("max_sensitivity", {})):
        (row,) = one(name, settings).rows(nothing, **settings)
        assert (row["score"], row["reason"]) == (None, "constant maps only"), name
    (row,) = one("interval_width").rows(model, X, nothing, 0.95)
    assert (row["score"], row["raw"], row["reason"]) == (None, None, "constant maps only")
    (row,) = one("region_score").rows(model, X, nothing, 0.95)
    assert (row["score"], row["reason"]) == (None, "an empty region")
    (row,) = one("prediction_agreement").rows(nothing)
    assert (row["score"], row["reason"]) == (None, "the explainer returns no scores")


def test_figures_of_a_sample():
    sample = sample_of(lambda inputs, target: (np.abs(inputs), model(inputs)))
    assert one("mstd").rows(sample)[0]["score"] == metrics.mstd(sample).score[0]
    assert one("top_k_overlap", {"k": 2}).rows(sample, k=2)[0]["score"] == metrics.top_k_overlap(sample, 2).score[0]
    assert one("max_sensitivity").rows(sample)[0]["score"] == metrics.max_sensitivity(sample).score[0]
    assert one("prediction_agreement").rows(sample)[0]["score"] == metrics.prediction_agreement(sample).score[0]
    assert one("interval_width").rows(model, X, sample, 0.9)[0]["score"] == metrics.interval_width(sample, 0.9).score[0]
    important = sample.significance_map(alpha=0.05) == 1
    expected = metrics.region_score(model, X, important, 0)
    assert one("region_score").rows(model, X, sample, 0.95)[0]["score"] == expected.score[0]


def test_a_map_of_one_feature_is_not_called_constant():
    sample = metfa.explain(lambda inputs, target: inputs[:, :1] ** 2, X, 0, noise=Gaussian(0.1), n_samples=6, rng=0)
    assert one("mstd").rows(sample)[0]["reason"] is None
    assert one("max_sensitivity").rows(sample)[0]["reason"] is None


@pytest.mark.parametrize(
    ("result", "score", "reason"),
    [
        (3.0, 3.0, None),
        (np.array([2.0]), 2.0, None),
        (torch.tensor([2.5]), 2.5, None),
        (type("Own", (), {"score": [0.5]}), 0.5, None),
        (np.nan, None, "not finite"),
        (metrics.Scores(np.array([1.0]), np.array([2.0]), (None,)), 0.5, None),
        (metrics.Scores(np.array([np.nan]), np.array([2.0]), ("no map",)), None, "no map"),
        (metrics.Scores(np.array([1.0]), np.array([0.0]), (None,)), None, "clean score below 1e-6"),
    ],
)
def test_a_function_of_the_users_own(result, score, reason):
    asked = []

    def own(model, inputs, attributions, target):
        asked.append((inputs, attributions, target))
        return result

    (measure,) = check_measures({"own": own}, {}, {})
    ((row),) = measure.rows(model, X, MAP, [0])
    assert (row["metric"], row["score"], row["reason"]) == ("own", score, reason)
    ((inputs, attributions, target),) = asked
    assert inputs is X
    assert attributions is MAP
    assert target == [0]


def test_every_measure_can_be_asked_for():
    needed = {"infidelity": {"noise": Gaussian(0.1)}, "top_k_overlap": {"k": 3}, "certified_share": {"radius": 0.1}}
    for texts in (None, ["a film", "one joke"]):
        names = [name for name, measure in MEASURES.items() if measure.of_texts in (None, texts is not None)]
        found = check_measures({name: needed.get(name, {}) for name in names}, NOISES, NOISES, texts)
        assert [measure.name for measure in found] == names
        for name in MEASURES.keys() - set(names):
            with pytest.raises(ValueError, match=rf"{name} is for (texts|images), but the inputs are not"):
                check_measures({name: needed.get(name, {})}, NOISES, NOISES, texts)
    assert [measure.name for measure in check_measures(("mstd", "mstd"), NOISES, NOISES)] == ["mstd"]
    assert one("faithfulness", None).settings == {}
