"""Figures draw into the axes or the figure that are given, and return them."""

import inspect

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import metfa
from metfa import plot

NOISE = metfa.noise.Gaussian(0.2)
SIZE = 13, 6


def explained(shape, explainer=lambda x, target: x * np.linspace(-1, 2, x.shape[-1])):
    inputs = np.random.default_rng(0).random((4, *shape)) + 0.5
    return metfa.explain(explainer, inputs, 0, noise=NOISE, n_samples=12, rng=0)


@pytest.fixture(scope="module")
def rows():
    return explained((5,))


@pytest.fixture(scope="module")
def maps():
    return explained((6, 6))


def compared(rows):
    return metfa.compare(rows, explained((5,), lambda x, target: x**2))


ONE_PANEL = {
    "bars": plot.bars,
    "bars of differences": lambda sample, **given: plot.bars(compared(sample), **given),
    "beeswarm": lambda sample, **given: plot.beeswarm(sample.across_inputs(), **given),
    "ranking": lambda sample, **given: plot.ranking(sample, **given),
    "ranking of too few": lambda sample, **given: plot.ranking(sample.across_inputs(), **given),
    "plot": lambda sample, **given: sample.plot(**given),
}
SEVERAL = {
    "figure": plot.figure,
    "plot": lambda sample, **given: sample.plot(**given),
    "regions": lambda sample, **given: plot.regions(
        sample.over(np.arange(36).reshape(6, 6) // 12, against="rest"), pixels=sample, **given
    ),
    "comparison": lambda sample, **given: plot.comparison(
        metfa.compare(sample, explained((6, 6), lambda x, target: x**2)), **given
    ),
    "certificate": lambda sample, **given: plot.certificate(sample, 0.5, **given),
    "table": lambda sample, **given: plot.table(sample.over(np.arange(36).reshape(6, 6) // 12), **given),
}


def drawn(fig):
    FigureCanvasAgg(fig).draw()
    return fig


def test_every_figure_takes_one_of_the_two():
    for name in plot.__all__:
        thing = getattr(plot, name)
        if inspect.isfunction(thing) and name not in ("drawing_of", "notebook_html"):
            assert len({"ax", "fig"} & inspect.signature(thing).parameters.keys()) == 1, name


@pytest.mark.parametrize("name", ONE_PANEL)
def test_one_panel_goes_into_axes(name, rows):
    fig = Figure(figsize=SIZE, layout="constrained")
    left, right = fig.subplots(1, 2)
    assert ONE_PANEL[name](rows, title="Why?", ax=right) is right
    assert right.get_title().startswith("Why?")
    assert (right.legend_ is not None) == (name != "ranking of too few")
    assert not left.has_data()
    assert not fig.legends
    assert fig.get_suptitle() == ""
    drawn(fig)
    if right.legend_ is not None:  # below the label, and within the figure
        box, label = right.legend_.get_window_extent(), right.xaxis.label.get_window_extent()
        assert box.y1 <= label.y0 + 1 or not right.get_xlabel()
        assert box.y0 >= -1


@pytest.mark.parametrize("name", SEVERAL)
def test_several_panels_go_into_a_subfigure(name, maps):
    fig = Figure(figsize=SIZE, layout="constrained")
    left, right = fig.subfigures(1, 2)
    assert SEVERAL[name](maps, title="Why?", fig=right) is right
    assert right.get_suptitle().startswith("Why?")
    assert right.axes
    assert not left.axes
    assert fig.get_size_inches().tolist() == list(SIZE)


def test_a_whole_figure_keeps_its_size(maps):
    fig = Figure(figsize=SIZE, layout="constrained")
    assert maps.plot(fig=fig) is fig
    assert fig.get_size_inches().tolist() == list(SIZE)
    assert len(fig.axes) == 7  # with the colour bar


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"ax": Figure()}, TypeError, "`ax` must be axes of matplotlib, .*, got .*Figure.*, with `.subplots"),
        ({"ax": np.empty(2, object)}, TypeError, r"`ax` must be axes of matplotlib, such as `plt.subplots\(\)\[1\]`"),
        ({"fig": Figure()}, TypeError, "`fig`: `metfa.plot.bars`, .* has none; it has one panel: give axes, `ax=`"),
        ({"pixels": 1}, TypeError, "`pixels`: `metfa.plot.bars`, .* has none; it has index, feature_names, title"),
    ],
)
def test_bad_axes(given, error, said, rows):
    with pytest.raises(error, match=said):
        rows.plot(**given)


def test_names_of_features_stand_at_their_own_bars(rows):
    fig = Figure(figsize=SIZE, layout="constrained")
    left, _ = fig.subplots(1, 2, sharey=True)
    plain, polar = fig.add_axes((0, 0, 1, 1)), fig.add_axes((0, 0, 1, 1), projection="polar")
    with pytest.raises(ValueError, match=r"`ax` shares its y axis, .*: write `plt.subplots\(..., sharey=False\)`"):
        rows.plot(ax=left)
    with pytest.raises(ValueError, match="`ax` must be plain axes, got polar ones: leave `projection` out"):
        rows.plot(ax=polar)
    rows.plot(ax=plain)
    with pytest.raises(ValueError, match=r"`ax` has a drawing already, .*: give empty axes"):
        rows.plot(ax=plain, index=1)
    above, below = Figure().subplots(2, 1, sharex=True)
    assert rows.plot(ax=above) is above  # scores may have one scale
    with pytest.raises(ValueError, match="`ax` shares its x axis"):
        plot.ranking(rows, ax=below)


def test_bad_figures(maps):
    with pytest.raises(TypeError, match="`fig` must be a figure or subfigure of matplotlib, as there are several"):
        maps.plot(fig=Figure().subplots())
    with pytest.raises(ValueError, match=r"`plt.figure\(layout='constrained'\)`"):
        maps.plot(fig=Figure())
    full = Figure(layout="constrained")
    full.subplots()
    with pytest.raises(ValueError, match="`fig` has axes already: give an empty figure"):
        maps.plot(fig=full)
    with pytest.raises(TypeError, match="it has several panels: give a subfigure, `fig=`"):
        maps.plot(ax=full.axes[0])
