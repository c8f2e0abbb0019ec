"""Infidelity: Captum's figure for the same draws, and its formula by hand."""

import numpy as np
import pytest
import torch

import metfa
from metfa import DegenerateAttributionsWarning
from metfa.metrics import infidelity

WEIGHTS = torch.from_numpy(np.random.default_rng(1).normal(size=(3, 2 * 4 * 4)))
IMAGES = torch.from_numpy(np.random.default_rng(0).random((3, 2, 4, 4)))
MAPS = np.random.default_rng(2).random((3, 4, 4))
NOISE = metfa.noise.Gaussian(0.1)


def linear(images):
    return images.flatten(1) @ WEIGHTS.T


def by_hand(maps, target, n, *, normalise):
    rows, values = metfa._rows.Rows(IMAGES), []
    for row, identity in enumerate(rows.ids()):
        products, changes = [], []
        for draw in range(n):
            rng = metfa._streams.stream(0, identity, draw, metfa._streams.Purpose.OUTER)
            noisy = torch.from_numpy(NOISE(rows[row], rng))
            products.append(((IMAGES[row] - noisy) * maps[row]).sum().item())
            changes.append((linear(IMAGES[row][None]) - linear(noisy[None]))[0, target].item())
        products, changes = np.array(products), np.array(changes)
        factor = (products * changes).mean() / (products**2).mean() if normalise else 1
        values.append(((factor * products - changes) ** 2).mean())
    return values


@pytest.mark.parametrize("normalise", [True, False])
def test_by_hand(normalise):
    maps = torch.from_numpy(MAPS)[:, None].expand_as(IMAGES)
    result = infidelity(
        linear, IMAGES, MAPS, 1, noise=NOISE, n_samples=7, normalise=normalise, softmax=False, batch_size=3
    )
    np.testing.assert_allclose(result.score, by_hand(maps, 1, 7, normalise=normalise))


def test_the_weights_of_a_linear_model_are_without_fault():
    rows = IMAGES.flatten(1)
    result = infidelity(lambda x: x @ WEIGHTS.T, rows, WEIGHTS[:1].expand(3, -1), 0, noise=NOISE, softmax=False)
    np.testing.assert_allclose(result.score, 0, atol=1e-12)


def test_batches_and_neighbours_do_not_matter():
    expected = infidelity(linear, IMAGES, MAPS, noise=NOISE).score
    np.testing.assert_allclose(infidelity(linear, IMAGES, MAPS, noise=NOISE, batch_size=1).score, expected)
    np.testing.assert_allclose(infidelity(linear, IMAGES[1:2], MAPS[1:2], noise=NOISE).score, expected[1:2])


def test_only_bad_maps_have_no_score():
    maps = MAPS.copy()
    maps[0] = 1
    maps[2, 0, 0] = np.nan
    with pytest.warns(DegenerateAttributionsWarning) as warned:
        result = infidelity(linear, IMAGES, maps, noise=NOISE)
    assert [str(one.message) for one in warned] == [
        "1 of 3 inputs have constant attributions: 0",
        "1 of 3 inputs have attributions with NaN or infinity: 2",
    ]
    assert np.isnan(result.score).tolist() == [True, False, True]


def test_global_generators_are_not_drawn_from():
    before = torch.get_rng_state()
    infidelity(linear, IMAGES, MAPS, noise=NOISE)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("arguments", "settings", "error", "message"),
    [
        ((IMAGES.numpy(), MAPS), {}, TypeError, r"`inputs` must be a torch\.Tensor, got ndarray"),
        ((IMAGES, MAPS[:, :2]), {}, ValueError, r"`attributions` must have the shape \(3, 4, 4\)"),
        ((IMAGES, MAPS), {"noise": 0.1}, TypeError, r"`noise` must be a function"),
        ((IMAGES, MAPS), {"n_samples": 0}, ValueError, r"`n_samples` must be at least 1"),
    ],
)
def test_bad_arguments(arguments, settings, error, message):
    with pytest.raises(error, match=message):
        infidelity(linear, *arguments, **{"noise": NOISE, **settings})
