"""Addresses: another one for everything that changes a figure, the same for everything that does not."""

import dataclasses
import enum
import functools
import os
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.linear_model import LogisticRegression

import metfa
from metfa import Study, metrics
from metfa.evaluation._identity import identity
from metfa.evaluation.units import units_of
from metfa.evaluation.worker import load_model
from metfa.explainers import RISE, Gradient
from metfa.models import LoadedModel
from metfa.noise import Gaussian, Uniform


def of_a_script():
    """A function as the main program has them: another script has one of that name too."""
    namespace = {"__name__": "__main__"}
    exec("def own(model): return model", namespace)
    return namespace["own"]


def network(activation=torch.nn.ReLU, kernel=3, scale=1.0):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = torch.nn.Sequential(
            torch.nn.Conv2d(3, 4, kernel, padding=1), activation(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
            torch.nn.Linear(4, 3),
        )  # fmt: skip
        with torch.no_grad():
            layers[4].bias.mul_(scale)
        return layers.eval()


class Other(torch.nn.Sequential):
    """The same layers under another name."""


class Masked(torch.nn.Module):
    """A buffer that the state dict leaves out."""

    def __init__(self, value):
        super().__init__()
        self.register_buffer("mask", torch.tensor(value), persistent=False)

    def forward(self, x):
        return (x * self.mask).flatten(1)[:, :3]

    def predict(self, x):
        return self(x) * 2


PICTURES = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))
MEASURES = {"mstd": {}, "faithfulness": {"steps": 5}}
STUDY = Study(
    model=network(), inputs=PICTURES, explainers={"rise": functools.partial(RISE, n_masks=10)}, metrics=MEASURES,
    sampling={"u": Uniform(0.1)}, outer={"u": Uniform(0.1)},
)  # fmt: skip


def addresses(study=STUDY, **changes):
    study = dataclasses.replace(study, **changes)
    return [unit.address for unit in units_of(study, load_model(study))]


def changed(index, value):
    inputs = PICTURES.clone()
    inputs[index, 0, 0, 0] = value
    return inputs


def own_metric(model, inputs, attributions, target):
    return metrics.insertion(model, inputs, attributions, target, steps=3)


def another_metric(model, inputs, attributions, target):
    return metrics.deletion(model, inputs, attributions, target, steps=3)


CHANGES = {
    "explainer": {"explainers": {"rise": Gradient}},
    "explainer's setting": {"explainers": {"rise": functools.partial(RISE, n_masks=11)}},
    "explainer's name": {"explainers": {"RISE": functools.partial(RISE, n_masks=10)}},
    "noise's strength": {"sampling": {"u": Uniform(0.11)}},
    "noise's bounds": {"sampling": {"u": Uniform(0.1, bounds=(0, 1))}},
    "noise": {"sampling": {"u": Gaussian(0.1)}},
    "noise's name": {"sampling": {"v": Uniform(0.1)}},
    "a further noise": {"sampling": {"u": Uniform(0.1), "v": Uniform(0.2)}},
    "outer noise": {"outer": {"u": Uniform(0.2)}},
    "no outer noise": {"outer": {"u": None}},
    "metric": {"metrics": {"mstd": {}}},
    "metric's setting": {"metrics": {**MEASURES, "faithfulness": {"steps": 6}}},
    "metric's baseline": {"metrics": {**MEASURES, "faithfulness": {"steps": 5, "baseline": (0, 0, 0.1)}}},
    "metric's other baseline": {"metrics": {**MEASURES, "faithfulness": {"steps": 5, "baseline": (0, 0, 0.2)}}},
    "metric of the user's": {"metrics": {**MEASURES, "own": own_metric}},
    "another metric of the user's": {"metrics": {**MEASURES, "own": another_metric}},
    "seed": {"seed": 1},
    "N": {"n_samples": 11},
    "several N": {"n_samples": [10, 11]},
    "level": {"confidence_level": 0.9},
    "outer draws": {"n_outer": 9},
    "aggregates": {"aggregates": ["vanilla"]},
    "batch size": {"batch_size": 9},
    "device": {"device": "cuda"},
    "version": {"version": "1"},
    "targets": {"targets": [2, 2]},
    "other targets": {"targets": [1, 1]},
    "pixel": {"inputs": changed([0, 1], 0.5)},
    "precision of the inputs": {"inputs": PICTURES.double()},
    "weights": {"model": network(scale=1.001)},
    "precision of the weights": {"model": network().double()},
    "activation": {"model": network(torch.nn.Tanh)},
    "model's class": {"model": Other(*network())},
    "unsaved buffer": {"model": Masked(1.0)},
    "other unsaved buffer": {"model": Masked(2.0)},
    "method of the model": {"model": Masked(1.0).predict},
}


def test_whatever_changes_a_figure_changes_every_address():
    seen = dict.fromkeys(addresses(), "as it was")
    assert len(seen) == 2
    for name, change in CHANGES.items():
        for address in addresses(**change):
            assert address not in seen, f"{name} as {seen[address]}"
            seen[address] = name


def test_a_pixel_or_target_of_one_input_changes_its_address_alone():
    before = addresses()
    for after in (addresses(inputs=changed(1, 0.5)), addresses(targets=[None, 2])):
        assert after[0] == before[0]
        assert after[1] != before[1]


def test_what_changes_no_figure_changes_no_address():
    before = addresses()
    assert addresses(limit=1) == before[:1]
    assert addresses(inputs=PICTURES.flip(0)) == before[::-1]
    assert addresses(inputs=list(PICTURES.numpy())) == before
    assert addresses(inputs=torch.cat([PICTURES, PICTURES[:1] / 2]))[:2] == before
    both = addresses(explainers={"gradient": Gradient, "rise": functools.partial(RISE, n_masks=10)})
    assert both[1::2] == before
    assert addresses(model=network()) == before
    assert addresses(model=LoadedModel(module=network(), preprocess=lambda image: image)) == before
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(threads + 1)
        assert addresses() == before
    finally:
        torch.set_num_threads(threads)


def test_settings_in_another_order_are_the_same():
    def study(*names):
        settings = {"n_masks": 10, "grid": 4}
        return {"rise": functools.partial(RISE, **{name: settings[name] for name in names})}

    assert addresses(explainers=study("n_masks", "grid")) == addresses(explainers=study("grid", "n_masks"))


def test_the_order_of_noises_and_metrics_is_that_of_the_rows():
    noises = {"u": Uniform(0.1), "v": Uniform(0.2)}
    turned = dict(reversed(noises.items()))
    assert addresses(sampling=noises) != addresses(sampling=turned)
    assert addresses(outer=noises) != addresses(outer=turned)


@pytest.mark.weights
def test_the_model_by_name_or_at_hand():
    by_name = dataclasses.replace(STUDY, model="efficientnet-lite0")
    loaded = metfa.models.load("efficientnet-lite0")
    assert addresses(by_name) == addresses(by_name, model=loaded) == addresses(by_name, model=loaded.module)


def crop(image, *, side=4):
    return torch.from_numpy(np.array(image, dtype=np.float32)[:side, :side].transpose(2, 0, 1) / 255)


def test_pictures_wherever_they_lie(tmp_path):
    folder = tmp_path / "one"
    folder.mkdir()
    for value in (1, 2):
        Image.fromarray(np.full((6, 6, 3), value, dtype=np.uint8)).save(folder / f"{value}.png")
    shutil.copytree(folder, tmp_path / "two")
    (tmp_path / "two" / "1.png").rename(tmp_path / "two" / "3.png")
    (tmp_path / "index.csv").write_text("path,target\none/2.png,\ntwo/3.png,1\n")
    model = LoadedModel(module=network(), preprocess=crop)
    one = addresses(model=model, inputs=folder)
    assert addresses(model=model, inputs=tmp_path / "two") == one[::-1]
    listed = addresses(model=model, inputs=tmp_path / "index.csv")
    assert listed[0] == one[1]
    assert listed[1] != one[0]  # another target
    cropped = LoadedModel(module=network(), preprocess=functools.partial(crop, side=5))
    assert not set(addresses(model=cropped, inputs=folder)) & set(one)
    unseen = LoadedModel(module=network(), preprocess=lambda image: crop(image))
    with pytest.raises(ValueError, match=r"`model\.preprocess` has no import path"):
        addresses(model=unseen, inputs=folder)


# What cannot be told apart


def within():
    def function(x, rng):
        return x

    return function


class Plain:
    """Shows nothing of itself."""

    def __call__(self, *arguments, **settings):
        return arguments[0]


class Callable_:
    def __init__(self, value):
        self.value = value

    def __call__(self, rows):
        return rows * self.value

    def __repr__(self):
        return "Callable_()"


@dataclass(frozen=True)
class Hiding:
    values: np.ndarray = field(repr=False)
    rng: int = field(default=0, repr=False)

    def __call__(self, x, rng):
        return x


@dataclass(frozen=True)
class Holding:
    part: object

    def __call__(self, x, rng):
        return x


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"explainers": {"e": of_a_script()}}, r"`explainers\['e'\]` comes from a script or notebook \(__main__:own\)"),
        ({"sampling": {"u": of_a_script()}}, r"`sampling\['u'\]` comes from a script or notebook"),
        ({"model": lambda rows: rows}, "`model` has no import path .*<lambda>"),
        ({"model": Callable_(3)}, "`model` shows no settings .*Callable_"),
        ({"model": functools.partial(np.dot, Callable_(3))}, "`model` shows no settings .*Callable_"),
        ({"model": LogisticRegression().predict_proba}, "`model` shows no settings .*LogisticRegression"),
        ({"explainers": {"e": lambda model: None}}, r"`explainers\['e'\]` has no import path"),
        ({"explainers": {"e": functools.partial(RISE, mask=within())}}, r"`explainers\['e'\]` has no import path"),
        ({"explainers": {"e": functools.partial(RISE, mask=Plain())}}, r"`explainers\['e'\]` shows no settings"),
        ({"sampling": {"u": within()}}, r"`sampling\['u'\]` has no import path \(.*within\.<locals>\.function\)"),
        ({"sampling": {"u": Plain()}}, r"`sampling\['u'\]` shows no settings \(.*Plain\)"),
        ({"outer": {"u": Holding(within())}}, r"`outer\['u'\]` has no import path"),
        ({"outer": {"u": Holding({"a": [Plain()]})}}, r"`outer\['u'\]` shows no settings"),
        ({"metrics": {"own": lambda *arguments: 0}}, "`metrics` has no import path"),
        ({"metrics": {"faithfulness": {"baseline": lambda x: x}}}, "`metrics` has no import path"),
    ],
)
def test_what_cannot_be_told_apart_needs_a_version(changes, message):
    with pytest.raises(ValueError, match=f"(?s){message}.*or give the study a `version=`"):
        addresses(**changes)
    first, second, again = (addresses(version=version, **changes) for version in ("1", "2", "1"))
    assert first == again
    assert not set(first) & set(second)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@pytest.mark.parametrize(
    "things",
    [
        (1, 1.0, True, "1", None, b"1", 1 + 0j, np.float32(1), np.int64(1)),
        (Colour.RED, Colour.BLUE),
        ((1, 2), (1, 3), (2, 1), (1, (2,))),
        ({"a": 1}, {"a": 2}, {"b": 1}),
        ({1, 2}, {1, 3}),
        (np.zeros(3), np.ones(3), np.zeros((3, 1)), np.zeros(3, np.float32), torch.zeros(3), torch.zeros(3).half()),
        (torch.zeros(2000), torch.arange(2000), torch.cat([torch.zeros(1000), torch.ones(1), torch.zeros(999)])),
        (torch.float32, torch.float64),
        (Hiding(np.zeros(3)), Hiding(np.ones(3))),
        (Holding(np.zeros(2000)), Holding(np.arange(2000.0)), Holding(Holding(1)), Holding("Holding(part=1)")),
        (functools.partial(RISE, grid=3), functools.partial(RISE, grid=4), functools.partial(RISE, 3), RISE),
        (Masked(1.0), Masked(2.0), network(), network(torch.nn.Tanh), network(scale=2.0)),
        (np.abs, np.sqrt, np.dot, len),
        (Masked.predict, Masked.forward, Masked(1.0).predict, Masked(1.0).forward, Masked(2.0).predict),
    ],
)
def test_different_things_have_different_identities(things):
    texts = [identity(thing, "thing", None) for thing in things]
    assert len(set(texts)) == len(things), texts
    assert texts == [identity(thing, "thing", None) for thing in things]


def test_a_seed_of_an_explainers_own_does_not_count():
    assert identity(Hiding(np.zeros(3), 1), "thing", None) == identity(Hiding(np.zeros(3), 2), "thing", None)


PROGRAM = """
    import functools

    import numpy as np
    import torch

    import metfa
    from metfa.evaluation.units import units_of
    from metfa.explainers import RISE

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 3)).eval()
    study = metfa.Study(
        model=net, inputs=np.arange(24, dtype=np.float32).reshape(2, 3, 2, 2) / 24, metrics=["mstd"],
        explainers={"rise": functools.partial(RISE, n_masks=10), "named": "gradient"},
        sampling={"a": metfa.noise.Uniform(0.1), "b": metfa.noise.Gaussian(0.1)}, outer={"u": metfa.noise.Uniform(0.2)},
    )
    print(*(unit.address for unit in units_of(study, net)))
"""


@pytest.mark.slow
def test_addresses_are_equal_in_another_process(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    found = []
    for folder, seed in (("one", "1"), ("two", "2")):
        (tmp_path / folder).mkdir()
        done = subprocess.run(
            [sys.executable, path], capture_output=True, text=True, cwd=tmp_path / folder,
            env={**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": seed},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found.append(done.stdout.split())
    assert found[0] == found[1]
    assert len(set(found[0])) == 4
    assert all(len(address) == 32 for address in found[0])


def test_nothing_of_the_machine_is_in_an_identity():
    text = identity(functools.partial(RISE, n_masks=10), "thing", None)
    assert text == "metfa.explainers.rise:RISE(n_masks=10)"
    assert str(Path.cwd()) not in text
