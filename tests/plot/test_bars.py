"""Figures of tables: bars, error bars and colours are what the statistics say, and everything fits."""

import io
import itertools
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from PIL import Image

from metfa._base.warnings import DegenerateAttributionsWarning, SignedAttributionsWarning
from metfa.plot import PALETTES, bars
from metfa.results.sample import AttributionSample
from metfa.stats import jenks
from metfa.text import PromptNoise, explain_answer

CENTRES = np.array([2.0, -3.0, 0.05, 0.0, 1.0, -0.4])


def make(n=20, centres=CENTRES, noise=0.3, batch=1, inputs=None, seed=0, **fields):
    """Normal samples around the centres; input k has k + 1 times the scores."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, batch, len(centres))) * noise + centres
    values *= np.arange(1, batch + 1)[:, None]
    return AttributionSample(
        values=values,
        inputs=np.arange(batch * len(centres)).reshape(batch, -1) / 8 if inputs is None else inputs,
        target=(0,) * batch,
        vanilla=np.tile(np.asarray(centres, dtype=float), (batch, 1)),
        scores=None,
        predictions=None,
        sample_ids=tuple(range(n)),
        input_names=tuple(map(str, range(batch))),
        **fields,
    )


def heights(fig):
    return np.array([patch.get_width() for patch in fig.axes[0].patches])


def colours(fig):
    return [to_rgb(patch.get_facecolor()) for patch in fig.axes[0].patches]


def labels(fig):
    return [label.get_text() for label in fig.axes[0].get_yticklabels()]


def ends(fig):
    """Lower and upper ends of the black error bars, from the top downwards."""
    black = [c for c in fig.axes[0].collections if to_rgb(c.get_color()[0]) == (0, 0, 0)]
    assert len(black) == 1
    return np.array([segment[:, 0] for segment in black[0].get_segments()])


def diamonds(fig):
    line, *_ = [line for line in fig.axes[0].lines if line.get_marker() == "D"]  # then those outside their intervals
    return line.get_xdata()


def legend(fig):
    return [text.get_text() for text in fig.legends[0].get_texts()]


def said(fig):
    return " ".join(f"{fig.axes[0].get_xlabel()} {fig.legends[0].get_title().get_text()}".split())


def render(fig):
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png", dpi=40)
    buffer.seek(0)
    return np.asarray(Image.open(buffer).convert("RGB"))


def assert_everything_fits(fig):
    """All texts lie within the figure, and no two of them overlap."""
    canvas = FigureCanvasAgg(fig)
    canvas.draw()
    renderer = canvas.get_renderer()
    ax = fig.axes[0]
    artists = [*ax.get_yticklabels(), ax.xaxis.label, *fig.legends]
    artists += [] if fig._suptitle is None else [fig._suptitle]
    boxes = [artist.get_window_extent(renderer) for artist in artists]
    for box, artist in zip(boxes, artists, strict=True):
        assert fig.bbox.padded(1).containsx(box.x0), artist
        assert fig.bbox.padded(1).containsx(box.x1), artist
        assert fig.bbox.padded(1).containsy(box.y0), artist
        assert fig.bbox.padded(1).containsy(box.y1), artist
    for one, other in itertools.combinations(boxes, 2):
        width = min(one.x1, other.x1) - max(one.x0, other.x0)
        height = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert min(width, height) < 2, (one, other)
    assert ax.get_window_extent(renderer).width > 0.3 * fig.bbox.width


def test_bars_are_the_smoothed_scores_and_error_bars_the_exact_intervals():
    sample = make()
    fig = bars(sample)
    smoothed, interval = sample.smoothed()[0], sample.confidence_interval()
    order = np.argsort(-np.abs(smoothed))
    np.testing.assert_allclose(heights(fig), smoothed[order])
    np.testing.assert_allclose(ends(fig), np.stack([interval.low[0], interval.high[0]], axis=1)[order])
    np.testing.assert_allclose(diamonds(fig), sample.vanilla[0][order])
    assert labels(fig) == [f"feature {f} = {sample.inputs[0, f]:.4g}" for f in order]
    assert f"{interval.confidence_level:.1%} interval of the median" in legend(fig)
    assert "smoothed over 20 samples" in said(fig)
    low, high = fig.axes[0].get_ylim()
    assert low > high  # the largest is at the top


@pytest.mark.parametrize("palette", PALETTES)
def test_signed_scores_are_positive_negative_or_undecided(palette):
    sample = make()
    marks = sample.significance_map(0.0)[0]
    assert set(marks) == {-1, 0, 1}
    fig = bars(sample, palette=palette)
    palette = PALETTES[palette]
    by_mark = {1: palette.positive, 0: palette.no_sign, -1: palette.negative}
    order = np.argsort(-np.abs(sample.smoothed()[0]))
    assert colours(fig) == [to_rgb(by_mark[mark]) for mark in marks[order]]
    for name, mark in (("positive", 1), ("undecided", 0), ("negative", -1)):
        assert f"{name}: {(marks == mark).sum()}" in legend(fig)
        (patch,) = [p for p, t in zip(fig.legends[0].get_patches(), legend(fig), strict=False) if t.startswith(name)]
        assert to_rgb(patch.get_facecolor()) == to_rgb(by_mark[mark])
    assert "above or below 0? (alpha 0.05 a side, uncorrected; 6 features)" in said(fig)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("n", [8, 13, 50])
def test_at_the_alpha_of_its_interval_a_bar_is_coloured_just_if_that_leaves_out_the_threshold(n, level):
    rng = np.random.default_rng(n)
    sample = make(n=n, centres=rng.normal(size=40) * 0.2, noise=0.3)
    fig = bars(sample, alpha=round((1 - level) / 2, 15), confidence_level=level, max_features=40)
    low, high = ends(fig).T
    decided = (low > 0) | (high < 0)
    grey = np.array([colour == to_rgb(PALETTES["colourblind"].no_sign) for colour in colours(fig)])
    np.testing.assert_array_equal(decided, ~grey)
    assert decided.any()
    assert grey.any()


def test_scores_of_one_sign_are_important_or_not():
    sample = make(centres=[1.0, 1.1, 0.1, 0.12, 0.5], noise=0.02)
    height = float(sample.threshold()[0])
    fig = bars(sample)
    marks = sample.significance_map()[0]
    assert f"important: {(marks == 1).sum()}" in legend(fig)
    assert f"unimportant: {(marks == -1).sum()}" in legend(fig)
    assert f"threshold {height:.3g}" in legend(fig)
    lines = [line.get_xdata()[0] for line in fig.axes[0].lines if line.get_linestyle() == ":"]
    assert lines == [height]
    assert "undecided: 5" in legend(bars(sample, threshold=sample.median()[0][None]))
    per_feature = np.where(np.arange(5) < 2, 0.2, 0.8)[None]
    fig = bars(sample, threshold=per_feature)
    assert {"important: 2", "unimportant: 3"} <= set(legend(fig))
    assert "a threshold of its own" in said(fig)


def test_scores_are_signed_if_those_of_any_input_are():
    one = make(centres=[1.0, 2.0, 0.6], noise=0.01)
    assert "important: 1" in legend(bars(one))
    assert "positive: 3" in legend(bars(one, threshold=0))
    other = replace(
        one,
        values=np.concatenate([one.values, -one.values], axis=1),
        vanilla=np.concatenate([one.vanilla, -one.vanilla]),
        inputs=np.zeros((2, 3)),
        target=one.target * 2,
        input_names=("one", "other"),
    )
    assert "positive: 3" in legend(bars(other))
    assert "negative: 3" in legend(bars(other, index=1))


def test_a_threshold_of_ones_own():
    assert "important: 1" in legend(bars(make(), threshold=1.5))
    with pytest.warns(SignedAttributionsWarning, match="the attributions are signed"):
        bars(make(), threshold=jenks)


def test_corrections_count_all_features():
    sample = make(n=30, centres=np.linspace(-1, 1, 60) * 0.3)
    fig = bars(sample, correction="bonferroni", max_features=10)
    marks = sample.significance_map(0.0, alpha=0.05, correction="bonferroni")[0]
    assert f"positive: {(marks == 1).sum()}" in legend(fig)
    assert "(alpha 0.05 a side, bonferroni; 60 features)" in said(fig)
    assert "alpha 0.01 a side" in said(bars(sample, alpha=0.01))


def test_what_is_not_shown_is_said():
    sample = make()
    fig = bars(sample, max_features=4)
    assert len(heights(fig)) == 4
    order = np.argsort(-np.abs(sample.smoothed()[0]))
    largest = np.abs(sample.smoothed()[0][order[4:]]).max()
    assert f"not shown: 2 features, their scores at most {largest:.3g} in size; 2 undecided" in said(fig)
    assert "not shown: 1 feature, its score at most" in said(bars(sample, max_features=5))
    assert "not shown" not in said(bars(sample))


# Names and values


def test_names_come_from_the_sample_or_the_call():
    sample = make(feature_names=tuple("abcdef"))
    assert labels(bars(sample))[:2] == ["b = 0.125", "a = 0"]
    assert labels(bars(sample, feature_names=["u", "v", "w", "x", "y", "z"]))[:2] == ["v = 0.125", "u = 0"]
    assert labels(bars(replace(sample, inputs=["a text"])))[:2] == ["b", "a"]
    assert labels(bars(replace(sample, inputs=np.array([[12345.6, 1e-5, 3, 4, 5, 6]]))))[:2] == [
        "b = 1e-05",
        "a = 12,346",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "x" * 200,
        "a long name of many words that " * 5,
        "$\\frac{",
        "$x^2$ and $y$",
        "tab\tnew\nline",
        "",
        "\\LaTeX",
        "größe",
    ],
)
def test_names_are_text_and_fit(name):
    fig = bars(make(feature_names=(name,) * 6), title=name or None)
    assert_everything_fits(fig)
    assert all(len(label.splitlines()) <= 2 for label in labels(fig))


@pytest.mark.parametrize("order", [False, True])
def test_a_figure_of_an_answer_says_which_and_everything_fits(order):
    def score(rows):
        return np.array([[2.0 * ("a" in kept), 1.0, 2.0 * ("b" in kept)] for kept in rows])

    scorer = PromptNoise(score, order=True) if order else score
    answers = ["It is\na.", "B " * 100, " c"]
    found = explain_answer(scorer, ["a", "b"], delta=0.7, answers=answers, n_samples=12, pilot=4, rng=0)
    fig = bars(found)
    assert_everything_fits(fig)
    assert fig._suptitle.get_text() == "answer 0 of 3: “It is a.”"
    assert "answer 1 of 3: “B B" in " ".join(bars(found, index=1)._suptitle.get_text().split())
    assert bars(found.of_input(2))._suptitle.get_text() == "“c”"


# Every size, and degenerate scores


@pytest.mark.parametrize("n_features", [1, 2, 20, 21, 60])
def test_every_number_of_features_fits(n_features):
    fig = bars(make(centres=np.linspace(-2, 2, n_features)), title="a title", max_features=60)
    assert_everything_fits(fig)
    assert len(heights(fig)) == n_features


@pytest.mark.parametrize("value", [0.0, 0.25, -3.0])
def test_scores_that_never_vary(value):  # bugs.md 28
    sample = make(centres=np.full(4, value), noise=0)
    fig = bars(sample, threshold=0.0)
    assert_everything_fits(fig)
    np.testing.assert_array_equal(ends(fig), np.full((4, 2), value))
    name = {0.0: "undecided", 0.25: "positive", -3.0: "negative"}[value]
    assert f"{name}: 4" in legend(fig)


def test_no_threshold_between_equal_scores():
    with pytest.warns(DegenerateAttributionsWarning, match="no threshold separates"):
        fig = bars(make(centres=np.full(4, 0.25), noise=0))
    assert "undecided: 4" in legend(fig)
    assert fig.get_suptitle().endswith("No feature stands out: all scores are equal")


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_tiny_and_huge_scores(scale):
    assert_everything_fits(bars(make(centres=CENTRES * scale, noise=0.1 * scale)))


@pytest.mark.parametrize("n", [1, 4])
def test_too_few_samples_are_said(n):
    sample = make(n=n)
    fig = bars(sample)
    assert_everything_fits(fig)
    np.testing.assert_allclose(np.sort(heights(fig)), np.sort(sample.median()[0]))
    assert not fig.axes[0].collections
    samples = "1 sample is" if n == 1 else f"{n} samples are"
    assert f"no error bars: {samples} too few, 95% needs 6" in said(fig)
    assert "at least 5 are needed for anything to become significant" in said(fig)
    assert ("the only sample" if n == 1 else "median of 4 samples") in said(fig)
    assert legend(fig) == ["vanilla: one explanation, no noise"]


def test_too_few_samples_for_a_correction_leave_the_error_bars():
    fig = bars(make(n=6), correction="bonferroni")
    assert len(ends(fig)) == 6
    assert "(bonferroni over 6 features, each side): got 6, at least 7 are needed" in said(fig)
    assert set(colours(fig)) == {to_rgb(PALETTES["colourblind"].no_sign)}


def test_half_precision():
    sample = make()
    render(bars(replace(sample, values=sample.values.astype(np.float16), vanilla=sample.vanilla.astype(np.float16))))


# One of several inputs


def test_each_input_has_its_own_bars_and_threshold():
    sample = make(batch=3)
    for index in range(3):
        alone = replace(
            sample,
            values=sample.values[:, index : index + 1],
            vanilla=sample.vanilla[index : index + 1],
            inputs=sample.inputs[index : index + 1],
        )
        for given, own in [(None, None), (0.7, 0.7), ([0.3, 0.5, 0.9], [[0.3, 0.5, 0.9][index]])]:
            one, other = bars(sample, index=index, threshold=given), bars(alone, threshold=own)
            np.testing.assert_array_equal(heights(one), heights(other))
            assert colours(one) == colours(other)
            assert labels(one) == labels(other)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"index": 1}, ValueError, r"`index` must lie in 0\.\.0, got 1"),
        (
            {"feature_names": ["a"]},
            ValueError,
            "`feature_names` has 1 name, but an attribution has 6 features",
        ),
        ({"feature_names": "abcdef"}, TypeError, "must be a list of texts, got str: 'abcdef'"),
        ({"max_features": 0}, ValueError, "`max_features` must be at least 1, got 0"),
        ({"palette": "rainbow"}, ValueError, r"`palette` must be one of 'colourblind', 'paper', got 'rainbow'"),
        ({"alpha": 2}, ValueError, "`alpha` must lie between 0 and 0.5, got 2"),
        ({"correction": "sidak"}, ValueError, "got 'sidak'"),
        ({"confidence_level": 95}, ValueError, "`confidence_level` must lie strictly between 0 and 1, got 95"),
        ({"threshold": [1, 2]}, ValueError, r"`threshold` must be a number.*got shape \(2,\)"),
    ],
)
def test_bad_arguments(settings, error, message):
    with pytest.raises(error, match=message):
        bars(make(), **settings)


def test_images_are_not_drawn_as_bars():
    sample = make()
    image = replace(sample, values=sample.values.reshape(20, 1, 2, 3), vanilla=sample.vanilla.reshape(1, 2, 3))
    with pytest.raises(
        ValueError, match=r"features along one axis to be drawn as bars, got shape \(2, 3\); `metfa.plot.fig"
    ):
        bars(image)


@pytest.mark.slow
def test_neither_settings_nor_pyplot_are_touched():
    code = """
import sys, matplotlib
sys.path.insert(0, sys.argv[1])
def settings():  # asking for the backend would choose one
    return {name: matplotlib.rcParams[name] for name in matplotlib.rcParams if name != "backend"}
before = settings()
import test_bars
test_bars.render(test_bars.bars(test_bars.make(), title="t", correction="bh"))
assert settings() == before
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code, str(Path(__file__).parent)], check=True, timeout=60)


def test_equal_samples_have_equal_figures():
    np.testing.assert_array_equal(render(bars(make())), render(bars(make())))
