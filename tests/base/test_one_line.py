"""The repr of explainers fits a line, and shows what differs from the usual."""

import numpy as np
import pytest
from torch import nn

import metfa
from metfa import explainers, text


def map_of(inputs, target):
    return np.abs(inputs)


NET = nn.Sequential(*[nn.Conv2d(3, 3, 3) for _ in range(40)]).eval()


@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        (explainers.Gradient(NET), "Gradient(Sequential)"),
        (explainers.RISE(NET, n_masks=500, rng=3), "RISE(Sequential, n_masks=500)"),
        (explainers.RISE(metfa.Called(NET, softmax=False)), "RISE(Called(Sequential, softmax=False))"),
        (explainers.heatmap(explainers.Gradient(NET)), "Heatmap(Gradient(Sequential))"),
        (metfa.Called(NET, batch_size=4), "Called(Sequential, batch_size=4)"),
        (metfa.FixedBatch(NET, 4), "FixedBatch(Sequential, 4)"),
        (text.LEMNA(len), "LEMNA(Called(len, softmax=False))"),
        (metfa.Smoothed(map_of, noise=metfa.noise.Uniform(0.1), n_samples=9),
         "Smoothed(map_of, noise=Uniform(radius=0.1, bounds=None), n_samples=9)"),
    ],
)  # fmt: skip
def test_repr(thing, expected):
    assert repr(thing) == expected


def test_long_and_foreign_parts_are_only_named():
    odd = explainers.RISE(NET, baseline=tuple(range(1, 60)))
    assert "\n" not in repr(odd)
    assert len(repr(odd)) <= 100
    assert repr(metfa.Called(np.ones((2, 3)).dot)) == "Called(ndarray.dot)"


def test_the_description_in_results_is_as_ever():
    from metfa._base.provenance import describe

    assert describe(explainers.Gradient(NET)).startswith("Gradient(called=Called(model=Sequential, batch_size=None")
