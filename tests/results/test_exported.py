"""Results as kinds of shap and of xarray."""

import builtins

import numpy as np
import pytest

import metfa

WEIGHTS = np.array([2.0, 0.0, -1.0])
NAMES = ("age", "size", "weight")


def explained(n=20, rows=4, **settings):
    inputs = np.random.default_rng(0).normal(size=(rows, 3))
    run = metfa.Run(feature_names=NAMES)
    given = {"noise": metfa.noise.Gaussian(0.5), "n_samples": n, "rng": 0, "run": run}
    return metfa.explain(lambda x, target: x * WEIGHTS, inputs, 0, **{**given, **settings})


@pytest.fixture(scope="module")
def sample():
    return explained()


@pytest.fixture(scope="module")
def maps():
    inputs = np.random.default_rng(1).random((2, 3, 4))
    return metfa.explain(lambda x, target: x**2, inputs, 1, noise=metfa.noise.Uniform(0.1), n_samples=10, rng=0)


@pytest.mark.slow  # to import it takes seconds
class TestShap:
    def test_scores_intervals_spread_and_names(self, sample):
        pytest.importorskip("shap")
        found, interval = sample.to_shap(confidence_level=0.9), sample.confidence_interval(0.9)
        np.testing.assert_array_equal(found.values, sample.smoothed(0.9))
        np.testing.assert_array_equal(found.lower_bounds, interval.low)
        np.testing.assert_array_equal(found.upper_bounds, interval.high)
        np.testing.assert_allclose(found.error_std, sample.values.std(axis=0, ddof=1))
        np.testing.assert_array_equal(found.data, sample.inputs)
        assert tuple(found.feature_names) == NAMES
        assert found.base_values is None
        one = found[1]
        np.testing.assert_array_equal(one.values, sample.smoothed(0.9)[1])
        np.testing.assert_allclose(one.error_std, sample.std()[1])

    def test_too_few_samples_have_medians_and_no_intervals(self):
        pytest.importorskip("shap")
        few = explained(n=4)
        found = few.to_shap()
        np.testing.assert_array_equal(found.values, few.median())
        assert found.lower_bounds is None
        assert explained(n=1).to_shap().error_std is None

    def test_maps_have_their_pictures_and_regions_have_none(self, maps):
        pytest.importorskip("shap")
        assert maps.to_shap().values.shape == maps.to_shap().data.shape == (2, 3, 4)
        pictures = np.random.default_rng(2).random((2, 3, 4, 5))
        given = {"target": 0, "noise": metfa.noise.Uniform(0.1), "n_samples": 6, "rng": 0}
        reduced = metfa.explain(lambda x, target: x.max(axis=1), pictures, **given).to_shap()
        np.testing.assert_array_equal(reduced[0, 3, 4].data, pictures[0, :, 3, 4])  # one place in both
        assert metfa.explain(lambda x, target: x[:, 0, ::2, ::2], pictures, **given).to_shap().data is None
        pooled = maps.over(np.repeat([[0], [0], [1]], 4, axis=1)).to_shap()
        assert pooled.data is None
        assert pooled.feature_names == ["region 0", "region 1"]

    def test_labels_of_a_frame(self):
        pytest.importorskip("shap")
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "colour": ["red", "blue", "red", "red"]})
        noise = metfa.noise.from_table(frame)

        def explainer(rows, target):
            return np.stack([rows["size"], 7.5 + (rows["colour"] == "red")], axis=1)

        found = metfa.explain(explainer, frame, 0, noise=noise, n_samples=10, rng=0).to_shap()
        assert found.display_data[:, 1].tolist() == frame["colour"].tolist()
        assert found.data[:, 0].tolist() == frame["size"].tolist()

    def test_its_figures_draw_it(self, sample):
        shap = pytest.importorskip("shap")
        figures = pytest.importorskip("matplotlib.pyplot")
        ax = shap.plots.bar(sample.to_shap()[0], show=False)
        assert [text.get_text() for text in ax.get_yticklabels()]
        figures.close("all")


class TestXarray:
    def test_all_that_the_table_has(self, sample):
        pytest.importorskip("xarray")
        terms = {"threshold": 0.3, "alpha": 0.1, "correction": "holm"}
        found, frame = (
            sample.to_xarray(**terms, confidence_level=0.8),
            sample.to_dataframe(**terms, confidence_level=0.8),
        )
        assert found["values"].dims == ("sample", "input", "feature")
        np.testing.assert_array_equal(found["values"], sample.values)
        assert np.shares_memory(found["values"].values, sample.values)
        of_lines = set(frame.columns) - {"input", "input_name", "target", "feature", "feature_name", "n", "caution"}
        for name in of_lines:
            np.testing.assert_array_equal(found[name].values.ravel(), frame[name], err_msg=name)
        assert found["feature"].values.tolist() == list(NAMES)
        assert found["target"].values.tolist() == [0] * 4
        assert found.sel(feature="age")["score"].values.tolist() == sample.smoothed(0.8)[:, 0].tolist()
        assert int(found["n"]) == 20
        assert found.attrs == frame.attrs

    def test_axes_of_maps(self, maps):
        pytest.importorskip("xarray")
        found = maps.to_xarray()
        assert found["mark"].dims == ("input", "index_0", "index_1")
        np.testing.assert_array_equal(found["mark"], maps.significance_map())
        assert not any(entries.dtype == object for entries in found.variables.values())


@pytest.mark.parametrize(
    ("method", "missing", "said"),
    [
        ("to_xarray", "xarray", "`to_xarray` needs xarray: pip install xarray"),
        ("to_shap", "shap", r"`to_shap` needs shap: pip install 'metfa\[table\]'"),
    ],
)
def test_without_the_library(sample, method, missing, said, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **given):
        if name.partition(".")[0] == missing:
            raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)
        return real(name, *args, **given)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModuleNotFoundError, match=said):
        getattr(sample, method)()


def test_parts_say_where_to_ask():
    def explainer(inputs, target):
        return inputs[0], inputs[1]

    inputs, noise = (np.arange(1.0, 3)[None], np.arange(1.0, 4)[None]), (metfa.noise.Gaussian(0.1),) * 2
    result = metfa.explain(explainer, inputs, 0, noise=noise, n_samples=10, rng=0)
    with pytest.raises(AttributeError, match=r"result\[0\].to_shap"):
        result.to_shap()
