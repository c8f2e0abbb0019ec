"""Rows of tables in one call: what is chosen, in which unit, and what is refused."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeClassifier

import metfa
from metfa.tables import explain
from metfa.tables.predictions import Prediction
from metfa.tables.scales import DoesNotAddUpError, scale_of

shap = pytest.importorskip("shap")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame({
        "age": rng.integers(20, 80, 120), "debt": rng.normal(size=120), "income": rng.normal(3, 1, size=120),
    })  # fmt: skip


@pytest.fixture(scope="module")
def answers(table):
    side = table["debt"] + 0.02 * table["age"] + np.random.default_rng(1).normal(scale=0.5, size=120) > 1
    return np.where(side, "yes", "no")


@pytest.fixture(scope="module")
def forest(table, answers):
    return RandomForestClassifier(5, max_depth=3, random_state=0).fit(table, answers)


def asked(model, table, **settings):
    given = {"background": table, "n_samples": 6, "rng": 0}
    return explain(model, table.iloc[3:6], **{**given, **settings})


def odds(p):
    return np.log(p / (1 - p))


def test_a_forest(forest, table):
    sample = asked(forest, table)
    assert sample.provenance["picked"].startswith(
        "SHAP's tree explainer of RandomForestClassifier, in units of the probability; "
    )
    assert sample.score_name == "SHAP value, in units of the probability"
    bare = shap.TreeExplainer(forest).shap_values(table.iloc[3:6])
    expected = [row[:, target] for row, target in zip(bare, sample.target, strict=True)]
    np.testing.assert_allclose(sample.vanilla, expected)
    one = explain(forest, table.iloc[[4]], background=table, n_samples=6, rng=0)
    np.testing.assert_array_equal(sample.values[:, 1:2], one.values)  # a row alone is the row of the batch
    assert sample.signed
    said = sample.summary()[0].explained
    place = sample.target[0]
    assert said == f"class {place} ({forest.classes_[place]}), as predicted"
    named = asked(forest, table.set_axis([f"row-{k}" for k in range(len(table))]))
    assert named.summary()[1].place == "input 1 of 3 (row-4)"
    assert "input 1 of 3 (row-4)" in named.plot(index=1).get_suptitle()
    assert asked(forest, table.rename_axis("person")).input_names == ("3", "4", "5")


def test_a_class_by_its_name(forest, table):
    sample = asked(forest, table, target="yes")
    assert sample.target == (1, 1, 1)
    assert "(yes)" in sample.summary()[0].explained
    with pytest.raises(ValueError, match="got 'maybe'; no, yes"):
        asked(forest, table, target="maybe")


LABELS = ([1, 2, 3], [-1, 0, 1], [2.0, 1.0, 0.0], [True, False, True], ["c", "a", "b"], ["10", "2", "1"])


@pytest.mark.parametrize("labels", LABELS)
def test_a_class_by_the_models_own_label(table, labels):
    own = np.array(labels)[np.digitize(table["debt"], [-0.5, 0.5])]
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(table, own)
    rows = table.iloc[3:9]
    predicted, known = model.predict(rows), list(model.classes_)
    expected = tuple(known.index(label) for label in predicted)
    for target in (predicted, predicted.tolist(), tuple(predicted), pd.Series(predicted), predicted[:, None]):
        sample = explain(model, rows, target, background=table, n_samples=6, rng=0)
        assert sample.target == expected
        assert all("as predicted" in summary.explained for summary in sample.summary())
    for label in model.classes_:
        sample = asked(model, table, target=label)
        assert sample.target == (known.index(label),) * 3
        of_function = asked(model.predict_proba, table, target=label)  # the columns are those of the model's labels
        assert of_function.target == sample.target
    if isinstance(labels[0], int | float) and not isinstance(labels[0], bool):
        shown = ", ".join(map(str, model.classes_.tolist()))
        for bad in (7, True, 1.5, [1, 7, 1]):
            with pytest.raises(ValueError, match=f"whose labels are numbers, got .*; {shown}"):
                asked(model, table, target=bad)


def test_an_integer_is_a_place_where_labels_are_texts_or_unknown(forest, table, answers):
    assert asked(forest, table, target=[1, "no", 0]).target == (1, 0, 0)
    assert asked(lambda frame: forest.predict_proba(frame), table, target=1).target == (1, 1, 1)
    digits = LogisticRegression(max_iter=1000).fit(table, np.where(answers == "yes", "1", "2"))
    with pytest.raises(ValueError, match="`target` 1 may be the label '1' or the class at place 1: write the label"):
        asked(digits, table, target=1)
    first = asked(digits, table, target="1")
    assert first.target == (0, 0, 0)
    assert "class 0 (label 1)" in first.summary()[0].explained  # "class 0 (1)" would be read as class 1
    for names in ("yes", ["yes", "no", "no"]):
        with pytest.raises(ValueError, match="got 'yes'; its classes have no names of their own"):
            asked(lambda frame: forest.predict_proba(frame), table, target=names)


def test_a_numeric_label_is_not_written_like_a_place(table):
    model = LogisticRegression(max_iter=1000).fit(table, np.where(table["debt"] > 0, 2, 1))
    assert asked(model, table, target=2).summary()[0].explained.startswith("class 1 (label 2)")
    plain = LogisticRegression(max_iter=1000).fit(table, (table["debt"] > 0).astype(int))
    assert asked(plain, table, target=1).summary()[0].explained.startswith(("class 1,", "class 1;"))


@pytest.mark.parametrize("model", [GradientBoostingClassifier(n_estimators=5), LogisticRegression(max_iter=1000)])
def test_boosting_and_linear_models_are_in_log_odds(model, table, answers):
    sample = asked(model.fit(table, answers), table, target=1)
    assert "in units of the log-odds; " in sample.provenance["picked"]
    margin = odds(model.predict_proba(table)[:, 1])
    base = margin[3:6] - sample.vanilla.sum(axis=1)
    assert np.ptp(base) < 1e-6  # one base for all rows: the values add up
    with pytest.raises(ValueError, match="units of the log-odds"):
        asked(model, table, output="probability", method="linear" if "Logistic" in repr(model) else "tree")


def test_regressions(table):
    amounts = table["debt"] * 3 + table["income"]
    for model in (RandomForestRegressor(5, random_state=0), LinearRegression()):
        sample = asked(model.fit(table, amounts), table)
        assert "in units of the prediction; " in sample.provenance["picked"]
        assert ("score", "SHAP value, in units of the prediction") in sample.summary()[0].lines()
        assert sample.target == (None, None, None)
        assert sample.flip_rate is None


def test_what_does_not_add_up_is_refused(forest, table, answers):
    """As SHAP's values of splits that it does not know would be."""
    boosted = GradientBoostingClassifier(n_estimators=5).fit(table, answers)
    inner, rows = shap.TreeExplainer(boosted), table.iloc[:20]
    explainer = metfa.explainers.from_shap(inner, boosted.predict_proba)
    assert scale_of(explainer, inner, rows, boosted.predict_proba(rows), "probability") == "log-odds"
    with pytest.raises(DoesNotAddUpError, match="off by 0"):
        scale_of(explainer, inner, rows, forest.predict_proba(rows), "probability")


@pytest.mark.slow  # SHAP compiles its code for the first explanation of this kind
def test_black_boxes(table, answers):
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(table, answers)
    sample = asked(pipeline, table, target=1)
    assert (
        "SHAP's exact explainer of Pipeline, asked only for predictions, against 50 rows" in sample.provenance["picked"]
    )
    some = np.sort(np.random.default_rng(0).permutation(120)[:50])
    base = pipeline.predict_proba(table)[some, 1].mean()
    np.testing.assert_allclose(sample.vanilla.sum(axis=1) + base, pipeline.predict_proba(table)[3:6, 1])
    function = asked(lambda frame: frame["debt"] * 2.0, table, method="permutation")
    assert "SHAP's permutation explainer of <lambda>" in function.provenance["picked"]
    np.testing.assert_allclose(function.vanilla[:, [0, 2]], 0, atol=1e-12)
    svr = asked(SVR().fit(table, table["debt"]), table)
    assert "in units of the prediction" in svr.provenance["picked"]
    arrays = explain(lambda x: x[:, 1], table.to_numpy()[:2], background=table.to_numpy(), n_samples=5, rng=0)
    assert arrays.feature_names is None


@pytest.mark.slow
def test_a_model_that_shap_does_not_know_is_asked_for_predictions(table):
    three = np.digitize(table["debt"], [-0.5, 0.5])
    model = GradientBoostingClassifier(n_estimators=3).fit(table, three)
    sample = asked(model, table)
    assert (
        "as SHAP's tree explainer cannot explain it (GradientBoostingClassifier is only" in sample.provenance["picked"]
    )
    with pytest.raises(ValueError, match=r"cannot explain it .* only predictions can then be asked for"):
        asked(model, table, background=None, noise=metfa.noise.per_column(table, 0.1))
    with pytest.raises(ValueError, match='`method`="tree" cannot explain this model'):
        asked(model, table, method="tree")


@pytest.mark.slow
@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost"])
def test_boosting_of_other_libraries_takes_categories(library, table, answers):
    pytest.importorskip(library)
    frame = table.assign(town=pd.Categorical(np.random.default_rng(2).choice(["Ulm", "Bonn"], 120)))
    yes = (answers == "yes").astype(int)
    if library == "xgboost":
        import xgboost

        model = xgboost.XGBClassifier(n_estimators=5, enable_categorical=True).fit(frame, yes)
        booster = asked(model.get_booster(), frame)
        assert "SHAP's tree explainer of Booster, in units of the log-odds" in booster.provenance["picked"]
        np.testing.assert_allclose(booster.vanilla, asked(model, frame).vanilla)
    elif library == "lightgbm":
        import lightgbm

        model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1).fit(frame, yes)
    else:
        import catboost

        model = catboost.CatBoostClassifier(
            iterations=5, verbose=0, cat_features=["town"], allow_writing_files=False
        ).fit(frame, yes)
    sample = asked(model, frame, target=1)
    assert "in units of the log-odds" in sample.provenance["picked"]
    base = odds(model.predict_proba(frame)[3:6, 1]) - sample.vanilla.sum(axis=1)
    assert np.ptp(base) < 1e-5
    assert sample.to_dataframe()["value"].tolist()[3] in ("Ulm", "Bonn")
    shuffled = explain(model, frame.iloc[3:6, ::-1], background=frame, n_samples=6, rng=0, target=1)
    np.testing.assert_allclose(shuffled.vanilla[:, ::-1], sample.vanilla)


def test_the_noise_is_chosen_or_given(forest, table):
    sample = asked(forest, table)
    assert "rows of `background`" in sample.provenance["picked"]
    assert sample.provenance["noise"].startswith("from_table(")
    given = asked(forest, table, background=None, noise=metfa.noise.per_column(table, 0.2))
    assert given.provenance["picked"].endswith("; the noise that was given")
    for bad, message in (
        ({"background": None}, "`background` is needed for the noise: give the training table"),
        ({"noise": "gaussian"}, "`noise` must be \"auto\", a noise or None, got 'gaussian'"),
        ({"method": "lime"}, "`method` must be one of"),
        ({"output": "logit"}, "`output` must be one of"),
    ):
        with pytest.raises(ValueError, match=message):
            asked(forest, table, **bad)


def test_bad_arguments_are_refused_before_the_model_is_asked(table):
    def never(frame):
        raise AssertionError

    for bad in ({"n_samples": 0}, {"batch_size": 0}, {"rng": "x"}, {"target": -1.5}, {"run": 3}, {"noise": 3}):
        with pytest.raises((TypeError, ValueError), match=f"`{next(iter(bad))}"):
            asked(never, table, **bad)
    with pytest.raises(TypeError, match=r"model\(rows\)"):
        asked(lambda a, b: a, table)


def test_without_noise_a_tree_explainer_has_nothing_to_draw(forest, table):
    with pytest.raises(ValueError, match="SHAP's tree explainer of RandomForestClassifier draws no random numbers"):
        asked(forest, table, noise=None)


def test_units_that_cannot_be_had_are_refused(forest, table):
    with pytest.raises(ValueError, match=r"units of the probability\): the exact explainer asks for predictions"):
        asked(forest, table, output="margin")
    with pytest.raises(ValueError, match="units of the probability"):
        asked(forest, table, output="margin", method="tree")
    assert "units of the probability" in asked(forest, table, output="probability").provenance["picked"]


def test_refusals(forest, table, answers):
    pipeline = make_pipeline(StandardScaler(), RandomForestClassifier(3)).fit(table, answers)
    with pytest.raises(ValueError, match=r"a Pipeline is several steps: .*explain\(model\[-1\], prepared"):
        asked(pipeline, table, method="tree")
    with pytest.raises(TypeError, match="RidgeClassifier has no `predict_proba`: give a function"):
        asked(RidgeClassifier().fit(table, answers), table)
    model = VotingClassifier([("tree", DecisionTreeClassifier(max_depth=2))]).fit(table, answers)  # has `predict` alone
    with pytest.raises(TypeError, match=r"such as `lambda rows: \(model.predict\(rows\) == model.classes_\[0\]\)"):
        asked(model, table)
    asked(lambda rows: (model.predict(rows) == model.classes_[0]).astype(float), table)  # as it says
    with pytest.raises(TypeError, match="a single row or column"):
        explain(forest, table.iloc[0], background=table)
    for word, ours in (("X", "inputs"), ("X_train", "background"), ("seed", "rng")):
        with pytest.raises(TypeError, match=f"explain has no argument `{word}`, here it is '{ours}'"):
            explain(forest, **{word: table})
    for given in (forest, forest.predict_proba):  # to the function of explainers
        with pytest.raises(TypeError, match=r"`metfa.tables.explain\(model, inputs, background=train\)`"):
            metfa.explain(given, table.iloc[:2], 0, noise=metfa.noise.per_column(table, 0.1))
    with pytest.raises(TypeError, match="`inputs` must be a data frame or an array"):
        explain(forest, [[1.0, 2.0]], background=table)
    with pytest.raises(TypeError, match="`background` is an array and `inputs` is a data frame of pandas"):
        explain(forest, table.iloc[:2], background=table.to_numpy())
    columns = pl.DataFrame({name: table[name].to_list() for name in table})
    with pytest.raises(
        TypeError, match="`background` is a data frame of polars and `inputs` is a data frame of pandas"
    ):
        explain(forest, table.iloc[:2], background=columns)
    with pytest.raises(TypeError, match=r"got LazyFrame: .*: write `inputs.collect\(\)`"):
        explain(forest, columns.lazy(), background=columns)
    with pytest.raises(ValueError, match="must have rows and columns"):
        explain(forest, table.iloc[:0], background=table)
    with pytest.raises(ValueError, match="income"):
        explain(forest, table.iloc[:2, :2], background=table)
    with pytest.raises(TypeError, match="the class RandomForestClassifier"):
        explain(RandomForestClassifier, table, background=table)
    with pytest.raises(TypeError, match="got int: 3"):
        explain(3, table, background=table)
    with pytest.raises(ValueError, match='`method`="linear" cannot explain this model'):
        asked(forest, table, method="linear")


def test_advice_for_the_last_step_works(table, answers):
    pipeline = make_pipeline(StandardScaler(), RandomForestClassifier(3, random_state=0))
    pipeline.set_output(transform="pandas").fit(table, answers)
    prepared = pipeline[:-1].transform(table)
    sample = explain(pipeline[-1], prepared.iloc[:2], background=prepared, method="tree", n_samples=5, rng=0)
    assert "SHAP's tree explainer of RandomForestClassifier" in sample.provenance["picked"]


def test_a_torch_module_is_refused():
    import torch

    with pytest.raises(TypeError, match="got a torch module: explain arrays by"):
        Prediction.by(torch.nn.Linear(2, 1))


def test_a_store_keeps_what_was_chosen(forest, table, tmp_path):
    sample = asked(forest, table, run=metfa.Run(store=tmp_path / "store"))
    loaded = metfa.load(tmp_path / "store")
    for name in ("picked", "score", "class_names"):
        assert loaded.provenance[name] == sample.provenance[name]
    figure = loaded.plot()
    assert "SHAP value, in units of the probability" in figure.axes[0].get_xlabel()
    assert loaded.across_inputs().score_name.endswith("SHAP value, in units of the probability")


def test_a_list_of_scores_is_refused_with_a_remedy_that_works(table):
    both = np.stack([table["debt"] > 0, table["income"] > 3], axis=1)
    model = MultiOutputClassifier(LogisticRegression(max_iter=1000)).fit(table, both)
    with pytest.raises(TypeError, match=r"got list of 2: .* such as `lambda inputs: model.*`") as refused:
        asked(model, table)
    advice = re.search(r"such as `(.*)`", str(refused.value))[1]
    assert asked(eval(advice, {"model": model}), table).target[0] in (0, 1)
    with pytest.raises(TypeError, match=r"such as `lambda inputs: model\(inputs\)\[0\]`"):
        asked(model.predict_proba, table)


def test_several_numbers_that_are_no_probabilities_need_a_target(table):
    both = np.stack([table["debt"], -table["debt"]], axis=1)
    forest = RandomForestRegressor(5, random_state=0).fit(table, both)
    with pytest.raises(
        ValueError, match=r"`target` is needed: the model gives 2 numbers .* from `target=0` to `target=1`"
    ):
        asked(forest, table)
    sample = asked(forest, table, target=1)
    np.testing.assert_allclose(np.ptp(forest.predict(table)[3:6, 1] - sample.vanilla.sum(axis=1)), 0, atol=1e-9)
    assert sample.target == (None, None, None)
    assert sample.flip_rate is None
    assert sample.score_name == "SHAP value of output 1, in units of the prediction"
    assert "explainer of RandomForestRegressor of output 1, in units" in sample.provenance["picked"]
    said = str(sample.summary()[0]) + sample.plot(index=0).axes[0].get_xlabel() + str(sample.to_dataframe().attrs)
    assert "class" not in said
    for target, error in ([0, 1, 0], TypeError), (2, ValueError), ("high", ValueError):
        with pytest.raises(error, match="`target` must"):
            asked(forest, table, target=target)
    linear = asked(LinearRegression().fit(table, both[:, :1]), table)
    assert (linear.target, linear.score_name) == ((None,) * 3, "SHAP value, in units of the prediction")


@pytest.mark.parametrize("of_labels", [False, True])
def test_what_are_classes(table, of_labels):
    """Numbers of one function are those of classes only if they can be: none below 0, with the sum 1."""

    class Model:
        classes_ = np.array(["ill", "old"])

        def predict_proba(self, frame):
            return np.stack([frame["debt"] > 0, frame["age"] > 50], axis=1) * 0.9

    function = Model() if of_labels else lambda frame: frame.to_numpy()[:, :2]
    background = table[["age", "debt"]]
    given = {"background": background, "n_samples": 3, "rng": 0, "method": "kernel"}
    with pytest.raises(ValueError, match="no probabilities of classes"):
        explain(function, background[:2], **given)
    sample = explain(function, background[:2], 0, **given)
    assert sample.target == (None, None)
    assert "of output 0, asked only for predictions" in sample.provenance["picked"]
    moved = np.abs(sample.vanilla).max(axis=0)
    assert np.flatnonzero(moved > 1e-9).tolist() == [int(of_labels)]


@pytest.mark.slow  # SHAP loads what a kernel needs
def test_one_output_of_columns_in_another_order(table):
    both = np.stack([table["debt"], table["age"]], axis=1)
    forest = RandomForestRegressor(3, random_state=0).fit(table, both)
    given = {"background": table, "n_samples": 8, "rng": 0, "method": "kernel"}
    straight = explain(forest, table[:2], 1, **given)
    turned = explain(forest, table.iloc[:2, ::-1], 1, **given)
    np.testing.assert_allclose(turned.vanilla[:, ::-1], straight.vanilla, atol=1e-9)


def test_models_of_outliers_are_sent_to_their_scores(table):
    forest = IsolationForest(n_estimators=3, random_state=0).fit(table)
    with pytest.raises(TypeError, match=r"scores, `IsolationForest.score_samples` or `IsolationForest.decision"):
        asked(forest, table)
    sample = asked(forest.score_samples, table, method="kernel", n_samples=3)
    assert sample.target == (None, None, None)


def test_labels_that_shap_does_not_take(table, answers):
    frame = table.assign(town=pd.Categorical(np.where(table["age"] > 40, "Ulm", "Bonn")))
    model = HistGradientBoostingClassifier(max_iter=2, categorical_features="from_dtype").fit(frame, answers)
    with pytest.raises(ValueError, match=r"the column 'town' holds labels, which it does not take for a HistGrad.*"):
        asked(model, frame, method="tree")
    with pytest.raises(ValueError, match=r"\(the column 'town' holds labels, [^()]*Classifier\): only predictions"):
        asked(model, frame, background=None, noise=metfa.noise.per_column(frame, 0.1))


@pytest.mark.slow
def test_probabilities_of_boosted_trees(table, answers, capfd):
    xgboost = pytest.importorskip("xgboost")
    yes = (answers == "yes").astype(int)
    model = xgboost.XGBClassifier(n_estimators=4).fit(table, yes)
    sample = asked(model, table, target=1, output="probability")
    assert sample.provenance["picked"].startswith("SHAP's tree explainer of XGBClassifier, in units of the probability")
    assert np.ptp(model.predict_proba(table)[3:6, 1] - sample.vanilla.sum(axis=1)) < 1e-6
    frame = table.assign(town=pd.Categorical(np.where(table["age"] > 40, "Ulm", "Bonn")))
    model = xgboost.XGBClassifier(n_estimators=4, enable_categorical=True).fit(frame, yes)
    sample = asked(model, frame, target=1, output="probability")
    assert "(the column 'town' holds labels, which it does not take for probabilities" in sample.provenance["picked"]
    assert np.ptp(model.predict_proba(frame)[3:6, 1] - sample.vanilla.sum(axis=1)) < 1e-6
    assert not capfd.readouterr().err


@pytest.mark.parametrize("kind", [LogisticRegression, LinearRegression])
def test_linear_models_take_columns_of_true_and_false(table, kind):
    """SHAP's values of such frames are an array of objects."""
    frame = table.assign(smoker=table.debt > 0)
    answers = (table.debt + table.income > 3).astype(int)
    maps = []
    for given in (frame, frame.astype(float)):
        model = kind().fit(given, answers)
        maps.append(explain(model, given.iloc[:3], background=given, n_samples=8, rng=0).vanilla)
    np.testing.assert_allclose(maps[0], maps[1], rtol=1e-6, atol=1e-9)
