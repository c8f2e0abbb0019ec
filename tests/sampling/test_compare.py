"""Two explainers on the same noisy copies: the numbers of two calls, whatever the batch size, order, store or rule."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import torch

import metfa
from metfa.sampling import folder as store
from metfa.sampling import pair_folder

INPUTS = np.random.default_rng(0).normal(size=(3, 4)) + 3
OLD, NEW = np.array([3.0, 0.5, -2.0, 1.0]), np.array([3.0, 0.5, -2.0, 5.0])
GAUSSIAN = metfa.noise.Gaussian(0.1)
FIXED = {"noise": GAUSSIAN, "n_samples": 12, "rng": 0}
HALVES = metfa.Regions(np.array([0, 0, 1, 1]))


class Linear:
    """Inputs times weights, with two scores; counts its rows and may fail at one of them."""

    rows_independent = True

    def __init__(self, weights, stop_at=None):
        self.weights, self.stop_at, self.rows = weights, stop_at, 0

    def __repr__(self):
        return f"Linear({self.weights})"

    def model(self, inputs):
        return (inputs * self.weights).sum(1, keepdims=True) * np.array([1.0, -1.0])

    def __call__(self, inputs, target):
        self.rows += len(inputs)
        if self.stop_at is not None and self.rows > self.stop_at:
            raise KeyboardInterrupt
        return inputs * self.weights * (1 - 2 * np.asarray(target))[:, None]


class Masks:
    """The same under random masks, drawn from one generator a row."""

    rows_independent = True

    def __init__(self, weights):
        self.weights = weights

    def __call__(self, inputs, target, rngs):
        return inputs * self.weights + np.stack(
            [rng.normal(size=row.shape) for row, rng in zip(inputs, rngs, strict=True)]
        )


def compared(before=OLD, after=NEW, inputs=INPUTS, target=0, **settings):
    return metfa.compare(Linear(before), Linear(after), inputs, target, **{**FIXED, **settings})


def explained(weights, inputs=INPUTS, target=0, **settings):
    return metfa.explain(Linear(weights), inputs, target, **{**FIXED, **settings})


def same(found, expected):
    """All numbers of two comparisons, and of their parts, are equal bit for bit."""
    for one, other in zip((found, *found.pair), (expected, *expected.pair), strict=True):
        for name in ("values", "vanilla", "scores", "predictions"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name
        for name in ("target", "sample_ids", "input_names", "feature_names"):
            assert getattr(one, name) == getattr(other, name), name
        assert (one.stopping is None) == (other.stopping is None)
        if one.stopping is not None:
            looks = [[(look.n_samples, look.undecided, look.width) for look in s.stopping.looks] for s in (one, other)]
            assert looks[0] == looks[1]
            assert one.stopping.noun == other.stopping.noun
            assert one.stopping.thresholds == other.stopping.thresholds
    assert found.terms() == expected.terms()


class TestNumbers:
    @pytest.mark.parametrize("scale", ["raw", "mean", "share", "rank"])
    def test_they_are_those_of_two_calls(self, scale):
        same(compared(scale=scale), metfa.compare(explained(OLD), explained(NEW), scale=scale))

    def test_both_get_the_class_that_before_predicts(self):
        found = compared(OLD, -NEW, target=None)
        assert found.target == found.pair[0].target == found.pair[1].target == (0, 0, 0)
        assert (found.pair[1].scores.argmax(1) == 1).all()
        same(found, metfa.compare(explained(OLD), explained(-NEW)))

    def test_a_target_for_each_row(self):
        same(compared(target=[0, 1, 0]), metfa.compare(*(explained(w, target=[0, 1, 0]) for w in (OLD, NEW))))

    def test_a_target_that_is_a_mask(self):
        def of_mask(weight):
            return lambda inputs, target: np.stack(
                [weight * row * mask for row, mask in zip(inputs, target, strict=True)]
            )

        masks = list(np.eye(4)[:3])
        found = metfa.compare(of_mask(1), of_mask(2), INPUTS, masks, **FIXED)
        assert np.array_equal(found.values.any((0, 1)), [True, True, True, False])
        assert all(np.array_equal(one, mask) for one, mask in zip(found.target, masks, strict=True))

    def test_the_names_are_in_the_words(self):
        found = compared(names=("v1", "v2"))
        assert found.terms().sides == ("more in v2 than in v1", "less in v2 than in v1")
        assert compared().terms().sides == ("more than before", "less than before")

    def test_the_changed_feature_alone_is_found(self):
        found = compared(n_samples=20)
        assert found.significance_map(correction="holm").tolist() == [[0, 0, 0, 1]] * 3
        assert metfa.compare(*reversed(found.pair)).significance_map().tolist() == [[0, 0, 0, -1]] * 3

    def test_the_batch_size_changes_nothing(self):
        same(compared(batch_size=1), compared(batch_size=7))

    def test_the_order_of_inputs_changes_nothing(self):
        found, turned = compared(), compared(inputs=INPUTS[::-1])
        assert np.array_equal(found.values, turned.values[:, ::-1])
        same(metfa.compare(found.pair[0], turned.pair[1]), found)

    def test_later_samples_join_earlier_ones(self):
        parts = [compared(n_samples=n, run=metfa.Run(first_sample=first)) for n, first in ((5, 0), (7, 5))]
        joined = parts[0].concat(parts[1])
        assert np.array_equal(joined.values, compared().values)
        assert np.array_equal(joined.values, joined.pair[1].values - joined.pair[0].values)

    def test_a_dict_of_arrays(self):
        def by(weight):
            return lambda inputs, target: inputs["a"] * weight + inputs["b"]

        inputs, noise = {"a": INPUTS, "b": INPUTS[::-1]}, {"a": GAUSSIAN, "b": None}
        found = metfa.compare(by(1.0), by(2.0), inputs, 0, noise=noise, n_samples=5, rng=0)
        calls = [metfa.explain(by(w), inputs, 0, noise=noise, n_samples=5, rng=0) for w in (1.0, 2.0)]
        assert np.array_equal(found.values, calls[1].values - calls[0].values)

    def test_float16_is_subtracted_in_float32(self):
        half = INPUTS.astype(np.float16)
        found = metfa.compare(*(lambda x, target, w=w: x * np.float16(w) for w in (1, 2)), half, 0, **FIXED)
        before, after = found.pair
        assert before.values.dtype == np.float16
        assert found.values.dtype == np.float32
        assert np.array_equal(found.values, after.values.astype(np.float32) - before.values.astype(np.float32))


class TestDraws:
    @pytest.mark.parametrize("noise", [None, GAUSSIAN])
    def test_shared_ones_are_the_same_masks(self, noise):
        found = metfa.compare(Masks(OLD), Masks(NEW), INPUTS, 0, **{**FIXED, "noise": noise})
        copies = [metfa.explain(Linear(w), INPUTS, 0, **{**FIXED, "noise": noise or GAUSSIAN}) for w in (OLD, NEW)]
        if noise is not None:
            assert np.allclose(found.values, copies[1].values - copies[0].values)
        assert np.allclose(found.values[..., :3], 0)
        assert np.allclose(found.vanilla, INPUTS * (NEW - OLD))
        assert found.pair[1].provenance.get("draws") is None

    def test_own_ones_share_the_noise_alone(self):
        settings = {**FIXED, "draws": "own"}
        found = metfa.compare(Masks(OLD), Masks(OLD), INPUTS, 0, **settings)
        assert np.array_equal(found.pair[0].values, metfa.explain(Masks(OLD), INPUTS, 0, **FIXED).values)
        assert (found.values != 0).all()
        assert (found.vanilla != 0).all()
        assert found.pair[1].provenance["draws"] == "own"
        without = metfa.compare(Linear(OLD), Linear(NEW), INPUTS, 0, **settings)
        assert np.array_equal(without.values, compared().values)

    def test_a_change_is_found_among_own_draws_and_nothing_else_is(self):
        settings = {**FIXED, "n_samples": 50, "draws": "own"}
        found = metfa.compare(Masks(OLD), Masks(NEW), INPUTS, 0, **settings)
        assert found.significance_map(correction="holm").tolist() == [[0, 0, 0, 1]] * 3

    def test_a_store_of_other_draws_is_not_resumed(self, tmp_path):
        run = metfa.Run(store=tmp_path / "s")
        metfa.compare(Masks(OLD), Masks(OLD), INPUTS, 0, **FIXED, draws="own", run=run)
        with pytest.raises(FileExistsError, match="draws=own, this call has None"):
            metfa.compare(Masks(OLD), Masks(OLD), INPUTS, 0, **FIXED, run=run)
        with pytest.raises(FileExistsError, match="draws=own, this call has None"):
            metfa.explain(Masks(OLD), INPUTS, 0, **FIXED, run=metfa.Run(store=tmp_path / "s" / "after"))

    @pytest.mark.slow
    def test_an_explainer_against_itself_is_wrong_at_the_exact_level(self):
        """2,000 pairs of two features, each marked with the probability 2/32: all five differences on one side."""

        def noise_alone(inputs, target, rngs):
            return np.stack([rng.standard_cauchy(2) for rng in rngs])

        noise_alone.rows_independent = True
        inputs = np.arange(2000.0)[:, None]
        settings = {"noise": None, "n_samples": 5, "batch_size": 500, "rng": 0}
        found = metfa.compare(noise_alone, noise_alone, inputs, 0, draws="own", **settings)
        marks = found.significance_map()
        wrong, exact = int((marks != 0).sum()), 2 / 32
        assert scipy.stats.binomtest(wrong, marks.size, exact).pvalue > 0.01
        assert scipy.stats.binomtest(int((marks == 1).sum()), wrong, 0.5).pvalue > 0.01
        shared = metfa.compare(noise_alone, noise_alone, inputs[:20], 0, **settings)
        assert not shared.values.any()


class TestUntil:
    RULE = metfa.Until(undecided=0.5, correction=None, max_samples=200)

    def test_the_looks_are_at_the_differences(self):
        """By the e-values of NumPy's counts: three of four features never differ, so that 75 % stay undecided."""
        found = compared(n_samples=metfa.Until(undecided=0.75, correction="bonferroni", max_samples=100))
        stopping = found.stopping
        assert stopping.reason == "reached"
        assert stopping.thresholds == (0.0, 0.0, 0.0)
        for look in stopping.looks:
            values = compared(n_samples=look.n_samples).values
            log_e = metfa.stats.log_e_values((values > 0).sum(0), look.n_samples)
            marked = log_e[..., 3] >= np.log(4 / 0.05)
            assert look.undecided == (0.75 if marked.all() else 1.0)
        fewer = compared(n_samples=stopping.looks[-2].n_samples)
        assert np.array_equal(fewer.values, found.values[: fewer.n_samples])
        undecided = (found.significance_map() == 0).mean(axis=1)
        assert undecided.max() == stopping.looks[-1].undecided

    @pytest.mark.parametrize("scale", ["raw", "share"])
    @pytest.mark.parametrize("rule", [{"width": 0.2}, {"change": 0.01}, {"undecided": 0.5, "width": 0.2}])
    def test_widths_and_changes_are_those_of_scaled_differences(self, rule, scale):
        found = compared(-OLD, NEW, n_samples=metfa.Until(**rule, max_samples=60), scale=scale)
        last, n = found.stopping.looks[-1], found.n_samples
        whole = metfa.compare(explained(-OLD, n_samples=n), explained(NEW, n_samples=n), scale=scale)
        assert np.array_equal(found.values, whole.values)
        if last.width is not None:
            interval = found.confidence_interval(0.95)
            assert last.width == pytest.approx((interval.high - interval.low).mean(axis=1).max())

    def test_regions_are_pooled_in_each_part_and_then_subtracted(self):
        largest = metfa.Regions(np.array([0, 0, 1, 1]), how="max")
        rule = metfa.Until(undecided=0.5, over=largest, max_samples=60)
        found = compared(OLD, np.array([0.0, 0.5, -2.0, 5.0]), n_samples=rule)
        assert found.feature_shape == (4,)
        assert found.stopping.over == largest
        pooled = found.over()
        before, after = (part.over(largest) for part in found.pair)
        assert np.array_equal(pooled.values, after.values - before.values)
        assert pooled.stopping.noun == "region"
        assert (pooled.significance_map() == 0).mean(axis=1).max() == found.stopping.looks[-1].undecided
        assert np.array_equal(pooled.significance_map(), [[-1, 1]] * 3)

    def test_differences_from_the_rest(self):
        rule = metfa.Until(undecided=0.0, over=metfa.Regions(HALVES.masks, against="rest"), max_samples=60)
        found = compared(n_samples=rule)
        assert found.stopping.reason == "reached"
        assert np.array_equal(found.over().significance_map(), [[-1, 1]] * 3)

    def test_parts_are_decided_as_results_of_any_time(self):
        found = compared(n_samples=self.RULE)
        for part in found.pair:
            assert part.any_time
            assert part.stopping.thresholds is None
            assert part.stopping.looks == found.stopping.looks
            assert "differences undecided" in str(part.stopping)
            with pytest.raises(ValueError, match="holm"):
                part.significance_map(correction="holm")

    def test_names_of_what_was_looked_at_can_be_saved(self, tmp_path):
        found = compared(n_samples=self.RULE, scale="rank")
        found.save(tmp_path / "scaled")
        same(metfa.load(tmp_path / "scaled"), found)
        again = metfa.compare(*compared(n_samples=self.RULE).pair, scale="share")
        again.save(tmp_path / "again")
        assert metfa.load(tmp_path / "again").stopping.noun == "difference"

    def test_a_rule_that_can_decide_nothing_is_refused_before_the_model_is_asked(self):
        explainer = Linear(OLD)
        with pytest.raises(metfa.TooFewSamplesError, match="max_samples"):
            metfa.compare(explainer, explainer, INPUTS, 0, noise=GAUSSIAN,
                          n_samples=metfa.Until(undecided=0.1, max_samples=3))  # fmt: skip
        assert explainer.rows == 0


RULES = {
    "fixed": 12,
    "until": metfa.Until(undecided=0.8, correction=None, max_samples=40),
    "over": metfa.Until(undecided=0.5, over=HALVES, max_samples=40),
}


def stored(folder, before=None, after=None, rule="fixed", **settings):
    explainers = [Linear(weights) if given is None else given for given, weights in ((before, OLD), (after, NEW))]
    given = {**FIXED, "n_samples": RULES[rule], "batch_size": 4, **settings}
    return metfa.compare(*explainers, INPUTS, 0, **given, run=metfa.Run(store=folder))


class TestStore:
    @pytest.mark.parametrize("rule", RULES)
    @pytest.mark.parametrize("scale", ["raw", "rank"])
    def test_the_folder_is_a_comparison_and_its_parts_are_results(self, rule, scale, tmp_path):
        found = stored(tmp_path / "s", rule=rule, scale=scale)
        expected = compared(n_samples=RULES[rule], scale=scale)
        same(found, expected)
        same(metfa.load(tmp_path / "s"), expected)
        names = {path.name for path in (tmp_path / "s").iterdir()} - {"over_masks.npy"}
        assert {name for name in names if not name.startswith("over")} == {"before", "after", "manifest.json"}
        for part, weights in (("before", OLD), ("after", NEW)):
            raw = explained(weights, n_samples=found.n_samples)
            assert np.array_equal(metfa.load(tmp_path / "s" / part).values, raw.values)

    def test_a_repeated_call_returns_at_once(self, tmp_path):
        found = stored(tmp_path / "s", rule="over")
        again = Linear(OLD), Linear(NEW)
        same(stored(tmp_path / "s", *again, rule="over"), found)
        assert [one.rows for one in again] == [3, 3]  # the clean maps

    @pytest.mark.parametrize(("rule", "rng"), [("fixed", 0), ("until", None), ("over", 0)])
    @pytest.mark.parametrize(
        ("name", "row"), [("before", 12), ("after", 12), ("before", 20), ("after", 9), ("after", 2)]
    )
    def test_an_interrupted_run_resumes(self, name, row, rule, rng, tmp_path):
        weights = OLD if name == "before" else NEW
        with pytest.raises(KeyboardInterrupt):
            stored(tmp_path / "s", **{name: Linear(weights, stop_at=row)}, rule=rule, rng=rng)
        if (tmp_path / "s" / "run.json").exists():
            with pytest.raises(ValueError, match="unfinished run: to resume it, repeat the call"):
                metfa.load(tmp_path / "s")
        again = Linear(OLD), Linear(NEW)
        found = stored(tmp_path / "s", *again, rule=rule, rng=rng)
        root = int(found.provenance["rng"], 16)
        same(found, compared(n_samples=RULES[rule], rng=root))
        if row == 20:  # some maps of both were kept
            assert sum(one.rows for one in again) < 2 * (3 + 1 + 3 * found.n_samples)

    @pytest.mark.parametrize(("rule", "rng"), [("fixed", 0), ("until", None), ("over", 0)])
    @pytest.mark.parametrize(
        ("owner", "name", "call"),
        [
            (pair_folder.PairFolder, "begin", 1), (store.StoreSink, "open", 1), (store.StoreSink, "open", 2),
            (pair_folder.PairFolder, "end", 1), (store.StoreSink, "result", 1), (store.StoreSink, "result", 2),
            (store, "write_manifest", 1), (store, "write_manifest", 2), (pair_folder.PairFolder, "finish", 1),
            (pair_folder, "write_comparison", 1), (Path, "unlink", 1),
        ],
    )  # fmt: skip
    def test_a_run_that_ends_between_two_steps_resumes(self, owner, name, call, rule, rng, tmp_path, monkeypatch):
        real, calls = getattr(owner, name), []

        def ends(*args, **kwargs):
            calls.append(args)
            if len(calls) == call:
                raise KeyboardInterrupt
            return real(*args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, ends)
            with pytest.raises(KeyboardInterrupt):
                stored(tmp_path / "s", rule=rule, rng=rng, scale="share")
        found = stored(tmp_path / "s", rule=rule, rng=rng, scale="share")
        same(found, compared(n_samples=RULES[rule], rng=int(found.provenance["rng"], 16), scale="share"))
        same(metfa.load(tmp_path / "s"), found)
        assert not (tmp_path / "s" / "run.json").exists()

    def test_a_budget_of_seconds_that_has_ended_is_not_begun_anew(self, tmp_path, monkeypatch):
        rule = metfa.Until(undecided=0.1, max_seconds=1e-6, max_samples=500)
        with monkeypatch.context() as patch:
            patch.setattr(pair_folder.PairFolder, "finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                stored(tmp_path / "s", n_samples=rule)
        n = metfa.load(tmp_path / "s" / "before").n_samples
        found = stored(tmp_path / "s", n_samples=rule)
        assert found.n_samples == n < 500
        assert found.stopping.reason == "max_seconds"

    @pytest.mark.parametrize(
        ("settings", "says"),
        [
            ({"scale": "rank"}, "finished comparison with scale=raw, this call has rank: .*metfa.compare"),
            ({"names": ["a", "b"]}, "finished comparison with names=None, this call has"),
            ({"rng": 1}, "finished result with rng=0x0, this call has 0x1"),
            ({"n_samples": 13}, "finished result with n_samples=12, this call has 13"),
            ({"after": Linear(OLD)}, r"finished result with explainer=Linear\(\[.*5.*\]\)"),
        ],
    )
    def test_a_finished_one_of_another_call_is_named(self, settings, says, tmp_path):
        stored(tmp_path / "s")
        with pytest.raises(FileExistsError, match=says):
            stored(tmp_path / "s", **settings)
        same(stored(tmp_path / "s"), compared())

    def test_the_parts_of_a_finished_one_can_be_compared_on_other_terms(self, tmp_path):
        stored(tmp_path / "s")
        with pytest.raises(FileExistsError) as error:
            stored(tmp_path / "s", scale="rank")
        advice = re.search(r"`(metfa\.compare\(.*), \.\.\.\)`", str(error.value))[1]
        same(eval(f"{advice}, scale='rank')"), compared(scale="rank"))

    def test_an_unfinished_one_of_another_call_is_named(self, tmp_path):
        with pytest.raises(KeyboardInterrupt):
            stored(tmp_path / "s", after=Linear(NEW, stop_at=12))
        with pytest.raises(ValueError, match="unfinished comparison with scale=raw, this call has share"):
            stored(tmp_path / "s", scale="share")
        with pytest.raises(ValueError, match="unfinished run with n_samples=12, this call has 40"):
            stored(tmp_path / "s", rule="until")

    def test_a_folder_that_holds_something_else_is_refused(self, tmp_path):
        explained(OLD, run=metfa.Run(store=tmp_path / "one"))
        with pytest.raises(FileExistsError, match="one explainer, and no comparison"):
            stored(tmp_path / "one")
        (tmp_path / "files").mkdir()
        (tmp_path / "files" / "mine.txt").write_text("mine")
        with pytest.raises(FileExistsError, match="holds files, but no unfinished comparison"):
            stored(tmp_path / "files")
        explained(OLD, run=metfa.Run(store=tmp_path / "parts" / "before"))
        with pytest.raises(FileExistsError, match="holds files, but no unfinished comparison"):
            stored(tmp_path / "parts")
        stored(tmp_path / "pair")
        with pytest.raises(FileExistsError, match="holds a finished result with explainer="):
            explained(OLD, run=metfa.Run(store=tmp_path / "pair"))
        (tmp_path / "link").symlink_to(tmp_path / "new", target_is_directory=True)
        with pytest.raises(ValueError, match="is a link"):
            stored(tmp_path / "link")
        (tmp_path / "file").write_text("")
        with pytest.raises(FileExistsError, match="is a file"):
            stored(tmp_path / "file")

    def test_an_unfinished_run_of_one_explainer_is_refused(self, tmp_path):
        with pytest.raises(KeyboardInterrupt):
            metfa.explain(
                Linear(OLD, stop_at=20), INPUTS, 0, **FIXED, batch_size=10, run=metfa.Run(store=tmp_path / "s")
            )
        with pytest.raises(FileExistsError, match="unfinished run of one explainer, and no comparison"):
            stored(tmp_path / "s")

    def test_an_unfinished_comparison_is_none_of_one_explainer(self, tmp_path):
        with pytest.raises(KeyboardInterrupt):
            stored(tmp_path / "s", after=Linear(NEW, stop_at=12))
        with pytest.raises(FileExistsError, match=r"unfinished comparison: .*repeat the call of `metfa\.compare`"):
            explained(OLD, run=metfa.Run(store=tmp_path / "s"))
        for folder in ("s", "s/before", "s/after"):  # the call that makes the parts is that of the whole
            with pytest.raises(ValueError, match=rf"unfinished run: .*store='{tmp_path / 's'}'"):
                metfa.load(tmp_path / folder)

    def test_a_finished_one_whose_part_is_gone_is_incomplete(self, tmp_path):
        stored(tmp_path / "s")
        (tmp_path / "s" / "after").rename(tmp_path / "gone")
        with pytest.raises(ValueError, match="after is missing or unfinished"):
            stored(tmp_path / "s")

    def test_how_it_ended_may_be_damaged(self, tmp_path, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(pair_folder.PairFolder, "finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                stored(tmp_path / "s", rule="until")
        path = tmp_path / "s" / "run.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "ended": {"n_samples": 3}}))
        with pytest.raises(ValueError, match=r"run.json is damaged"):
            stored(tmp_path / "s", rule="until")

    def test_two_calls_do_not_write_into_one_folder(self, tmp_path):
        def meanwhile(inputs, target):
            with pytest.raises(BlockingIOError, match="is being written by another call"):
                stored(tmp_path / "s")
            return inputs

        metfa.compare(meanwhile, Linear(NEW), INPUTS, 0, **FIXED, run=metfa.Run(store=tmp_path / "s"))

    @pytest.mark.slow
    def test_a_killed_run_resumes_wherever_it_was_killed(self):
        script = Path(__file__).with_name("kill_compare.py")
        done = subprocess.run(
            [sys.executable, str(script), "40"], capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["wrong"] == []
        assert found["rounds"] == 40


class TestRefused:
    @pytest.mark.parametrize(
        ("arguments", "settings", "says"),
        [
            ((None, Linear(NEW), INPUTS), {}, "`before` must be callable, got NoneType"),
            ((Linear(OLD), torch.nn.Linear(4, 2), INPUTS), {}, "`after` must be an explainer, got the model itself"),
            ((Linear(OLD), Linear(NEW)), {}, "`inputs` is missing"),
            ((Linear(OLD), Linear(NEW), INPUTS), {"scale": "percent"}, "`scale` must be one of 'raw', 'mean'"),
            ((Linear(OLD), Linear(NEW), INPUTS), {"draws": "mine"}, "`draws` must be one of 'shared', 'own'"),
            ((Linear(OLD), Linear(NEW), INPUTS), {"names": ["one"]}, "`names` must be two different texts"),
            ((Linear(OLD), Linear(NEW), INPUTS), {"names": ["one", "one"]}, "`names` must be two different texts"),
            ((Linear(OLD), Linear(NEW), INPUTS, 0), {"noise": None}, "`before` takes no `rngs`"),
            ((Masks(OLD), Linear(NEW), INPUTS, 0), {"noise": None}, "`after` takes no `rngs`"),
            ((Linear(OLD), Linear(NEW), INPUTS, [0, 1]), {}, "one entry for each of the 3 inputs"),
            ((Linear(OLD), Linear(NEW), INPUTS), {"run": {"store": "s"}}, "`run` must be a metfa.Run"),
            ((Linear(OLD), lambda x: x, INPUTS), {}, "`after` must be a function"),
        ],
    )
    def test_bad_arguments_before_a_model_is_asked(self, arguments, settings, says):
        for one in arguments:
            if isinstance(one, Linear):
                one.rows = 0
        with pytest.raises((TypeError, ValueError), match=says):
            metfa.compare(*arguments, **{**FIXED, **settings})
        assert not any(one.rows for one in arguments if isinstance(one, Linear))

    @pytest.mark.parametrize(("row", "where"), [(2, "the clean input 2"), (20, "input 2, sample 5")])
    def test_errors_name_the_explainer(self, row, where):
        class Nan(Linear):
            def __call__(self, inputs, target):
                maps = super().__call__(inputs, target)
                return np.where(np.arange(self.rows - len(inputs), self.rows)[:, None] == row, np.nan, maps)

        settings = {**FIXED, "batch_size": 1}
        for pair, name in (((Nan(OLD), Linear(NEW)), "before"), ((Linear(OLD), Nan(NEW)), "after")):
            with pytest.raises(ValueError, match=f"`{name}` returned NaN or infinity for {where}"):
                metfa.compare(*pair, INPUTS, 0, **settings)

    def test_one_result_and_one_explainer(self):
        with pytest.raises(TypeError, match="got one result, and `after`=Linear"):
            metfa.compare(explained(OLD), Linear(NEW))
        with pytest.raises(TypeError, match="got one result, and `before`=Linear"):
            metfa.compare(Linear(OLD), explained(NEW))

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("inputs", INPUTS), ("target", 0), ("noise", GAUSSIAN), ("n_samples", 20), ("draws", "own"),
            ("batch_size", 4), ("rng", 0), ("run", metfa.Run()), ("n_samples", metfa.Until(width=1.0)),
        ],
    )  # fmt: skip
    def test_two_results_and_what_is_for_explainers(self, name, value):
        with pytest.raises(ValueError, match=f"`{name}` is for explainers, and these are two results"):
            metfa.compare(explained(OLD), explained(NEW), **{name: value})

    def test_results_of_other_copies(self):
        with pytest.raises(ValueError, match="must have the same seed"):
            metfa.compare(explained(OLD), explained(NEW, rng=1))

    def test_maps_of_two_shapes_before_anything_is_sampled(self):
        wide = Linear(OLD)
        with pytest.raises(ValueError, match="must have the same features, got maps of"):
            metfa.compare(wide, lambda x, target: x[:, :2], INPUTS, 0, **{**FIXED, "batch_size": 1})
        assert wide.rows == 3  # the clean maps

    def test_a_clean_map_of_zeros_has_no_share(self):
        with pytest.raises(ValueError, match="is 0 everywhere"):
            compared(after=np.zeros(4), scale="share")

    def test_regions_of_another_shape_before_anything_is_sampled(self):
        before = Linear(OLD)
        rule = metfa.Until(undecided=0.5, over=np.array([0, 0, 1]), max_samples=40)
        with pytest.raises(ValueError, match="shape"):
            metfa.compare(before, Linear(NEW), INPUTS, 0, **{**FIXED, "n_samples": rule, "batch_size": 1})
        assert before.rows == 3

    def test_a_class_that_the_other_model_does_not_have(self):
        class Three(Linear):
            def model(self, inputs):
                return np.concatenate([-super().model(inputs), inputs[:, :1] * 100], axis=1)

        with pytest.raises(ValueError, match=r"must lie in 0\.\.1"):
            metfa.compare(Three(OLD), Linear(NEW), INPUTS, **FIXED)

    def test_an_unknown_model_needs_a_target_only_as_the_first(self):
        unknown = lambda inputs, target: inputs  # noqa: E731
        with pytest.raises(ValueError, match="`target` is None and the explainer's model is unknown"):
            metfa.compare(unknown, Linear(NEW), INPUTS, **FIXED)
        assert metfa.compare(Linear(OLD), unknown, INPUTS, **FIXED).target == (0, 0, 0)


class TestOneCall:
    def test_one_bar_counts_the_maps_of_both(self, monkeypatch):
        seen = []

        class Bar:
            def __init__(self, total, done, **_):
                seen.append((total, done))

            def __enter__(self):
                return self

            def __exit__(self, *_):
                pass

            def update(self, n):
                seen.append(n)

            def set_postfix_str(self, text):
                pass

        monkeypatch.setattr("metfa.sampling.progress.progress_bar", Bar)
        compared()
        assert seen[0] == (2 * 3 * 12, 0)
        assert sum(seen[1:]) == 2 * 3 * 12

    def test_both_are_advanced_chunk_by_chunk(self):
        order = []

        def noting(name):
            def explainer(inputs, target):
                order.append(name)
                return inputs

            explainer.rows_independent = True
            return explainer

        metfa.compare(noting("a"), noting("b"), INPUTS, 0, **{**FIXED, "batch_size": 3})
        assert order[-18:] == ["a", "b"] * 9

    def test_two_explainers_of_one_model_in_training_mode(self):
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2))
        first = metfa.explainers.Gradient(model, channel_axis=None)
        second = metfa.explainers.IntegratedGradients(model, channel_axis=None) if hasattr(
            metfa.explainers, "IntegratedGradients") else lambda x, target: x * model(x)[:, :1].detach()  # fmt: skip
        x = torch.tensor(INPUTS, dtype=torch.float32)
        with pytest.warns(metfa.ModelStateWarning, match="training mode"):
            found = metfa.compare(first, second, x, 0, **FIXED)
        assert model.training
        model.eval()
        calls = [metfa.explain(one, x, 0, **FIXED) for one in (first, second)]
        assert np.array_equal(found.pair[0].values, calls[0].values)
        assert np.array_equal(found.pair[1].values, calls[1].values)

    def test_two_models_after_an_error(self):
        models = [torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Dropout(0.5)) for _ in range(2)]

        def fails(x, target):
            models[1](x)
            raise RuntimeError("mine")

        x = torch.tensor(INPUTS, dtype=torch.float32)
        with pytest.raises(RuntimeError, match="mine"), pytest.warns(metfa.ModelStateWarning):
            metfa.compare(metfa.explainers.Gradient(models[0], channel_axis=None), fails, x, 0, **FIXED)
        assert all(model.training for model in models)

    def test_a_noise_that_moves_nothing(self):
        with pytest.warns(metfa.DegenerateAttributionsWarning, match="the noisy copies are all the same"):
            found = compared(noise=lambda x, rng: x, n_samples=20)
        assert found.unmoved.all()
        assert not found.significance_map().any()

    def test_each_part_counts_its_own_maps(self):
        found = compared()
        assert [part.provenance["maps_made"] for part in found.pair] == [36, 36]
        assert found.provenance["maps_made"] == 72


class TestLibraries:
    def test_torch_models_of_which_one_weight_changed(self):
        class Separable(torch.nn.Module):
            def __init__(self, weights):
                super().__init__()
                self.weights = torch.nn.Parameter(torch.tensor(weights, dtype=torch.float32))

            def forward(self, x):
                hidden = torch.tanh(x * self.weights)
                return torch.stack([hidden.sum(1), -hidden.sum(1)], dim=1)

        x = torch.tensor(INPUTS / 30, dtype=torch.float32)
        models = Separable(OLD).eval(), Separable(NEW).eval()
        explainers = [metfa.explainers.Gradient(model, channel_axis=None, scale=False) for model in models]
        settings = {**FIXED, "n_samples": 20, "noise": metfa.noise.Gaussian(0.01)}
        found = metfa.compare(*explainers, x, 0, **settings)
        assert (found.significance_map(correction="holm") != 0).tolist() == [[False, False, False, True]] * 3
        same(found, metfa.compare(*(metfa.explain(one, x, 0, **settings) for one in explainers)))

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore:Input Tensor")
    def test_a_captum_method(self):
        captum = pytest.importorskip("captum.attr")
        model = torch.nn.Linear(4, 2).eval()
        x = torch.tensor(INPUTS, dtype=torch.float32)
        methods = captum.Saliency(model).attribute, captum.InputXGradient(model).attribute
        found = metfa.compare(*methods, x, **FIXED)
        same(found, metfa.compare(*(metfa.explain(one, x, **FIXED) for one in methods)))

    @pytest.mark.slow
    def test_jax(self):
        jax = pytest.importorskip("jax")

        def by(weights):
            gradient = jax.grad(lambda x: (jax.numpy.tanh(x) * weights).sum())
            return lambda inputs, target: gradient(inputs)

        found = metfa.compare(by(OLD), by(NEW), jax.numpy.asarray(INPUTS / 5), 0, **FIXED)
        assert found.significance_map().tolist() == [[0, 0, 0, 1]] * 3

    def test_texts(self):
        text = metfa.text
        words = [
            ["a", "dull", "film", "with", "one", "good", "joke"],
            ["a", "good", "film", "with", "one", "dull", "end"],
        ]

        def scores(weight):
            def model(texts):
                good = np.array([0.5 + 0.3 * ("good" in row) - weight * ("dull" in row) for row in texts])
                return np.stack([good, 1 - good], axis=1)

            return model

        explainers = [text.Occlusion(scores(weight)) for weight in (0.05, 0.2)]
        others = {"film": "movie", "one": "a"}

        def noise(row, rng):
            return [others.get(word, word) if rng.random() < 0.5 else word for word in row]

        found = metfa.compare(*explainers, words, 0, noise=noise, n_samples=12, rng=0)
        assert found.feature_shape == (7,)
        assert found.inputs == words
        same(
            found,
            metfa.compare(*(metfa.explain(one, words, 0, noise=noise, n_samples=12, rng=0) for one in explainers)),
        )

    def test_maps_of_a_segmentation(self):
        torch.manual_seed(0)
        models = [torch.nn.Conv2d(3, 2, 3, padding=1).eval() for _ in range(2)]
        explainers = [metfa.explainers.Gradient(lambda x, model=model: model(x).mean((2, 3))) for model in models]
        images = torch.rand(1, 3, 8, 8)
        found = metfa.compare(*explainers, images, 1, noise=metfa.noise.Uniform(0.1), n_samples=6, rng=0, scale="share")
        assert found.feature_shape == (8, 8)
        calls = [
            metfa.explain(one, images, 1, noise=metfa.noise.Uniform(0.1), n_samples=6, rng=0) for one in explainers
        ]
        same(found, metfa.compare(*calls, scale="share"))


def test_two_noises_of_one_name_are_refused():
    inputs, rng = np.ones((1, 3)), 0
    made = [
        metfa.explain(
            lambda x, target: x,
            inputs,
            0,
            noise=lambda x, rng, by=by: x + by * rng.normal(size=3),
            n_samples=6,
            rng=rng,
        )
        for by in (0.1, 0.5)
    ]
    with pytest.raises(ValueError, match=r"these two noises of the name .*<lambda> make other copies of"):
        metfa.compare(*made)
