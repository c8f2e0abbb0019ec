"""Samples packed into cells: at each edge the counts are those of the sign test, ties included."""

import base64
import zlib

import numpy as np
import pytest

from metfa import stats
from metfa.report import _cells, _layers
from metfa.report._cells import Edges, Samples, edges_of
from metfa.report._planes import as_words, packed_planes

RNG = np.random.default_rng(0)
VALUES = {
    "uniform": RNG.random((20, 50)).astype(np.float32),
    "half precision, many ties": RNG.random((30, 40)).astype(np.float16),
    "few values": RNG.integers(-3, 4, (25, 30)),
    "zeros": np.where(RNG.random((12, 40)) < 0.5, 0, RNG.normal(size=(12, 40))),
    "far apart": RNG.normal(size=(9, 20)) * 10.0 ** RNG.integers(-12, 12, (9, 20)),
    "constant": np.full((5, 7), 0.25),
    "one sample": RNG.random((1, 30)),
    "one feature": RNG.random((40, 1)),
    "300 samples": RNG.integers(0, 9, (300, 6)) / 8,
}


def bytes_of(text, dtype=np.uint8):
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype)


def counts(samples, edge):
    """Above and below, as the page reads them."""
    data = samples.data
    n, size = data["n"], data["size"]
    if data["encoding"] == "cells":
        cells = np.cumsum(bytes_of(data["cells"]).reshape(n, size), axis=0, dtype=np.uint8)
        return (cells > 2 * edge + 1).sum(0), (cells < 2 * edge + 1).sum(0)
    below = planes_of(data["below"])[edge].ravel()
    at = planes_of(data["at"])[edge].ravel() if "at" in data else 0
    return n - below - at, below


def planes_of(packed):
    """Planes, number by number, as the page reads them."""
    found = []
    for text in packed["planes"]:
        of_bytes = bytes_of(text).astype(np.int64).reshape(packed["bits"] // 8, -1)
        folded = sum(low << (8 * k) for k, low in enumerate(of_bytes)).tolist()
        apart = []
        for p, number in enumerate(folded):
            left = apart[-1] if apart else 0
            above = apart[p - packed["columns"]] if p >= packed["columns"] else left
            apart.append((-(number + 1) // 2 if number % 2 else number // 2) + (left + above) // 2)
        found.append(np.array(apart) + (found[-1] if found else 0))
    return np.array(found)


def samples_of(values, thresholds, **settings):
    return Samples.of(values, Edges.of(values, thresholds, **settings))


@pytest.mark.parametrize("one_by_one", [True, False])
@pytest.mark.parametrize("name", VALUES)
def test_counts_at_every_edge_are_those_of_the_test(name, one_by_one, monkeypatch):
    if not one_by_one:
        monkeypatch.setattr(_cells, "MOST_CELLS", 0)
    monkeypatch.setattr(_cells, "BLOCK", 90)  # several blocks of rows, the last one smaller
    values = VALUES[name]
    samples = samples_of(values, [0.0, float(np.median(values.astype(float))), 1e300])
    assert samples.data["encoding"] == ("cells" if one_by_one else "counts")
    assert len(samples.edges) <= (127 if one_by_one else 15)
    for edge, height in enumerate(samples.edges):
        expected = stats.sign_test(values, height)
        above, below = counts(samples, edge)
        assert np.array_equal(above, expected.above)
        assert np.array_equal(below, expected.below)


def test_the_heights_asked_for_are_edges():
    edges = edges_of(0.0, 1.0, [0.123456789, 0.0, 7.0], 127)
    assert {0.123456789, 0.0, 7.0} <= set(edges)
    assert (np.diff(edges) > 0).all()
    assert len(edges) == 127
    assert np.diff(edges[:-1]).max() < 2.1 / 127  # a grid all the same


@pytest.mark.parametrize("most", [1, 3, 127])
def test_never_more_edges_than_fit(most):
    assert len(edges_of(0.0, 1.0, [0.2, 0.3], most)) == most
    assert edges_of(0.5, 0.5, [np.nan], most).size == 0
    assert list(edges_of(0.5, 0.5, [0.5], most)) == [0.5]
    assert len(edges_of(0.5, 0.5, [0.2, 0.3], most)) == min(most, 2)


def test_many_features_get_few_edges(monkeypatch):
    monkeypatch.setattr(_cells, "MOST_CELLS", 0)
    monkeypatch.setattr(_cells, "COUNTS", 100)
    assert len(samples_of(RNG.random((4, 10)), [0.5]).edges) == 5
    assert len(samples_of(RNG.random((4, 1000)), [0.5]).edges) == 3


@pytest.mark.parametrize("one_by_one", [True, False])
def test_scores_at_0_to_rounding_are_on_neither_side_of_it(one_by_one, monkeypatch):
    """As `Terms.unit` has it: the page counts them as the library does, and has no stop where they would lie beyond."""
    if not one_by_one:
        monkeypatch.setattr(_cells, "MOST_CELLS", 0)
    values = np.where(RNG.random((20, 30)) < 0.5, 1e-7, RNG.normal(size=(20, 30)))
    samples = samples_of(values, [0.0], zone=1e-6)
    (at,) = np.flatnonzero(samples.edges == 0)
    above, below = counts(samples, at)
    assert np.array_equal(above, (values > 1e-6).sum(0))
    assert np.array_equal(below, (values < -1e-6).sum(0))
    assert not ((np.abs(samples.edges) <= 1e-6) & (samples.edges != 0)).any()
    near = samples_of(np.linspace(-5e-7, 5e-7, 40).reshape(20, 2), [0.0], zone=1e-6)
    assert near.edges.tolist() == [0.0]


@pytest.mark.parametrize("shape", [(0, 4, 5), (1, 1, 1), (3, 1, 7), (2, 7, 1), (4, 6, 5), (2, 2, 3, 4)])
@pytest.mark.parametrize("largest", [1, 500, 2**14 - 1, 2**14, 2**29])
def test_planes_come_back(shape, largest):
    planes = RNG.integers(0, largest, shape, endpoint=True).astype(as_words(largest))
    planes[..., :1] = RNG.choice([0, largest], planes[..., :1].shape)
    packed = packed_planes(planes)
    assert packed["bits"] == (16 if largest < 2**14 else 32)
    assert planes_of(packed).reshape(shape).tolist() == planes.tolist()


def test_maps_of_very_many_pixels_are_in_steps(monkeypatch):
    monkeypatch.setattr(_layers, "MANY_FEATURES", 10)
    maps = {"mean": RNG.normal(size=(1, 4, 6)).astype(np.float32), "upper": RNG.normal(2, 1, (1, 4, 6))}
    data = _layers.written(maps)
    assert (data["kind"], data["maps"]) == ("steps", ["mean", "upper"])
    for steps, scores in zip(planes_of(data), maps.values(), strict=True):
        shown = data["low"] + steps / 255 * (data["high"] - data["low"])
        assert np.abs(shown - scores.ravel()).max() <= (data["high"] - data["low"]) / 509
    equal = _layers.written({"mean": np.full((1, 4, 6), 0.5)})
    assert planes_of(equal).tolist() == [[0] * 24]
