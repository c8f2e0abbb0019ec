"""Names of explainers and noises: equal in every process, different for other settings, never a dump."""

import functools
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass

import numpy as np
import pytest

import metfa
from metfa._base.provenance import describe, method_of, printable

THINGS = """
    import functools
    from dataclasses import dataclass

    import numpy as np
    import torch
    from captum.attr import IntegratedGradients, Saliency

    import metfa

    @dataclass
    class Settings:
        radius: float
        inner: object = None

    class Plain:
        def explain(self, inputs, target):
            return inputs

        @classmethod
        def of_class(cls, inputs, target):
            return inputs

    class Named:
        def __repr__(self):
            return f"Named({Plain()!r}, {len})"

    def function(inputs, target, weight=1):
        return inputs

    @metfa.randomised
    def random_one(inputs, target, *, rngs):
        return inputs

    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 3))
    gradient = metfa.explainers.Gradient(model)
    things = [
        lambda x, rng: x,
        function,
        functools.partial(function, weight=np.arange(1000.0)),
        functools.partial(functools.partial(function, weight=2), target=lambda: 0),
        Plain().explain,
        Plain.of_class,
        Plain,
        Plain(),
        Named(),
        Settings(0.1, inner=Plain()),
        len,
        np.add,
        random_one,
        metfa.seeded(Saliency(model).attribute),
        gradient,
        metfa.Smoothed(gradient, noise=metfa.noise.Uniform(0.1), rng=np.random.default_rng(0)),
        metfa.Smoothed(metfa.Smoothed(gradient, noise=lambda x, rng: x), noise=metfa.noise.Gaussian(0.1)),
        metfa.noise.Compose(function, metfa.noise.Uniform(0.1), Plain().explain),
        metfa.noise.in_pixel_space(metfa.noise.Uniform(0.1), [0.5] * 3, [0.2] * 3),
        metfa.explainers.heatmap(Saliency(model).attribute),
        Saliency(model).attribute,
        IntegratedGradients(model.forward).attribute,
        functools.partial(IntegratedGradients(model).attribute, n_steps=5),
        np.random.default_rng(0),
        {"a": Plain(), "b": [Plain(), None]},
        (function, 1, "text", 2.5, True, None),
        np.array([Plain]),
    ]
"""


SHOWN = "\nfrom metfa._base.provenance import describe\ndescribed = list(map(describe, things))"


@functools.cache
def described():
    """As this process says it, whose hashes have a random seed."""
    names = {"__name__": "__main__"}
    exec(textwrap.dedent(THINGS) + SHOWN, names)
    return names["described"]


@pytest.mark.slow
def test_names_are_equal_in_every_process():
    code = textwrap.dedent(THINGS) + SHOWN + "\nprint(*described, sep='\\n')"
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
        env={"PYTHONHASHSEED": seed, "OMP_NUM_THREADS": "1"},
    )
    assert done.stdout.splitlines() == described()
    assert len(described()) == 27


def test_names_hold_no_addresses_and_no_dumps():
    for name in described():
        assert "0x" not in name
        assert len(name) <= 350
        assert name.isprintable()
        assert "Linear(" not in name


def test_names_say_what_was_used():
    for expected in (
        "<lambda>",
        "Plain.explain",
        "Plain.of_class",
        "Settings(radius=0.1, inner=Plain)",
        "Gradient(called=Called(model=Sequential, batch_size=None, softmax=True, fast=None, memory_format='auto'), "
        "channel_axis=1, scale=True)",
        "Saliency.attribute",
        "IntegratedGradients.attribute(n_steps=5)",
        "Generator(PCG64)",
        "Named(<__main__.Plain object>, <built-in function len>)",
        "(function, 1, 'text', 2.5, True, None)",
    ):
        assert expected in described()


@dataclass
class Setting:
    radius: float
    weights: object = None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Setting(0.1), Setting(0.2)),
        (Setting(0.1, np.zeros((50, 50))), Setting(0.1, np.eye(50))),
        (functools.partial(print, 1), functools.partial(print, 2)),
        (functools.partial(print, sep=np.arange(5)), functools.partial(print, sep=np.arange(1, 6))),
        (np.zeros(3), np.zeros(3, dtype=np.float32)),
        (np.zeros((3, 1)), np.zeros((1, 3))),
        (list(range(500)), [*range(499), -1]),
        (metfa.noise.Compose(*[metfa.noise.Uniform(0.1)] * 20), metfa.noise.Compose(*[metfa.noise.Uniform(0.1)] * 21)),
    ],
)
def test_other_settings_have_another_name(one, other):
    assert describe(one) != describe(other)
    assert describe(one) == describe(one)


def test_long_names_are_cut_with_a_digest():
    name = describe("x" * 10_000)
    assert len(name) < 340
    assert name.startswith("'xxx")
    assert name != describe("x" * 10_001)


def test_text_from_outside_cannot_write_to_a_terminal():
    assert printable("a\x1b[31mred\x07\r\n\tb\u202e\x9b") == "a?[31mred? b??"
    assert printable("Käse – 中文 [red]") == "Käse – 中文 [red]"


def test_a_name_is_on_one_line():
    class Hostile:
        def __repr__(self):
            return "evil \x1b]0;title\x07"

    assert describe(Hostile()) == "evil ?]0;title?"


def test_a_method_is_named_by_what_is_inside_of_wrappers():
    def mine(inputs, target=None):
        return inputs

    inside = "PermutationExplainer, predict=Coded(model=Pipeline.predict_proba), settings={silent: True}"
    for described, name in (
        (f"seeded(explainer=ShapExplainer(explainer={inside}))", "PermutationExplainer"),
        (f"shares of seeded(explainer=ShapExplainer(explainer={inside}))", "shares of PermutationExplainer"),
        ("CaptumMethod(attribution=IntegratedGradients, settings={})", "IntegratedGradients"),
        (describe(metfa.seeded(mine)), f"{mine.__qualname__.replace('.<locals>', '')}"),
        ("Gradient(model=Net, more=(1, 2))", "Gradient"),
        ("SmoothGrad(explainer=Gradient(model=Net))", "SmoothGrad"),
        ("my explainer", "my explainer"),
        (None, "explanation"),
    ):
        assert method_of(described) == name
