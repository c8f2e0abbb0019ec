"""The picture of all rows against all columns."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.text import Text

import metfa
from metfa.plot import PALETTES, table
from metfa.plot.cells import Cells

COLOURS = PALETTES["colourblind"]
WEIGHTS = np.array([0.1, 3.0, 0.0, -1.0])
NAMES = ("age", "$income$", "tenure", "<b>height</b>")


def explained(rows=60, n=12, target=0, **settings):
    inputs = np.random.default_rng(0).normal(size=(rows, 4))
    given = {"noise": metfa.noise.Gaussian(0.4), "n_samples": n, "rng": 0, "run": metfa.Run(feature_names=NAMES)}
    return metfa.explain(lambda x, target: x * WEIGHTS, inputs, target, **{**given, **settings})


@pytest.fixture(scope="module")
def sample():
    return explained(target=[0] * 20 + [1] * 40)


def text_of(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    for label in [*figure.legends, *figure.axes[1].get_yticklabels()]:
        box = label.get_window_extent(canvas.get_renderer())
        assert figure.bbox.padded(2).contains(box.x0, box.y0), label
    return " ".join(" ".join(part.get_text() for part in figure.findobj(Text)).split())


def cells(figure):
    return np.asarray(figure.axes[1].images[0].get_array())


def columns(figure):
    return [NAMES.index(label.get_text()) for label in figure.axes[0].get_xticklabels()]


def test_cells_are_the_marks(sample):
    figure = table(sample, rows=range(60))
    order = columns(figure)
    marks = sample.significance_map()[:, order]
    painted = cells(figure)
    np.testing.assert_array_equal(painted[..., 3], marks != 0)  # undecided: the hatching below shows
    for mark, colour in ((1, COLOURS.positive), (-1, COLOURS.negative)):
        mine = painted[marks == mark][:, :3]
        weight = (1 - mine) / (1 - np.array(to_rgb(colour)) + 1e-12)
        blue = weight[:, 2]
        assert ((blue > 0.24) & (blue <= 1 + 1e-9)).all()
        strength = np.abs(sample.smoothed()[:, order])[marks == mark]
        assert (np.diff(blue[np.argsort(strength)]) >= -1e-9).all()  # the stronger the further from 0
    assert order[0] == 1  # the largest decided scores


def test_shares_stand_above_the_columns(sample):
    figure = table(sample)
    order = columns(figure)
    marks = sample.significance_map()[:, order]
    heights = np.array([bar.get_height() for bar in figure.axes[0].patches]).reshape(3, 4)
    for mark, found in zip((1, -1, 0), heights, strict=True):
        np.testing.assert_allclose(found, (marks == mark).mean(axis=0))


def test_rows_are_grouped_by_class_and_by_the_strongest_column(sample):
    figure = table(sample)
    marks, scores = sample.significance_map(), sample.smoothed()
    weight = np.abs(scores) * (marks != 0)
    lead = np.where(weight.any(axis=1), weight.argmax(axis=1), 9)
    place = {column: at for at, column in enumerate([*columns(figure), 9])}
    keys = [(sample.target[k], place[lead[k]], -scores[k, lead[k]] if lead[k] < 9 else 0, k) for k in range(60)]
    expected = [key[-1] for key in sorted(keys)]
    own = cells(table(sample, rows=range(60)))
    np.testing.assert_array_equal(cells(figure), own[expected])
    text = text_of(figure)
    assert "60 rows; explained: class 1 for 40 rows, class 0 for 20 rows" in text
    assert "class 0 20 rows" in text


def test_few_rows_have_names_and_signs(sample):
    figure = table(sample, rows=[3, 0])
    assert [label.get_text() for label in figure.axes[1].get_yticklabels()] == ["row 3", "row 0"]
    signs = {
        (round(text.get_position()[1]), round(text.get_position()[0])): text.get_text() for text in figure.axes[1].texts
    }
    marks = sample.significance_map()[[3, 0]][:, columns(figure)]
    assert signs == {
        (int(i), int(j)): "+" if marks[i, j] > 0 else "\N{MINUS SIGN}" for i, j in zip(*np.nonzero(marks), strict=True)
    }
    named = explained(2, run=metfa.Run(input_names=["Ann", "Bob" * 30]))
    labels = [label.get_text() for label in table(named).axes[1].get_yticklabels()]
    assert sorted(labels) == ["Ann", "…"]


def test_what_is_asked_is_said(sample):
    text = text_of(table(sample, correction="holm", alpha=0.1, max_features=2))
    assert (
        "is the median of a feature of a row above or below 0? (alpha 0.1 a side, holm; 4 features in each of 60 rows)"
        in text
    )
    assert "the correction is for each row by itself" in text
    assert "not shown: 2 features with less" in text
    expected = metfa.stats.expected_false_marks(12, 0.05, 240)
    assert 9 < expected < 9.5
    assert f"up to {expected:.1f} cells are marked falsely on average" in text_of(table(sample))
    two = text_of(table(explained(2)))
    few = metfa.stats.expected_false_marks(12, 0.05, 8)  # below one, and not written as 0
    assert f"up to {few:.2f} cells are marked falsely on average" in two


def test_thresholds_of_importance(sample):
    figure = table(sample, threshold=0.5)
    text = text_of(figure)
    assert "important" in text
    assert "the further from the threshold of its row" in text
    weight = np.where(sample.significance_map(0.5) > 0, sample.smoothed() - 0.5, 0)
    assert columns(figure) == np.argsort(-weight.sum(axis=0), kind="stable").tolist()


def test_rows_whose_prediction_flips_are_faint():
    def predict(x):
        return np.stack([x[:, 0], -x[:, 0]], axis=1)

    sample = explained(predict=predict, target=None)
    warned = sample.flip_rate >= 0.2
    assert 0 < warned.sum() < 60
    figure = table(sample, rows=range(60))
    assert f"in 20% or more of the noisy copies of {warned.sum()} rows, drawn faintly" in text_of(figure)
    painted = cells(figure)
    darkest = [np.where(mine[..., 3] > 0, mine[..., 2], 1).min() for mine in (painted[warned], painted[~warned])]
    assert darkest[0] > 0.7 > darkest[1]


def test_of_many_rows_some_are_drawn_and_it_is_said():
    maps = np.random.default_rng(0).normal(size=(6, 2500, 2)) + np.linspace(-3, 3, 2500)[:, None]
    names = tuple(map(str, range(2500)))
    sample = metfa.AttributionSample(maps, maps[0], (0,) * 2500, maps[0], None, None, tuple(range(6)), names)
    figure = table(sample)
    assert cells(figure).shape[0] == 1000
    assert "1,000 of 2,500 rows are drawn, evenly chosen from this order; all are counted" in text_of(figure)


def test_too_few_samples_are_said():
    figure = table(explained(n=3))
    assert "no marks: too few samples" in " ".join(part.get_text() for part in figure.findobj(Text)).replace("\n", " ")


def test_differences(sample):
    other = metfa.compare(
        lambda x, target: x * WEIGHTS, lambda x, target: x * WEIGHTS[::-1], sample.inputs[:5], 0,
        noise=metfa.noise.Gaussian(0.4), n_samples=12, rng=0, names=("old", "new"),
    )  # fmt: skip
    text = text_of(table(other))
    assert (
        "does a feature of a row get more in new than in old, or less in new than in old, by its median difference?"
        in text
    )
    assert "new minus old" in text


def test_refusals(sample):
    images = metfa.explain(
        lambda x, target: x, np.ones((2, 2, 2)) * 0.5, 0, noise=metfa.noise.Uniform(0.1), n_samples=5, rng=0
    )
    with pytest.raises(ValueError, match="one axis for a table, got shape"):
        table(images)
    with pytest.raises(ValueError, match="a table of rows needs noisy copies of an input"):
        table(sample.across_inputs())
    with pytest.raises(ValueError, match=r"inputs in 0..59, got 60"):
        table(sample, rows=[60])
    with pytest.raises(ValueError, match=r"got none"):
        table(sample, rows=[])
    with pytest.raises(TypeError, match=r"metfa\.explain"):
        table(3)


def test_the_strongest_colour_begins_at_a_score_that_occurs(sample):
    """The page takes the same one."""
    cells = Cells.of(sample, sample.decide(sample.terms()), 0.95, 0.2)
    decided = np.sort(np.abs(cells.apart[cells.marks != 0]))
    assert cells.top == decided[int(0.99 * (len(decided) - 1))]


@pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning")
def test_rows_that_are_not_decided_say_why():
    inputs = np.random.default_rng(0).normal(size=(12, 4))
    moved = np.arange(12) >= 3

    def noise(x, rng):
        return x + (rng.normal(scale=0.4, size=x.shape) if moved[np.abs(inputs - x).sum(1).argmin()] else 0)

    some = metfa.explain(lambda x, target: x * WEIGHTS, inputs, 0, noise=noise, n_samples=12, rng=0)
    text = text_of(table(some, rows=range(12)))
    assert "all samples are the same in 3 rows" in text
    assert "stands out" not in text
