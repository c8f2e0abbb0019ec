"""Figures of images: every degenerate case is drawn, colours mean what the legend says, nothing global changes."""

import dataclasses
import io
import itertools
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from PIL import Image

from metfa import stats
from metfa._base.warnings import DegenerateAttributionsWarning, SignedAttributionsWarning
from metfa.plot import PALETTES, figure
from metfa.results.sample import AttributionSample


def make(n=20, shape=(9, 12), inputs=None, change=None, batch=1, seed=0, **fields):
    """A bright block on a dark ground; input k is k + 1 times as strong."""
    height, width = shape
    rng = np.random.default_rng(seed)
    block = np.zeros(shape)
    block[: height // 2 + 1, : width // 2 + 1] = 0.6
    values = rng.random((n, batch, *shape)) * 0.2 + block
    values *= np.arange(1, batch + 1)[:, None, None]
    values = values if change is None else change(values)
    values = values.astype(fields.pop("dtype", np.float32))
    return AttributionSample(
        values=values,
        inputs=rng.random((batch, 3, *shape)) if inputs is None else inputs,
        target=(0,) * batch,
        vanilla=values[0].copy(),
        scores=None,
        predictions=None,
        sample_ids=tuple(range(n)),
        input_names=tuple(map(str, range(batch))),
        **fields,
    )


def panels(fig):
    """The six panels by the first line of their title, in the order drawn."""
    return {ax.get_title().splitlines()[0]: ax for ax in fig.axes if ax.get_title()}


def pixels(ax):
    return np.asarray(ax.images[0].get_array())


def texts(fig):
    found = [t.get_text() for ax in fig.axes for t in (ax.title, *ax.texts)]
    return " ".join([*found, *(t.get_text() for legend in fig.legends for t in legend.get_texts())])


def render(fig, dpi=40):
    buffer = io.BytesIO()
    fig.set_layout_engine("none")  # most of the time; `assert_nothing_is_cut` looks at it
    fig.savefig(buffer, format="png", dpi=dpi)
    buffer.seek(0)
    image = np.asarray(Image.open(buffer).convert("RGB"))
    assert image.std() > 1
    return image


def assert_nothing_is_cut(fig):
    """Every panel and text lies within the figure, and panels with their titles do not overlap."""
    fig.set_dpi(40)
    canvas = FigureCanvasAgg(fig)
    canvas.draw()
    renderer = canvas.get_renderer()
    whole = fig.bbox.padded(1)
    artists = [a for ax in fig.axes for a in (ax, ax.title, *ax.texts) if a is ax or a.get_text()]
    artists += fig.legends
    artists += [fig._suptitle] if fig._suptitle is not None else []
    for artist in artists:
        box = artist.get_tightbbox(renderer)
        assert whole.containsx(box.x0), artist
        assert whole.containsx(box.x1), artist
        assert whole.containsy(box.y0), artist
        assert whole.containsy(box.y1), artist
    boxes = [ax.get_tightbbox(renderer) for ax in fig.axes]
    for one, other in itertools.combinations(boxes, 2):
        width = min(one.x1, other.x1) - max(one.x0, other.x0)
        height = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert min(width, height) < 2, (one, other)


@pytest.mark.parametrize("shape", [(224, 224), (1, 1), (1, 60), (60, 1), (3, 7)])
@pytest.mark.slow
def test_maps_of_every_shape_are_drawn_whole(shape):
    fig = figure(make(shape=shape), title="a picture: why “espresso (0.95)”?", threshold=0.5)
    assert_nothing_is_cut(fig)
    assert list(panels(fig)) == ["picture", "vanilla", "smoothed", "lower bound", "upper bound", "significance"]
    width, height = fig.get_size_inches()
    assert 4 <= height <= 18
    assert 8 <= width <= 14


def test_panels_show_their_maps():
    sample = make()
    fig = figure(sample)
    interval = sample.confidence_interval()
    maps = {
        "vanilla": sample.vanilla,
        "smoothed": sample.smoothed(),
        "lower bound": interval.low,
        "upper bound": interval.high,
    }
    high = np.quantile(np.stack([m[0] for m in maps.values()]).astype(np.float64), 0.999)
    picture = np.moveaxis(sample.inputs[0], 0, -1)
    grey = 0.25 + 0.6 * (picture @ [0.299, 0.587, 0.114])
    np.testing.assert_allclose(pixels(panels(fig)["picture"]), picture)
    for name, scores in maps.items():
        for at in [(0, 0), (8, 11), (3, 5)]:
            part = min(1, scores[0][at] / high)
            weight = min(1, 0.35 + 2.5 * part)
            colour = np.array(mpl.colormaps["inferno"](part)[:3])
            np.testing.assert_allclose(
                pixels(panels(fig)[name])[at], weight * colour + (1 - weight) * grey[at], atol=1e-6
            )
    assert panels(fig)["smoothed"].get_title() == "smoothed\n20 samples, 5 + 5 left out"
    assert "of the 95.9% intervals" in panels(fig)["lower bound"].get_title()


@pytest.mark.parametrize("palette", PALETTES)
def test_significance_has_the_colours_of_its_legend(palette):
    sample = make(change=lambda v: np.where(np.arange(12) == 11, np.arange(20)[:, None, None, None] % 2, v))
    marks = sample.significance_map(threshold=0.5)[0]
    assert set(np.unique(marks)) == {-1, 0, 1}
    fig = figure(sample, palette=palette, threshold=0.5)
    colours = PALETTES[palette]
    legend = {text.get_text(): patch for text, patch in zip(*legend_parts(fig), strict=True)}
    drawn = pixels(panels(fig)["significance"])
    for name, mark, colour in (
        ("important", 1, colours.important),
        ("undecided", 0, colours.undecided),
        ("unimportant", -1, colours.unimportant),
    ):
        assert to_rgb(legend[f"{name} {(marks == mark).mean():.1%}"].get_facecolor()) == to_rgb(colour)
        for at in np.argwhere(marks == mark)[:5]:
            grey = drawn[tuple(at)] - 0.8 * np.array(to_rgb(colour))
            assert np.ptp(grey) < 1e-6
            assert 0.049 < grey[0] < 0.171


def legend_parts(fig):
    (legend,) = fig.legends
    return legend.get_texts(), legend.get_patches()


# Pictures


def test_grey_inputs_are_pictures():
    grey = np.linspace(0, 1, 27).reshape(3, 9)
    for inputs in (grey[None], grey[None, None]):
        fig = figure(make(shape=(3, 9), inputs=inputs))
        np.testing.assert_allclose(pixels(panels(fig)["picture"]), np.repeat(grey[..., None], 3, axis=2))


@pytest.mark.parametrize("change", [lambda x: 5 * x - 2, lambda x: 0 * x + 7])
def test_normalised_inputs_are_rescaled_and_say_so(change):
    inputs = change(np.random.default_rng(0).random((1, 3, 9, 12)))
    fig = figure(make(inputs=inputs))
    shown = pixels(panels(fig)["input, rescaled to be shown"])
    assert 0 <= shown.min() <= shown.max() <= 1
    assert np.ptp(inputs) == 0 or np.ptp(shown) == 1


@pytest.mark.parametrize(
    "inputs",
    [
        ["a text"],
        {"tokens": np.zeros((1, 9, 12))},
        (np.zeros((1, 9, 12)),),
        np.zeros((1, 4, 9, 12)),
        np.zeros((1, 3, 12, 9)),
        np.zeros((1, 5)),
        np.zeros(1),
    ],
)
@pytest.mark.slow
def test_inputs_that_are_no_pictures(inputs):
    fig = figure(make(inputs=inputs))
    render(fig)
    assert "no picture" in panels(fig)


def test_a_picture_of_ones_own():
    picture = np.random.default_rng(0).random((9, 12, 3))
    fig = figure(make(inputs=["text"]), picture=picture)
    np.testing.assert_allclose(pixels(panels(fig)["picture"]), picture)
    render(figure(make(), picture=picture[..., 0]))


@pytest.mark.parametrize(
    ("picture", "message"),
    [
        (
            np.zeros((12, 9)),
            r"`picture` must be of shape \(9, 12\) or \(9, 12, 3\), like the maps, or larger, got \(12, 9\)",
        ),
        (np.zeros((3, 9, 12)), r"got \(3, 9, 12\)"),
        (np.full((9, 12, 3), 255), r"must lie in \[0, 1\], got 255 to 255; divide 8-bit pixels by 255"),
        (np.full((9, 12, 3), np.nan), r"must lie in \[0, 1\], got nan"),
    ],
)
def test_pictures_that_do_not_fit(picture, message):
    with pytest.raises(ValueError, match=message):
        figure(make(), picture=picture)


# Degenerate maps


@pytest.mark.parametrize("value", [0.0, 0.25])
def test_constant_maps_are_drawn_and_named(value):  # bugs.md 24
    with pytest.warns(DegenerateAttributionsWarning, match="no threshold separates"):
        fig = figure(make(change=lambda v: 0 * v + value))
    render(fig)
    for name in ("vanilla", "smoothed", "lower bound", "upper bound"):
        assert panels(fig)[name].get_title().endswith(f"constant: {value:g}")
    assert "undecided 100.0%" in texts(fig)


def test_a_map_with_one_score_has_a_scale():
    """Fewer than 1 in 1,000 values is not zero: the scale is that of the largest."""

    def one(values):
        values = 0 * values
        values[..., 0, 0] = 3
        return values

    fig = figure(make(shape=(60, 60), change=one))
    colour = pixels(panels(fig)["smoothed"])[0, 0]
    np.testing.assert_allclose(colour, mpl.colormaps["inferno"](1.0)[:3])
    assert next(ax for ax in fig.axes if ax.get_ylabel() == "attribution score").get_ylim()[1] == 3


@pytest.mark.parametrize("palette", PALETTES)
def test_signed_scores_are_positive_or_negative(palette):
    signed = make(change=lambda v: v - 0.4)
    fig = figure(signed, palette=palette)
    marks, colours = signed.significance_map(0.0)[0], PALETTES[palette]
    shown = texts(fig) + fig.legends[0].get_title().get_text()
    for name, mark in (("positive", 1), ("undecided", 0), ("negative", -1)):
        assert f"{name} {(marks == mark).mean():.1%}" in shown
    assert "important" not in shown
    assert "above or below 0? (alpha 0.05 a side, uncorrected; " in shown
    patches = [to_rgb(patch.get_facecolor()) for patch in fig.legends[0].get_patches()]
    assert patches == [to_rgb(colour) for colour in (colours.positive, colours.no_sign, colours.negative)]


def test_signed_scores_have_a_symmetric_scale_and_a_warning():
    with pytest.warns(SignedAttributionsWarning, match="the attributions are signed"):
        fig = figure(make(change=lambda v: v - 0.4), threshold=stats.jenks)
    (bar,) = [ax for ax in fig.axes if ax.get_ylabel() == "attribution score"]
    low, high = bar.get_ylim()
    assert low == -high
    red, blue = pixels(panels(fig)["smoothed"])[0, 0], pixels(panels(fig)["smoothed"])[8, 11]
    assert red[0] > red[2]
    assert blue[2] > blue[0]
    figure(make(change=lambda v: v - 0.4), threshold=0.0)  # a threshold of one's own does not warn


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.slow
def test_too_few_samples_leave_notes(n):
    fig = figure(make(n=n, shape=(8, 8)))
    assert_nothing_is_cut(fig)
    said = " ".join(texts(fig).split())
    assert f"{'1 sample is' if n == 1 else f'{n} samples are'} too few, 95% needs 6" in said
    assert "at least 5 are needed for anything to become significant" in said
    assert not fig.legends


def test_too_few_samples_for_a_level():
    said = " ".join(texts(figure(make(n=7), confidence_level=0.99)).split())
    assert "7 samples are too few, 99% needs 8" in said


def test_a_correction_that_needs_more_samples_leaves_a_note():
    fig = figure(make(n=8), correction="bonferroni")
    assert_nothing_is_cut(fig)
    said = " ".join(texts(fig).split())
    assert "alpha 0.05 a side, bonferroni" in said
    assert "(bonferroni over 108 features, each side): got 8, at least 12 are needed" in said


def test_half_precision():
    render(figure(make(dtype=np.float16)))


def test_few_pixels_hold_samples_out():
    sample = make(shape=(2, 3))
    marks = sample.significance_map()[0]
    assert f"important {(marks == 1).mean():.1%}" in texts(figure(sample))


# One of several inputs


@pytest.mark.slow
def test_each_input_has_its_own_figure_and_threshold():
    sample = make(batch=3)
    per_feature = sample.values.mean(axis=0)
    for index, given, own in [
        (0, 0.7, 0.7),
        (1, [0.3, 0.5, 0.9], [0.5]),
        (2, per_feature, per_feature[2:]),
    ]:
        alone = AttributionSample(
            values=sample.values[:, index : index + 1],
            inputs=sample.inputs[index : index + 1],
            target=(0,),
            vanilla=sample.vanilla[index : index + 1],
            scores=None,
            predictions=None,
            sample_ids=sample.sample_ids,
            input_names=("0",),
        )
        one, other = figure(sample, index=index, threshold=given), figure(alone, threshold=own)
        for name, ax in panels(one).items():
            np.testing.assert_array_equal(pixels(ax), pixels(panels(other)[name]))


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"index": 1}, ValueError, r"`index` must lie in 0\.\.0, got 1"),
        ({"index": -1}, ValueError, "`index` must be at least 0, got -1"),
        ({"index": 0.0}, TypeError, "`index` must be an integer, got float"),
        ({"palette": "rainbow"}, ValueError, r"`palette` must be one of 'colourblind', 'paper', got 'rainbow'"),
        ({"alpha": 2}, ValueError, "`alpha` must lie between 0 and 0.5, got 2"),
        ({"correction": "sidak"}, ValueError, "got 'sidak'"),
        ({"confidence_level": 95}, ValueError, "`confidence_level` must lie strictly between 0 and 1, got 95"),
        ({"threshold": [1, 2]}, ValueError, r"`threshold` must be a number.*got shape \(2,\)"),
    ],
)
def test_bad_arguments_are_errors_and_no_notes(settings, error, message):
    with pytest.raises(error, match=message):
        figure(make(), **settings)


@pytest.mark.parametrize("shape", [(12,), (3, 9, 12)])
def test_features_that_are_no_image(shape):
    values = np.random.default_rng(0).random((20, 1, *shape))
    sample = AttributionSample(values, np.zeros((1, 2)), (0,), values[0], None, None, tuple(range(20)), ("a",))
    with pytest.raises(ValueError, match=f"features of shape {str(shape)[:-1]}".replace("(", r"\(")):
        figure(sample)
    assert sample._repr_html_().startswith("<img" if len(shape) == 1 else "<pre>")


# Titles of others


@pytest.mark.parametrize(
    "title",
    ["$\\frac{", "$", "$$x^2$$", "\\$5 and $6", "a_b^c{", "<b>bold</b>", "100% $\\undefined$", "\\LaTeX", "x" * 500],
)
def test_titles_are_text(title):
    fig = figure(make(), title=title)
    fig._suptitle.draw(FigureCanvasAgg(fig).get_renderer())
    heading = fig._suptitle.get_text().replace("\n", "")
    assert heading == f"{title}explained: class 0".replace("\n", "")


def test_no_title():
    assert figure(make())._suptitle.get_text() == "explained: class 0"
    assert figure(dataclasses.replace(make(), target=(None,)))._suptitle is None


# Nothing global


@pytest.mark.slow
def test_neither_settings_nor_pyplot_are_touched():
    code = """
import sys, numpy as np, matplotlib
sys.path.insert(0, sys.argv[1])
def settings():  # asking for the backend would choose one
    return {name: matplotlib.rcParams[name] for name in matplotlib.rcParams if name != "backend"}
before = settings()
import test_images
fig = test_images.figure(test_images.make(), title="t", correction="bh")
test_images.render(fig)
test_images.make()._repr_html_()
assert settings() == before
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code, str(Path(__file__).parent)], check=True, timeout=60)


@pytest.mark.slow
def test_the_sample_stays_as_it_was():
    sample = make(batch=2)
    before = sample.values.copy()
    render(figure(sample, index=1))
    np.testing.assert_array_equal(sample.values, before)


@pytest.mark.slow
def test_equal_samples_have_equal_figures():
    np.testing.assert_array_equal(render(figure(make(), title="t")), render(figure(make(), title="t")))


def test_a_title_is_a_text():
    with pytest.raises(TypeError, match="`title` must be a text or None, got int: 3"):
        figure(make(), title=3)
