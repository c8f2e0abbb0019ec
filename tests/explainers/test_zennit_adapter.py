"""Zennit's attributors as explainers: the lines that the documentation gives."""

import numpy as np
import pytest
import torch
from zennit.attribution import Gradient, IntegratedGradients, SmoothGrad
from zennit.composites import EpsilonPlusFlat

import metfa
from metfa.explainers import heatmap
from metfa.explainers.lrp import LRP

PIXELS = torch.rand(2, 3, 6, 5, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def net():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return torch.nn.Sequential(
            torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(48, 3)
        ).eval()


def explainer_of(attributor):
    def explainer(inputs, target):
        chosen = torch.nn.functional.one_hot(target, 3)
        scores, relevance = attributor(inputs, lambda scores: scores * chosen)
        return relevance, scores

    return explainer


def test_gradient_with_a_composite_is_lrp(net):
    explainer = explainer_of(Gradient(net, EpsilonPlusFlat()))
    sample = metfa.explain(
        explainer, PIXELS, noise=metfa.noise.Uniform(0.1, bounds=(0, 1)), predict=net, n_samples=5, rng=0
    )
    ours = metfa.explain(
        LRP(net, composite="epsilon_plus_flat", scale=False, channel_axis=None), PIXELS,
        noise=metfa.noise.Uniform(0.1, bounds=(0, 1)), n_samples=5, rng=0,
    )  # fmt: skip
    np.testing.assert_allclose(sample.values, ours.values, atol=1e-5 * np.abs(ours.values).max())
    np.testing.assert_allclose(sample.scores, ours.scores, atol=1e-6)
    assert not any(module._forward_hooks for module in net.modules())


@pytest.mark.parametrize("composite", [None, EpsilonPlusFlat])
def test_integrated_gradients(net, composite):
    attributor = IntegratedGradients(net, composite and composite(), n_iter=5)
    sample = metfa.explain(
        heatmap(explainer_of(attributor)), PIXELS, 1, noise=metfa.noise.Uniform(0.1, bounds=(0, 1)), predict=net,
        n_samples=5, rng=0,
    )  # fmt: skip
    assert sample.values.shape == (5, 2, 6, 5)
    _, expected = attributor(PIXELS, lambda scores: scores * torch.eye(3)[1])
    np.testing.assert_allclose(sample.vanilla, heatmap(lambda inputs, target: expected)(PIXELS, 1), atol=1e-6)


def test_smooth_grad_draws_from_the_global_generator_so_it_is_seeded(net):
    explainer = metfa.seeded(explainer_of(SmoothGrad(net, EpsilonPlusFlat(), n_iter=3)))
    samples = [
        metfa.explain(explainer, PIXELS, 1, noise=None, predict=net, n_samples=5, rng=0, batch_size=size)
        for size in (1, 7)
    ]
    np.testing.assert_array_equal(samples[0].values, samples[1].values)
    assert samples[0].std().max() > 0
