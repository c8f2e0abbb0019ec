"""Figure of an object's context: the outline, the marks and their legend."""

import functools
import io

import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb

import metfa
from metfa.plot import PALETTES, context
from metfa.segmentation import explain_context


def network(images):
    left = images[:, :, :, :3].mean((1, 2, 3), keepdim=True)
    return torch.cat([0 * images[:, :1], 12 * images[:, :1] * left - 3], dim=1)


@functools.cache
def explanation(n_samples=8, channels=3):
    image = torch.full((channels, 18, 24), 0.05)
    image[:, :, :3] = 0.9
    image[:, 6:12, 14:20] = 0.8
    return explain_context(network, image, 1, region=image[0] == 0.8, min_pixels=1, rng=0, n_samples=n_samples)


def panels(fig):
    return {ax.get_title().splitlines()[0]: ax for ax in fig.axes if ax.get_title()}


def drawn(fig):
    buffer = io.BytesIO()
    FigureCanvasAgg(fig).print_png(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("channels", [1, 3])
def test_all_panels_are_drawn_with_the_outline(channels):
    fig = context(explanation(channels=channels), title="a $ title")
    assert len(drawn(fig)) > 10_000
    names = list(panels(fig))
    assert names[:3] == ["picture", "vanilla", "smoothed"]
    assert names[3].startswith("significance, threshold 0.")
    for ax in panels(fig).values():
        assert len(ax.collections) == 2  # the outline, white below black
    assert fig.get_suptitle() == "a $ title\nexplained: class 1, as predicted"


@pytest.mark.parametrize("palette", PALETTES)
def test_colours_are_those_of_the_legend(palette):
    found = explanation()
    fig = context(found, palette=palette)
    shown = np.asarray(list(panels(fig).values())[3].images[0].get_array())
    marks = found.significance_map()
    legend = fig.legends[0]
    shares = [text.get_text() for text in legend.get_texts()]
    outside = ~found.region
    for name, mark, share in zip(("needed", "undecided", "not needed"), (1, 0, -1), shares, strict=True):
        assert share == f"{name} {(marks[outside] == mark).mean():.1%}"
    needed = shown[outside & (marks == 1)].mean(axis=0)
    assert np.abs(needed - to_rgb(PALETTES[palette].important)).max() < 0.3
    assert np.allclose(shown[found.region], 0.8, atol=1e-6)  # the object itself is shown as it is


def test_too_few_samples_are_said_in_the_panels():
    fig = context(explanation(n_samples=3))
    said = [text.get_text() for ax in fig.axes for text in ax.texts]
    assert any("3 samples are too" in line.replace("\n", " ") for line in said)
    assert any("too few samples" in line.replace("\n", " ") for line in said)
    assert len(drawn(fig)) > 10_000


def test_plot_of_an_explanation_is_this_figure():
    found = explanation()
    assert panels(found.plot(threshold=0.3)).keys() == panels(context(found, threshold=0.3)).keys()


@pytest.mark.slow
def test_bad_arguments():
    with pytest.raises(ValueError, match="'grey'"):
        context(explanation(), palette="grey")
    with pytest.raises(TypeError, match="got AttributionSample"):
        metfa.plot.context(explanation().sample)
