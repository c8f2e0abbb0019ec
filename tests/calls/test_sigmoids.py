"""A softmax over the sigmoids of a multi-label network mixes its labels, so metfa warns."""

import numpy as np
import pytest
import torch

import metfa
from metfa import metrics
from metfa.explainers import IGOS, LIME, MASK, RISE

IMAGES = np.random.default_rng(0).random((4, 3, 8, 8))
SAID = r"look like sigmoids of a multi-label network.* write `metfa.Called\(model, softmax=False\)`"


def labels(images):
    """Two labels that may hold together."""
    logits = 8 * np.stack([images[..., :4].mean((1, 2, 3)), images[..., 4:].mean((1, 2, 3))], axis=1) - 4
    return 1 / (1 + np.exp(-logits))


@pytest.mark.parametrize("explainer", [RISE, LIME])
def test_an_explainer_by_probabilities_warns(explainer):
    few = {"n_masks": 20} if explainer is RISE else {"n_perturbations": 20, "segmentation": np.eye(8, dtype=int)}
    with pytest.warns(metfa.ModelOutputWarning, match=SAID):
        explainer(labels, rng=0, **few)(IMAGES, 0)
    explainer(metfa.Called(labels, softmax=False), rng=0, **few)(IMAGES, 0)
    explainer(lambda images: 9 * labels(images), rng=0, **few)(IMAGES, 0)


@pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning")  # two steps move no mask
@pytest.mark.parametrize("explainer", [MASK, IGOS])
def test_so_does_an_optimised_mask(explainer):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 2), torch.nn.Sigmoid()).eval()
    with pytest.warns(metfa.ModelOutputWarning, match=SAID):
        explainer(net, n_iterations=2)(torch.from_numpy(IMAGES).float(), 0)


def test_a_metric_warns():
    maps = np.random.default_rng(1).random((4, 8, 8))
    with pytest.warns(metfa.ModelOutputWarning, match=SAID):
        metrics.deletion(labels, IMAGES, maps, 0)
    metrics.deletion(metfa.Called(labels, softmax=False), IMAGES, maps, 0)


def test_few_numbers_may_be_logits():
    one_logit = [[0.0, 0.3], [0.0, 0.8]]
    for scores in ([[0.2, 0.3, 0.9]], [[0.0] * 8], [[0.2] * 7 + [1.4]], 4 * one_logit):
        metfa.Called(labels).targets(0, np.array(scores))
    with pytest.warns(metfa.ModelOutputWarning, match="look like probabilities"):
        metfa.Called(labels).targets(0, np.array([[0.7, 0.3]]))
    with pytest.warns(metfa.ModelOutputWarning, match=SAID):  # one input of several labels
        metfa.Called(labels).targets(0, np.array([[0.2, 0.3, 0.9, 0.8, 0.1, 0.1, 0.4, 0.6]]))
