"""Frames through SHAP and lime: in native form, by codes, in any order of columns; equal to SHAP without noise."""

import catboost
import lightgbm
import lime.lime_tabular
import numpy as np
import pandas as pd
import polars as pl
import pytest
import shap
import xgboost
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import metfa
from metfa.explainers import from_lime, from_shap

pytestmark = pytest.mark.filterwarnings(
    "ignore::metfa.DegenerateAttributionsWarning",  # of noise that changes nothing
    "ignore:LightGBM binary classifier:UserWarning",
    "ignore:X does not have valid feature names:UserWarning",  # SHAP's kernel asks with arrays
)

RNG = np.random.default_rng(0)
N = 150
TABLE = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, N),
        "income": RNG.lognormal(3, 1, N),
        "town": RNG.choice(["Ulm", "Bonn", "Kiel"], N),
        "owner": RNG.random(N) < 0.5,
        "debt": np.where(RNG.random(N) < 0.2, np.nan, RNG.random(N)),
    }
)
CATEGORIES = TABLE.astype({"town": "category"})
NUMBERS = TABLE[["age", "income"]]
ILL = ((TABLE.age > 45).astype(int) + (TABLE.town == "Ulm") + (TABLE.income > 20) > 1).astype(int).to_numpy()
ROWS = slice(20, 24)
STILL = {"noise": lambda x, rng: x, "n_samples": 1, "rng": 0}


@pytest.fixture(scope="module")
def pipeline():
    parts = make_column_transformer((OneHotEncoder(), ["town"]), (SimpleImputer(), ["age", "income", "debt", "owner"]))
    return make_pipeline(parts, LogisticRegression(max_iter=5000)).fit(TABLE, ILL)


def probabilities(frame):
    """A model of frames that is quick to ask."""
    assert frame.dtypes[list(TABLE)].equals(TABLE.dtypes)
    risk = frame["age"] / 50 + (frame["town"] == "Ulm") + np.log(frame["income"]) / 9 + frame["debt"].fillna(1) - 2
    high = 1 / (1 + np.exp(-risk.to_numpy(np.float64)))
    return np.stack([1 - high, high], axis=1)


@pytest.fixture(scope="module")
def coded():
    return metfa.Coded(probabilities, TABLE)


def of_targets(sample, theirs):
    """SHAP's values of each row's class; those of class 0 have the other sign where there is one output."""
    if theirs.ndim == 3:
        return theirs[np.arange(len(theirs)), :, list(sample.target)]
    return theirs * np.where(np.array(sample.target) == 0, -1, 1)[:, None]


def check(explainer, frame, theirs):
    """Without noise, in the frame's order of columns and in another, the values are SHAP's own."""
    sample = metfa.explain(explainer, frame, **STILL)
    np.testing.assert_array_equal(sample.values[0], of_targets(sample, theirs))
    order = list(reversed(frame.columns))
    turned = metfa.explain(explainer, frame[order], **STILL)
    assert turned.feature_names == tuple(order)
    np.testing.assert_array_equal(turned.values[0][:, ::-1], sample.values[0])


class TestTrees:
    def test_forest(self):
        forest = RandomForestClassifier(5, random_state=0).fit(NUMBERS, ILL)
        tree = shap.TreeExplainer(forest)
        check(from_shap(tree, forest.predict_proba), NUMBERS[ROWS], tree.shap_values(NUMBERS[ROWS]))

    def test_missing_values(self):
        table = TABLE[["age", "debt"]]
        boosted = HistGradientBoostingClassifier(max_iter=3).fit(table, ILL)
        rows = table[table["debt"].isna()][:3]
        tree = shap.TreeExplainer(boosted)
        check(from_shap(tree, boosted.predict_proba), rows, tree.shap_values(rows))

    def test_xgboost(self):
        model = xgboost.XGBClassifier(n_estimators=3, enable_categorical=True, n_jobs=1).fit(CATEGORIES, ILL)
        rows = CATEGORIES[ROWS]
        theirs = shap.TreeExplainer(model).shap_values(rows)
        check(from_shap(shap.TreeExplainer(model), model.predict_proba), rows, theirs)
        booster = model.get_booster()
        sample = metfa.explain(from_shap(shap.TreeExplainer(booster), booster.inplace_predict), rows, **STILL)
        np.testing.assert_array_equal(sample.values[0], theirs)
        turned = metfa.explain(
            from_shap(shap.TreeExplainer(booster), booster.inplace_predict), rows[rows.columns[::-1]], **STILL
        )
        np.testing.assert_array_equal(turned.values[0][:, ::-1], theirs)

    def test_lightgbm(self):
        model = lightgbm.LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1).fit(CATEGORIES, ILL)
        tree = shap.TreeExplainer(model)
        check(from_shap(tree, model.predict_proba), CATEGORIES[ROWS], tree.shap_values(CATEGORIES[ROWS]))

    def test_catboost(self):
        model = catboost.CatBoostClassifier(
            iterations=3, cat_features=["town"], verbose=0, thread_count=1, allow_writing_files=False
        ).fit(TABLE, ILL)
        tree = shap.TreeExplainer(model)
        check(from_shap(tree, model.predict_proba), TABLE[ROWS], tree.shap_values(TABLE[ROWS]))

    def test_polars(self):
        forest = RandomForestClassifier(3, random_state=0).fit(NUMBERS, ILL)
        tree = shap.TreeExplainer(forest)
        rows = pl.DataFrame({"income": NUMBERS["income"][ROWS].to_numpy(), "age": NUMBERS["age"][ROWS].to_numpy()})
        sample = metfa.explain(from_shap(tree, forest.predict_proba), rows, **STILL)
        theirs = of_targets(sample, tree.shap_values(NUMBERS[ROWS]))
        np.testing.assert_array_equal(sample.values[0][:, ::-1], theirs)

    def test_nobody_knows_the_columns(self):
        tree = shap.TreeExplainer(RandomForestClassifier(3, random_state=0).fit(NUMBERS, ILL))
        with pytest.raises(ValueError, match=r"takes columns by their place, .*\(explainer, model\.predict\)"):
            metfa.explain(from_shap(tree), NUMBERS[ROWS], 0, **STILL)

    def test_texts_that_shap_cannot_take(self, pipeline):
        tree = shap.TreeExplainer(RandomForestClassifier(3, random_state=0).fit(NUMBERS, ILL))
        with pytest.raises(TypeError, match=r"cannot take the column 'town' of the frame.*Coded\(predict, table\)"):
            metfa.explain(from_shap(tree, pipeline.predict_proba), TABLE[ROWS], **STILL)


def test_linear():
    model = LinearRegression().fit(NUMBERS, TABLE["age"])
    linear = shap.LinearExplainer(model, NUMBERS)
    check(from_shap(linear, model.predict), NUMBERS[ROWS], linear.shap_values(NUMBERS[ROWS]))


class TestByCodes:
    @pytest.mark.slow  # SHAP compiles its masker
    def test_exact(self, coded):
        exact = shap.ExactExplainer(coded, shap.maskers.Independent(coded.codes(TABLE[:3])))
        check(from_shap(exact), TABLE[ROWS], exact(coded.codes(TABLE[ROWS])).values)

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", [shap.KernelExplainer, shap.PermutationExplainer])
    def test_samplers_add_up_and_draw_from_streams(self, coded, kind):
        explainer = from_shap(kind(coded, coded.codes(TABLE[:3])))
        sample = metfa.explain(explainer, TABLE[20:22], noise=None, n_samples=2, rng=0)
        own = sample.scores[np.arange(2), list(sample.target)]
        base = coded(TABLE[:3]).mean(axis=0)[list(sample.target)]
        np.testing.assert_allclose(sample.values.sum(axis=-1), np.stack([own - base] * 2), atol=1e-6)
        again = metfa.explain(explainer, TABLE[21:22], noise=None, n_samples=1, rng=0)
        np.testing.assert_allclose(again.values[0, 0], sample.values[0, 1], atol=1e-12)

    @pytest.mark.slow
    def test_under_noise_the_model_gets_frames(self, coded):
        exact = shap.ExactExplainer(coded, shap.maskers.Independent(coded.codes(TABLE[:3])))
        noise = metfa.noise.per_column(TABLE, 0.2, resample=0.3)
        sample = metfa.explain(from_shap(exact), TABLE[ROWS], noise=noise, n_samples=3, rng=0)
        assert sample.std().max() > 0

    def test_codes(self, coded):
        codes = coded.codes(TABLE)
        pd.testing.assert_frame_equal(coded.frame(codes), TABLE)
        np.testing.assert_array_equal(coded(codes), coded(TABLE))
        np.testing.assert_array_equal(coded.codes(TABLE[reversed(TABLE.columns)]), codes)
        assert coded.categorical == [2, 3]
        assert coded.labels == {2: ["Bonn", "Kiel", "Ulm"], 3: ["false", "true"]}
        assert coded.frame(codes[0] + 0.3)["age"].dtype == TABLE["age"].dtype

    def test_a_pipeline(self, pipeline):
        coded = metfa.Coded(pipeline.predict_proba, TABLE)
        np.testing.assert_array_equal(coded(coded.codes(TABLE[ROWS])), pipeline.predict_proba(TABLE[ROWS]))
        np.testing.assert_array_equal(coded(TABLE[ROWS][reversed(TABLE.columns)]), pipeline.predict_proba(TABLE[ROWS]))

    def test_codes_of_other_tables(self, coded, pipeline):
        with pytest.raises(ValueError, match="'town' holds 'Rom', which is in no row of the table"):
            coded.codes(TABLE.assign(town="Rom"))
        with pytest.raises(TypeError, match="'town' of `frame` holds whole numbers, but labels in the table"):
            coded.codes(TABLE.assign(town=1))
        with pytest.raises(ValueError, match="no column 'town', which the table has"):
            coded.codes(TABLE.drop(columns="town"))
        with pytest.raises(ValueError, match="no column 'town', which the model was fitted on"):
            metfa.Coded(pipeline.predict_proba, TABLE.drop(columns="town"))
        with pytest.raises(ValueError, match=r"`codes` must be \(rows, 5\), got shape \(1, 3\)"):
            coded(np.ones((1, 3)))


class TestLime:
    @pytest.mark.slow
    def test_by_codes(self):
        table = TABLE.fillna({"debt": 0.5})
        coded = metfa.Coded(probabilities, table)
        tabular = lime.lime_tabular.LimeTabularExplainer(
            coded.codes(table), categorical_features=coded.categorical, categorical_names=coded.labels, random_state=0
        )
        explainer = from_lime(tabular, coded, num_samples=200)
        noise = metfa.noise.per_column(table, 0.1, resample=0.1)
        sample = metfa.explain(explainer, table[ROWS], 1, noise=noise, n_samples=2, rng=0)
        assert (sample.vanilla[:, 0] != 0).all()
        turned = explainer(table[ROWS][reversed(table.columns)], 1, rngs=[np.random.default_rng(k) for k in range(4)])[
            0
        ]
        straight = explainer(table[ROWS], 1, rngs=[np.random.default_rng(k) for k in range(4)])[0]
        np.testing.assert_array_equal(turned[:, ::-1], straight)

    def test_numbers(self):
        forest = RandomForestClassifier(3, random_state=0).fit(NUMBERS, ILL)
        tabular = lime.lime_tabular.LimeTabularExplainer(NUMBERS.to_numpy(), feature_names=list(NUMBERS))
        explainer = from_lime(tabular, forest.predict_proba, num_samples=100)
        rngs = [np.random.default_rng(k) for k in range(4)]
        straight = explainer(NUMBERS[ROWS], 1, rngs=rngs)[0]
        rngs = [np.random.default_rng(k) for k in range(4)]
        turned = explainer(NUMBERS[ROWS][["income", "age"]], 1, rngs=rngs)[0]
        np.testing.assert_array_equal(turned[:, ::-1], straight)

    def test_labels_without_codes(self, pipeline):
        tabular = lime.lime_tabular.LimeTabularExplainer(NUMBERS.to_numpy())
        with pytest.raises(TypeError, match=r"column 'town' of the frame holds labels: write `coded = metfa\.Coded\("):
            from_lime(tabular, pipeline.predict_proba)(TABLE[ROWS], 0)


def test_a_function_that_would_mix_up_the_columns_of_lightgbm():
    model = lightgbm.LGBMClassifier(n_estimators=2, verbose=-1, n_jobs=1).fit(NUMBERS, ILL)

    def explainer(frame, target):
        return model.predict_proba(frame, pred_contrib=True)[:, :-1]

    settings = {"noise": metfa.noise.per_column(NUMBERS, 0.1), "n_samples": 2, "rng": 0}
    turned = NUMBERS[ROWS][["income", "age"]]
    message = r"another order than the model was fitted on, .* write `inputs\[\['age', 'income'\]\]`"
    with pytest.raises(ValueError, match=message):
        metfa.explain(explainer, turned, 1, **settings)
    with pytest.raises(ValueError, match=message):
        metfa.explain(lambda x, target: x.to_numpy(), turned, predict=lambda x: model.predict_proba(x), **settings)
    assert metfa.explain(explainer, turned[["age", "income"]], 1, **settings).values.shape == (2, 4, 2)
