"""Sampling until something is known: the same samples as of a fixed number, stopped where the rule says."""

import dataclasses
import inspect
import itertools
import json
import math
import pickle
import re
import shutil
import time

import numpy as np
import pytest
from matplotlib.text import Text

import metfa
from metfa import stats
from metfa._base.warnings import DegenerateAttributionsWarning
from metfa.results.decisions import TooFewSamplesError
from metfa.results.stopping import Stopping
from metfa.sampling import folder
from metfa.sampling.rounds import RoundsUntil
from metfa.sampling.what_rules_see import SeenMaps

WEIGHTS = np.linspace(-1, 3, 60).reshape(5, 12)
INPUTS = np.array([0.9, 0.7])[:, None, None] * np.ones((2, 5, 12))
NOISE = metfa.noise.Gaussian(0.5)


class Explainer:
    """Weighted inputs; may be slow, and may be interrupted."""

    rows_independent = True

    def __init__(self, stop_at=None, seconds=0.0):
        self.stop_at, self.seconds, self.rows = stop_at, seconds, 0

    def __call__(self, inputs, target):
        self.rows += len(inputs)
        time.sleep(self.seconds)
        if self.stop_at is not None and self.rows > self.stop_at:
            raise KeyboardInterrupt
        return WEIGHTS * inputs, inputs.reshape(len(inputs), -1)[:, :3]


def run(rule, explainer=None, store=None, progress=False, first_sample=0, **settings):
    given = {"noise": NOISE, "rng": 0, "predict": lambda x: x.reshape(len(x), -1)[:, :3], **settings}
    given["run"] = metfa.Run(store=store, progress=progress, first_sample=first_sample)
    return metfa.explain(explainer or Explainer(), given.pop("inputs", INPUTS), 1, n_samples=rule, **given)


def given_by(stopping):
    """The terms of a rule as arguments."""
    given = {"alpha": stopping.alpha, "correction": stopping.correction, "split": stopping.split}
    return {"threshold": np.array(stopping.thresholds), **given}


RULES = {
    "undecided": metfa.Until(undecided=0.3, threshold=1.0),
    "a rule's threshold": metfa.Until(undecided=0.4, max_samples=200, threshold=lambda values: values.mean()),
    "width": metfa.Until(width=1.0),
    "change": metfa.Until(change=0.02),
    "two": metfa.Until(undecided=0.5, threshold=[1.0, 0.8], change=0.05),
}


class TestRounds:
    @pytest.mark.parametrize("name", RULES)
    @pytest.mark.parametrize("batch_size", [1, 7])
    def test_samples_are_those_of_a_fixed_number(self, name, batch_size):
        found = run(RULES[name], batch_size=batch_size)
        assert found.stopping.reason == "reached"
        assert found.n_samples == found.stopping.looks[-1].n_samples
        fixed = run(found.n_samples)
        for part in ("values", "vanilla", "scores", "predictions"):
            np.testing.assert_array_equal(getattr(found, part), getattr(fixed, part))
        assert found.sample_ids == fixed.sample_ids
        assert found.provenance["n_samples"] == found.n_samples
        assert fixed.stopping is None

    @pytest.mark.parametrize("name", RULES)
    def test_looks_are_what_the_samples_say(self, name):
        rule, found = RULES[name], run(RULES[name])
        counts = [look.n_samples for look in found.stopping.looks]
        grown = counts[1:] if found.stopping.split else counts  # after a rule's own round comes the first test
        assert all(b == rule.after(a) for a, b in itertools.pairwise(grown))
        before = None
        for look in found.stopping.looks:
            values = found.values[: look.n_samples]
            tested = values[found.stopping.split :]
            if rule.undecided is None:
                assert look.undecided is None
            elif len(tested):
                heights = np.array(found.stopping.thresholds)[:, None, None]
                result = stats.sequential_test(tested, heights)
                of_sides = [logs.reshape(2, -1) for logs in (result.log_e_above, result.log_e_below)]
                undecided = 1 - np.any([stats.closed_e_bh(logs, axis=1) for logs in of_sides], axis=0).mean(1)
                assert look.undecided == pytest.approx(undecided.max())
            if rule.width is not None and look.n_samples >= 7:
                interval = stats.median_interval(values, ranks=stats.sequence_ranks(look.n_samples))
                assert look.width == pytest.approx((interval.high - interval.low).mean((1, 2)).max())
            if rule.change is not None:
                smoothed = stats.smoothed_median(values)
                if before is not None:
                    assert look.change == pytest.approx(np.abs(smoothed - before).mean((1, 2)).max())
                before = smoothed
        last = found.stopping.looks[-1]
        assert all(getattr(last, criterion) <= asked for criterion, asked in rule.asked.items())
        for look in found.stopping.looks[:-1]:
            assert any(value is None or value > rule.asked[criterion] for criterion, value in criteria_of(look, rule))

    def test_the_result_repeats_the_decisions(self):
        for name in ("undecided", "a rule's threshold", "two"):
            found = run(RULES[name])
            marks = found.significance_map()
            assert (marks == 0).mean((1, 2)).max() == pytest.approx(found.stopping.looks[-1].undecided)

    def test_a_rule_sees_the_first_round_alone(self):
        seen = []

        def rule(values):
            seen.append(values.copy())
            return float(values.mean())

        found = run(metfa.Until(undecided=0.5, threshold=rule, first=13, max_samples=100))
        assert found.stopping.split == 13
        tried, *seen = seen
        np.testing.assert_array_equal(tried, np.stack(10 * [found.vanilla[0]]))
        assert len(seen) == 2  # once an input
        for row in range(2):
            np.testing.assert_array_equal(seen[row], found.values[:13, row])
        np.testing.assert_allclose(found.stopping.thresholds, [values.mean() for values in seen])

    def test_an_input_that_is_done_waits_for_the_others(self):
        """A share is of an input, and the worst one counts."""
        easy = run(metfa.Until(undecided=0.2, threshold=1.0), inputs=INPUTS[:1])
        hard = run(metfa.Until(undecided=0.2, threshold=1.0), inputs=0.2 * INPUTS[1:])
        both = run(metfa.Until(undecided=0.2, threshold=1.0), inputs=np.stack([INPUTS[0], 0.2 * INPUTS[1]]))
        assert both.n_samples >= max(easy.n_samples, hard.n_samples)

    def test_budgets(self):
        few = run(metfa.Until(undecided=0.0, threshold=1.0, max_samples=25))
        assert (few.n_samples, few.stopping.reason) == (25, "max_samples")
        assert "(max_samples ended it)" in str(few.stopping)
        slow = run(metfa.Until(undecided=0.0, threshold=1.0, max_seconds=0.3), Explainer(seconds=0.02), batch_size=2)
        assert slow.stopping.reason == "max_seconds"
        assert 7 <= slow.n_samples < 60

    @pytest.mark.parametrize(
        ("settings", "told"),
        [
            ({"threshold": 1.0}, "; tested at alpha 0.05 by closed-e-bh, threshold 1"),
            ({"threshold": [1.0, 0.8], "alpha": 0.1}, "; tested at alpha 0.1 by closed-e-bh, thresholds 0.8 to 1"),
            ({"threshold": 1.0, "correction": None}, "; tested at alpha 0.05 a side, uncorrected, threshold 1"),
            ({"threshold": 0.12345, "correction": "bonferroni"}, " at alpha 0.05 by bonferroni, threshold 0.123"),
        ],
    )
    def test_terms_are_told(self, settings, told):
        found = run(metfa.Until(undecided=0.7, change=1.0, **settings))
        assert str(found.stopping).endswith(told)
        assert "; " not in str(run(RULES["change"]).stopping)

    def test_terms_of_one_input_are_its_own(self):
        summaries = run(RULES["two"]).summary([1.0, 0.8])
        assert [str(summary).partition("by closed-e-bh, ")[2].partition("\n")[0] for summary in summaries] == [
            "threshold 1",
            "threshold 0.8",
        ]

    def test_a_first_round_alone_tests_nothing(self):
        rule = metfa.Until(undecided=0.1, threshold=lambda values: values.mean(), max_seconds=0.01)
        found = run(rule, Explainer(seconds=0.01))
        assert (found.n_samples, found.stopping.tested) == (10, False)
        assert str(found.stopping).endswith("; nothing tested: the first 10 samples gave the threshold")
        with pytest.raises(ValueError, match="the first 10 samples gave the threshold, and then max_seconds ended"):
            found.stopping.terms  # noqa: B018 - a property
        np.testing.assert_array_equal(found.certified_radius(), found.certified_radius(0.0, correction="none"))
        more = found.concat(run(20, first_sample=10))
        tested = more.significance_map(np.array(found.stopping.thresholds), correction="closed-e-bh", split=10)
        np.testing.assert_array_equal(more.significance_map(), tested)

    def test_time_left_goes_by_the_samples_of_this_call(self):
        """Samples that an interrupted run had made took no time now."""
        rounds = RoundsUntil(metfa.Until(change=0.0, max_seconds=1000, max_samples=1000), 1)
        rounds._clock -= 900
        assert rounds.next(200, 20) == 202
        assert rounds.next(200, 200) == 222
        assert rounds.next(200, 0) == 240  # nothing is known of the time that a sample takes

    def test_first_round_and_growth(self):
        found = run(metfa.Until(undecided=0.0, threshold=1.0, first=20, growth=2, max_samples=150))
        assert [look.n_samples for look in found.stopping.looks] == [20, 40, 80, 150]
        default = run(metfa.Until(undecided=0.0, threshold=1.0, max_samples=8))
        assert [look.n_samples for look in default.stopping.looks] == [6, 8]  # fewer decide nothing

    def test_bar_tells_what_is_left(self, capsys):
        run(metfa.Until(undecided=0.4, threshold=1.0), progress=True)
        shown = capsys.readouterr().err
        shares = [float(share) for share in re.findall(r"undecided ([\d.]+)%", shown)]
        assert shares[0] > shares[-1]


class TestStore:
    @pytest.mark.slow
    def test_is_that_of_memory(self, tmp_path):
        for name, rule in RULES.items():
            kept, stored = run(rule), run(rule, store=tmp_path / name)
            np.testing.assert_array_equal(kept.values, stored.values)
            np.testing.assert_array_equal(kept.predictions, stored.predictions)
            assert timeless(kept.stopping) == timeless(stored.stopping)
            assert (tmp_path / name / "values.npy").stat().st_size < kept.values.nbytes + 500
            assert metfa.load(tmp_path / name).stopping == stored.stopping

    @pytest.mark.parametrize("stop_at", [5, 23, 60])
    def test_an_interrupted_run_goes_on(self, stop_at, tmp_path):
        rule = RULES["a rule's threshold"]
        with pytest.raises(KeyboardInterrupt):
            run(rule, Explainer(stop_at), store=tmp_path / "s", batch_size=3)
        explainer, at_once = Explainer(), Explainer()
        found, whole = run(rule, explainer, store=tmp_path / "s", batch_size=3), run(rule, at_once, batch_size=3)
        assert explainer.rows <= at_once.rows
        np.testing.assert_array_equal(found.values, whole.values)
        assert timeless(found.stopping) == timeless(whole.stopping)

    @pytest.mark.parametrize("after", ["_resize", "write_manifest"])
    def test_a_run_that_dies_at_its_end_goes_on(self, after, tmp_path, monkeypatch):
        rule, real = RULES["undecided"], folder.StoreSink._resize

        def dies(*arguments):
            if after == "_resize":
                real(*arguments)
            raise KeyboardInterrupt

        home = folder.StoreSink if after == "_resize" else folder
        with monkeypatch.context() as patched:
            patched.setattr(home, after, dies)
            with pytest.raises(KeyboardInterrupt):
                run(rule, store=tmp_path / "s")
        explainer = Explainer()
        found, whole = run(rule, explainer, store=tmp_path / "s"), run(rule)
        assert explainer.rows <= 16  # the clean inputs, and the probes
        np.testing.assert_array_equal(found.values, whole.values)

    def test_rules_of_one_name_share_samples_and_nothing_else(self, tmp_path, monkeypatch):
        """Two lambdas cannot be told apart: samples do not depend on the rule, and looks are of the one given."""

        def rule(height):
            return metfa.Until(undecided=0.4, max_samples=200, threshold=lambda values: height + 0 * values.mean())

        with pytest.raises(KeyboardInterrupt):
            run(rule(1.0), Explainer(60), store=tmp_path / "s", batch_size=3)
        other = run(rule(2.9), store=copied(tmp_path / "s", tmp_path / "other"))
        np.testing.assert_array_equal(other.values, run(rule(2.9)).values)
        assert timeless(other.stopping) == timeless(run(rule(2.9)).stopping)
        with monkeypatch.context() as patched:
            patched.setattr(folder, "write_manifest", lambda *_: run(rule(1.0), Explainer(0)))
            with pytest.raises(KeyboardInterrupt):  # another rule needs fewer, and dies when the rest is cut off
                run(rule(2.9), store=tmp_path / "s")
        found, whole = run(rule(1.0), store=tmp_path / "s"), run(rule(1.0))
        np.testing.assert_array_equal(found.values, whole.values)
        assert timeless(found.stopping) == timeless(whole.stopping)

    @pytest.mark.parametrize("kept", [-1, 10**6, 2.5, "many", None])
    def test_a_damaged_note_of_what_was_kept_is_refused(self, kept, tmp_path):
        with pytest.raises(KeyboardInterrupt):
            run(RULES["undecided"], Explainer(20), store=tmp_path / "s")
        noted = json.loads((tmp_path / "s" / "run.json").read_text())
        (tmp_path / "s" / "run.json").write_text(json.dumps({**noted, "kept": kept}))
        with pytest.raises(ValueError, match=r"run\.json is damaged and cannot be resumed: give another folder"):
            run(RULES["undecided"], store=tmp_path / "s")

    def test_a_fixed_number_is_another_call(self, tmp_path):
        with pytest.raises(KeyboardInterrupt):
            run(metfa.Until(undecided=0.0, threshold=1.0, max_samples=50), Explainer(20), store=tmp_path / "s")
        with pytest.raises(ValueError, match=r"unfinished run with until=Until\(.*this call has None"):
            run(50, store=tmp_path / "s")

    def test_a_large_budget_costs_nothing(self):
        found = run(metfa.Until(undecided=0.3, threshold=1.0, max_samples=1_000_000))
        assert found.stopping.reason == "reached"

    def test_another_rule_is_another_call(self, tmp_path):
        with pytest.raises(KeyboardInterrupt):
            run(RULES["undecided"], Explainer(20), store=tmp_path / "s")
        with pytest.raises(ValueError, match=r"until=Until\(.*undecided=0\.3"):
            run(metfa.Until(undecided=0.1, threshold=1.0), store=tmp_path / "s")

    def test_survives_saving(self, tmp_path):
        found = run(RULES["two"])
        folder = found.save(tmp_path / "saved")
        assert metfa.load(folder).stopping == found.stopping
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["stopping"]["held_out"] = manifest["stopping"].pop("split")  # as it was called once
        (folder / "manifest.json").write_text(json.dumps(manifest))
        assert metfa.load(folder).stopping == found.stopping

    @pytest.mark.parametrize(
        "change",
        [
            {"reason": "boredom"},
            {"correction": "bh"},
            {"looks": []},
            {"looks": [{"n_samples": -1, "undecided": 0.1, "width": None, "change": None, "seconds": 1.0}]},
            {"looks": 3},
            {"thresholds": [1.0]},
            {"thresholds": ["high", "low"]},
            {"split": 10_000},
            {"held_out": 10_000},
            {"thresholds": [float("nan"), 1.0]},
            {"thresholds": [10**400, 1.0]},
            {"asked": {}},
            {"asked": {"undecided": float("inf")}},
            {"alpha": 5},
            {"confidence_level": 7},
            {"looks": [{"n_samples": 9, "undecided": -4.0, "width": None, "change": None, "seconds": 1.0}]},
            {"looks": 2 * [{"n_samples": 7, "undecided": 0.1, "width": None, "change": None, "seconds": 1.0}]},
            {"asked": {"<b>": 1.0}},
            {"alpha": "0.05"},
            {"n_inputs": 1},
            {"n_inputs": 2.5},
            {"added": 1},
            {"added": -1},
        ],
    )
    def test_a_damaged_manifest_is_refused(self, change, tmp_path):
        folder = run(RULES["undecided"]).save(tmp_path / "saved")
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["stopping"] |= change
        (folder / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(ValueError, match=r"manifest\.json is damaged"):
            metfa.load(folder)


class TestStatements:
    def test_are_by_e_values(self):
        found = run(RULES["undecided"])
        result = found.test(1.0)
        assert isinstance(result, stats.SequentialTestResult)
        uncorrected = found.significance_map(1.0, correction="none")
        np.testing.assert_array_equal(uncorrected, result.sign * (result.pvalue <= 0.1).astype(np.int8))
        interval = found.confidence_interval()
        ranks = stats.sequence_ranks(found.n_samples)
        np.testing.assert_array_equal(interval.low, np.sort(found.values, axis=0)[ranks.low - 1])
        for correction in ("holm", "bh", "by"):
            with pytest.raises(ValueError, match=f"must hold whenever sampling stops, and '{correction}'"):
                found.significance_map(1.0, correction=correction)

    def test_intervals_of_a_fixed_number_are_refused(self):
        found = run(RULES["undecided"])
        n = found.n_samples
        for ranks in (stats.median_ranks(n, 0.9), stats.paper_ranks(n), stats.certified_ranks(n, 0.1)):
            with pytest.raises(ValueError, match=r"`ranks` are for .*beforehand.*write `confidence_interval\(0.9\)`"):
                found.confidence_interval(0.9, ranks=ranks)
            assert found.smoothed(ranks=ranks).shape == found.vanilla.shape
        with pytest.raises(ValueError, match=r"`mean_interval` is for .*write `confidence_interval\(0.9\)`"):
            found.mean_interval(0.9)
        with pytest.raises(TypeError, match="`ranks` must be a Ranks"):
            found.confidence_interval(ranks=(2, 9))
        fixed = run(n)
        assert fixed.mean_interval().confidence_level == 0.95
        assert fixed.confidence_interval(ranks=stats.paper_ranks(n)).confidence_level < 1

    @pytest.mark.parametrize("radius", [0, 0.1])
    def test_ranks_that_hold_at_any_time_are_taken(self, radius):
        found = run(RULES["undecided"])
        ranks = stats.certified_ranks(found.n_samples, radius, 0.9, sequential=True)
        interval = found.confidence_interval(ranks=ranks)
        np.testing.assert_array_equal(interval.low, np.sort(found.values, axis=0)[ranks.low - 1])
        np.testing.assert_array_equal(interval.high, np.sort(found.values, axis=0)[ranks.high - 1])

    @pytest.mark.parametrize(("correction", "tests"), [("bonferroni", 60), (None, 1)])
    def test_other_corrections(self, correction, tests):
        found = run(metfa.Until(undecided=0.6, threshold=1.0, correction=correction))
        result = found.test(1.0)
        decided = np.maximum(result.log_e_above, result.log_e_below) >= math.log(tests / 0.05)
        np.testing.assert_array_equal(found.significance_map(1.0) != 0, decided)
        assert (~decided).mean((1, 2)).max() == pytest.approx(found.stopping.looks[-1].undecided)

    def test_e_bh_is_for_fixed_numbers_too(self):
        fixed, result = run(40), stats.sequential_test(run(40).values, 1.0)
        above, below = (
            (stats.e_bh(logs.reshape(2, -1), axis=1) <= 0.05).reshape(2, 5, 12)
            for logs in (result.log_e_above, result.log_e_below)
        )
        expected = above.astype(int) - below
        np.testing.assert_array_equal(fixed.significance_map(1.0, correction="e-bh"), expected)
        with pytest.raises(TooFewSamplesError, match="got 5, at least 6 are needed"):
            run(5).significance_map(1.0, correction="e-bh")

    def test_figures_repeat_the_decisions(self):
        found = run(metfa.Until(undecided=0.4, max_samples=200, threshold=lambda values: values.mean()))
        share = (found.of_input(0).significance_map() == 0).mean()
        titles = [text.get_text() for text in found.plot().legends[0].get_texts()]
        assert f"undecided {share:.1%}" in titles
        rule = dataclasses.replace(RULES["undecided"], first=7)  # with fewer there is no interval
        row = metfa.explain(lambda x, target: WEIGHTS[0] * x, np.ones((1, 12)), 0, noise=NOISE, n_samples=rule, rng=0)
        legend = [text.get_text() for text in row.plot().legends[0].get_texts()]
        assert any(text.startswith("any-time 95.0% interval") for text in legend)

    @pytest.mark.slow
    def test_settings_fit_all_that_decides(self):
        found = run(metfa.Until(undecided=0.5, max_samples=200, threshold=lambda values: values.mean()))
        marks = found.significance_map()
        np.testing.assert_array_equal(marks, found.significance_map(**given_by(found.stopping)))
        assert [summary.undecided for summary in found.summary()] == (marks == 0).mean((1, 2)).tolist()
        assert found.plan(0.5).more_maps == 0
        np.testing.assert_array_equal(found.certified_radius() > 0, marks != 0)
        figure = metfa.plot.certificate(found, index=1)
        shown = "".join(text.get_text() for text in figure.findobj(Text))
        assert f"important, {(marks[1] == 1).mean():.1%}" in shown
        assert f"unimportant, {(marks[1] == -1).mean():.1%}" in shown

    @pytest.mark.slow
    def test_settings_fit_a_report(self, tmp_path):
        found = run(metfa.Until(undecided=0.5, max_samples=200, threshold=lambda values: values.mean()))
        given = found.report(tmp_path / "given.html", **given_by(found.stopping)).read_text("utf-8")
        known = found.report(tmp_path / "known.html").read_text("utf-8")
        told = [json.loads(re.search(r'id="data">(.*?)</script>', page)[1])["results"] for page in (given, known)]
        for one, other in zip(*told, strict=True):
            assert (one.pop("rule"), other.pop("rule")) == ("as given", "fixed by the first 10 samples")
            assert one == other
            assert one["split"] == 10

    def test_summary_says_so(self):
        found = run(RULES["undecided"])
        text = str(found.summary(1.0)[0])
        assert str(found.stopping) in text
        assert re.search(r"each holds its median with probability at least 95(\.00)?%, whenever sampling stops", text)
        assert re.search(r"false.*whenever sampling stops.*\(alpha 0.05 a side, closed-e-bh\)", text)
        plain = str(found.summary(1.0, correction="none")[0])
        assert "is called important falsely with probability at most 5%, whenever sampling stops; the same" in plain

    def test_more_samples_are_no_harm(self, tmp_path):
        found = run(RULES["undecided"])
        more = found.concat(run(10, first_sample=found.n_samples))
        assert more.stopping == dataclasses.replace(found.stopping, added=10)
        again = more.concat(run(5, first_sample=more.n_samples))
        assert str(again.stopping) == f"{found.stopping}; 15 more samples were added later"
        assert "10 more samples were added" in str(more.summary(1.0)[0])
        terms = {"alpha": 0.05, "correction": "closed-e-bh", "split": 0}
        np.testing.assert_array_equal(again.significance_map(), again.significance_map([1.0, 1.0], **terms))
        again.save(tmp_path / "saved")
        assert metfa.load(tmp_path / "saved").stopping == again.stopping
        assert isinstance(more.test(1.0), stats.SequentialTestResult)
        with pytest.raises(ValueError, match="begin with the rule and add a fixed number"):
            run(10, first_sample=found.n_samples).concat(found)
        later = run(RULES["undecided"], first_sample=10)
        with pytest.raises(ValueError, match="must hold later samples"):
            later.concat(run(10))

    def test_looks_are_of_the_worst_input(self):
        """Also on the result of one input alone, which says so."""
        found = run(metfa.Until(undecided=0.0, threshold=[1.0, 0.8], max_samples=25))
        shares = (found.significance_map() == 0).mean((1, 2))
        assert shares[0] != shares[1]
        for row in range(2):
            one = found.of_input(row).stopping
            assert one.looks[-1].undecided == pytest.approx(shares.max())
            assert f", the worst of 2 inputs: {shares.max():.1%} undecided" in str(one)
            assert one.thresholds == found.stopping.thresholds[row : row + 1]
        assert "worst" not in str(run(RULES["undecided"], inputs=INPUTS[:1]).stopping)

    @pytest.mark.slow
    def test_type_one_error_under_optional_stopping(self):
        """All medians lie at the threshold, and sampling stops as soon as anything is decided."""
        rng, wrong, runs = np.random.default_rng(0), 0, 150
        for seed in rng.integers(0, 2**31, runs).tolist():
            found = metfa.explain(
                lambda inputs, target: inputs,
                np.zeros((1, 20)),
                0,
                noise=metfa.noise.Uniform(1),
                n_samples=metfa.Until(undecided=0.999, threshold=0.0, max_samples=150, alpha=0.1),
                rng=seed,
            )
            wrong += bool((found.significance_map(0.0, alpha=0.1, correction="closed-e-bh") != 0).any())
        assert wrong / runs <= 0.1 + 3 * math.sqrt(0.1 * 0.9 / runs)


def first_feature_alone(x, rng):
    return x + rng.random() * (np.arange(x.size) == 0).reshape(x.shape)


class TestRefusals:
    @pytest.mark.parametrize(
        ("settings", "error", "message"),
        [
            ({}, ValueError, "`Until` needs a reason to stop: write `Until(undecided=0.05)`"),
            ({"undecided": 5}, ValueError, "`undecided` must be a share below 1, got 5.0: for 5 % write 0.05"),
            ({"undecided": -0.1}, ValueError, "`undecided` must be finite and not negative, got -0.1"),
            ({"undecided": "few"}, TypeError, "`undecided` must be a number, got str: 'few'"),
            ({"width": math.inf}, ValueError, "`width` must be finite"),
            ({"change": -1}, ValueError, "`change` must be finite and not negative"),
            (
                {"undecided": 0.1, "correction": "bh"},
                ValueError,
                "and 'bh' is for a number of samples that was fixed beforehand",
            ),
            ({"undecided": 0.1, "correction": "ebh"}, ValueError, "got 'ebh', did you mean 'e-bh'?"),
            ({"undecided": 0.1, "alpha": 1}, ValueError, "`alpha` must lie between 0 and 0.5"),
            ({"undecided": 0.1, "threshold": "jenks"}, TypeError, "write a rule such as metfa.stats.jenks_of_medians"),
            ({"undecided": 0.1, "threshold": math.nan}, ValueError, "`threshold` must be a number or a rule, got nan"),
            ({"undecided": 0.1, "threshold": ["high", "low"]}, TypeError, "got list: ['high', 'low']"),
            ({"undecided": 0.1, "growth": 1}, ValueError, "`growth` must be finite and above 1, got 1"),
            ({"undecided": 0.1, "max_samples": 0}, ValueError, "`max_samples` must be at least 1, got 0"),
            (
                {"undecided": 0.1, "max_samples": 10**9},
                ValueError,
                "`max_samples` must be at most 1,000,000, got 1,000",
            ),
            ({"undecided": 0.1, "max_seconds": 0}, ValueError, "`max_seconds` must be finite and above 0"),
            (
                {"undecided": 0.1, "first": 600},
                ValueError,
                "`first` must not exceed `max_samples`=500, got 600: write max_samples=600 or more, or a smaller",
            ),
            (
                {"undecided": 0.1, "threshold": True},
                TypeError,
                "a number or a rule, got bool: True",
            ),
            ({"width": 1, "threshold": 1.0}, ValueError, "Until(undecided=0.05, threshold=...), or leave it out"),
            ({"width": 1, "threshold": [1.0, 2.0]}, ValueError, "`threshold` is for `undecided`, which is not"),
            ({"change": 1, "alpha": 0.01}, ValueError, "`alpha` is for `undecided`, which is not asked for"),
            ({"width": 1, "correction": None}, ValueError, "`correction` is for `undecided`, which is not asked for"),
            ({"width": 1, "confidence_level": 1}, ValueError, "`confidence_level`"),
        ],
    )
    def test_settings(self, settings, error, message):
        with pytest.raises(error, match=re.escape(message)):
            metfa.Until(**settings)

    @pytest.mark.parametrize(
        ("rule", "message"),
        [
            (metfa.Until(undecided=0.1, threshold=[1.0, 2.0, 3.0]), "one for each of the 2 inputs, or a rule"),
            (
                metfa.Until(undecided=0.1, threshold=1.0, max_samples=5),
                "`max_samples`=5 can decide nothing.*=6 or more",
            ),
            (metfa.Until(undecided=0.1, max_samples=15), "`max_samples`=15 can decide nothing.*after 10 .*=16 or more"),
            (metfa.Until(undecided=0.1, first=500), "=500 can decide.*after 500 .*=506 or more, or a smaller `first`"),
            (metfa.Until(width=0.1, max_samples=6), "`max_samples`=6 .*=7 or more"),
        ],
    )
    def test_what_cannot_be_met(self, rule, message):
        explainer = Explainer()
        with pytest.raises(ValueError, match=message):
            run(rule, explainer)
        assert explainer.rows == 0

    def test_a_rule_that_finds_no_threshold_ends_it(self):
        explainer = Explainer()
        sample = run(metfa.Until(undecided=0.1, threshold=lambda values: math.nan), explainer)
        assert sample.stopping.reason == "no_threshold"
        assert "nothing can be decided, as the rule found no threshold" in str(sample.stopping)
        assert not sample.significance_map().any()
        assert sample.n_samples == 16  # as few as could have decided anything

    def test_an_input_without_a_threshold_leaves_the_others_alone(self, tmp_path):
        ramp = np.linspace(0, 1, 40)
        rule, nearly = metfa.Until(undecided=0.3), lambda x, rng: x * (1 + 1e-7 * rng.normal(size=x.shape))

        def explained(*levels):
            return metfa.explain(lambda x, target: x, np.stack(levels), 0, noise=nearly, n_samples=rule, rng=0)

        with pytest.warns(DegenerateAttributionsWarning, match="no feature of input 2 stands out"):
            sample = explained(ramp, ramp, np.ones(40))
        assert sample.stopping.reason == "reached"
        assert [summary.undecided for summary in sample.summary()] == [0, 0, 1]
        assert "the rule found no threshold for 1 of 3 inputs (the medians differ by" in str(sample.stopping)
        assert sample.of_input(2).stopping.reason == "no_threshold"
        np.testing.assert_array_equal(sample.significance_map()[:2], explained(ramp, ramp).significance_map())
        read = metfa.load(sample.save(tmp_path / "one"))
        assert (str(read.stopping), read.terms()) == (str(sample.stopping), sample.terms())
        assert read.summary()[2].nothing == sample.summary()[2].nothing == sample.stopping.nothing[2]

    def test_shares_are_compared_as_counts(self):
        sample = metfa.explain(
            lambda x, target: x, np.array([[0.0] * 3 + [5.0] * 7]), 0, noise=metfa.noise.Gaussian(0.1), rng=0,
            n_samples=metfa.Until(undecided=0.3, threshold=0, correction="none", alpha=0.001, max_samples=60),
        )  # fmt: skip
        assert (sample.stopping.reason, sample.stopping.looks[-1].undecided) == ("reached", 0.3)  # 1 - 0.7 is more

    def test_natural_breaks_take_enough_samples_to_ask_for_contrast(self):
        with pytest.warns(DegenerateAttributionsWarning, match="agree only by chance"):
            sample = metfa.explain(
                lambda x, target: x, np.ones((1, 40)), 0, noise=lambda x, rng: rng.random(40), rng=0,
                n_samples=metfa.Until(undecided=0.3, first=4),
            )  # fmt: skip
        assert (sample.stopping.reason, sample.stopping.split) == ("no_threshold", 5)

    @pytest.mark.parametrize("returned", ["high", "1.0", None, np.array([1.0, 2.0])])
    def test_a_rule_that_returns_no_number_fails_before_sampling(self, returned, tmp_path):
        explainer = Explainer()
        with pytest.raises(TypeError, match="a threshold rule must return one number, got"):
            run(metfa.Until(undecided=0.1, threshold=lambda _: returned), explainer, store=tmp_path / "s")
        assert explainer.rows <= 16  # the clean inputs, and the probes
        run(metfa.Until(undecided=0.4, threshold=1.0), store=tmp_path / "s")  # nothing was begun there

    def test_a_rule_may_need_samples_that_differ(self):
        def rule(values):
            spread = values.std(axis=0)
            if not spread.all():
                raise ZeroDivisionError
            return float((values.mean(axis=0) / spread).mean() * spread.mean())

        assert run(metfa.Until(undecided=0.6, threshold=rule, max_samples=200)).stopping.split == 10
        with pytest.raises(ZeroDivisionError):
            run(metfa.Until(undecided=0.6, threshold=rule, max_samples=200), noise=first_feature_alone)

    def test_inputs_that_the_noise_does_not_change_end_it(self):
        """They can never be decided, so asking on would cost `max_samples` maps."""
        for rule in (metfa.Until(undecided=0.05), metfa.Until(width=0.1), metfa.Until(undecided=0.05, threshold=1.0)):
            with pytest.warns(metfa.DegenerateAttributionsWarning, match="the noisy copies are all the same"):
                sample = run(rule, noise=metfa.noise.Uniform(0.0))
            assert sample.stopping.reason == "unmoved"
            assert len(sample.stopping.looks) == 1
            assert "(all samples are the same)" in str(sample.stopping)
            written = sample.stopping.written()
            assert Stopping.read(written, len(sample.target), sample.n_samples) == sample.stopping

    def test_criteria_have_names(self):
        with pytest.raises(TypeError, match="positional argument"):
            metfa.Until(0.05)
        assert list(inspect.signature(metfa.Until).parameters)[:2] == ["undecided", "width"]
        with pytest.raises(TypeError, match="undecide"):
            metfa.Until(undecide=0.05)
        rule = RULES["two"]
        assert pickle.loads(pickle.dumps(rule)) == dataclasses.replace(rule) == rule

    def test_no_number_of_samples(self):
        with pytest.raises(TypeError, match="`n_samples` must be an integer, got str: 'enough'"):
            run("enough")


def copied(folder, to):
    shutil.copytree(folder, to)
    return to


def criteria_of(look, rule):
    return [(name, getattr(look, name)) for name in rule.asked]


def timeless(stopping):
    return [(look.n_samples, look.undecided, look.width, look.change) for look in stopping.looks], stopping.thresholds


class TestThresholdThatIsNotGiven:
    """0 for signed attributions, natural breaks for others, as `AttributionSample.terms` has it."""

    RULE = metfa.Until(undecided=0.5, max_samples=60)

    def stopping_of(self, explainer):
        return metfa.explain(explainer, np.ones((2, 8)), 0, noise=NOISE, n_samples=self.RULE, rng=0).stopping

    @pytest.mark.parametrize("signed", [True, False])
    def test_the_clean_maps_decide_and_cost_no_samples(self, signed):
        weights = np.linspace(-1, 1, 8)
        stopping = self.stopping_of(lambda x, target: x * weights if signed else np.abs(x * weights))
        assert stopping.split == (0 if signed else 10)
        assert (stopping.thresholds == (0.0, 0.0)) == signed
        assert min(stopping.thresholds) >= 0

    def test_samples_that_show_signs_where_the_clean_map_has_none_are_not_tested(self):
        stopping = self.stopping_of(lambda x, target: (x - 1) * np.linspace(1, 2, 8))
        assert (stopping.split, stopping.thresholds) == (10, (0.0, 0.0))

    def test_the_e_values_of_a_true_null_are_at_most_1_on_average_given_the_threshold(self):
        """Exactly, over all outcomes of five samples in the first round and eight later ones.

        The median of the first feature is 0. The second one is -1 in a third of the samples in which the first is 1,
        so that the sign that the first round sees goes with large scores of the first feature.
        """
        first, later, law = 5, 8, {(0.0, 0.0): 1 / 2, (1.0, 0.0): 1 / 3, (1.0, -1.0): 1 / 6}
        rule = metfa.Until(undecided=0.5, first=first, max_samples=first + later)
        expected = chosen = 0.0
        for counts in itertools.product(range(first + 1), repeat=3):
            if sum(counts) != first or not counts[2]:  # without a -1 there is no sign
                continue
            chance = math.factorial(first) * math.prod(
                share**count / math.factorial(count) for share, count in zip(law.values(), counts, strict=True)
            )
            chosen += chance
            begun = np.repeat(list(law), counts, axis=0)
            for ones in range(later + 1):
                values = np.concatenate([begun, np.outer(np.arange(later) < ones, [1.0, 0.0])])[:, None]
                rounds = RoundsUntil(rule, 1)
                seen = SeenMaps(lambda start, stop, values=values: values[start:stop], np.zeros((1, 2)), 1.0)
                rounds.check(seen, "jenks_of_medians")
                rounds.look(seen, first, [])
                rounds.look(seen, first + later, [])
                stopping = rounds.stopping()
                assert stopping.thresholds == (0.0,)
                tested = values[stopping.split :, 0, 0]
                e_value = np.exp(stats.sequential_test(tested, 0).log_e_above)
                expected += chance * math.comb(later, ones) / 2**later * e_value
        assert expected / chosen == pytest.approx(1)  # 1.2 if the samples of the first round were tested too

    def test_an_explainer_that_says_so_needs_no_samples_for_it(self):
        def explainer(inputs, target):
            return np.abs(inputs * np.linspace(0.1, 1, 8))

        explainer.signed = True
        stopping = self.stopping_of(explainer)
        assert (stopping.split, stopping.thresholds) == (0, (0.0, 0.0))
        explainer.signed = False
        assert self.stopping_of(explainer).split == 10


def test_the_cost_of_a_map_is_that_of_all_that_were_made():
    """The first batch is as large as later ones may be, so that rows that depend on each other are seen."""
    made = []

    def explainer(inputs, target):
        made.append(len(inputs))
        return np.abs(inputs) + np.array([0, 9])

    rule = metfa.Until(undecided=0.5, max_samples=500)
    sample = metfa.explain(explainer, np.ones((2, 2)), 0, noise=metfa.noise.Uniform(0.1), n_samples=rule, rng=0)
    assert sample.n_samples < 50
    assert sample.provenance["maps_made"] == max(made) == 200
