"""The model's score of a region alone."""

import numpy as np
import pytest
import torch

from metfa import Called, DegenerateAttributionsWarning
from metfa.metrics import region_score

IMAGES = np.random.default_rng(0).random((3, 2, 4, 5))
REGIONS = np.random.default_rng(1).random((3, 4, 5)) > 0.5


def brightness(images):
    mean = images.mean(axis=(1, 2, 3))
    return np.stack([mean, 1 - mean], axis=1)


def test_by_hand():
    kept = np.where(REGIONS[:, None], IMAGES, 0).mean(axis=(1, 2, 3))
    result = region_score(Called(brightness, softmax=False, batch_size=2), IMAGES, REGIONS, 0)
    np.testing.assert_allclose(result.raw, kept)
    np.testing.assert_allclose(result.score, kept / IMAGES.mean(axis=(1, 2, 3)))


def test_the_whole_image_has_the_clean_score():
    result = region_score(Called(brightness, softmax=False), IMAGES, np.ones_like(REGIONS), 0)
    np.testing.assert_allclose(result.score, 1)


def test_torch_and_baselines():
    model = lambda images: torch.stack([images.mean((1, 2, 3)), 1 - images.mean((1, 2, 3))], 1)  # noqa: E731
    images, regions = torch.from_numpy(IMAGES), torch.from_numpy(REGIONS)
    result = region_score(Called(model, softmax=False), images, regions, 0, baseline=(0.2, 0.7))
    filled = np.where(REGIONS[:, None], IMAGES, np.array([0.2, 0.7])[:, None, None]).mean(axis=(1, 2, 3))
    np.testing.assert_allclose(result.raw, filled)


def test_an_empty_region_has_no_score():
    regions = REGIONS.copy()
    regions[1] = False
    with pytest.warns(DegenerateAttributionsWarning, match="1 of 3 inputs have an empty region: 1"):
        result = region_score(Called(brightness, softmax=False), IMAGES, regions, 0)
    assert np.isnan(result.score).tolist() == [False, True, False]


def test_table():
    model = lambda rows: np.stack([rows[:, 1], 1 - rows[:, 1]], axis=1)  # noqa: E731
    rows, regions = np.array([[5.0, 0.5], [2.0, 0.8]]), np.array([[True, False], [False, True]])
    result = region_score(Called(model, softmax=False), rows, regions, 0, baseline=np.array([3.0, 0.25]))
    np.testing.assert_allclose(result.raw, [0.25, 0.8])


def test_a_target_out_of_range_names_its_input():
    with pytest.raises(ValueError, match=r"must lie in 0\.\.1 .* got 2 for input 1"):
        region_score(Called(brightness, softmax=False), IMAGES, REGIONS, [0, 2, 0])


@pytest.mark.parametrize(
    ("regions", "error", "message"),
    [
        (REGIONS.astype(np.int8), TypeError, "`regions` must be boolean, got int8: .* write `significance == 1`"),
        (REGIONS[:, :2], ValueError, r"`regions` must have the shape \(3, 4, 5\)"),
    ],
)
def test_bad_regions(regions, error, message):
    with pytest.raises(error, match=message):
        region_score(brightness, IMAGES, regions)
