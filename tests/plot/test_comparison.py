"""Figures of comparisons: one scale for both maps, differences about 0, marks, and numbers that are the result's."""

import io
import re
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle
from matplotlib.text import Text

import metfa
from metfa._base.percents import percent
from metfa.plot import PALETTES, bars, comparison, drawing_of, figure, regions
from metfa.results.differences import difference_of

mpl.use("Agg")
SHAPE = (9, 12)
WEIGHTS = np.linspace(-2, 2, 108).reshape(SHAPE)


def explained(weights=1.0, *, shape=SHAPE, batch=1, n=20, change=0.0, **run):
    """Scores weights * inputs + the weights' own noise: differences of two are exact, and of both signs."""
    inputs = np.random.default_rng(0).random((batch, *shape)) / 2 + 0.25 + change

    def explainer(x, target):
        return weights * x

    names = [f"input {row}" for row in range(batch)]
    return metfa.explain(
        explainer,
        inputs,
        0,
        noise=metfa.noise.Gaussian(0.1),
        n_samples=n,
        rng=0,
        run=metfa.Run(input_names=names, **run),
    )


def compared(after=None, *, scale="raw", names=None, **settings):
    weights: Any = 1 + np.where(np.abs(WEIGHTS) > 0.5, WEIGHTS, 0) if after is None else after
    return difference_of(explained(**settings), explained(weights, **settings), scale=scale, names=names)


@pytest.fixture(scope="module")
def sample():
    return compared()


@pytest.fixture(scope="module")
def drawn(sample):
    return comparison(sample)


def panels(fig):
    return {ax.get_title().partition("\n")[0]: ax for ax in fig.axes if ax.images}


def scales(fig):
    """Label and limits of each colour bar."""
    return {ax.get_xlabel(): tuple(ax.get_xlim()) for ax in fig.axes if not ax.images}


def legend(fig):
    return [text.get_text() for one in fig.legends for text in one.get_texts()]


def said(fig):
    return " ".join(" ".join(one.get_title().get_text() for one in fig.legends).split())


def everything(fig):
    return " ".join(text.get_text() for text in fig.findobj(Text))


def painted(ax):
    return np.asarray(ax.images[0].get_array())


def assert_nothing_overlaps(fig):
    canvas = FigureCanvasAgg(fig)
    fig.set_dpi(50)
    canvas.draw()
    renderer = canvas.get_renderer()
    boxes = [ax.get_tightbbox(renderer) for ax in fig.axes] + [one.get_window_extent(renderer) for one in fig.legends]
    boxes += [] if fig._suptitle is None else [fig._suptitle.get_window_extent(renderer)]
    for place, box in enumerate(boxes):
        assert fig.bbox.padded(2).containsx(box.x0)
        assert fig.bbox.padded(2).containsx(box.x1)
        assert fig.bbox.padded(2).containsy(box.y0)
        assert fig.bbox.padded(2).containsy(box.y1)
        for other in boxes[:place]:
            width, height = min(box.x1, other.x1) - max(box.x0, other.x0), min(box.y1, other.y1) - max(box.y0, other.y0)
            assert min(width, height) < 3, (box, other)


class TestMaps:
    def test_a_comparison_of_maps_is_drawn_by_its_own_figure(self, sample):
        assert drawing_of(sample) is comparison
        assert drawing_of(sample.pair[0]) is not comparison

    def test_panels_and_their_titles(self, drawn):
        assert [*panels(drawn)] == [
            "picture", "before, smoothed", "after, smoothed", "difference, smoothed", "differs by at least",
            "shown to differ",
        ]  # fmt: skip
        assert panels(drawn)["after, smoothed"].get_title().endswith("\n20 samples, 5 left out on each side")
        assert panels(drawn)["differs by at least"].get_title().endswith("\nby its 95.9% interval")
        assert panels(drawn)["shown to differ"].get_title().endswith("\nalpha 0.05 a side, uncorrected")

    def test_both_maps_have_one_scale_and_the_difference_a_symmetric_one(self, sample, drawn):
        both = np.stack([part.smoothed(0.95) for part in sample.pair])
        high = np.quantile(np.abs(both), 0.999)
        (low, end), about_0 = scales(drawn)["attribution score"], scales(drawn)["difference, after minus before"]
        assert both.min() < 0
        np.testing.assert_allclose((low, end), (-high, high))
        np.testing.assert_allclose(about_0, np.quantile(np.abs(sample.smoothed(0.95)), 0.999) * np.array([-1, 1]))

    def test_scores_of_one_sign_begin_at_0_and_their_differences_do_not(self):
        one_sided = compared(2.0)
        found = scales(comparison(one_sided))
        assert found["attribution score"][0] == 0
        low, high = found["difference, after minus before"]
        assert -low == high > 0

    def test_the_difference_is_smoothed_over_copies(self, sample, drawn):
        from metfa._base.palettes import SIGNED_SCORES

        smoothed = sample.smoothed(0.95)[0]
        high = np.quantile(np.abs(smoothed), 0.999)
        colours = mpl.colormaps[SIGNED_SCORES](np.clip((smoothed + high) / (2 * high), 0, 1))[..., :3]
        full = np.abs(smoothed) > 0.3 * high  # strong enough to cover the picture
        assert full.any()
        np.testing.assert_allclose(painted(panels(drawn)["difference, smoothed"])[full], colours[full], atol=1e-6)

    def test_ends_nearer_to_0(self, sample, drawn):
        interval = sample.confidence_interval(0.95)
        low, high = interval.low[0], interval.high[0]
        holds = (low <= 0) & (high >= 0)
        shown, plain = painted(panels(drawn)["differs by at least"]), 0.35 * np.array(mpl.colormaps["RdBu_r"](0.5))[:3]
        assert holds.any()
        grey = np.clip(0.25 + 0.6 * painted(panels(drawn)["picture"])[..., 0], 0, 1)
        np.testing.assert_allclose(shown[holds], plain + 0.65 * grey[holds][:, None], atol=1e-6)
        assert (shown[low > 0][..., 0] > shown[low > 0][..., 2]).all()  # red above 0
        assert (shown[high < 0][..., 0] < shown[high < 0][..., 2]).all()

    @pytest.mark.parametrize("palette", PALETTES)
    def test_marks_have_the_colours_of_the_legend_and_the_rest_none(self, sample, palette):
        fig = comparison(sample, palette=palette)
        marks, shown = sample.significance_map()[0], painted(panels(fig)["shown to differ"])
        shown = shown[shown.shape[0] // 18 :: shown.shape[0] // 9, shown.shape[1] // 24 :: shown.shape[1] // 12]
        assert set(np.unique(marks)) == {-1, 0, 1}
        colours = PALETTES[palette]
        plain = 0.3 + 0.5 * np.clip(0.25 + 0.6 * painted(panels(fig)["picture"]), 0, 1)
        np.testing.assert_allclose(shown[marks == 0], plain[marks == 0])
        for mark, colour in ((1, colours.important), (-1, colours.unimportant)):
            expected = 0.8 * np.array(to_rgb(colour)) + 0.2 * plain[marks == mark]
            np.testing.assert_allclose(shown[marks == mark], expected)


class TestWords:
    def test_every_number_is_of_the_result(self, sample, drawn):
        marks, interval = sample.significance_map()[0], sample.confidence_interval()
        beyond = int(((sample.vanilla < interval.low) | (sample.vanilla > interval.high)).sum())
        shares = {mark: percent((marks == mark).mean(), 1) for mark in (1, 0, -1)}
        assert legend(drawn) == [
            f"more than before {shares[1]}", f"undecided, not shown to differ {shares[0]}",
            f"less than before {shares[-1]}",
        ]  # fmt: skip
        assert said(drawn) == (
            "does a pixel get more than before, or less than before, by its median difference? (alpha 0.05 a side, "
            f"uncorrected; 108 pixels) the difference without noise lies outside the interval of {beyond} of 108 "
            f"pixels ({percent(beyond / 108, 1)}) Difference: after minus before in the same noisy copy (attribution "
            "score); marks and intervals are about the median of the differences, not the difference of the medians"
        )

    def test_nothing_is_called_the_same(self, drawn):
        assert not re.search(r"\bsame(?! noisy copy)|unchanged|equal\b", everything(drawn))

    @pytest.mark.slow
    def test_names_and_scales(self):
        fig = comparison(compared(scale="share", names=("2025 $a$", "2026")), correction="holm", alpha=0.1)
        assert {"2025 $a$, smoothed", "2026, smoothed"} <= {*panels(fig)}
        assert "share of its map's sum of absolute scores" in scales(fig)
        assert "difference, 2026 minus 2025 $a$" in scales(fig)
        assert "does a pixel get more in 2026 than in 2025 $a$, or less in 2026 than in 2025 $a$" in said(fig)
        assert "2026 minus 2025 $a$ in the same noisy copy (share of its map's sum of absolute scores);" in said(fig)
        assert "alpha 0.1 a side, holm; 108 pixels" in said(fig)
        assert_nothing_overlaps(fig)

    def test_a_threshold_of_ones_own_does_not_ask_whether_it_differs(self, sample):
        fig = comparison(sample, threshold=0.2)
        share = percent((sample.significance_map(0.2) == 1).mean(), 1)
        assert f"above 0.2 {share}" in legend(fig)
        assert "is the median difference of a pixel above or below 0.2?" in said(fig)
        assert "shown to differ" not in everything(fig)

    def test_delta(self, sample):
        fig = comparison(sample, delta=0.3, correction="holm")
        within = sample.unchanged(0.3, correction="holm")
        assert 0 < within.mean() < 1
        assert f"shown to lie within ±0.3 {percent(within.mean(), 1)}" in legend(fig)
        with pytest.raises(ValueError, match="`delta` must"):
            comparison(sample, delta=0)

    def test_cautions_of_either_part(self):
        inputs = np.full((1, *SHAPE), 0.5)

        def model_of(share):
            def explainer(x, target):
                flat = x.reshape(len(x), -1)
                flips = flat[:, 0] < np.quantile(np.linspace(0.2, 0.8, 100), share)
                return x, np.stack([~flips, flips], axis=1).astype(float)

            return explainer

        runs = [
            metfa.explain(model_of(share), inputs, 0, noise=metfa.noise.Uniform(0.3), n_samples=20, rng=0)
            for share in (0.02, 0.7)
        ]
        both = difference_of(*runs)
        (low,), (rate,) = (run.flip_rate for run in runs if run.flip_rate is not None)
        assert low < 0.2 < rate
        fig = comparison(both)
        assert f"after: The noise changed the prediction in {percent(rate, 0)} of the noisy copies" in everything(fig)
        assert "before: The noise" not in everything(fig)


class TestAllKinds:
    @pytest.mark.slow
    def test_changed_inputs_are_both_shown(self):
        before, after = explained(), explained(change=0.125)
        both = difference_of(before, after)
        fig = comparison(both)
        first, second = panels(fig)["picture, before"], panels(fig)["picture, after"]
        assert first.get_position().x0 == pytest.approx(second.get_position().x0)
        assert "differs by at least" not in panels(fig)
        assert "of changed inputs" in said(fig)
        assert_nothing_overlaps(fig)
        with pytest.raises(ValueError, match="`picture` must be a list of two pictures, before and after"):
            comparison(both, picture=np.zeros(SHAPE))
        pictures = np.zeros(SHAPE), np.ones((18, 24))
        given = panels(comparison(both, picture=pictures))
        assert painted(given["picture, before"]).max() == 0
        assert painted(given["difference, smoothed"]).shape == (18, 24, 3)

    def test_pictures_larger_than_the_maps(self, sample):
        fig = comparison(sample, picture=np.zeros((27, 36)))
        assert painted(panels(fig)["difference, smoothed"]).shape == (27, 36, 3)
        small = painted(panels(comparison(sample, picture=np.zeros(SHAPE)))["difference, smoothed"])
        np.testing.assert_array_equal(painted(panels(fig)["difference, smoothed"])[1::3, 1::3], small)

    def test_each_input_of_a_batch(self):
        both = compared(batch=3)
        fig = comparison(both, index=2)
        share = percent((both.significance_map()[2] == 1).mean(), 1)
        assert f"more than before {share}" in legend(fig)
        assert "input 2 of 3" in everything(fig)

    @pytest.mark.slow
    def test_differences_that_are_all_0(self):
        none = difference_of(explained(), explained())
        fig = comparison(none)
        assert panels(fig)["difference, smoothed"].get_title() == "difference, smoothed\nconstant: 0"
        assert scales(fig)["difference, after minus before"] == (-1, 1)
        assert "undecided, not shown to differ 100%" in " ".join(legend(fig)).replace("100.0%", "100%")
        assert "most differences of each are 0 to rounding" in everything(fig)
        assert_nothing_overlaps(fig)

    @pytest.mark.parametrize("n", [1, 3])
    def test_too_few_samples(self, n):
        fig = comparison(compared(n=n), delta=0.3)
        shown = "the only sample" if n == 1 else "median"
        assert f"difference, {shown}" in panels(fig)
        assert "too few, 95% needs 6" in " ".join(everything(fig).split())
        assert "too few samples for `alpha`=0.05" in " ".join(everything(fig).split())
        assert "within ±0.3: too few samples for `alpha`=0.05" in said(fig)

    @pytest.mark.parametrize("shape", [(1, 1), (3, 40), (40, 3)])
    @pytest.mark.slow
    def test_every_shape_is_drawn_whole(self, shape):
        fig = comparison(compared(1.5, shape=shape), title="A title", delta=0.5)
        assert_nothing_overlaps(fig)

    def test_the_figure_of_one_result_says_that_these_are_differences(self):
        one_sided = compared(2.0)
        fig = figure(one_sided)
        (bar,) = [ax for ax in fig.axes if not ax.images]
        assert bar.get_ylabel() == "attribution score, after minus before"
        low, high = bar.get_ylim()
        assert -low == high > 0
        assert "not the difference of the medians" in said(fig)

    @pytest.mark.parametrize("shape", [(3,), (3, 9, 12)])
    def test_what_is_no_map_is_refused(self, shape):
        with pytest.raises(ValueError, match=r"differences of maps \(height, width\)"):
            comparison(compared(1.5, shape=shape))

    def test_scores_are_refused(self, sample):
        with pytest.raises(ValueError, match=r"must hold differences, got scores: write `metfa.compare"):
            comparison(sample.pair[0])

    @pytest.mark.slow
    def test_notebooks_show_it(self, sample, quick_figures):
        assert sample._repr_html_().startswith('<img alt="differences of attributions with their significance"')


@pytest.fixture(scope="module")
def row():
    weights = np.array([1.0, 2.5, 1.0, 0.2, 1.1])
    return compared(weights, shape=(5,), names=("old", "new"), feature_names=[*"abcde"])


class TestRows:
    @pytest.mark.slow
    def test_differences_stand_beside_both_parts(self, row):
        fig = row.plot(correction="holm")
        assert drawing_of(row) is bars
        each, chart = fig.axes
        order = np.argsort(-np.abs(row.smoothed()[0]), kind="stable")
        np.testing.assert_allclose([patch.get_width() for patch in chart.patches], row.smoothed()[0][order])
        points = [line.get_xdata() for line in each.get_lines() if len(line.get_xdata()) == 5]
        for part, drawn in zip(row.pair, points, strict=True):
            np.testing.assert_allclose(drawn, part.smoothed()[0][order])
        ends = [np.array([segment[:, 0] for segment in lines.get_segments()]) for lines in each.collections]
        for part, drawn in zip(row.pair, ends, strict=True):
            interval = part.confidence_interval()
            np.testing.assert_allclose(drawn, np.stack([interval.low[0], interval.high[0]], axis=1)[order])
        assert [label.get_text().partition(" ")[0] for label in each.get_yticklabels()] == [
            *np.array([*"abcde"])[order]
        ]
        assert_nothing_overlaps(fig)

    def test_words(self, row):
        fig = row.plot(max_features=4)
        marks = row.significance_map()[0]
        for name, mark in (("more in new than in old", 1), ("less in new than in old", -1), ("undecided", 0)):
            assert f"{name}: {(marks == mark).sum()}" in legend(fig)
        assert "95.9% interval of the median difference" in legend(fig)
        assert {"old: smoothed over 20 samples, 5 left out on each side"} <= {*legend(fig)}
        assert fig.axes[0].get_xlabel() == "attribution score, old and new"
        assert "attribution score, new minus old: smoothed over 20" in " ".join(fig.axes[1].get_xlabel().split())
        assert "does a feature get more in new than in old, or less in new than in old, by its median" in said(fig)
        assert "marks and intervals are about the median of the differences" in said(fig)
        assert "not shown: 1 feature, its difference at most" in said(fig)

    @pytest.mark.parametrize("n", [1, 20])
    @pytest.mark.slow
    def test_one_feature_and_differences_of_0(self, n):
        fig = compared(1.0, shape=(1,), n=n).plot()
        assert fig.axes[1].get_xlim() == (-1, 1)
        assert_nothing_overlaps(fig)


class TestRegions:
    @pytest.mark.slow
    def test_regions_of_a_comparison(self, sample):
        labels = np.kron([[0, 1, 2], [3, 4, 5], [6, 7, 8]], np.ones((3, 4), int))
        pooled = sample.over(metfa.Regions(labels))
        fig = regions(pooled, pixels=sample, correction="holm")
        marks = pooled.significance_map(correction="holm")[0]
        titles = [ax.get_title() for ax in fig.axes]
        share = percent((marks == 1).mean(), 0)
        assert f"more than before: {(marks == 1).sum()} of 9 regions\n{share} of the picture" in titles
        chart = next(ax for ax in fig.axes if ax.patches)
        assert "mean score of a region, after minus before: smoothed" in " ".join(chart.get_xlabel().split())
        widths = sorted(patch.get_width() for patch in chart.patches if isinstance(patch, Rectangle))
        np.testing.assert_allclose(widths, sorted(pooled.smoothed()[0]))
        assert "does a region get more than before, or less than before, by its median difference?" in said(fig)
        assert "not the difference of the medians" in said(fig)
        assert_nothing_overlaps(fig)

    def test_against_the_rest_and_scaled(self):
        both = compared(scale="share")
        pooled = both.over(np.kron([[0, 1, 2]], np.ones((9, 4), int)), against="rest")
        chart = next(ax for ax in regions(pooled).axes if ax.patches)
        assert (
            "mean score of a region less that of the rest (share of its map's sum of absolute scores), after minus "
            "before" in " ".join(chart.get_xlabel().split())
        )


def test_names_of_others_are_no_mathematics():
    inputs = np.ones((1, 3))
    found = metfa.compare(
        lambda x, target: x, lambda x, target: 2 * x, inputs, 0, noise=metfa.noise.Gaussian(0.1), n_samples=20, rng=0,
        names=("cost$", "$\\frac{b"),
    )  # fmt: skip
    figure = found.plot()
    figure.savefig(io.BytesIO())  # mathematics that is none would raise
    texts = [text.get_text() for text in figure.findobj(Text)]
    assert any("$\\frac{b minus cost$" in text for text in texts)
