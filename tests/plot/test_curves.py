"""Figures of curves and studies: what is drawn is what was measured."""

import io

import numpy as np
import pytest
from matplotlib.figure import Figure

import metfa
from metfa import DegenerateAttributionsWarning, metrics
from metfa.plot import curves, mstd_ratio, stability_and_faithfulness
from metfa.stats.student import half_width

WEIGHTS = np.random.default_rng(1).normal(size=(2 * 6 * 6, 3)) / 2
IMAGES = np.random.default_rng(0).random((5, 2, 6, 6))
MAPS = np.random.default_rng(2).random((5, 6, 6))
NOISE = metfa.noise.Gaussian(0.1)


def model(images):
    return images.reshape(len(images), -1) @ WEIGHTS


def rough(model):
    return lambda inputs, target: np.abs(np.sin(30 * inputs[:, 0]))


def own(model, inputs, attributions, target):
    return attributions.reshape(len(inputs), -1).mean(axis=1)


def labels(figure):
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def drawn(figure):
    figure.savefig(io.BytesIO(), format="png")
    return True


class TestCurves:
    CURVE = metrics.insertion(model, IMAGES, MAPS)

    def test_mean_and_band(self):
        figure = curves({"RISE": self.CURVE})
        (line,) = figure.axes[0].lines
        np.testing.assert_allclose(line.get_xdata(), 100 * self.CURVE.fractions)
        np.testing.assert_allclose(line.get_ydata(), self.CURVE.normalised.mean(axis=0))
        (band,) = figure.axes[0].collections
        error = self.CURVE.normalised.std(axis=0, ddof=1) / np.sqrt(5)
        top = band.get_paths()[0].vertices[:, 1].max()
        assert top == pytest.approx((self.CURVE.normalised.mean(axis=0) + 2.776445 * error).max())
        assert labels(figure) == [f"RISE: {self.CURVE.score.mean():.3f}"]
        assert drawn(figure)

    def test_one_input_and_raw(self):
        figure = curves({"RISE": self.CURVE}, index=2, normalised=False)
        np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), self.CURVE.values[2])
        assert not figure.axes[0].collections
        assert labels(figure) == [f"RISE: {self.CURVE.raw[2]:.3f}"]

    def test_inputs_without_a_score_are_left_out_and_said(self):
        maps = MAPS.copy()
        maps[0] = 0
        with pytest.warns(DegenerateAttributionsWarning):
            curve = metrics.insertion(model, IMAGES, maps)
        figure = curves({"RISE": curve})
        np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), curve.normalised[1:].mean(axis=0))
        assert "(1 of 5 without a score left out)" in labels(figure)[0]
        with pytest.warns(DegenerateAttributionsWarning):
            none = metrics.insertion(model, IMAGES, np.zeros_like(MAPS))
        figure = curves({"RISE": none})
        assert labels(figure) == ["RISE: no score (5 of 5 without a score left out)"]
        assert drawn(figure)

    def test_names_are_text(self):
        figure = curves({"$\\frac$ <b>": self.CURVE}, title="$x_")
        assert labels(figure)[0].startswith("$\\frac$ <b>")
        assert drawn(figure)

    @pytest.mark.parametrize(
        ("named", "settings", "error", "message"),
        [
            ({}, {}, ValueError, "at least one curve"),
            (CURVE, {}, ValueError, "`named` must be a dict"),
            ({"a": MAPS}, {}, TypeError, r"`named\['a'\]` must be a FaithfulnessCurve, got ndarray"),
            ({"a": CURVE}, {"index": 5}, ValueError, r"`index` must lie in 0\.\.4, got 5"),
        ],
    )
    def test_bad_arguments(self, named, settings, error, message):
        with pytest.raises(error, match=message):
            curves(named, **settings)


@pytest.fixture(scope="module")
def evaluation():
    study = metfa.Study(
        model=model,
        inputs=IMAGES,
        explainers={"rough": rough},
        sampling={"normal": NOISE},
        outer={"normal": NOISE, "none": None},
        metrics={"mstd": {}, "faithfulness": {"steps": 9}},
        n_samples=(10, 20),
        confidence_level=(0.9, 0.95),
        n_outer=4,
        version="1",
    )
    return metfa.evaluate(study, store="memory://plots")


def small(model):
    return lambda inputs, target: rough(model)(inputs, target) / 1000


def flat(model):
    return lambda inputs, target: np.ones_like(inputs[:, 0])


def signed(model):
    return lambda inputs, target: np.sin(30 * inputs[:, 0]) - 2


def studied(explainers=(rough,), **changes):
    named = explainers if isinstance(explainers, dict) else {one.__name__: one for one in explainers}
    settings = {
        "model": model, "inputs": IMAGES, "explainers": named, "metrics": {"mstd": {}, "faithfulness": {"steps": 9}},
        "sampling": {"normal": NOISE}, "outer": {"normal": NOISE}, "n_outer": 3, "version": "1",
    }  # fmt: skip
    return metfa.evaluate(metfa.Study(**{**settings, **changes}), store="memory://plots")


def spots(figure):
    """(x, y) of every marker, in the order of explainers and maps."""
    lines = [container.lines[0] for container in figure.axes[0].containers]
    return np.array([(line.get_xdata()[0], line.get_ydata()[0]) for line in lines])


class TestStudies:
    def test_ratio_against_n(self, evaluation):
        figure = mstd_ratio(evaluation, to="vanilla")
        frame = evaluation.to_dataframe().query("metric == 'mstd' and outer == 'normal'")
        vanilla = frame[frame["aggregate"] == "vanilla"]["score"].mean()
        for place, level in enumerate((0.9, 0.95)):
            smoothed = frame[(frame["aggregate"] == "smoothed") & (frame.confidence_level == level)]
            line = figure.axes[0].containers[place].lines[0]
            expected = [smoothed[smoothed.n_samples == n]["score"].mean() / vanilla for n in (10, 20)]
            np.testing.assert_allclose(line.get_ydata(), expected)
        assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["10", "20"]
        of_none = [name for name in labels(mstd_ratio(evaluation)) if "outer noise none" in name]
        assert of_none == ["P = normal, outer noise none, 90%", "P = normal, outer noise none, 95%"]
        assert labels(figure) == ["P = normal, outer noise normal, 90%", "P = normal, outer noise normal, 95%"]
        assert figure.axes[0].get_xlabel() == "samples N"
        assert drawn(figure)

    def test_ratio_of_one_level_names_it(self, evaluation):
        figure = mstd_ratio(evaluation, confidence_level=0.95)
        assert figure.axes[0].get_xlabel() == "samples N (confidence level 95%)"
        assert labels(figure) == ["P = normal, outer noise normal, 95%", "P = normal, outer noise none, 95%"]
        whole = mstd_ratio(evaluation)
        for one, other in ((0, 1), (1, 3)):
            found, expected = (f.axes[0].containers[place] for f, place in ((figure, one), (whole, other)))
            np.testing.assert_array_equal(found.lines[0].get_ydata(), expected.lines[0].get_ydata())

    def test_ratio_against_alpha(self, evaluation):
        figure = mstd_ratio(evaluation, against="alpha", explainer="rough")
        assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["0.1", "0.05"]
        assert figure.axes[0].get_xlabel() == "alpha (N = 20)"
        assert mstd_ratio(evaluation, against="alpha", n_samples=10).axes[0].get_xlabel() == "alpha (N = 10)"
        assert drawn(figure)

    def test_ratio_needs_an_axis(self, evaluation):
        with pytest.raises(
            ValueError, match=r"`against='n_samples'` needs several `n_samples`, and there is only N = 10"
        ):
            mstd_ratio(studied())
        with pytest.raises(
            ValueError, match=r"`against='n_samples'` needs several `n_samples`, and there is only N = 20"
        ):
            mstd_ratio(evaluation, n_samples=20)
        with pytest.raises(
            ValueError, match=r"`against='alpha'` needs several `confidence_level`, and there is only 90%"
        ):
            mstd_ratio(evaluation, against="alpha", confidence_level=0.9)
        with pytest.raises(ValueError, match="no input has an mstd of both maps of flat; its table says why"):
            mstd_ratio(studied([flat], n_samples=(10, 20)))

    def test_stability_and_faithfulness(self, evaluation):
        figure = stability_and_faithfulness(evaluation)
        assert isinstance(figure, Figure)
        frame = evaluation.to_dataframe().query("aggregate == 'vanilla'")
        mstd = frame[frame.metric == "mstd"].dropna(subset="score")  # without outer noise it has none
        assert spots(figure)[0] == pytest.approx(
            (mstd["score"].mean() / mstd["level"].mean(), frame[frame.metric == "overall"]["score"].mean())
        )
        assert len(spots(figure)) == 1 + 2 + 4
        assert labels(figure) == [
            "rough", " ", "vanilla", "mean, P = normal, N = 10", "smoothed, P = normal, N = 10, 90%",
            "smoothed, P = normal, N = 10, 95%", "mean, P = normal, N = 20", "smoothed, P = normal, N = 20, 90%",
            "smoothed, P = normal, N = 20, 95%",
        ]  # fmt: skip
        lines = [container.lines[0] for container in figure.axes[0].containers]
        assert len({(line.get_marker(), str(line.get_markerfacecolor())) for line in lines}) == len(lines)
        caption = figure.get_supxlabel()
        assert caption == "bars: 95% intervals over 5 inputs (Student's t)\nmeans over the outer noises normal, none"
        assert drawn(figure)

    def test_bars_of_the_relative_mstd_are_by_the_jackknife(self):
        result = studied()
        frame = result.to_dataframe().query("metric == 'mstd' and aggregate == 'vanilla'")
        left_out = [
            np.delete(frame["score"], i).mean() / np.delete(frame["level"], i).mean() for i in range(len(IMAGES))
        ]
        error = np.sqrt((len(IMAGES) - 1) * np.var(left_out))
        bar = stability_and_faithfulness(result).axes[0].containers[0].lines[2][0].get_segments()[0]
        assert np.ptp(bar[:, 0]) == pytest.approx(2 * half_width(error, len(IMAGES)))

    def test_a_map_times_a_thousandth_is_as_stable(self):
        result = studied([rough, small])
        one, other = np.split(spots(stability_and_faithfulness(result)), 2)
        np.testing.assert_allclose(one, other)
        figure = stability_and_faithfulness(result, relative=False)
        one, other = np.split(spots(figure)[:, 0], 2)
        np.testing.assert_allclose(one, 1000 * other)
        assert figure.axes[0].get_xlabel() == "mstd, in the units of each map (left: more stable)"

    def test_signed_maps_have_no_relative_stability(self):
        result = studied([rough, signed])
        with pytest.raises(ValueError, match=r"level of signed, vanilla, is -[\d.]+, .* write relative=False"):
            stability_and_faithfulness(result)
        assert len(spots(stability_and_faithfulness(result, relative=False))) == 6

    def test_what_is_not_drawn_is_said(self):
        figure = stability_and_faithfulness(studied([rough, flat]))
        assert figure.get_supxlabel().splitlines()[-1] == "not drawn, without a figure: flat"
        assert "flat" not in labels(figure)
        with pytest.raises(ValueError, match="no map has both mstd and overall"):
            stability_and_faithfulness(studied([flat]))
        alone = stability_and_faithfulness(studied(inputs=IMAGES[:1]))
        assert alone.get_supxlabel() == "one input: no intervals"
        assert drawn(alone)

    @pytest.mark.slow
    def test_many_maps_and_explainers_are_told_apart(self):
        explainers = {f"$x_{place}": rough for place in range(8)}
        noises = {"normal": NOISE, "uniform": metfa.noise.Uniform(0.1)}
        result = studied(
            explainers=explainers, sampling=noises, n_samples=(6, 8), confidence_level=(0.8, 0.9),
            inputs=IMAGES[:2], n_outer=2,
        )  # fmt: skip
        figure = stability_and_faithfulness(result)
        lines = [container.lines[0] for container in figure.axes[0].containers]
        assert len({(line.get_marker(), str(line.get_markerfacecolor()), str(line.get_color())) for line in lines}) == (
            8 * (1 + 2 * 2 * 3)
        )  # fmt: skip
        assert labels(figure)[0] == "$x_0"
        assert drawn(figure)
        few = stability_and_faithfulness(result, explainer="$x_1", sampling="normal", n_samples=8, confidence_level=0.9)
        assert labels(few) == ["$x_1", " ", "vanilla", "mean, P = normal", "smoothed, P = normal"]

    def test_which_side_is_better(self):
        result = studied(metrics={"mstd": {}, "faithfulness": {"steps": 9}, "own": own, "interval_width": {}})
        for metric, label in (
            ("overall", "overall (up: more faithful)"), ("deletion", "deletion (down: more faithful)"), ("own", "own")
        ):  # fmt: skip
            assert stability_and_faithfulness(result, faithfulness=metric).axes[0].get_ylabel() == label
        for metric in ("interval_width", "mstd", "faithfulness"):
            with pytest.raises(
                ValueError, match=f"must be a metric of maps: insertion, deletion, overall, own; got '{metric}'"
            ):
                stability_and_faithfulness(result, faithfulness=metric)

    @pytest.mark.parametrize(
        ("draw", "message"),
        [
            (lambda e: mstd_ratio(e, against="n"), "`against` must be one of 'n_samples', 'alpha', got 'n'"),
            (lambda e: mstd_ratio(e, to="median"), "`to` must be one of 'mean', 'vanilla', got 'median'"),
            (lambda e: mstd_ratio(e, explainer="RISE"), "`explainer` must be one of rough, got 'RISE'"),
            (
                lambda e: stability_and_faithfulness(e, faithfulness="overal"),
                "the study has no 'overal', did you mean 'overall'",
            ),
        ],
    )
    def test_bad_arguments(self, evaluation, draw, message):
        with pytest.raises(ValueError, match=message):
            draw(evaluation)
