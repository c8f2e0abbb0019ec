"""Scores of marks and rankings by hand, and units as files."""

import json
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.truth import __main__ as truth
from benchmarks.truth import aggregate, explainers, images, rules, scoring, tiers, units
from benchmarks.truth.units import Unit

import metfa


def test_the_top_shares_places_among_ties():
    values = np.array([3.0, 1.0, 2.0, 2.0, 0.0])
    assert scoring.top(values, 0).tolist() == [0, 0, 0, 0, 0]
    assert scoring.top(values, 2).tolist() == [1, 0, 0.5, 0.5, 0]
    assert scoring.top(values, 3).tolist() == [1, 0, 1, 1, 0]
    assert scoring.top(np.ones(4), 1).tolist() == [0.25] * 4


def test_the_area_is_that_of_sklearn():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    for _ in range(5):
        values, truth = rng.integers(0, 6, 30).astype(float), rng.random(30) < 0.4
        assert scoring.area(values, truth) == pytest.approx(metrics.roc_auc_score(truth, values))
    assert np.isnan(scoring.area(values, np.zeros(30, bool)))


def sample_of(levels, n=20):
    levels = np.asarray(levels, dtype=np.float64)
    return metfa.explain(
        lambda inputs, target: np.abs(inputs), levels, 0, noise=metfa.noise.Gaussian(0.01), n_samples=n, rng=0
    )


def test_marks_by_hand():
    """Two inputs: one true and one false mark; nothing at all."""
    sample = sample_of([[1.0, 1.0, 0.1, 0.1, 0.1], [1.0, 1.0, 1.0, 1.0, 1.0]])
    task = np.array([[True, False, True, False, False]] * 2)
    model = np.array([[True, True, False, False, False]] * 2)
    rows = {(row["rule"], row["correction"]): row for row in scoring.marks(sample, task, model, scaled=True)}
    row = rows["2 x mean", "none"]
    assert (row["marks"], row["unmarked"], row["no_threshold"]) == (1.0, 0.5, 0.0)
    assert (row["task_fdp"], row["task_power"], row["task_unimportant"]) == (0.5, 0.25, 0.75)
    assert (row["model_fdp"], row["model_power"], row["model_unimportant"]) == (0.0, 0.5, 0.5)
    assert row["top_mean_fdp"] == 0.5
    assert set(rows) >= {
        (rule, correction) for rule in ("1 x mean", "break of medians") for correction in ("none", "by")
    }
    assert rows["vanilla > its break", "untested"]["marks"] >= 1


def test_each_correction_is_measured_and_few_samples_mark_nothing():
    levels, used = [[1.0, 1.0, 0.1, 0.1, 0.1, 0.1]], np.array([[True, True, False, False, False, False]])
    many, few = (
        {row["correction"]: row for row in scoring.marks(sample_of(levels, n), used, used, scaled=True)
         if row["rule"] == rules.DEFAULT}
        for n in (20, 6)
    )  # fmt: skip
    assert set(many) == set(few) == {"none", "bonferroni", "holm", "bh", "by", "e-bh"}
    assert [row["task_power"] for row in many.values()] == [1] * 6
    assert (few["none"]["task_power"], few["bonferroni"]["marks"]) == (1, 0)  # 6 / 2^6 is above 0.05
    assert np.isnan(few["bonferroni"]["task_fdp"])


def test_squares_by_hand():
    """One square of 2 x 2 pixels stands out, and one of its pixels is used."""
    levels = np.full((1, 8, 8), 0.1)
    levels[0, 2:4, 4:6] = 1.0
    used = np.zeros((1, 64), bool)
    used[0, 2 * 8 + 5] = True
    found = {(row["rule"], row["correction"]): row for row in scoring.of_regions(sample_of(levels), used, ~used)}
    assert {correction for rule, correction in found if rule == rules.AGAINST_REST} == set(rules.OF_GIVEN_THRESHOLDS)
    for rule in (rules.DEFAULT, rules.AGAINST_REST):
        row = found[rule, "holm"]
        assert (row["marks"], row["task_fdp"], row["task_power"], row["top_mean_power"]) == (1, 0, 1, 1)
        assert row["model_power"] == 1 / 16  # the other 15, and three pixels of this one
    assert found[rules.AGAINST_REST, "none"]["task_unimportant"] == 0


def test_numbers_of_samples_come_from_one_sample():
    whole, part = sample_of([[1.0, 0.5]], 20), sample_of([[1.0, 0.5]], 8)
    whole.significance_map(0.7)
    cut = scoring.first(whole, 8)
    np.testing.assert_array_equal(cut.values, part.values)
    assert not cut.any_time  # as if no more had been drawn, and nobody had looked
    np.testing.assert_array_equal(cut.significance_map(0.7), part.significance_map(0.7))


@pytest.fixture
def unit(monkeypatch):
    """A unit that takes no training."""
    task = images.blind("LIN")
    untrained = replace(task, fit=lambda data, seed: images.Fitted(_network(data), 0.9))
    return Unit(untrained, "Gradient", 0, "Gaussian", 0.1, 3, (8, 10))


def _network(data):
    return images.Margin(images.perceptron(64, 8, 2), images.all_shapes(data)).eval().requires_grad_(False)


def test_units_go_on_from_their_files(unit, tmp_path, monkeypatch):
    result, known = units.measured(unit, tmp_path)
    assert not known
    assert [path.name for path in tmp_path.iterdir()] == [unit.file]
    assert {row["n"] for row in result["marks"]} == {8, 10}
    monkeypatch.setattr(units, "_sampled", None)  # it would fail if it were asked
    again, known = units.measured(unit, tmp_path)
    assert known
    np.testing.assert_equal(again, result)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"is no unit of this benchmark \(JSONDecodeError"),
        ("{}", r"is no unit of this benchmark \(KeyError"),
        ("[]", r"is no unit of this benchmark \(TypeError"),
        ({"std": 0.2}, r"was measured with another setting \(std\): it was left as it is; move it away"),
        ({"version": 0}, r"was measured with another setting \(version\)"),
        ({}, r"is no unit of this benchmark \(KeyError: 'seconds'\)"),
    ],
)
def test_other_files_are_refused_and_left(unit, tmp_path, content, message):
    path = tmp_path / unit.file
    if isinstance(content, dict):
        found = {"accuracy": 1, "learned": True, "marks": [], "ranking": []}
        content = json.dumps({"setting": unit.setting | content, **found})
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        units.measured(unit, tmp_path)
    assert path.read_text() == content


def test_what_has_not_learned_is_left_out(unit, tmp_path):
    weak = replace(unit, task=replace(unit.task, fit=lambda data, seed: images.Fitted(_network(data), 0.6)))
    result, _ = units.measured(weak, tmp_path)
    assert (result["learned"], result["marks"], result["ranking"]) == (False, [], [])


def test_means_over_trainings_and_over_the_six_tasks():
    def result(task, training, power):
        setting = {"task": task, "network": "MLP", "explainer": "IG", "kind": "Gaussian", "std": 0.1}
        row = {"n": 50, "rule": "2 x mean", "correction": "none", "task_power": power}
        return {"setting": {**setting, "training": training}, "marks": [row]}

    names = [task.name for task in images.IMAGES]
    found = [result(name, 0, 0.5) for name in names] + [result(name, 1, 0.7) for name in names]
    found += [result(names[0], 2, 1.0)]  # not all six
    rows = {row["task"]: row for row in aggregate.aggregated(found, "marks")}
    assert (rows[names[0]]["trainings"], rows[aggregate.SIX]["trainings"]) == (3, 2)
    assert rows[aggregate.SIX]["task_power"] == pytest.approx(0.6)
    assert rows[aggregate.SIX]["task_power_se"] == pytest.approx(np.std([0.5, 0.7], ddof=1) / 2**0.5)


def test_noises_are_compared_on_the_same_trainings(tmp_path):
    def results(training, std, power):
        setting = {"network": "MLP", "explainer": "IG", "kind": "Gaussian", "std": std, "inputs": 5}
        row = {"n": 50, "rule": "2 x mean", "correction": "none", "task_power": power}
        about = {"accuracy": 1.0, "learned": True, "flips": 0.1, "kind": "estimated", "ranking": [], "regions": []}
        return [
            {"setting": {**setting, "task": task.name, "training": training}, "marks": [row], **about}
            for task in images.IMAGES
        ]

    found = [*results(0, 0.1, 0.5), *results(0, 0.4, 0.4), *results(1, 0.1, 0.9)]  # training 1 lacks a noise
    truth.of_noises(found, tmp_path)
    rows = aggregate.read(tmp_path / "noises_marks.csv")
    powers = {row["std"]: row["task_power"] for row in rows if row["task"] == aggregate.SIX}
    assert powers == {0.1: 0.5, 0.4: 0.4}


def test_tables_are_read_as_they_were_written(tmp_path):
    rows = [{"task": "a, b", "n": 50, "std": 0.1, "rule": "2 x mean", "power": 0.12345, "power_se": float("nan")}]
    aggregate.write(tmp_path / "x.csv", rows)
    read = aggregate.read(tmp_path / "x.csv")
    np.testing.assert_equal(read, [{**rows[0], "n": 50.0, "power": 0.123}])


@pytest.mark.parametrize("tier", tiers.TIERS)
def test_units_of_a_tier_have_files_of_their_own(tier):
    found = tiers.TIERS[tier]()
    assert len({unit.file for unit in found}) == len(found)
    for one in found:
        assert one.explainer in explainers.OF[one.task.of]
        assert one.kind in units.KINDS
