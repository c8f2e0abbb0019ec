"""Grids, blocks and windows: every feature is in one cell, sizes differ by at most one, names say which features."""

import re

import numpy as np
import pytest
import torch

import metfa
from metfa import regions


def places_of(name):
    """The slices that a name says."""
    return tuple(
        slice(int(first), int(last or first) + 1) for first, last in re.findall(r"[a-z] (\d+)(?:-(\d+))?", name)
    )


@pytest.mark.parametrize(
    ("found", "count"),
    [
        (regions.grid((12, 20), 4), 16),
        (regions.grid((13, 20), (5, 3)), 15),
        (regions.grid(torch.Size([7, 7]), 7), 49),
        (regions.grid([np.int64(9), 5], (1, 2)), 2),
        (regions.blocks((6, 7, 9), (3, 2, 4)), 24),
        (regions.windows((103,), 10), 11),
        (regions.windows((100,), 100), 1),
        (regions.windows((5,), 1), 5),
    ],
)
def test_cells(found, count):
    masks = found.as_masks()
    assert len(found) == len(masks) == count
    assert (masks.sum(axis=0) == 1).all()
    for mask, name in zip(masks, found.names, strict=True):
        expected = np.zeros_like(mask)
        expected[places_of(name)] = True
        np.testing.assert_array_equal(mask, expected)
    sizes = masks.reshape(count, -1).sum(1)
    if masks.ndim > 2:
        sides = np.array([[place.stop - place.start for place in places_of(name)] for name in found.names])
        assert (np.ptp(sides, axis=0) <= 1).all()
    else:
        assert (sizes[:-1] == sizes[0]).all()


def test_names_of_one_row():
    assert regions.grid((3, 4), (3, 2)).names[:2] == ("row 0, columns 0-1", "row 0, columns 2-3")


def test_the_last_window_is_shorter_and_says_so():
    found = regions.windows((25,), 10)
    assert found.names == ("steps 0-9", "steps 10-19", "steps 20-24 (shorter)")
    np.testing.assert_allclose(found.shares(), [[0.4, 0.4, 0.2]])


def test_channels_of_a_region_are_together():
    np.testing.assert_array_equal(regions.grid((3, 8, 8), 2).masks[0], [regions.grid((8, 8), 2).masks[0]] * 3)
    last = regions.grid((8, 8, 3), 2).masks[0]
    np.testing.assert_array_equal(last, np.moveaxis([regions.grid((8, 8), 2).masks[0]] * 3, 0, -1))
    np.testing.assert_array_equal(regions.grid((512, 7, 7), 2).masks[0][100], regions.grid((7, 7), 2).masks[0])
    np.testing.assert_array_equal(regions.blocks((2, 4, 4, 4), 2).masks[0][1], regions.blocks((4, 4, 4), 2).masks[0])


class TestWindowsOfChannels:
    def test_together(self):
        labels = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]
        np.testing.assert_array_equal(regions.windows((3, 10), 4).masks[0], [labels] * 3)
        np.testing.assert_array_equal(regions.windows((10, 3), 4, axis=0).masks[0], np.transpose([labels] * 3))
        np.testing.assert_array_equal(regions.windows((10, 3), 4, axis=-2).masks[0], np.transpose([labels] * 3))

    def test_apart(self):
        found = regions.windows((4, 2), 2, axis=0, together=False)
        np.testing.assert_array_equal(found.masks[0], [[0, 2], [0, 2], [1, 3], [1, 3]])
        assert found.names[2] == "channel 1, steps 0-1"


def test_of_a_result():
    series = np.random.default_rng(0).random((2, 30))
    sample = metfa.explain(lambda x, target: x**2, series, 0, noise=metfa.noise.Uniform(0.1), n_samples=12, rng=0)
    found = regions.windows(sample, 10, against="rest")
    expected = sample.values[:, 0, 10:20].mean(1) - np.delete(sample.values[:, 0], np.s_[10:20], axis=1).mean(1)
    np.testing.assert_allclose(sample.over(found).values[:, 0, 1], expected)
    with pytest.raises(
        ValueError, match=r"maps \(height, width\) .* got maps of shape \(30,\); `metfa.regions.windows`"
    ):
        regions.grid(sample)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: regions.grid((8, 8), 9), ValueError, "`cells` must be at most the number of rows, 8, got 9"),
        (lambda: regions.grid((8, 5), (8, 6)), ValueError, "`cells` must be at most the number of columns, 5, got 6"),
        (lambda: regions.grid((8, 8), 0), ValueError, "`cells` must be at least 1, got 0"),
        (lambda: regions.grid((8, 8), 2.0), TypeError, "`cells` must be an integer, or one for each axis"),
        (lambda: regions.grid((8, 8), (1, 2, 3)), ValueError, r"one for each of rows, columns, got tuple: \(1, 2, 3\)"),
        (lambda: regions.grid((8, 8), 1, against="rest"), ValueError, "covers everything and has no rest"),
        (lambda: regions.grid(np.zeros((8, 8))), TypeError, r"got an array of shape \(8, 8\): write its shape"),
        (lambda: regions.grid(()), ValueError, r"`of` must have at least one axis, such as \(224, 224\)"),
        (lambda: regions.grid((8, 0)), ValueError, "`of` must be at least 1, got 0"),
        (lambda: regions.grid("8x8"), TypeError, "`of` must be an AttributionSample or the shape of its maps"),
        (lambda: regions.grid(8), TypeError, "`of` must be an AttributionSample or the shape .* got int: 8"),
        (lambda: regions.blocks((8, 8)), ValueError, r"maps \(depth, height, width\) .* got maps of shape \(8, 8\)"),
        (lambda: regions.blocks((8, 8, 8), 9), ValueError, "`cells` must be at most the number of slices, 8, got 9"),
        (lambda: regions.windows((8,), 0), ValueError, "`length` must be at least 1, got 0"),
        (lambda: regions.windows((8,), 9), ValueError, "`length` must be at most 8, the length of the series, got 9"),
        (lambda: regions.windows((8, 2), 2, axis=2), ValueError, r"an axis of maps of shape \(8, 2\), got 2"),
        (lambda: regions.windows((8, 2), 2, axis="time"), TypeError, "`axis` must be an integer, got str: 'time'"),
        (lambda: regions.windows((8, 2), 2, together=1), TypeError, "`together` must be True or False, got int: 1"),
        (lambda: regions.windows((8,), 2, together=1), TypeError, "`together` must be True or False, got int: 1"),
        (lambda: regions.windows((8, 2, 2), 2), ValueError, r"maps \(time,\) or .* got maps of shape \(8, 2, 2\)"),
    ],
)
def test_what_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
