"""A clean score contradicts its interval where it lies outside by more than rounding, in every view."""

import re

import numpy as np
import pytest

import metfa
import metfa.plot
from metfa.attacks.detection import SIGNS
from metfa.results.scores import Scores

CLEAN = np.zeros((2, 4))
SCORES = np.array([1.0, 0.5, -0.25, 0.0], dtype=np.float32)
ROUNDED, OUTSIDE = 8e-7, 2e-4  # as of kernels of other batches; twice the zone


def explainer(inputs, target):
    """A linear network, but that the clean map is rounded in another way, and one of its scores is another."""
    shift = np.where(inputs == 0, np.array([-ROUNDED, ROUNDED, ROUNDED, OUTSIDE]), 0)
    return (SCORES + shift).astype(np.float32)


def explained(unit=None, rows=CLEAN):
    sample = metfa.explain(explainer, rows, 0, noise=metfa.noise.Gaussian(0.1), n_samples=20, rng=0)
    return sample if unit is None else sample.with_unit(unit)


@pytest.mark.parametrize(("unit", "count"), [(None, 1), (1.0, 1), (3.0, 0), (1e-4, 4), (np.array([1.0, 3.0]), 1)])
def test_the_zone_is_a_ten_thousandth_of_the_unit(unit, count):
    sample = explained(unit)
    assert sample.summary(0)[0].outside == count
    assert Scores.of(sample, 0.95).outside.sum() == count
    assert SIGNS["outside"](sample, 0.95)[0].sum() == count
    if isinstance(unit, np.ndarray):
        assert sample.summary(0)[1].outside == 0


def test_every_view_counts_alike(tmp_path):
    sample = explained(rows=CLEAN[:1])
    assert "of 1 of 4 features (25.0%)" in str(sample.summary()[0])
    figure = metfa.plot.bars(sample)
    assert "vanilla outside its interval: 1 of 4" in [text.get_text() for text in figure.legends[0].get_texts()]
    page = sample.report(tmp_path / "page.html").read_text()
    assert "outside the interval of 1 of 4 features" in page
    assert float(re.search(r'"rounding": ?([^,}]+)', page)[1]) == pytest.approx(1e-4)


def test_the_page_of_a_table_has_the_zone_of_each_row(tmp_path):
    page = explained(np.array([1.0, 3.0])).report(tmp_path / "page.html").read_text()
    assert [float(zone) for zone in re.findall(r'"rounding": ?([^,}]+)', page)] == pytest.approx([1e-4, 3e-4])


def test_differences_have_the_unit_of_the_parts():
    """The same gradient by two libraries: their differences are nothing but rounding."""

    def other(inputs, target):
        return (explainer(inputs, target) + np.where(inputs == 0, 1e-6, 2e-6)).astype(np.float32)

    found = metfa.compare(explainer, other, CLEAN, 0, noise=metfa.noise.Gaussian(0.1), n_samples=20, rng=0)
    assert [one.outside for one in found.summary()] == [0, 0]


def test_a_linear_network_contradicts_nothing():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layers = torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 256), torch.nn.Linear(256, 10)
    network = torch.nn.Sequential(*layers).eval()
    noise = metfa.noise.Uniform(0.1, bounds=(0, 1))
    gradient = metfa.explainers.Gradient(network)
    sample = metfa.explain(gradient, torch.rand(1, 3, 32, 32), 2, noise=noise, n_samples=20, rng=0)
    assert sample.summary()[0].outside == 0
