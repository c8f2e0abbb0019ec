"""SmoothGrad against a loop by hand, and against the gradient where the noise is none."""

import numpy as np
import pytest
import torch

import metfa
from metfa.explainers import Gradient, SmoothGrad


def network(dtype=torch.float64):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = (torch.nn.Conv2d(3, 4, 3), torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(4 * 12, 3))
        return torch.nn.Sequential(*layers).eval().to(dtype)


NET = network()
IMAGES = torch.rand(3, 3, 6, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def generators():
    return [np.random.default_rng([7, row]) for row in range(3)]


def by_hand(image, target, rng, n, std, average):
    seeds, total = rng.integers(0, 2**63, n), np.zeros((3, 6, 5))
    for seed in seeds:
        noise = np.random.default_rng(seed).standard_normal((3, 6, 5), np.float32) * np.float32(std)
        leaf = (image + torch.from_numpy(noise).double())[None].requires_grad_()
        gradient = torch.autograd.grad(NET(leaf)[0, target], leaf)[0][0].numpy()
        total += gradient if average == "signed" else np.abs(gradient)
    return np.abs(total / n).max(axis=0)


@pytest.mark.parametrize("average", ["signed", "absolute"])
def test_equals_a_loop_by_hand(average):
    explainer = SmoothGrad(NET, n_perturbations=20, std=0.3, average=average, scale=False)
    maps, scores = explainer(IMAGES, [0, 2, 1], rngs=generators())
    for row, (target, rng) in enumerate(zip([0, 2, 1], generators(), strict=True)):
        expected = by_hand(IMAGES[row], target, rng, 20, 0.3, average)
        np.testing.assert_allclose(maps[row], expected, rtol=1e-5)
    assert torch.equal(scores, NET(IMAGES))


def test_without_noise_is_the_gradient():
    maps, _ = SmoothGrad(NET, std=0.0)(IMAGES, [0, 1, 2])
    np.testing.assert_allclose(maps, Gradient(NET)(IMAGES, [0, 1, 2])[0], atol=1e-12)


@pytest.mark.parametrize("batch_size", [1, 7, 100])
def test_batch_size_changes_nothing(batch_size):
    expected, _ = SmoothGrad(NET)(IMAGES, 0, rngs=generators())
    maps, _ = SmoothGrad(metfa.Called(NET, batch_size=batch_size))(IMAGES, 0, rngs=generators())
    np.testing.assert_allclose(maps, expected, atol=1e-12)


def test_too_large_a_batch_is_repeated_with_the_same_noise():
    def model(images):
        if len(images) > 5:
            raise RuntimeError("CUDA out of memory")
        return NET(images)

    maps, _ = SmoothGrad(model)(IMAGES[:2], 0, rngs=generators()[:2])
    np.testing.assert_allclose(maps, SmoothGrad(NET)(IMAGES[:2], 0, rngs=generators()[:2])[0], atol=1e-12)


def test_float32_and_bfloat16():
    expected, _ = SmoothGrad(NET)(IMAGES, 0, rngs=generators())
    for dtype, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 0.1)):
        maps, _ = SmoothGrad(network(dtype))(IMAGES.to(dtype), 0, rngs=generators())
        assert maps.dtype == torch.float32
        np.testing.assert_allclose(maps, expected, atol=tolerance)


def test_differentiable_where_the_inputs_require_it():
    inputs = IMAGES[:1].clone().requires_grad_()
    explainer = SmoothGrad(NET, n_perturbations=3, scale=False)
    assert torch.autograd.gradcheck(lambda x: explainer(x, 0, rngs=generators()[:1])[0], (inputs,))


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"n_perturbations": 0}, ValueError, "`n_perturbations` must be at least 1, got 0"),
        ({"std": -1.0}, ValueError, r"`std` must be finite and not negative, got -1\.0"),
        ({"std": "0.1"}, TypeError, "`std` must be a number, got str"),
        ({"average": "mean"}, ValueError, "`average` must be one of 'signed', 'absolute', got 'mean'"),
    ],
)
def test_unfit(settings, error, message):
    with pytest.raises(error, match=message):
        SmoothGrad(NET, **settings)
