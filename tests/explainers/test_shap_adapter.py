"""SHAP's explainers through `from_shap`, against SHAP's own calls and against Shapley's definition."""

import itertools
import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
import shap
import torch
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression

import metfa
from metfa.calls.answers import is_regression
from metfa.explainers.shap_adapter import from_shap

IRIS = load_iris()
ROWS = IRIS.data[[0, 60, 101, 133]]
FOREST = RandomForestClassifier(8, max_depth=4, random_state=0).fit(IRIS.data, IRIS.target)
BACKGROUND = IRIS.data[::30]
OF_SHAP_ITSELF = pytest.mark.filterwarnings("ignore:__array_wrap__ must accept:DeprecationWarning")
NOISE = metfa.noise.per_column(IRIS.data, 0.2)


def two_classes():
    return GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=0).fit(IRIS.data, IRIS.target > 1)


def network(outputs=3):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, outputs)).eval()


def shapley_values(predict, row, background):
    """Shapley's definition: mean over the background of what a feature adds to each subset of the others."""
    n, values = len(row), 0
    worth = {}
    for size in range(n + 1):
        for subset in itertools.combinations(range(n), size):
            mixed = background.copy()
            mixed[:, list(subset)] = row[list(subset)]
            worth[frozenset(subset)] = predict(mixed).mean(axis=0)
    values = []
    for feature in range(n):
        others = [f for f in range(n) if f != feature]
        gain = 0
        for size in range(n):
            weight = math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n)
            for subset in itertools.combinations(others, size):
                gain = gain + weight * (worth[frozenset((*subset, feature))] - worth[frozenset(subset)])
        values.append(gain)
    return np.array(values)


def test_trees_of_each_rows_class():
    tree = shap.TreeExplainer(FOREST)
    sample = metfa.explain(from_shap(tree, FOREST.predict_proba), ROWS, noise=NOISE, n_samples=12, rng=0)
    assert sample.target == tuple(FOREST.predict(ROWS))
    theirs = tree.shap_values(ROWS)
    for row, target in enumerate(sample.target):
        np.testing.assert_allclose(sample.vanilla[row], theirs[row, :, target])
    np.testing.assert_array_equal(sample.scores, FOREST.predict_proba(ROWS))
    assert sample.flip_rate is not None
    alone = metfa.explain(from_shap(tree, FOREST.predict_proba), ROWS[2:3], noise=NOISE, n_samples=12, rng=0)
    np.testing.assert_array_equal(alone.values[:, 0], sample.values[:, 2])


def test_kernel_is_shapleys_definition_and_is_seeded():  # bugs.md 30
    explainer = from_shap(shap.KernelExplainer(FOREST.predict_proba, BACKGROUND))
    values, scores = explainer(ROWS, target=[0, 1, 2, 0])
    for row, target in enumerate([0, 1, 2, 0]):
        expected = shapley_values(FOREST.predict_proba, ROWS[row], BACKGROUND)[:, target]
        np.testing.assert_allclose(values[row], expected, atol=1e-6)
    np.testing.assert_array_equal(scores, FOREST.predict_proba(ROWS))


def test_few_draws_of_the_kernel_vary_and_follow_the_seed():
    weights = np.random.default_rng(0).normal(size=(20, 2))

    def predict(inputs):
        return 1 / (1 + np.exp(-(inputs @ weights) * inputs[:, :2]))

    rows, background = np.random.default_rng(1).random((2, 20)), np.zeros((1, 20))
    kernel = shap.KernelExplainer(predict, background)
    state = np.random.get_state()[1].copy()
    samples = [
        metfa.explain(from_shap(kernel, nsamples=100), rows, 1, noise=None, n_samples=6, rng=0, batch_size=size)
        for size in (1, 5)
    ]
    np.testing.assert_array_equal(samples[0].values, samples[1].values)
    assert (samples[0].std() > 0).any()
    np.testing.assert_array_equal(np.random.get_state()[1], state)


@OF_SHAP_ITSELF
def test_deep_explainer_on_torch():
    net = network()
    background = torch.tensor(BACKGROUND, dtype=torch.float32)
    rows = torch.tensor(ROWS, dtype=torch.float32)
    deep = shap.DeepExplainer(net, background)
    explainer = from_shap(deep)
    assert explainer.model is net
    sample = metfa.explain(explainer, rows, noise=metfa.noise.Gaussian(0.1), n_samples=8, rng=0)
    assert sample.target == tuple(net(rows).argmax(1).tolist())
    theirs = deep.shap_values(rows)
    for row, target in enumerate(sample.target):
        np.testing.assert_allclose(sample.vanilla[row], theirs[row, :, target], atol=1e-6)
    assert not any(m._forward_hooks or m._backward_hooks or m._forward_pre_hooks for m in net.modules())
    assert not rows.requires_grad


@OF_SHAP_ITSELF
def test_a_deep_network_with_one_output():
    net = network(outputs=1)
    rows = torch.tensor(ROWS, dtype=torch.float32)
    deep = shap.DeepExplainer(net, torch.tensor(BACKGROUND, dtype=torch.float32))
    values, scores = from_shap(deep)(rows, target=0)
    assert scores.shape == (4, 1)
    np.testing.assert_allclose(values, deep.shap_values(rows)[..., 0], atol=1e-6)


@OF_SHAP_ITSELF
def test_nothing_is_left_in_nested_modules():
    """SHAP cleans the outermost layers alone."""
    outer = type("Outer", (torch.nn.Module,), {"forward": lambda self, x: self.inner(x)})()
    outer.inner = type("Inner", (torch.nn.Module,), {"forward": lambda self, x: self.layers(x)})()
    outer.inner.layers = network()
    names = list(outer.state_dict())
    deep = shap.DeepExplainer(outer, torch.tensor(BACKGROUND, dtype=torch.float32))
    from_shap(deep)(torch.tensor(ROWS, dtype=torch.float32), target=0)
    assert list(outer.state_dict()) == names


def test_the_model_comes_back_after_an_exception():
    net = network()
    deep = shap.DeepExplainer(net, torch.tensor(BACKGROUND, dtype=torch.float32))
    net[0].weight.requires_grad_(False)
    with pytest.raises(Exception, match=r"mat1 and mat2|shape"):
        from_shap(deep)(torch.ones(2, 5), target=0)
    assert not any(m._forward_hooks or m._backward_hooks or m._forward_pre_hooks for m in net.modules())
    assert [p.requires_grad for p in net.parameters()] == [False, True, True, True]
    assert all(p.grad is None for p in net.parameters())


@pytest.mark.parametrize(
    "make",
    [
        lambda: shap.PermutationExplainer(FOREST.predict_proba, BACKGROUND),
        lambda: shap.SamplingExplainer(FOREST.predict_proba, BACKGROUND),
        lambda: shap.ExactExplainer(FOREST.predict_proba, BACKGROUND),
        lambda: shap.PartitionExplainer(FOREST.predict_proba, shap.maskers.Partition(BACKGROUND)),
        lambda: shap.Explainer(FOREST.predict_proba, BACKGROUND),
    ],
    ids=["permutation", "sampling", "exact", "partition", "auto"],
)
@pytest.mark.slow
def test_other_explainers_of_a_function(make):
    explainer = from_shap(make())
    assert explainer.model is not None
    values, _ = explainer(ROWS[:2], target=[0, 2])
    shifts = FOREST.predict_proba(ROWS[:2]) - FOREST.predict_proba(BACKGROUND).mean(axis=0)
    np.testing.assert_allclose(values.sum(axis=1), shifts[[0, 1], [0, 2]], atol=1e-6)  # efficiency


def test_gradient_explainer_on_torch_draws_from_the_row():
    rows = torch.tensor(ROWS, dtype=torch.float32)
    explainer = from_shap(shap.GradientExplainer(network(), torch.tensor(BACKGROUND, dtype=torch.float32)), nsamples=10)
    sample = metfa.explain(explainer, rows, noise=None, n_samples=4, rng=0, batch_size=3)
    again = metfa.explain(explainer, rows, noise=None, n_samples=4, rng=0, batch_size=1)
    np.testing.assert_array_equal(sample.values, again.values)
    assert (sample.std() > 0).all()


# Which class a single output is about


@pytest.mark.parametrize(
    ("fit", "shap_of"),
    [
        (two_classes, shap.TreeExplainer),
        (
            lambda: LogisticRegression().fit(IRIS.data, IRIS.target > 1),
            lambda model: shap.LinearExplainer(model, BACKGROUND),
        ),
    ],
    ids=["boosted trees", "linear"],
)
def test_the_other_of_two_classes_has_the_opposite_values(fit, shap_of):
    model = fit()
    explainer = from_shap(shap_of(model), model.predict_proba)
    values, scores = explainer(ROWS)
    log_odds = np.log(scores[:, 1] / scores[:, 0])
    theirs = shap_of(model).shap_values(ROWS)
    sides = np.where(scores.argmax(1) == 1, 1, -1)
    assert set(sides) == {-1, 1}
    np.testing.assert_allclose(values, theirs * sides[:, None])
    base = np.ravel(shap_of(model).expected_value)[0]
    np.testing.assert_allclose(values.sum(axis=1), sides * (log_odds - base), atol=1e-6)


def test_a_regression_has_no_target():
    table = load_diabetes()
    forest = RandomForestRegressor(5, max_depth=3, random_state=0).fit(table.data, table.target)
    explainer = from_shap(shap.TreeExplainer(forest), forest.predict)
    noise = metfa.noise.per_column(table.data, 0.2, categorical=[1])
    sample = metfa.explain(explainer, table.data[:2], noise=noise, n_samples=6, rng=0)
    assert sample.target == (None, None)
    np.testing.assert_allclose(sample.vanilla, shap.TreeExplainer(forest).shap_values(table.data[:2]))


def test_a_single_output_of_an_unknown_model_is_refused_unless_no_class_is_asked_for():
    explainer = from_shap(shap.TreeExplainer(two_classes()))
    assert explainer.model is None
    with pytest.raises(ValueError, match=r"and its class is unknown: pass the prediction, as in from_shap\("):
        explainer(ROWS, target=0)
    assert explainer(ROWS).shape == (4, 4)


def test_no_target_and_no_model():
    with pytest.raises(ValueError, match="`target` is None and the explainer's model is unknown"):
        metfa.explain(from_shap(shap.TreeExplainer(FOREST)), ROWS, noise=NOISE)


@pytest.mark.parametrize("target", [3, (0, 1), [0, 1, 2, 3]])
def test_targets_that_are_no_class(target):
    with pytest.raises(ValueError, match=r"`target` must .*|for the same tuple"):
        from_shap(shap.TreeExplainer(FOREST))(ROWS, target=target)


def test_a_single_output_for_many_classes_is_refused():
    kernel = shap.KernelExplainer(lambda x: FOREST.predict_proba(x)[:, 0], BACKGROUND)
    with pytest.raises(ValueError, match="the model has 3 classes"):
        from_shap(kernel, FOREST.predict_proba)(ROWS, target=0)
    values = from_shap(kernel)(ROWS[:1])[0]
    expected = shapley_values(lambda x: FOREST.predict_proba(x)[:, :1], ROWS[0], BACKGROUND)[:, 0]
    np.testing.assert_allclose(values[0], expected, atol=1e-6)


class TreeExplainer:
    """An explainer with results of another form, such as those before SHAP 0.45: a list with one array a class."""

    def __init__(self, values):
        self.values = values

    def shap_values(self, X):
        return self.values


@pytest.mark.parametrize("inputs", [(ROWS, ROWS[:, :2]), {"a": ROWS, "b": ROWS}])
def test_several_inputs_are_refused(inputs):
    with pytest.raises(
        TypeError, match=r"one array for this explainer, got a (tuple|dict) of 2: .*; SHAP takes one array"
    ):
        from_shap(shap.TreeExplainer(FOREST))(inputs, [0, 1, 2, 2])


@pytest.mark.parametrize("old", [list, tuple])
def test_the_form_of_old_versions(old):
    theirs = shap.TreeExplainer(FOREST).shap_values(ROWS)
    explainer = from_shap(TreeExplainer(old(np.moveaxis(theirs, -1, 0))), FOREST.predict_proba)
    np.testing.assert_array_equal(explainer(ROWS, target=[2, 1, 0, 0])[0], theirs[np.arange(4), :, [2, 1, 0, 0]])
    one = from_shap(TreeExplainer([theirs[..., 0]]), lambda x: x[:, 0])
    np.testing.assert_array_equal(one(ROWS)[0], theirs[..., 0])


def test_values_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"values of shape \(4, 3\) for inputs of shape \(4, 4\)"):
        from_shap(TreeExplainer(np.zeros((4, 3))))(ROWS)


# Settings


def test_settings_reach_shap():
    approximate = from_shap(shap.TreeExplainer(FOREST), FOREST.predict_proba, approximate=True, check_additivity=False)
    expected = shap.TreeExplainer(FOREST).shap_values(ROWS, approximate=True, check_additivity=False)
    np.testing.assert_array_equal(approximate(ROWS, target=0)[0], expected[..., 0])


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        ((shap.TreeExplainer,), {}, r"`explainer` must be one of SHAP's explainers, .* got TreeExplainer"),
        ((FOREST,), {}, "got RandomForestClassifier"),
        ((FOREST.predict_proba,), {}, "got predict_proba"),
        ((shap.TreeExplainer(FOREST), 3), {}, "`predict` must be a function inputs -> scores, got int"),
        (
            (shap.TreeExplainer(FOREST),),
            {"nsamples": 3},
            "TreeExplainer has no setting 'nsamples'; it has y, tree_limit",
        ),
    ],
)
def test_unfit_arguments(arguments, settings, message):
    with pytest.raises(TypeError, match=message):
        from_shap(*arguments, **settings)


def test_provenance_names_the_explainer_and_its_settings():
    sample = metfa.explain(
        from_shap(shap.TreeExplainer(FOREST), FOREST.predict_proba), ROWS[:1], noise=NOISE, n_samples=2, rng=0
    )
    assert sample.provenance["explainer"].startswith("ShapExplainer(explainer=TreeExplainer")
    assert sample.provenance["versions"]["shap"] == shap.__version__


def test_no_progress_bar_is_written(monkeypatch):
    """SHAP's `shap_values` of permutations does not pass `silent` on, and a call of ten seconds draws a bar."""
    from shap.explainers import _explainer

    asked = []
    monkeypatch.setattr(_explainer, "show_progress", lambda rows, *given: asked.append(given[-1]) or rows)
    rows = np.random.default_rng(0).normal(size=(6, 2))
    inner = shap.PermutationExplainer(lambda x: x[:, 0], rows)
    from_shap(inner)(rows[:2])
    from_shap(inner, silent=False)(rows[:2])
    assert asked == [True, True, False, False]


@pytest.fixture(scope="module")
def two_outputs():
    """A regression of two outputs, and both explainers of it: of its trees, and of codes of a frame."""
    names = ["a", "b", "c", "d"]
    table = pd.DataFrame(IRIS.data, columns=names)
    model = RandomForestRegressor(4, max_depth=3, random_state=0).fit(table, IRIS.data[:, 2:])
    coded = metfa.Coded(model.predict, table[names[::-1]])
    exact = shap.ExactExplainer(coded, shap.maskers.Independent(coded.codes(table)[::30]))
    return model, table, {"trees": from_shap(shap.TreeExplainer(model), model.predict), "codes": from_shap(exact)}


@pytest.mark.parametrize("kind", ["trees", "codes"])
def test_a_regression_of_several_outputs_needs_to_know_which(two_outputs, kind):
    _, table, explainers = two_outputs
    explainer, rows = explainers[kind], table[["d", "b", "a", "c"]].iloc[::50]
    said = r"`target` is needed: `RandomForestRegressor.predict` gives 2 numbers .* `target=0` to `target=1`, and"
    with pytest.raises(ValueError, match=said):
        metfa.explain(explainer, rows, noise=metfa.noise.per_column(table, 0.1), n_samples=8)
    with pytest.raises(ValueError, match=said):
        explainer(rows)
    given = {"predict": partial(two_outputs[0].predict), "n_samples": 8}
    with pytest.raises(ValueError, match=said):  # a function that is given, and an explainer of one's own
        metfa.explain(lambda inputs, target: inputs.to_numpy(), rows, noise=lambda x, rng: x + 0.1, **given)


def test_an_output_is_no_class_and_never_predicted(two_outputs):
    model, table, explainers = two_outputs
    rows, noise = table.iloc[::50], metfa.noise.per_column(table, 1.0)
    sample = metfa.explain(explainers["trees"], rows, 1, noise=noise, n_samples=8, rng=0)
    clean = shap.TreeExplainer(model).shap_values(rows)[..., 1]
    np.testing.assert_allclose(sample.vanilla, clean)
    np.testing.assert_allclose(sample.scores, model.predict(rows)[:, 1])
    assert sample.predictions is None
    assert sample.flip_rate is None
    lines = dict(sample.summary()[0].lines())
    assert lines["explained"] == "output 1"
    assert not lines.keys() & {"class explained", "prediction flips"}
    rather = metfa.contrast(explainers["trees"], rows, 1, 0, noise=noise, n_samples=8, rng=0)
    assert rather.summary()[0].explained == "output 1, rather than output 0"


def test_functions_of_ones_own_and_classifiers_predict_classes_as_before():
    def predict(inputs):  # the name alone does not make a regression
        return np.asarray(inputs)[:, :3]

    found = metfa.explain(lambda inputs, target: inputs, ROWS, noise=NOISE, predict=predict, n_samples=8, rng=0)
    assert found.target == tuple(ROWS[:, :3].argmax(axis=1))
    assert found.flip_rate is not None
    assert not any(map(is_regression, [FOREST.predict, predict]))
