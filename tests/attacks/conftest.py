"""Small networks and pictures that the tests of attacks share."""

import functools
from copy import deepcopy
from functools import partial
from pathlib import Path

import pytest
import torch
from captum.attr import InputXGradient, IntegratedGradients, LayerGradCam
from torch import nn

import metfa
from metfa.explainers import CAM, LRP, Gradient, SmoothGrad, from_captum, heatmap
from metfa.noise import Uniform


def pytest_collection_modifyitems(items):
    """Attacks here are short on purpose."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::metfa.WeakAttackWarning"))


QUICK = {"settings": "dombrowski", "n_steps": 60, "step_size": 4e-3, "check_every": 10, "rng": 0}
EXPLAINERS = {
    "Gradient": Gradient,
    "SmoothGrad": lambda model: SmoothGrad(model, n_perturbations=3, rng=0),
    "CAM": CAM,
    "LRP": LRP,
    "input x gradient": lambda model: heatmap(InputXGradient(model).attribute),
    "integrated gradients": lambda model: from_captum(model, "IntegratedGradients", n_steps=5),
    "integrated gradients of Captum": lambda model: heatmap(partial(IntegratedGradients(model).attribute, n_steps=5)),
    "Grad-CAM": lambda model: heatmap(LayerGradCam(model, model[2]).attribute),
}


def defended(explainer, **settings):
    return metfa.Smoothed(explainer, **{"noise": Uniform(0.05, bounds=(0, 1)), "n_samples": 6, **settings})


TINTS = torch.eye(3)[:, :, None, None]


def tinted(n, generator):
    """Noise, brighter in the first, second or third colour in turn, and the class that says in which."""
    classes = torch.arange(n) % 3
    return 0.8 * torch.rand(n, 3, 8, 10, generator=generator) + 0.2 * TINTS[classes], classes


@functools.cache
def trained_network(activation):
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(3, 6, 3, padding=1), activation(), nn.Conv2d(6, 8, 3, padding=1), activation(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3),
        )  # fmt: skip
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(35):
        pictures, classes = tinted(24, generator)
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(pictures), classes).backward()
        optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    return model.eval()


def make_network(activation=nn.ReLU, dtype=torch.float64):
    """A network that tells the three tints apart."""
    return deepcopy(trained_network(activation)).to(dtype)


@pytest.fixture
def network():
    return make_network()


@pytest.fixture
def pictures():
    """One of each class."""
    return tinted(3, torch.Generator().manual_seed(1))[0].double()


@pytest.fixture
def corner():
    """A target map: the upper left corner."""
    drawn = torch.zeros(8, 10, dtype=torch.float64)
    drawn[:4, :4] = 1
    return drawn
