"""Figures of a population: bars, points of all rows, and the matrix of pairs."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.text import Text

import metfa
from metfa.plot import PALETTES, bars, beeswarm, ranking

NAMES = ("age", "income", "tenure", "height")
COLOURS = PALETTES["colourblind"]


def linear(inputs, target):
    return inputs * np.array([0.5, 3.0, 0.0, -1.0])


linear.rows_independent = True
linear.signed = True


def table(n):
    return np.random.default_rng(0).normal(size=(n, 4)) + 1.0


def explained(n=60, names=NAMES):
    run = metfa.Run(feature_names=names)
    return metfa.explain(linear, table(n), 0, noise=metfa.noise.Gaussian(0.3), n_samples=2, rng=0, run=run)


@pytest.fixture(scope="module")
def sample():
    return explained()


def said(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    for text in [*figure.legends, *figure.axes[0].get_yticklabels(), figure.axes[0].xaxis.label]:
        box = text.get_window_extent(renderer)
        assert figure.bbox.padded(2).contains(box.x0, box.y0), text
        assert figure.bbox.padded(2).contains(box.x1, box.y1), text
    return " ".join(" ".join(part.get_text() for part in figure.findobj(Text)).split())


def points(figure):
    """Points of each feature from the top: (score, height)."""
    parts = [part for part in figure.axes[0].collections if isinstance(part, PathCollection)]
    return [np.asarray(part.get_offsets()) for part in parts if len(part.get_offsets())]


def test_bars_of_a_population(sample):
    figure = bars(sample.across_inputs())
    text = said(figure)
    assert "absolute score without noise of a row: smoothed over 60 rows" in text
    assert "vanilla" not in text
    assert figure.axes[0].get_yticklabels()[0].get_text() == "income"  # no value of a row
    assert figure.axes[0].lines[-1].get_marker() != "D"


def test_every_row_is_a_point(sample):
    population = sample.across_inputs(absolute=False)
    figure = beeswarm(population)
    order = np.argsort(-np.median(np.abs(population.values[:, 0]), axis=0))
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [NAMES[j] for j in order]
    for place, (feature, found) in enumerate(zip(order, points(figure), strict=True)):
        np.testing.assert_allclose(found[:, 0], population.values[:, 0, feature])
        assert (np.abs(found[:, 1] - place) < 0.5).all()
    text = said(figure)
    assert "one row" in text
    assert "the interval is of the median over 60 rows" in text
    assert "value of the feature in the row" in text
    np.testing.assert_array_equal(points(beeswarm(population))[1], points(figure)[1])


def test_intervals_and_marks_are_those_of_the_result(sample):
    population = sample.across_inputs(absolute=False)
    figure = beeswarm(population)
    interval, marks = population.confidence_interval(), population.significance_map()[0]
    order = np.argsort(-np.median(np.abs(population.values[:, 0]), axis=0))
    black = figure.axes[0].collections[-1]
    drawn = np.array([segment[:, 0] for segment in black.get_segments()])
    np.testing.assert_allclose(drawn, np.stack([interval.low[0], interval.high[0]], axis=-1)[order])
    squares = {}
    for line in figure.axes[0].lines:
        if line.get_marker() == "s":
            squares |= dict.fromkeys(line.get_ydata().tolist(), to_hex(line.get_color()))
    by_mark = {1: COLOURS.positive, 0: COLOURS.no_sign, -1: COLOURS.negative}
    assert [squares[place] for place in range(4)] == [to_hex(by_mark[mark]) for mark in marks[order]]


def test_points_are_coloured_by_the_value_of_the_feature(sample):
    population = sample.across_inputs(absolute=False)
    figure = beeswarm(population)
    parts = [
        part for part in figure.axes[0].collections if isinstance(part, PathCollection) and part.get_array() is not None
    ]
    shades = parts[0].get_array()
    order = np.argsort(table(60)[:, 1])  # income, the first
    assert (np.diff(shades[order]) >= 0).all()
    assert shades.min() == 0
    assert shades.max() == 1
    own = np.full((60, 4), np.nan)
    own[:30] = 1.0
    text = said(beeswarm(population, values=own))
    assert "(grey: none)" in text
    with pytest.raises(ValueError, match=r"shape \(60, 4\)"):
        beeswarm(population, values=own[:10])


def test_of_many_rows_some_are_drawn_and_it_is_said():
    rows = table(3000)
    maps, names = linear(rows, 0), tuple(map(str, range(3000)))
    made = metfa.AttributionSample(maps[None], rows, (0,) * 3000, maps, None, None, (0,), names, NAMES)
    population = made.across_inputs(absolute=False)
    figure = beeswarm(population)
    assert sum(map(len, points(figure))) == 5000
    assert "1,250 of 3,000 rows are drawn, chosen by chance; all are counted" in said(figure)
    black = figure.axes[0].collections[-1]
    interval = population.confidence_interval()
    order = np.argsort(-np.median(np.abs(population.values[:, 0]), axis=0))
    assert black.get_segments()[0][0, 0] == pytest.approx(interval.low[0, order[0]])


def test_samples_of_one_input_and_regions_are_points_too(sample):
    one = replace(sample, values=np.repeat(sample.values, 10, axis=0), sample_ids=tuple(range(20)))
    text = said(beeswarm(one, index=3, max_features=2))
    assert "one sample" in text
    assert "not shown: 2 features" in text
    assert "value of the feature" not in text
    pooled = sample.over(metfa.Regions(np.array([0, 0, 1, 1]), names=["person", "job"])).across_inputs()
    assert "mean score of a region" in said(beeswarm(pooled))


def test_few_rows_have_no_interval():
    text = said(beeswarm(explained(4).across_inputs()))
    assert "4 rows are too few, 95% needs 6" in text
    assert "too few rows" in text


def cells(figure):
    return figure.axes[0].images[0].get_array()


def test_cells_are_the_marks_of_the_ranking(sample):
    population = sample.across_inputs()
    found = population.ranking()
    figure = ranking(population)
    marks = found.marks[np.ix_(found.order, found.order)]
    by_mark = {1: COLOURS.important, 0: COLOURS.undecided, -1: COLOURS.unimportant}
    for place in np.ndindex(4, 4):
        expected = (1.0, 1.0, 1.0) if place[0] == place[1] else to_rgb(by_mark[marks[place]])
        np.testing.assert_allclose(cells(figure)[place], expected)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [NAMES[j] for j in found.order]
    text = said(figure)
    assert f"{found.undecided} of 6 pairs not shown to differ" in text
    assert "in 60 rows" in text


def test_the_ranking_of_few_features_or_rows(sample):
    text = said(ranking(sample.across_inputs(), max_features=2))
    assert "not shown: the last 2 features of the order" in text
    figure = ranking(explained(5).across_inputs())
    assert "no ranking: too few rows" in " ".join(" ".join(part.get_text() for part in figure.findobj(Text)).split())


def test_names_of_anybody_are_plain_text():
    population = explained(names=("$x^2$", "a\nb", "c" * 200, "<b>")).across_inputs()
    for draw in (bars, beeswarm, ranking):
        said(draw(population))


def test_refusals(sample):
    images = metfa.explain(
        lambda x, target: x**2, np.ones((2, 3, 3)), 0, noise=metfa.noise.Uniform(0.1), n_samples=5, rng=0,
        run=metfa.Run(input_names=["a", "b"]),
    )  # fmt: skip
    with pytest.warns(metfa.MetfaWarning, match="3×3 features"):
        population = images.across_inputs()
    with pytest.raises(ValueError, match="one axis for points"):
        beeswarm(population)
    with pytest.raises(TypeError, match="across_inputs"):
        beeswarm(3)
    with pytest.raises(ValueError, match="differences already"):
        ranking(sample.across_inputs().pairwise())


def test_pairs_do_not_show_the_values_of_an_input():
    three = metfa.explain(
        lambda x, target: x * np.array([3.0, 1.0, 0.5]), np.ones((1, 3)), 0,
        noise=metfa.noise.Gaussian(0.1), n_samples=12, rng=0,
    )  # fmt: skip
    labels = [label.get_text() for label in bars(three.pairwise()).axes[0].get_yticklabels()]
    assert labels == ["feature 0 - feature 2", "feature 0 - feature 1", "feature 1 - feature 2"]
    assert bars(three).axes[0].get_yticklabels()[0].get_text() == "feature 0 = 1"
