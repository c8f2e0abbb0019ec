"""Figure of certified radii."""

import io

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import metfa
from metfa.plot import certificate

WEIGHTS = np.linspace(-1, 2, 15 * 20).reshape(15, 20)


NOISE = metfa.noise.Gaussian(0.2, bounds=(0, 1))


def run(n_samples=60, noise=NOISE):
    inputs = np.full((2, 3, 15, 20), 0.6)
    return metfa.explain(lambda x, target: WEIGHTS * x.mean(1), inputs, 0, noise=noise, n_samples=n_samples, rng=0)


@pytest.mark.parametrize("settings", [{"threshold": 0.3}, {"threshold": 0.3, "correction": "e-bh", "index": 1}])
def test_shows_both_sides_in_one_scale(settings):
    sample = run()
    fig = certificate(sample, title="a $ title", **settings)
    index, given = settings.get("index", 0), {key: value for key, value in settings.items() if key != "index"}
    radius, marks = sample.certified_radius(**given)[index], sample.significance_map(**given)[index]
    titles = [ax.get_title() for ax in fig.axes if ax.get_title()]
    assert titles[1].startswith(f"important, {((marks == 1) & (radius > 0)).mean():.1%}")
    assert titles[2].startswith(f"unimportant, {((marks == -1) & (radius > 0)).mean():.1%}")
    painted = [ax.get_images()[0].get_array() for ax in fig.axes[1:3]]
    grey = np.ptp(painted[0], axis=2) < 1e-6  # the picture shows through where nothing is certified
    np.testing.assert_array_equal(grey, marks != 1)
    buffer = io.BytesIO()
    FigureCanvasAgg(fig).print_png(buffer)
    assert len(buffer.getvalue()) > 5000


def test_after_until():
    sample = run(metfa.Until(undecided=0.5, threshold=lambda values: 0.3 + 0 * values.mean(), max_samples=200))
    fig = certificate(sample, correction="e-bh")
    share = (sample.significance_map(correction="e-bh")[0] == -1).mean()
    assert f"unimportant, {share:.1%}" in [ax.get_title() for ax in fig.axes][2]


def test_refuses_what_cannot_be_certified():
    with pytest.raises(ValueError, match="needs Gaussian noise"):
        certificate(run(noise=metfa.noise.Uniform(0.2, bounds=(0, 1))), 0.3)
    row = metfa.explain(lambda x, target: x, np.ones((2, 15)), 0, noise=metfa.noise.Gaussian(1), n_samples=9, rng=0)
    with pytest.raises(ValueError, match=r"got features of shape \(15,\)"):
        certificate(row, 0.3)
