"""`evaluate`: every figure against the public interface, what is computed again, what survives what."""

import dataclasses
import functools
import os
import random
import re
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import metfa
from metfa import Study, evaluate, metrics
from metfa._base.warnings import EqualInputsWarning, FailedUnitsWarning
from metfa.evaluation import UnitStore, prepare
from metfa.evaluation import estimate as estimates
from metfa.evaluation.written import write_tables
from metfa.explainers import RISE, Gradient
from metfa.noise import Gaussian, Uniform


def seeded_network():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return torch.nn.Sequential(
            torch.nn.Conv2d(3, 4, 3, padding=1),
            torch.nn.Tanh(),
            torch.nn.AdaptiveAvgPool2d(1),
            torch.nn.Flatten(),
            torch.nn.Linear(4, 3),
        ).eval()


NET = seeded_network()
PICTURES = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))
WEIGHTS = np.random.default_rng(0).normal(size=(5, 3))
ROWS = np.random.default_rng(1).normal(size=(3, 5))


def linear(rows):
    return np.tanh(rows) @ WEIGHTS


def slopes(model):
    return slope


def slope(inputs, target):
    return np.abs((1 - np.tanh(inputs) ** 2) * WEIGHTS[:, target].T)


def scored_slopes(model):
    return lambda inputs, target: (slope(inputs, target), model(inputs))


def shares(model):
    """An explainer with randomness of its own."""
    return metfa.randomised(random_share)


def random_share(inputs, target, *, rngs):
    return slope(inputs, target) * np.stack([rng.random(row.shape) for row, rng in zip(inputs, rngs, strict=True)])


rise = functools.partial(RISE, n_masks=12, grid=4)


# Figures


KEY = ("metric", "aggregate", "sampling", "outer", "n_samples", "confidence_level")


def reference(study, explainer, model, x, target, measured):
    """Scores of one input, each asked of the public interface by itself."""
    found = {}

    def explain(explained, noise, n, rng=study.seed, ids=None, batch=x, goal=target):
        return metfa.explain(
            explained, batch, goal, noise=noise, n_samples=n, predict=model, rng=rng, run=metfa.Run(input_names=ids)
        )

    def mean_explainer(noise, n):
        def means(inputs, goal, *, rngs):
            maps = [
                explain(explainer, noise, n, rng, [""], inputs[row : row + 1], [int(goal[row])]).mean()
                for row, rng in enumerate(rngs)
            ]
            return np.concatenate(maps)

        return metfa.randomised(means)

    first = next(iter(study.sampling.values()))
    maps = {("vanilla", None, None, None): (explain(explainer, first, 5).vanilla, explainer)}
    for name, noise in study.sampling.items():
        for n in study.sizes:
            sample = explain(explainer, noise, n)
            maps["mean", name, n, None] = (sample.mean(), mean_explainer(noise, n))
            for level in study.levels:
                smooth = metfa.Smoothed(explainer, noise=noise, n_samples=n, confidence_level=level)
                maps["smoothed", name, n, level] = (sample.smoothed(level), smooth)
                width = metrics.interval_width(sample, level).score[0]
                found["interval_width", "samples", name, None, n, level] = width
                important = sample.significance_map(alpha=1 - level) == 1
                region = metrics.region_score(model, x, important, target, **measured["region_score"])
                found["region_score", "samples", name, None, n, level] = region.score[0]
    for (aggregate, name, n, level), (map_, explained) in maps.items():
        of = (aggregate, name, None, n, level)
        for metric in ("insertion", "deletion", "overall"):
            asked = getattr(metrics, metric)
            found[(metric, *of)] = asked(model, x, map_, target, **measured["faithfulness"]).score[0]
        if "infidelity" in measured:
            infidelity = metrics.infidelity(model, x, map_, target, **measured["infidelity"])
            found[("infidelity", *of)] = infidelity.score[0]
        for outer, noise in study.outer.items():
            under = (aggregate, name, outer, n, level)
            if noise is not None:
                for short, metric in (("RI", "insertion"), ("RD", "deletion"), ("RO", "overall")):
                    judged = metrics.robust(
                        getattr(metrics, metric), noise=noise, n_outer=study.n_outer, rng=study.seed
                    )
                    score = judged(model, x, map_, target, **measured["robust_faithfulness"])
                    found[(short, *under)] = score.score[0]
            elif explained is explainer and not isinstance(explainer, metfa.randomised | RISE):
                continue
            sample = explain(explained, noise, study.n_outer)
            found[("mstd", *under)] = metrics.mstd(sample).score[0]
            found[("top_k_overlap", *under)] = metrics.top_k_overlap(sample, 3).score[0]
            found[("max_sensitivity", *under)] = metrics.max_sensitivity(sample).score[0]
            if aggregate == "vanilla" and sample.predictions is not None:
                found[("prediction_agreement", *under)] = metrics.prediction_agreement(sample).score[0]
    return found


ASKED = {"steps": 6}
MEASURED = {
    "faithfulness": ASKED,
    "robust_faithfulness": ASKED,
    "region_score": {},
    "mstd": {},
    "top_k_overlap": {"k": 3},
    "max_sensitivity": {},
    "prediction_agreement": {},
    "interval_width": {},
}
SETTINGS = {
    "sampling": {"uniform": Uniform(0.1), "normal": Gaussian(0.05)},
    "outer": {"normal": Gaussian(0.1), "own": None},
    "n_samples": [10, 6],
    "confidence_level": [0.9, 0.8],
    "n_outer": 2,
    "seed": 7,
}
TORCH = Study(
    model=NET,
    inputs=PICTURES,
    explainers={"gradient": Gradient, "rise": rise},
    metrics={**MEASURED, "infidelity": {"noise": Gaussian(0.1), "n_perturbations": 4}},
    targets=[None, 2],
    **{**SETTINGS, "sampling": {"normal": Gaussian(0.05)}, "confidence_level": 0.9},
)
NUMPY = Study(
    model=linear, inputs=ROWS, explainers={"slopes": slopes, "scored": scored_slopes, "shares": shares},
    metrics=MEASURED, version="1", **SETTINGS,
)  # fmt: skip


def is_fixed(row):
    """Whether a row is of a map that nothing changes: no outer noise, and no randomness of the explainer's own."""
    return (row.get("reason") or "").startswith("no outer noise")


@pytest.mark.parametrize("study", [TORCH, dataclasses.replace(NUMPY, limit=2)], ids=["torch", "numpy"])
@pytest.mark.slow
def test_every_figure_equals_the_public_interface(study, tmp_path, recwarn):
    result = evaluate(study, store=tmp_path)
    found = {}
    for row in result.rows:
        key = (row["input"], row["explainer"], *(row[name] for name in KEY))
        assert key not in found
        found[key] = row["score"]
    expected = {}
    for index in range(len(study.data)):
        x = study.inputs[index : index + 1]
        target = [study.targets[index]] if study.targets and study.targets[index] is not None else None
        for name, factory in study.explainers.items():
            explainer = factory(study.model)
            goal = [int(study.model(x).argmax(axis=1)[0])] if target is None else target
            scores = reference(study, explainer, study.model, x, goal, study.metrics)
            expected |= {(str(index), name, *key): score for key, score in scores.items()}
    fixed = {(row["input"], row["explainer"], *(row[name] for name in KEY)) for row in result.rows if is_fixed(row)}
    assert {(key[1], key[5]) for key in fixed} <= {("gradient", "own"), ("slopes", "own"), ("scored", "own")}
    assert all(found.pop(key) is None for key in fixed)
    asked_of_no_model = {
        key for key in found if key[2] == "prediction_agreement" and key[1] == "shares"
    } - expected.keys()
    assert all(found.pop(key) is None for key in asked_of_no_model)
    assert found.keys() == expected.keys()
    for key, score in expected.items():
        if np.isnan(score):
            assert found[key] is None, key
        else:
            assert found[key] == pytest.approx(score, rel=1e-4, abs=1e-6), key
    recwarn.clear()  # the metrics' own, of the reference


def test_a_map_that_nothing_changes_says_so(tmp_path):
    study = dataclasses.replace(
        COUNTED, outer={"none": None}, metrics=["mstd", "prediction_agreement"], sampling={"u": Uniform(0.1)}
    )
    rows = evaluate(study, store=tmp_path).rows
    vanilla = [row for row in rows if row["aggregate"] == "vanilla"]
    assert {row["metric"] for row in vanilla} == {"mstd", "prediction_agreement"}
    assert all(row["score"] is None and is_fixed(row) for row in vanilla)
    assert rows[0] == vanilla[0]  # before the others, as under any other noise
    assert all(row["score"] > 0 for row in rows if row["aggregate"] != "vanilla")


@pytest.mark.slow
def test_a_smaller_n_and_fewer_noises_give_the_same_figures(tmp_path):
    both = evaluate(NUMPY, store=tmp_path)
    one = dataclasses.replace(NUMPY, n_samples=6, confidence_level=0.8, sampling={"normal": Gaussian(0.05)})
    few = evaluate(one, store=tmp_path)

    def keyed(result):
        return {(row["input"], row["explainer"], *(row[name] for name in KEY)): row["score"] for row in result.rows}

    alone = evaluate(dataclasses.replace(one, metrics=["mstd"]), store=tmp_path)  # nothing else needs the samples
    assert keyed(alone) == {key: score for key, score in keyed(few).items() if key[2] == "mstd"}
    more, less = keyed(both), keyed(few)
    assert less.keys() < more.keys()
    for key, score in less.items():
        assert (score is None) == (more[key] is None), key
        assert score is None or score == pytest.approx(more[key], rel=1e-4, abs=1e-6), key


SEEN = []


@dataclass(frozen=True)
class Watched:
    """Tells what it made of which input."""

    scale: float

    def __call__(self, x, rng):
        noisy = Gaussian(self.scale)(x, rng)
        SEEN.append((np.asarray(x).tobytes(), np.asarray(noisy).tobytes()))
        return noisy


def test_all_maps_and_explainers_of_an_input_meet_the_same_outer_draws(tmp_path):
    SEEN.clear()
    study = dataclasses.replace(
        NUMPY, outer={"watched": Watched(0.1)}, metrics={"mstd": {}, "robust_faithfulness": ASKED}, n_samples=6,
        confidence_level=0.9,
    )  # fmt: skip
    evaluate(study, store=tmp_path)
    by_input = {}
    for x, noisy in SEEN:
        by_input.setdefault(x, []).append(noisy)
    assert len(by_input) == 3
    for draws in by_input.values():
        assert len(set(draws)) == 2 * study.n_outer  # of mstd, and of the robust metrics
        assert len(draws) > 6 * len(set(draws))


def test_a_metric_of_the_users_own(tmp_path):
    def area(model, inputs, attributions, target):
        return type("Area", (), {"score": torch.ones(1, requires_grad=True) * attributions.sum()})

    study = dataclasses.replace(NUMPY, metrics={"area": area}, sampling={}, outer={}, explainers={"slopes": slopes})
    result = evaluate(study, store=tmp_path)
    expected = [slope(row[None], [int(linear(row[None]).argmax())]).sum() for row in ROWS]
    assert [row["score"] for row in result.rows] == pytest.approx(expected)


# What is left as it was


def test_nothing_global_changes(tmp_path):
    random.seed(3)
    np.random.seed(3)
    torch.manual_seed(3)
    network = seeded_network()
    network[0].weight.grad = torch.ones_like(network[0].weight)
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state(), torch.get_num_threads()
    inputs = PICTURES.clone()
    study = dataclasses.replace(TORCH, model=network, inputs=inputs, n_samples=6)
    evaluate(study, store=tmp_path)
    assert random.getstate() == before[0]
    assert np.random.get_state()[1].tolist() == before[1]
    assert torch.equal(torch.get_rng_state(), before[2])
    assert torch.get_num_threads() == before[3]
    assert torch.equal(inputs, PICTURES)
    assert torch.equal(network[0].weight.grad, torch.ones_like(network[0].weight))
    assert all(parameter.requires_grad for parameter in network.parameters())
    assert not network._forward_hooks


def never(*arguments):
    raise AssertionError("the model was touched")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"executor": "rey"}, ValueError, "`executor` must be one of 'local', 'ray', got 'rey', did you mean 'ray'"),
        ({"workers": 2}, ValueError, "`workers` is 2, but `executor='local'` has one"),
        ({"workers": 0}, ValueError, "`workers` must be at least 1, got 0"),
        ({"workers": 1.5}, TypeError, "`workers` must be an integer, got float: 1.5"),
        ({"store": "s4://bucket"}, ValueError, "`store` must be a folder or a URL of .*, got 's4://bucket'"),
        ({"store": "http://host/x"}, ValueError, "`store` must be a folder or a URL"),
        ({"store": None}, TypeError, "`store` must be a folder or a URL, got NoneType: None"),
        ({"store_options": "x"}, TypeError, "`store_options` must be a dict, got str: 'x'"),
    ],
)
def test_bad_arguments_show_before_the_model_is_touched(arguments, error, message, tmp_path, monkeypatch):
    monkeypatch.setattr("metfa.evaluation.run.load_model", never)
    with pytest.raises(error, match=message):
        evaluate(NUMPY, **{"store": tmp_path, **arguments})
    with pytest.raises(TypeError, match=r"`study` must be a metfa.Study, got str"):
        evaluate("study.toml", store=tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_no_explainer_can_be_made_of(tmp_path):
    broken = dataclasses.replace(NUMPY, explainers={"direct": slope})
    with pytest.raises(ValueError, match=r"`explainers\['direct'\]` could not be made of the model: .*'target'"):
        evaluate(broken, store=tmp_path)
    with pytest.raises(TypeError, match=r"`explainers\['maps'\]` must return an explainer of the model, got ndarray"):
        evaluate(dataclasses.replace(NUMPY, explainers={"maps": lambda model: np.ones(3)}), store=tmp_path)


# What is computed, and when


CALLS = []


def counted(model):
    def explainer(inputs, target):
        CALLS.append(len(inputs))
        return slope(inputs, target)

    return explainer


COUNTED = Study(
    model=linear, inputs=ROWS, explainers={"counted": counted}, metrics=["mstd"], outer={"u": Uniform(0.1)}, n_outer=3,
    version="1",
)  # fmt: skip


def calls(study, store):
    CALLS.clear()
    result = evaluate(study, store=store)
    assert not result.failures
    return len(CALLS), result


def test_nothing_is_computed_twice(tmp_path):
    first, result = calls(COUNTED, tmp_path)
    assert first > 0
    again, same = calls(COUNTED, tmp_path)
    assert again == 0
    assert same.rows == result.rows


def test_an_extended_study_computes_only_what_is_new(tmp_path):
    first, result = calls(dataclasses.replace(COUNTED, limit=2), tmp_path)
    more, extended = calls(COUNTED, tmp_path)
    assert more == first // 2
    assert extended.rows[: len(result.rows)] == result.rows
    another = dataclasses.replace(COUNTED, explainers={"counted": counted, "second": counted})
    third, both = calls(another, tmp_path)
    assert third == 3 * first // 2
    assert [row for row in both.rows if row["explainer"] == "counted"] == extended.rows
    turned = dataclasses.replace(another, inputs=ROWS[::-1])
    assert calls(turned, tmp_path)[0] == 0


@pytest.mark.parametrize("metrics", [["mstd"], ["mstd", "interval_width"], ["faithfulness"], ["prediction_agreement"]])
def test_the_estimate_counts_what_is_explained(metrics, tmp_path):
    study = dataclasses.replace(COUNTED, metrics=metrics, sampling={"u": Uniform(0.1), "v": Uniform(0.2)}, batch_size=1)
    run = prepare(study, store=tmp_path)
    expected = run.estimate().explanations
    CALLS.clear()
    run.run()
    assert sum(CALLS) == expected


@pytest.mark.parametrize("batch_size", [1, 4, 10])
def test_the_estimate_counts_the_passes_of_a_run(batch_size, tmp_path):
    study = Study(
        model=NET, inputs=PICTURES, explainers={"gradient": Gradient}, metrics=["mstd", "interval_width"],
        sampling={"u": Uniform(0.1)}, outer={"u": Uniform(0.1)}, n_samples=6, n_outer=3, batch_size=batch_size,
    )  # fmt: skip
    run = prepare(study, store=tmp_path)
    expected, passes = run.estimate(), []

    def forward(module, inputs, output):
        if output.requires_grad:
            output.register_hook(lambda gradient: passes.append(len(gradient)))

    handle = NET.register_forward_hook(forward)
    try:
        assert not run.run().failures
    finally:
        handle.remove()
    assert sum(passes) == expected.backwards == expected.forwards == expected.explanations


@pytest.mark.parametrize(("slowness", "explained", "timed"), [(0.0, 21, 10), (0.3, 2, 1), (30.0, 1, 1)])
def test_an_expensive_explainer_is_tried_once_or_twice(slowness, explained, timed, tmp_path, monkeypatch):
    """On a clock that goes on by so many seconds with each explanation; and the estimate says what was timed."""
    study = dataclasses.replace(COUNTED, batch_size=10)
    monkeypatch.setattr(estimates, "SHORT", 0.2)
    monkeypatch.setattr(estimates.time, "perf_counter", lambda: slowness * sum(CALLS))
    CALLS.clear()
    expected = prepare(study, store=tmp_path).estimate()
    assert sum(CALLS) == explained
    assert dict(expected.timed) == {"counted": timed}
    assert f"(timed: {timed} explanation{'s' * (timed > 1)} of counted), " in str(expected)
    assert expected.seconds == pytest.approx(slowness * expected.explanations)


def test_a_changed_study_never_mixes_with_old_units(tmp_path):
    _, old = calls(COUNTED, tmp_path)
    changed = dataclasses.replace(COUNTED, outer={"u": Uniform(0.2)})
    n, new = calls(changed, tmp_path)
    assert n > 0
    alone = evaluate(changed, store=tmp_path / "other")
    assert new.rows == alone.rows
    assert not {unit.address for unit in new.units} & {unit.address for unit in old.units}
    assert calls(COUNTED, tmp_path)[0] == 0


def test_equal_inputs_are_measured_once(tmp_path):
    first, _ = calls(dataclasses.replace(COUNTED, limit=1), tmp_path / "one")
    with pytest.warns(EqualInputsWarning, match=r"2 of 3 units have inputs that are equal to others"):
        n, result = calls(dataclasses.replace(COUNTED, inputs=ROWS[[0, 0, 0]]), tmp_path / "three")
    assert n == first
    assert repr(result) == "Evaluation(3 of 3 units, 0 failed)"
    assert [row["input"] for row in result.rows] == ["0", "1", "2"]
    assert len({row["score"] for row in result.rows}) == 1


# Failures


BROKEN = set()


def fragile(model):
    def explainer(inputs, target):
        CALLS.append(len(inputs))
        if any(np.abs(inputs - ROWS[index]).max() < 0.3 for index in BROKEN):
            raise RuntimeError("out of\nmemory\x1b[31m")
        return slope(inputs, target)

    return explainer


def test_a_unit_that_fails_is_recorded_and_tried_again(tmp_path):
    study = dataclasses.replace(COUNTED, explainers={"fragile": fragile, "counted": counted})
    BROKEN.add(1)
    with pytest.warns(FailedUnitsWarning, match="1 of 6 units failed, the first with RuntimeError: out of memory"):
        result = evaluate(study, store=tmp_path)
    (address, failure), = result.failures.items()  # fmt: skip
    failed = next(unit for unit in result.units if unit.address == address)
    assert (failed.input, failed.explainer) == ("1", "fragile") == (failure["input"], failure["explainer"])
    assert failure["error"].isprintable()
    assert "slope" not in failure["error"]
    assert "Traceback" in failure["traceback"]
    assert len(result.results) == 5
    assert repr(result) == "Evaluation(5 of 6 units, 1 failed)"
    with pytest.warns(FailedUnitsWarning):
        evaluate(study, store=tmp_path)
    BROKEN.clear()
    CALLS.clear()
    mended = evaluate(study, store=tmp_path)
    assert CALLS
    assert not mended.failures
    assert not list((tmp_path / "failures").rglob("*.json"))
    assert mended.rows == evaluate(study, store=tmp_path / "other").rows


def holes(model):
    return lambda inputs, target: np.where(inputs == ROWS[0, 0], np.nan, slope(inputs, target))


def hopeless(model):
    def explain(inputs, target):
        raise RuntimeError(f"no map\nof {len(inputs)}")

    return explain


def test_the_estimate_says_what_it_leaves_out(tmp_path):
    both = dataclasses.replace(COUNTED, explainers={**COUNTED.explainers, "hopeless": hopeless})
    expected = prepare(COUNTED, store=tmp_path).estimate()
    found = prepare(both, store=tmp_path).estimate()
    assert found.units == 2 * expected.units
    assert found.explanations == expected.explanations
    assert list(found.not_counted) == ["hopeless"]
    assert re.search(r"; not counted, as it failed in the trial: hopeless, RuntimeError: no map of \d+$", str(found))


def test_nan_attributions_fail_their_unit(tmp_path):
    study = dataclasses.replace(COUNTED, explainers={"holes": holes})
    with pytest.warns(FailedUnitsWarning, match="1 of 3 units failed, the first with ValueError: .* returned NaN"):
        result = evaluate(study, store=tmp_path)
    assert {row["input"] for row in result.rows} == {"1", "2"}


def test_an_input_of_another_shape_fails_its_unit(tmp_path):
    inputs = [ROWS[0], ROWS[1, :4], ROWS[2]]
    with pytest.warns(FailedUnitsWarning, match="1 of 3 units failed, the first with ValueError"):
        result = evaluate(dataclasses.replace(COUNTED, inputs=inputs), store=tmp_path)
    assert {row["input"] for row in result.rows} == {"0", "2"}


def test_an_unreadable_picture_fails_its_units(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    for name in ("b", "c"):
        Image.fromarray(pixels).save(tmp_path / f"{name}.png")
    (tmp_path / "a.png").write_bytes(b"no picture")
    loaded = metfa.models.LoadedModel(module=NET, preprocess=as_pixels)
    study = Study(
        model=loaded, inputs=tmp_path, explainers={"gradient": Gradient}, metrics=["mstd"], outer={"u": Uniform(0.1)},
        n_outer=2,
    )  # fmt: skip
    with pytest.warns(EqualInputsWarning, match="1 of 3 units"):
        run = prepare(study, store=tmp_path / "store")
    assert run.estimate().units == 2  # b and c are equal
    with pytest.warns(FailedUnitsWarning, match=r"a\.png cannot be read as an image"):
        result = run.run()
    assert [row["input"] for row in result.rows] == ["b.png", "c.png"]


def as_pixels(image):
    return torch.from_numpy(np.asarray(image, dtype=np.float32).transpose(2, 0, 1) / 255)


def test_an_input_that_cannot_be_hashed_is_named(tmp_path):
    inputs = ROWS.copy()
    inputs[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"`inputs\[1\]`: .* must be finite"):
        evaluate(dataclasses.replace(COUNTED, inputs=inputs), store=tmp_path)


def test_what_the_store_lost_is_no_silence(tmp_path, monkeypatch):
    monkeypatch.setattr(UnitStore, "write", lambda *arguments: None)
    with pytest.warns(FailedUnitsWarning, match="3 of 3 units failed, .* the store holds neither"):
        evaluate(COUNTED, store=tmp_path)


def test_an_interruption_keeps_what_is_done(tmp_path):
    def interrupted(model):
        def explainer(inputs, target):
            if np.abs(inputs - ROWS[2]).max() < 0.3:
                raise KeyboardInterrupt
            return slope(inputs, target)

        return explainer

    study = dataclasses.replace(COUNTED, explainers={"counted": interrupted})
    with pytest.raises(KeyboardInterrupt):
        evaluate(study, store=tmp_path)
    assert len(list((tmp_path / "units").rglob("*.json"))) == 2
    assert not (tmp_path / "failures").exists()


# Killed, and side by side


PROGRAM = """
    import sys
    import time

    import numpy as np

    import metfa
    from metfa.evaluation.written import write_tables


    def model(rows):
        return np.tanh(rows[:, :3])


    def slow(model):
        return explainer


    def explainer(inputs, target):
        time.sleep(0.002)
        return np.abs(inputs) * (1 + np.arange(inputs.shape[1]))


    if __name__ == "__main__":
        store, tables = sys.argv[1:]
        study = metfa.Study(
            model=model, inputs=np.random.default_rng(0).normal(size=(20, 5)), n_outer=3, n_samples=6,
            explainers={"one": slow, "two": slow}, metrics=["mstd", "interval_width"], version="1",
            sampling={"normal": metfa.noise.Gaussian(0.1)}, outer={"uniform": metfa.noise.Uniform(0.1)},
        )
        print("ready", flush=True)
        result = metfa.evaluate(study, store=store)
        assert len(result.results) == 40
        write_tables(result, tables)
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    return path


def started(program, store, tables):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, program, store, tables], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
        text=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def expected(program, tmp_path_factory):
    """Tables of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    finished(started(program, folder / "store", folder / "tables"))
    tables = content(folder / "tables")
    assert len(tables["rows.csv"].splitlines()) == 1 + 40 * 4
    return tables


def finished(process):
    _, err = process.communicate(timeout=600)
    assert process.returncode == 0, err


def content(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def n_units(store):
    return len(list(Path(store, "units").rglob("*.json")))


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_with_the_same_bytes(program, expected, tmp_path):
    rng = random.Random(0)
    left = []
    for _ in range(2):
        process = started(program, tmp_path / "killed", tmp_path / "never")
        assert process.stdout.readline() == "ready\n"
        before = n_units(tmp_path / "killed")
        while n_units(tmp_path / "killed") == before:  # it is at work
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.3))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        left.append(n_units(tmp_path / "killed"))
    assert left[0] < 40
    assert left == sorted(left)
    (next((tmp_path / "killed" / "units").iterdir()) / "half.json.0123.tmp").write_bytes(b'{"digest": "')
    finished(started(program, tmp_path / "killed", tmp_path / "resumed"))
    assert content(tmp_path / "resumed") == expected
    assert not (tmp_path / "never").exists()


@pytest.mark.slow
def test_two_processes_on_one_store(program, expected, tmp_path):
    processes = [started(program, tmp_path / "shared", tmp_path / f"tables{index}") for index in range(2)]
    for process in processes:
        finished(process)
    assert content(tmp_path / "tables0") == content(tmp_path / "tables1") == expected
    assert not list((tmp_path / "shared").rglob("*.tmp"))


@pytest.mark.parametrize("damage", ["truncated", "garbage", "empty", "digest", "nesting", "nan", "folder", "swapped"])
def test_what_was_damaged_is_computed_again(damage, tmp_path):
    _, whole = calls(COUNTED, tmp_path)
    files = sorted((tmp_path / "units").rglob("*.json"))
    before = [path.read_bytes() for path in files]
    path, text = files[1], before[1]
    if damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(
            {
                "truncated": text[: len(text) // 2],
                "garbage": os.urandom(500),
                "empty": b"",
                "digest": text.replace(b'"score":', b'"score":1', 1),
                "nesting": b"[" * 200_000,
                "nan": text.replace(b'"level":', b'"level":NaN,"x":', 1),
                "swapped": before[0],
            }[damage]
        )
        assert path.read_bytes() != text
    n, again = calls(COUNTED, tmp_path)
    assert n > 0
    assert again.rows == whole.rows
    assert path.is_file()
    assert calls(COUNTED, tmp_path)[0] == 0


# Memory


@pytest.mark.slow
def test_one_input_is_in_memory_at_a_time(tmp_path):
    import weakref

    alive, most, lock = set(), [0], threading.Lock()

    class Lazy:
        def __len__(self):
            return 200

        def __getitem__(self, index):
            array = np.random.default_rng(index).random(50_000)
            with lock:
                alive.add(index)
                most[0] = max(most[0], len(alive))
            weakref.finalize(array, alive.discard, index)
            return array

    def model(rows):
        return rows[:, :2]

    study = Study(
        model=model, inputs=Lazy(), explainers={"itself": lambda model: lambda inputs, target: inputs}, version="1",
        metrics=["mstd"], outer={"u": Uniform(0.1)}, n_outer=2, batch_size=1,
    )  # fmt: skip
    evaluate(dataclasses.replace(study, limit=5), store=tmp_path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = evaluate(study, store=tmp_path)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert len(result.results) == 200
    assert most[0] <= 2
    assert grown < 30  # MiB; all inputs are 76


@pytest.mark.slow
def test_the_tables_of_a_store_elsewhere_are_equal(tmp_path):
    for name in ("one", "two"):
        write_tables(evaluate(NUMPY, store=tmp_path / name / "store"), tmp_path / name / "tables")
    assert content(tmp_path / "one" / "tables") == content(tmp_path / "two" / "tables")


@pytest.mark.slow
def test_without_torch():
    code = (
        "import sys\n"
        "class NoTorch:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.partition('.')[0] == 'torch': raise ModuleNotFoundError(name, name='torch')\n"
        "sys.meta_path.insert(0, NoTorch())\n"
        "import numpy as np, metfa\n"
        "model = lambda rows: np.stack([rows.sum(axis=1), -rows.sum(axis=1)], axis=1)\n"
        "sizes = lambda model: lambda inputs, target: np.abs(inputs)\n"
        "noise = {'normal': metfa.noise.Gaussian(0.1)}\n"
        "study = metfa.Study(model=model, inputs=np.eye(3) + 1, explainers={'sizes': sizes}, sampling=noise,\n"
        "                    outer=noise, metrics=['mstd', 'faithfulness', 'interval_width'], version='1')\n"
        "result = metfa.evaluate(study, store='memory://without-torch')\n"
        "metfa.plot.stability_and_faithfulness(result)\n"
        "print(result, 'torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "Evaluation(3 of 3 units, 0 failed) False\n", done.stderr


def test_metrics_ask_a_fast_copy_of_the_network(tmp_path):
    settings = {"steps": 5}
    studies = [
        dataclasses.replace(TORCH, metrics={"faithfulness": one}) for one in (settings, {**settings, "fast": "exact"})
    ]
    usual, fast = (evaluate(one, store=tmp_path / str(k)).to_dataframe() for k, one in enumerate(studies))
    np.testing.assert_allclose(fast.score, usual.score, rtol=1e-4)
    with pytest.raises(ValueError, match=r"`metrics\['faithfulness'\]`: `fast` must be 'exact', 'bfloat16' or None"):
        dataclasses.replace(TORCH, metrics={"faithfulness": {"fast": "quick"}})
