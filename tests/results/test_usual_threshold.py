"""The usual threshold of unsigned scores: the natural break of the medians; older results and runs keep theirs."""

import json
import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import metfa
from metfa import stats
from metfa.results.rules import RULES
from metfa.results.terms import Terms

INPUTS = np.stack([np.linspace(0, 1.5, 12), np.linspace(1.4, 0.2, 12)]) ** 2
REGIONS = metfa.Regions(np.repeat([0, 1, 2], 4))


@dataclass
class Absolute:
    """An explainer that may fail after some calls; its name does not say so."""

    calls: float = field(default=math.inf, repr=False)

    def __call__(self, inputs, target):
        self.calls -= 1
        if self.calls < 0:
            raise RuntimeError("stop")
        return np.abs(inputs)


def explained(n_samples=30, explainer=None, **settings):
    """Scores whose spread under noise is skewed, so that no two rules agree."""
    noise = metfa.noise.Gaussian(0.4)
    settings = {"n_samples": n_samples, "batch_size": 10, "rng": 0, **settings}
    return metfa.explain(explainer or Absolute(), INPUTS, 0, noise=noise, **settings)


def breaks(sample, rule, n=None):
    return [rule(sample.values[:n, row]) for row in range(sample.values.shape[1])]


def aged(folder):
    """The file as it was written when the break of all scores was usual."""
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["provenance"].pop("usual_threshold") == "jenks_of_medians"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return metfa.load(folder)


def test_it_is_the_break_of_the_medians():
    sample = explained()
    medians = breaks(sample, stats.jenks_of_medians)
    assert medians != breaks(sample, stats.jenks)
    assert sample.terms().threshold is sample.usual_rule is Terms().threshold is stats.jenks_of_medians
    for found in (sample, sample.with_unit(1.0), sample.over(REGIONS), sample.scaled("share"), sample.of_input(0)):
        np.testing.assert_array_equal(found.threshold(), breaks(found, stats.jenks_of_medians))
    np.testing.assert_array_equal(sample.significance_map(), sample.significance_map(stats.jenks_of_medians))
    np.testing.assert_array_equal(sample.threshold(split=9), breaks(sample, stats.jenks_of_medians, 9))
    assert sample.summary()[0].threshold == medians[0]
    signed = explained(explainer=lambda inputs, target: inputs - 0.3)
    assert (signed.terms().threshold, signed.usual_rule) == (0.0, stats.jenks_of_medians)


def test_until_decides_by_it():
    sample = explained(metfa.Until(undecided=0.2, max_samples=60))
    np.testing.assert_array_equal(sample.stopping.thresholds, breaks(sample, stats.jenks_of_medians, 10))
    assert sample.terms(split=0).threshold is stats.jenks_of_medians
    by_name = explained(metfa.Until(undecided=0.2, max_samples=60, threshold=stats.jenks))
    np.testing.assert_array_equal(by_name.stopping.thresholds, breaks(by_name, stats.jenks, 10))


class TestOnFile:
    def test_a_new_result_says_which_it_is(self, tmp_path):
        folder = explained().save(tmp_path / "saved")
        assert json.loads((folder / "manifest.json").read_text())["provenance"]["usual_threshold"] == "jenks_of_medians"
        assert metfa.load(folder).usual_rule is stats.jenks_of_medians

    def test_an_older_result_decides_as_it_did(self, tmp_path):
        sample = explained()
        old = aged(sample.save(tmp_path / "old"))
        more = explained(5, run=metfa.Run(first_sample=30))
        kept = [
            old, metfa.load(old.save(tmp_path / "again")), old.concat(more), old.of_input(1), old.over(REGIONS),
            old.scaled("mean"), old.with_unit(1.0), replace(old),
        ]  # fmt: skip
        for found in kept:
            assert found.terms().threshold is stats.jenks
            np.testing.assert_array_equal(found.threshold(), breaks(found, stats.jenks))
        np.testing.assert_array_equal(old.significance_map(), sample.significance_map(stats.jenks))
        assert (old.significance_map() != sample.significance_map()).any()
        assert old.terms(split=9).threshold is stats.jenks
        np.testing.assert_array_equal(old.significance_map(stats.jenks_of_medians), sample.significance_map())
        assert '"rule":"natural break of all scores"' in report_of(old, tmp_path)
        assert '"rule":"natural break of the medians"' in report_of(sample, tmp_path)

    @pytest.mark.parametrize("name", ["otsu", 3, ["jenks"], ""])
    def test_another_name_is_refused(self, name, tmp_path):
        folder = explained().save(tmp_path / "saved")
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["provenance"]["usual_threshold"] = name
        (folder / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(ValueError, match=r"manifest\.json is damaged: .*one of jenks, jenks_of_medians"):
            metfa.load(folder)


def report_of(sample, folder):
    path = folder / "report.html"
    path.unlink(missing_ok=True)
    return sample.of_input(0).report(path).read_text().replace('": "', '":"')


class TestResumed:
    """A run goes on by the rule that it began with."""

    @staticmethod
    def interrupted(folder, n_samples):
        with pytest.raises(RuntimeError, match="stop"):
            explained(n_samples, Absolute(5), run=metfa.Run(store=folder))
        return json.loads((folder / "run.json").read_text())

    @pytest.mark.parametrize("begun", [None, *RULES])
    @pytest.mark.parametrize("n_samples", [30, metfa.Until(undecided=0.2, max_samples=60)])
    def test_by_its_own_rule(self, begun, n_samples, tmp_path):
        folder = tmp_path / "run"
        run = self.interrupted(folder, n_samples)
        assert run["usual_threshold"] == "jenks_of_medians"
        if begun is None:
            del run["usual_threshold"]  # as it was written when the break of all scores was usual
        else:
            run["usual_threshold"] = begun
        (folder / "run.json").write_text(json.dumps(run))
        rule = RULES[begun or "jenks"]
        found = explained(n_samples, run=metfa.Run(store=folder))
        assert found.provenance["maps_made"] < found.values[..., 0].size  # it went on
        assert found.usual_rule is rule
        if n_samples == 30:
            np.testing.assert_array_equal(found.threshold(), breaks(found, rule))
        else:
            np.testing.assert_array_equal(found.stopping.thresholds, breaks(found, rule, 10))
        again = explained(n_samples, run=metfa.Run(store=folder))
        assert again.usual_rule is rule
        np.testing.assert_array_equal(again.significance_map(), found.significance_map())

    @pytest.mark.parametrize("name", ["otsu", None, ["jenks"]])
    def test_of_an_unknown_rule_is_refused(self, name, tmp_path):
        run = self.interrupted(tmp_path / "run", 30)
        (tmp_path / "run" / "run.json").write_text(json.dumps({**run, "usual_threshold": name}))
        with pytest.raises(ValueError, match=r"run\.json is damaged and cannot be resumed"):
            explained(30, run=metfa.Run(store=tmp_path / "run"))


@pytest.mark.filterwarnings("ignore::metfa._base.warnings.DegenerateAttributionsWarning")
class TestNothingToCut:
    """No break of the medians or the means: the words name what is equal."""

    @pytest.mark.parametrize("rule", RULES.values())
    def test_all_scores(self, rule):
        flat = replace(explained(), values=np.full((30, 2, 12), 0.5))
        assert flat.decide(Terms(rule)).nothing == ("all scores are equal",) * 2

    def test_medians_of_the_first_samples(self):
        values = explained().values.copy()
        values[:4] = np.where(np.arange(4)[:, None, None] == 0, values[:4], 0.5)
        first = replace(explained(), values=values)
        decision = first.decide(first.terms(split=4))
        assert decision.nothing == ("the medians are equal",) * 2
        assert not decision.marks.any()

    @pytest.mark.parametrize("rule", RULES.values())
    def test_one_feature(self, rule):
        one = explained().over(np.zeros(12, int))
        assert one.decide(one.terms(rule)).nothing == ("there is one feature, and it cannot stand out of others",) * 2
