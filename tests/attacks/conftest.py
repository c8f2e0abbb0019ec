"""Small networks and pictures that the tests of attacks share."""

import pytest
import torch
from torch import nn


def make_network(activation=nn.ReLU, dtype=torch.float64, classes=3):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return (
            nn.Sequential(
                nn.Conv2d(3, 6, 3, padding=1), activation(), nn.Conv2d(6, 8, 3, padding=1), activation(),
                nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, classes),
            )
            .to(dtype)
            .eval()
        )  # fmt: skip


@pytest.fixture
def network():
    return make_network()


@pytest.fixture
def pictures():
    return torch.rand(3, 3, 8, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def corner():
    """A target map: the upper left corner."""
    drawn = torch.zeros(8, 10, dtype=torch.float64)
    drawn[:4, :4] = 1
    return drawn
