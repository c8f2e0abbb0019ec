"""Figures of curves and studies: what is drawn is what was measured."""

import io

import numpy as np
import pytest
from matplotlib.figure import Figure

import metfa
from metfa import DegenerateAttributionsWarning, metrics
from metfa.plot import curves, mstd_ratio, stability_and_faithfulness

WEIGHTS = np.random.default_rng(1).normal(size=(2 * 6 * 6, 3)) / 2
IMAGES = np.random.default_rng(0).random((5, 2, 6, 6))
MAPS = np.random.default_rng(2).random((5, 6, 6))
NOISE = metfa.noise.Gaussian(0.1)


def model(images):
    return images.reshape(len(images), -1) @ WEIGHTS


def rough(model):
    return lambda inputs, target: np.abs(np.sin(30 * inputs[:, 0]))


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
        assert top == pytest.approx((self.CURVE.normalised.mean(axis=0) + 2 * error).max())
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


class TestStudies:
    def test_ratio_against_n(self, evaluation):
        figure = mstd_ratio(evaluation, to="vanilla")
        frame = evaluation.to_dataframe().query("metric == 'mstd' and outer == 'normal'")
        vanilla = frame[frame["aggregate"] == "vanilla"]["score"].mean()
        smoothed = frame[(frame["aggregate"] == "smoothed") & (frame.confidence_level == 0.9)]
        line = figure.axes[0].containers[0].lines[0]
        expected = [smoothed[smoothed.n_samples == n]["score"].mean() / vanilla for n in (10, 20)]
        np.testing.assert_allclose(line.get_ydata(), expected)
        assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["10", "20"]
        assert labels(figure) == ["P = normal, outer noise normal", "P = normal, outer noise none"]
        assert drawn(figure)

    def test_ratio_against_alpha(self, evaluation):
        figure = mstd_ratio(evaluation, against="alpha", explainer="rough")
        assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["0.1", "0.05"]
        assert drawn(figure)

    def test_stability_and_faithfulness(self, evaluation):
        figure = stability_and_faithfulness(evaluation)
        assert isinstance(figure, Figure)
        frame = evaluation.to_dataframe().query("aggregate == 'vanilla'")
        overall = frame[frame.metric == "overall"]["score"].mean()
        spots = [container.lines[0].get_ydata()[0] for container in figure.axes[0].containers]
        assert spots[0] == pytest.approx(overall)
        assert len(spots) == 1 + 2 + 4
        assert drawn(figure)

    @pytest.mark.parametrize(
        ("draw", "message"),
        [
            (lambda e: mstd_ratio(e, against="n"), "`against` must be one of n_samples, alpha, got 'n'"),
            (lambda e: mstd_ratio(e, to="median"), "`to` must be one of mean, vanilla, got 'median'"),
            (lambda e: mstd_ratio(e, explainer="RISE"), "`explainer` must be one of rough, got 'RISE'"),
            (
                lambda e: stability_and_faithfulness(e, faithfulness="overal"),
                "nothing was measured by 'overal', did you mean 'overall'",
            ),
        ],
    )
    def test_bad_arguments(self, evaluation, draw, message):
        with pytest.raises(ValueError, match=message):
            draw(evaluation)
