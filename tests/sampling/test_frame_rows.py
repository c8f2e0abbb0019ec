"""Explaining frames: what explainer and model get, ids, names, missing values, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import metfa
from metfa.noise import Compose, Gaussian, per_column
from metfa.sampling.entries import one_row
from metfa.sampling.rows import Rows
from metfa.sampling.rows_in_graph import RowsInGraph

RNG = np.random.default_rng(0)
N = 60
TABLE = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, N),
        "income": RNG.lognormal(3, 1, N),
        "town": RNG.choice(["Ulm", "Bonn", "Kiel"], N),
        "owner": RNG.random(N) < 0.5,
        "debt": np.where(RNG.random(N) < 0.2, np.nan, RNG.random(N)),
    }
)
ILL = ((TABLE.age > 45) & (TABLE.town != "Ulm")).astype(int).to_numpy()
NOISE = per_column(TABLE, 0.1, resample=0.2)


def contribution(frame, target):
    """A map (batch, columns) that needs names and types."""
    town = frame["town"].map({"Ulm": 1.0, "Bonn": 2.0, "Kiel": 3.0})
    parts = {"age": frame["age"] / 10, "income": frame["income"], "town": town, "owner": frame["owner"] * 5.0}
    parts["debt"] = frame["debt"].fillna(-1)
    return pd.DataFrame(parts)[list(frame.columns)].to_numpy(np.float64)


def test_the_explainer_gets_frames_of_the_same_types():
    seen = []

    def explainer(frame, target):
        seen.append(frame)
        return contribution(frame, target)

    sample = metfa.explain(explainer, TABLE[:5], 0, noise=NOISE, n_samples=10, rng=0)
    assert all(frame.dtypes.equals(TABLE.dtypes) for frame in seen)
    assert sample.feature_names == tuple(TABLE)
    assert sample.values.shape == (10, 5, 5)
    missing = TABLE["debt"][:5].isna().to_numpy()
    assert missing.any()
    assert (sample.values[:, missing, 4] == -1).all()
    np.testing.assert_array_equal(sample.inputs[:, 0], TABLE["age"][:5])
    assert sample.provenance["columns"][2] == {"name": "town", "kind": "label", "labels": ["Bonn", "Kiel", "Ulm"]}


def test_permuted_columns_have_the_same_samples():
    names = list("abc")
    settings = {"noise": NOISE, "n_samples": 5, "rng": 0, "run": metfa.Run(input_names=names)}
    straight = metfa.explain(contribution, TABLE[:3], 0, **settings)
    order = ["debt", "owner", "town", "income", "age"]
    permuted = metfa.explain(contribution, TABLE[:3][order], 0, **settings)
    assert permuted.feature_names == tuple(order)
    places = [order.index(name) for name in TABLE]
    np.testing.assert_array_equal(permuted.values[..., places], straight.values)


def test_rows_alone_equal_rows_in_a_batch():
    settings = {"noise": NOISE, "n_samples": 5, "rng": 0}
    whole = metfa.explain(contribution, TABLE[:4], 0, **settings)
    for row in range(4):
        one = metfa.explain(contribution, TABLE[row : row + 1], 0, **settings)
        np.testing.assert_array_equal(one.values[:, 0], whole.values[:, row])


def test_frames_of_numbers_have_the_ids_and_samples_of_arrays():
    frame = TABLE[["income"]].assign(other=1.5)
    for one in (frame, frame.astype("float32"), TABLE[["age"]]):
        assert Rows(one).ids() == Rows(one.to_numpy()).ids()
    settings = {"noise": Gaussian([0.1, 0.2]), "n_samples": 5, "rng": 0}
    a = metfa.explain(lambda x, target: np.asarray(x) * 2, frame, 0, **settings)
    b = metfa.explain(lambda x, target: x * 2, frame.to_numpy(), 0, **settings)
    np.testing.assert_array_equal(a.values, b.values)


def test_ids_do_not_depend_on_the_other_rows():
    assert Rows(TABLE).ids()[3] == Rows(TABLE[3:4]).ids()[0]
    assert len(set(Rows(TABLE).ids())) == N
    assert Rows(TABLE.astype({"town": "category"})).ids() == Rows(TABLE).ids()


@pytest.mark.parametrize(
    ("index", "named"),
    [
        (pd.Index([7, 8, 9], name="person"), ("7", "8", "9")),
        (["anna", "ben", "cleo"], ("anna", "ben", "cleo")),
        (pd.MultiIndex.from_product([["a"], [1, 2, 3]]), ("('a', 1)", "('a', 2)", "('a', 3)")),
        (pd.date_range("2024-01-01", periods=3), tuple(f"2024-01-0{day} 00:00:00" for day in (1, 2, 3))),
        ([7, 8, 9], None),  # places in another table
        (["anna", "ben", "anna"], ("anna", "ben", "anna#1")),
    ],
)
def test_an_index_with_a_name_or_of_texts_names_the_rows(index, named):
    frame = TABLE[:3].set_axis(index)
    sample = metfa.explain(contribution, frame, 0, noise=NOISE, n_samples=5, rng=0)
    if named is None:
        assert sample.input_names == Rows(TABLE[:3].reset_index(drop=True)).ids()
    else:
        assert sample.input_names == named
        assert sample.summary()[1].place == f"input 1 of 3 ({named[1]})"
    alone = metfa.explain(contribution, frame.iloc[1:2], 0, noise=NOISE, n_samples=5, rng=0)
    np.testing.assert_array_equal(alone.values[:, 0], sample.values[:, 1])
    run = metfa.Run(input_names=["a", "b", "c"])
    assert metfa.explain(contribution, frame, 0, noise=NOISE, n_samples=1, run=run).input_names == ("a", "b", "c")


def test_polars():
    frame = pl.from_dict({name: TABLE[name].to_list() for name in TABLE}).with_columns(pl.col("debt").fill_nan(None))

    def explainer(batch, target):
        assert isinstance(batch, pl.DataFrame)
        assert batch.schema == frame.schema
        return batch.select(pl.col("age") / 10, "income").to_numpy()

    settings = {"noise": per_column(frame, 0.1), "n_samples": 3, "rng": 0}
    sample = metfa.explain(explainer, frame[:4], 0, **settings)
    again = metfa.explain(
        lambda x, target: np.stack([x["age"] / 10, x["income"]], axis=1),
        TABLE[:4],
        0,
        **{**settings, "noise": per_column(TABLE, 0.1)},
    )
    np.testing.assert_allclose(sample.values, again.values, rtol=1e-15)


def test_names_that_are_no_texts():
    frame = pd.DataFrame(np.ones((2, 2)), columns=[2010, 2020])
    sample = metfa.explain(lambda x, target: x[[2010, 2020]].to_numpy(), frame, 0, noise=Gaussian(0.1), n_samples=2)
    assert sample.feature_names == ("2010", "2020")


def test_smoothed_and_across_models_take_frames():
    smooth = metfa.Smoothed(contribution, noise=NOISE, n_samples=8, rng=0)
    assert smooth(TABLE[:3], target=0).shape == (3, 5)
    assert RowsInGraph(TABLE[:2]).batch([RowsInGraph(TABLE[:2])[0]]).equals(TABLE[:1])
    models = [lambda x, w=w: w * contribution(x, 0) for w in range(1, 7)]
    found = metfa.across_models(models, lambda model: lambda x, target: model(x), TABLE[:2], target=0)
    assert found.feature_names == tuple(TABLE)
    assert found.provenance["columns"][2]["labels"]


def test_the_model_is_asked_with_its_own_order_of_columns():
    pipeline = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["town"]), (HistGradientBoostingPassthrough(), ["age", "debt"])),
        HistGradientBoostingClassifier(max_iter=3),
    ).fit(TABLE[["town", "age", "debt"]], ILL)
    rows = TABLE[["debt", "town", "age"]][:4]
    sample = metfa.explain(
        lambda x, target: np.ones((len(x), 3)) + x["age"].to_numpy()[:, None] * [1, 2, 3],
        rows,
        noise=per_column(TABLE[list(rows)], 0.1),
        predict=pipeline.predict_proba,
        n_samples=3,
        rng=0,
    )
    np.testing.assert_allclose(sample.scores, pipeline.predict_proba(rows[["town", "age", "debt"]]))


def HistGradientBoostingPassthrough():
    return "passthrough"


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (
            TABLE[["age", "income"]].rename(columns={"age": "Age"}),
            r"no column 'age', which the model was fitted on, did",
        ),
        (TABLE[["age", "income", "debt"]], r"the column 'debt', not among those which the model was fitted on"),
        (TABLE[["age"]], r"no column 'income', which the model was fitted on; it has 'age'"),
    ],
)
def test_other_columns_than_the_model_was_fitted_on(inputs, message):
    model = LogisticRegression(max_iter=1000).fit(TABLE[["age", "income"]], ILL)
    asked = []
    with pytest.raises(ValueError, match=message):
        metfa.explain(lambda x, target: asked.append(x), inputs, noise=Gaussian(0.1), predict=model.predict_proba)
    assert not asked


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        (TABLE.rename(columns={"age": "Age"}), ValueError, "no column 'age', which the noise was made for, did"),
        (TABLE.assign(x=1.0), ValueError, "the column 'x', not among those which the noise was made for"),
        (TABLE.assign(town=1.0), TypeError, "'town' of `inputs` holds numbers, but labels in the table"),
        (TABLE.assign(town=pd.Categorical(["Ulm"] * N)), ValueError, "no category 'Bonn', which is in the table"),
    ],
)  # fmt: skip
def test_other_columns_than_the_noise_was_made_for(inputs, error, message):
    with pytest.raises(error, match=message):
        metfa.explain(contribution, inputs[:2], 0, noise=NOISE, n_samples=2)


def test_categories_that_the_noise_has_not_seen():
    rows = TABLE[:2].assign(town=["Rom", "Ulm"])
    seen = []
    metfa.explain(
        lambda x, target: seen.append(x) or np.eye(len(x), 5) + 1,
        rows,
        0,
        noise=NOISE,
        n_samples=30,
        batch_size=1,
        rng=0,
    )
    towns = set(pd.concat(seen)["town"])
    assert towns <= {"Rom", "Ulm", "Bonn", "Kiel"}
    assert {"Rom", "Bonn"} <= towns


@pytest.mark.parametrize(
    ("noise", "error", "message"),
    [
        (
            Gaussian(0.1),
            TypeError,
            r"column 'age' of input 0, sample 0, which holds whole numbers: .*astype\(\{'age': float",
        ),
        (
            Gaussian([0, 0, 0.1, 0, 0]),
            TypeError,
            "column 'town' of input 0, sample 0, which holds labels: .*leaves it as",
        ),
        (Gaussian([0, 0, 0, 0.1, 0]), TypeError, "column 'owner' of .*, which holds true and false"),
        (lambda x, rng: x * np.nan, ValueError, "`noise` made NaN or infinity of column 'age' of input 0, sample 0"),
        (lambda x, rng: x[:3], ValueError, r"changed the shape of input 0, sample 0 from \(5,\) to \(3,\)"),
        (lambda x, rng: x + np.array([0, 0, 7, 0, 0]), TypeError, r"`noise` made [789] of column 'town'"),
    ],
)
def test_noise_that_does_not_fit_the_types(noise, error, message):
    with pytest.raises(error, match=message):
        metfa.explain(contribution, TABLE[:2], 0, noise=noise, n_samples=2)


def test_the_advice_for_whole_numbers_works():
    frame = TABLE[["age", "income"]]
    for rows, noise in ((frame.astype({"age": float}), Gaussian(0.1)), (frame, per_column(frame, 0.1))):
        metfa.explain(lambda x, target: x.to_numpy(np.float64), rows[:2], 0, noise=noise, n_samples=2)


def test_noises_are_matched_inside_compose():
    noise = Compose(NOISE, Compose(lambda x, rng: x, NOISE))
    order = ["debt", "owner", "town", "income", "age"]
    sample = metfa.explain(contribution, TABLE[:2][order], 0, noise=noise, n_samples=3, rng=0)
    assert sample.values.shape == (3, 2, 5)


def test_missing_values_of_arrays_have_a_remedy():
    rows = np.array([[1.0, np.nan], [2.0, 3.0]])
    explainer = lambda x, target: np.nan_to_num(np.asarray(x)) + 1  # noqa: E731
    with pytest.raises(
        ValueError, match=r"input 0 holds NaN .*give a data frame, such as `pandas\.DataFrame\(inputs\)`"
    ):
        metfa.explain(explainer, rows, 0, noise=Gaussian(0.1), n_samples=2)
    sample = metfa.explain(explainer, pd.DataFrame(rows), 0, noise=Gaussian(0.1), n_samples=2)
    assert (sample.values[:, 0, 1] == 1).all()


def test_one_row_as_a_series_is_refused():
    with pytest.raises(TypeError, match=r"got a Series of a data frame: write `frame\.iloc\[\[0\]\]`"):
        metfa.explain(lambda x, target: x, TABLE[["income", "debt"]].iloc[0], 0, noise=Gaussian(0.1))


def test_torch_networks_take_tensors():
    model = torch.nn.Linear(2, 2).eval()
    frame = TABLE[["age", "income"]]
    with pytest.raises(
        TypeError, match=r"got a data frame: write `torch\.from_numpy\(inputs\.to_numpy\('float32'\)\)`"
    ):
        metfa.explain(metfa.explainers.Gradient(model, channel_axis=None), frame[:2], noise=Gaussian(0.1))
    inputs = torch.from_numpy(frame[:2].to_numpy("float32"))
    metfa.explain(metfa.explainers.Gradient(model, channel_axis=None), inputs, noise=Gaussian(0.1), n_samples=2)


def test_a_noise_that_moves_nothing_is_noticed_beside_missing_values():
    with pytest.warns(metfa.DegenerateAttributionsWarning, match="the noisy copies are all the same for 3 of 3"):
        metfa.explain(contribution, TABLE[:3], 0, noise=lambda x, rng: x, n_samples=2)


def test_results_keep_labels_in_files_and_figures(tmp_path):
    sample = metfa.explain(contribution, TABLE[:3], 0, noise=NOISE, n_samples=20, rng=0)
    sample.save(tmp_path / "result")
    loaded = metfa.load(tmp_path / "result")
    assert loaded.provenance["columns"] == sample.provenance["columns"]
    np.testing.assert_array_equal(loaded.inputs, sample.inputs)
    (ax,) = loaded.plot(index=1).axes
    labels = [label.get_text() for label in ax.get_yticklabels()]
    row = TABLE.iloc[1]
    assert f"town = {row['town']}" in labels
    assert f"owner = {str(row['owner']).lower()}" in labels
    assert f"age = {row['age']}" in labels
    loaded.report(tmp_path / "page.html")
    assert f'"{row["town"]}"' in (tmp_path / "page.html").read_text()


def test_one_row_of_a_frame():
    assert one_row(TABLE, 2).equals(TABLE[2:3])


def test_a_data_set_in_parts_keeps_its_labels():
    parts = [TABLE[TABLE.town == "Ulm"][:3], TABLE[TABLE.town == "Bonn"][:3]]
    settings = {"noise": lambda x, rng: x + rng.random() * np.array([0, 0.1, 0, 0, 0]), "n_samples": 2, "rng": 0}
    found = [metfa.explain(contribution, part, 0, **settings).across_inputs() for part in parts]
    both = found[0].concat(found[1])
    assert both.inputs[0, :, 2].tolist() == [0, 0, 0, 1, 1, 1]
    assert both.provenance["columns"][2]["labels"] == ["Ulm", "Bonn"]
