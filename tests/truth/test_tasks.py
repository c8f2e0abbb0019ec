"""Tasks whose truth is known: what is planted is there, and what is true of every explainer holds."""

from itertools import permutations
from math import factorial

import numpy as np
import pytest
import torch
from benchmarks.truth import conditional, explainers, images, rules, scoring, tables
from benchmarks.truth.task import Fitted
from benchmarks.truth.training import perceptron

import metfa

FAMILIES = [(family, background) for family in images.STRENGTHS for background in ("white", "correlated")]


@pytest.fixture(scope="module")
def planted():
    return {pair: images.planted(*pair, seed=3) for pair in FAMILIES}


@pytest.mark.parametrize("pair", FAMILIES)
def test_images(pair, planted):
    data = planted[pair]
    assert [part.inputs.shape for part in data] == [(n, 1, 8, 8) for n in (8000, 1000, 1000)]
    assert [part.labels.mean() for part in data] == [0.5] * 3
    assert max(np.abs(part.inputs).max() for part in data) == 1
    assert set(data.test.used.reshape(1000, -1).sum(axis=1)) == {4 if pair[0] == "RIGID" else 8}
    again, other = images.planted(*pair, seed=3), images.planted(*pair, seed=4)
    np.testing.assert_array_equal(again.test.inputs, data.test.inputs)
    assert not np.array_equal(other.test.inputs, data.test.inputs)


@pytest.mark.parametrize("background", ["white", "correlated"])
def test_what_is_planted_is_there(background, planted):
    """Means, variances or products tell the classes apart, at the planted pixels and nowhere else."""
    lin, mult, xor = (planted[family, background].train for family in ("LIN", "MULT", "XOR"))
    used = lin.used[0]
    assert used.sum() == 8
    means = np.abs(np.subtract(*(lin.inputs[lin.labels == label, 0].mean(axis=0) for label in (0, 1))))
    assert means[used].min() > 3 * means[~used].max() or background == "correlated"
    logs = [np.log(mult.inputs[mult.labels == label, 0].var(axis=0)) for label in (0, 1)]
    ratio = np.abs(logs[0] - logs[1])
    assert ratio[used].min() > ratio[~used].max()
    t, corner = xor.inputs[:, 0, 2, 2], xor.inputs[:, 0, 6, 6]  # a pixel of each shape
    signs = [np.corrcoef(t[xor.labels == label], corner[xor.labels == label])[0, 1] for label in (0, 1)]
    assert signs[0] > signs[1] + 0.1


def test_shapes():
    assert images.all_shapes(images.planted("XOR", "white", 0)).astype(int).tolist() == [
        [0, 0, 0, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0, 0, 0],
        [0, 1, 1, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 1, 0, 0],
        [0, 0, 0, 0, 0, 1, 0, 0],
        [0, 0, 0, 0, 0, 1, 1, 0],
        [0, 0, 0, 0, 0, 0, 0, 0],
    ]


@pytest.fixture(scope="module")
def blind(planted):
    """A network with random weights that reads the shapes' pixels and no others, and where they are."""
    data = planted["LIN", "white"]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = perceptron(64, 32, 16, 8, 2)
    read = images.all_shapes(data)
    return images.Margin(network, read).eval().requires_grad_(False), data, read.ravel()


@pytest.mark.parametrize("name", ["Gradient", "SmoothGrad", "IG"])
def test_what_a_network_cannot_read_is_never_important(name, blind):
    """Whatever the threshold rule: no score of such a pixel is above 0."""
    model, data, read = blind
    explainer = explainers.OF_IMAGES[name](model, data)
    inputs = torch.from_numpy(data.test.inputs[:4])
    sample = metfa.explain(explainer, inputs, 0, noise=metfa.noise.Gaussian(0.1), n_samples=10, rng=0)
    for rule in rules.RULES.values():
        marks = scoring.flat(sample.significance_map(rule))
        assert not (marks[:, ~read] == 1).any()
        assert (marks[:, read] == 1).any()


def test_redrawing_finds_what_a_network_reads(blind):
    model, data, read = blind
    found = images.redrawn(Fitted(model, 1.0), data, data.test.inputs[:3]).reshape(3, -1)
    assert found.any(axis=1).all()
    assert not found[:, ~read].any()


# -- tables


def by_orders(model, hidden, row):
    """Shapley values as they are defined: the mean over all orders of what a column adds when it joins."""
    d = len(row)

    def worth(coalition):
        rows = hidden.copy()
        rows[:, list(coalition)] = row[list(coalition)]
        return float(model(torch.from_numpy(rows)).double().mean())

    values = np.zeros(d)
    for order in permutations(range(d)):
        for place, column in enumerate(order):
            values[column] += worth(order[: place + 1]) - worth(order[:place])
    return values / factorial(d)


def test_shapley_values_are_those_of_all_orders():
    rng = np.random.default_rng(0)
    hidden, rows = rng.normal(size=(5, 4)).astype(np.float32), rng.normal(size=(2, 4)).astype(np.float32)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = perceptron(4, 8, 1)
    with torch.no_grad():
        expected = np.array([by_orders(network, hidden, row) for row in rows])
    np.testing.assert_allclose(tables.shapley_values(network, hidden, rows), expected, atol=1e-6)


@pytest.mark.parametrize("name", ["linear", "additive"])
def test_shapley_values_of_additive_functions_have_a_formula(name):
    """Each column's own part at the row, minus its mean over the hidden rows; exactly 0 for the unused ones."""
    function, columns, used = tables.FUNCTIONS[name]
    rng = np.random.default_rng(1)
    hidden, rows = (rng.normal(size=(n, columns)).astype(np.float32) for n in (6, 3))

    def part(rows, column):
        alone = np.zeros_like(rows)
        alone[:, column] = rows[:, column]
        return function(torch.from_numpy(alone)).numpy()

    found = tables.shapley_values(tables.Planted(name), hidden, rows)
    expected = np.stack([part(rows, j) - part(hidden, j).mean() for j in range(columns)], axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.abs(np.delete(found, used, axis=1)).max() < 1e-6


def test_a_piecewise_linear_function_has_a_formula():
    """Parts that are 0 at 0 and bend at the breaks; exactly 0 for the unused columns."""
    at = torch.zeros(1, 8)
    assert tables.piecewise(at).abs().max() < 1e-6
    grid = np.linspace(-3, 3, 601, dtype=np.float32)
    rows = torch.from_numpy(np.repeat(grid[:, None], 8, axis=1))
    slopes = np.diff(tables.piecewise(rows).numpy(), axis=0) / np.diff(grid)[:, None]
    middles = (grid[1:] + grid[:-1]) / 2
    for column in range(4):
        away = np.abs(middles[:, None] - tables.BREAKS[column]).min(axis=1) > 0.006
        expected = tables.SLOPES[column][np.searchsorted(tables.BREAKS[column], middles)]
        np.testing.assert_allclose(slopes[away, column], expected[away], atol=2e-3)
    rng = np.random.default_rng(1)
    hidden, rows = (rng.normal(size=(n, 8)).astype(np.float32) for n in (6, 3))
    found = tables.shapley_values(tables.Planted("piecewise linear"), hidden, rows)
    parts = [tables.piecewise(torch.from_numpy(one)).numpy() for one in (rows, hidden)]
    np.testing.assert_allclose(found[:, :4], parts[0] - parts[1].mean(axis=0), atol=1e-5)
    assert np.abs(found[:, 4:]).max() < 1e-5


def correlated(d, rho):
    return (1 - rho) * np.eye(d) + rho


@pytest.mark.parametrize("rho", [0.0, 0.75])
def test_conditional_values_of_a_linear_model_are_exact(rho):
    """Those of a closed form; without correlation the weight times the value, and 0 for the unused column."""
    rows = np.random.default_rng(2).normal(size=(3, 5)).astype(np.float32)
    covariance = correlated(5, rho)
    exact = conditional.exact_values("linear", covariance, rows)
    found = conditional.Conditional(tables.Planted("linear"), covariance)(torch.from_numpy(rows)).numpy()
    np.testing.assert_allclose(found, exact, atol=1e-4)
    np.testing.assert_allclose(exact.sum(axis=1), rows @ [4, 3, 2, 1, 0], atol=1e-5)  # the mean prediction is 0
    if rho == 0:
        np.testing.assert_allclose(exact, rows * [4, 3, 2, 1, 0], atol=1e-5)
    else:
        assert np.abs(exact[:, 4]).min() > 0.05  # the model does not read it


def test_conditional_values_of_an_additive_function_by_many_rows():
    covariance, rng = correlated(8, 0.75), np.random.default_rng(3)
    rows = rng.normal(size=(1, 8)).astype(np.float32)
    exact = conditional.exact_values("additive", covariance, rows)[0]
    means, rests = conditional.given(covariance)
    function, worths = tables.FUNCTIONS["additive"][0], []
    for mean, rest in zip(means, rests, strict=True):
        drawn = rng.multivariate_normal(rows[0] @ mean, rest, 1500, method="eigh")
        worths.append(float(function(torch.from_numpy(drawn)).mean()))
    np.testing.assert_allclose(exact, tables.of_coalitions(np.array([worths]))[0], atol=0.2)
    found = conditional.Conditional(tables.Planted("additive"), covariance)(torch.from_numpy(rows)).numpy()[0]
    np.testing.assert_allclose(found, exact, atol=0.35)


@pytest.mark.slow
def test_shap_agrees():
    shap = pytest.importorskip("shap")
    data = tables.made("additive", 0.75, 0)
    model, hidden, rows = tables.planted("additive", 0.75), tables.background(data), data.test.inputs[:2]
    masker = shap.maskers.Independent(hidden, max_samples=len(hidden))
    theirs = shap.explainers.Exact(lambda x: model(torch.from_numpy(x))[:, 0].numpy(), masker)(rows).values
    np.testing.assert_allclose(tables.shapley_values(model, hidden, rows), theirs, atol=1e-5)


@pytest.mark.filterwarnings("ignore:the threshold rule TimesMean:metfa.DegenerateAttributionsWarning")
@pytest.mark.parametrize("name", ["Gradient", "IG", "exact SHAP"])
def test_an_unused_column_of_a_linear_model_is_never_important(name):
    """Nor has it a sign: what is left by rounding counts for neither side."""
    data = tables.made("linear", 0.75, 0)
    found = tables.as_planted("linear", 0.75, data, 0)
    explainer = explainers.OF_TABLES[name](found.model, data)
    inputs = torch.from_numpy(data.test.inputs[:20])
    sample = metfa.explain(explainer, inputs, noise=metfa.noise.Gaussian(0.2), n_samples=20, rng=0)
    assert not sample.significance_map(0.0)[:, 4].any()
    sizes = scoring.unsigned(sample)
    for rule in (rules.FIXED, *rules.RULES.values()):
        marks = sizes.significance_map(rule)
        assert (marks[:, 4] == -1).all()
    np.testing.assert_array_equal(sizes.significance_map(rules.FIXED)[:, :2].mean(axis=0) > 0.5, True)


@pytest.mark.slow
def test_lime_marks_an_unused_column_of_a_linear_model_in_at_most_alpha_of_the_rows():
    data = tables.made("linear", 0.0, 0)
    found = tables.as_planted("linear", 0.0, data, 0)
    explainer = explainers.OF_TABLES["LIME"](found.model, data)
    inputs = torch.from_numpy(data.test.inputs[:20])
    sample = metfa.explain(explainer, inputs, noise=metfa.noise.Gaussian(0.2), n_samples=20, rng=0)
    assert (scoring.unsigned(sample).significance_map(rules.FIXED)[:, 4] == 1).mean() <= 0.05


def test_a_suppressor_is_used_and_tells_nothing_by_itself():
    data = tables.made("suppressor", 0.0, 0)
    assert abs(np.corrcoef(data.train.inputs[:, 1], data.train.labels[:, 0])[0, 1]) < 0.08
    assert data.test.used[0].tolist() == [True, False, False, False]
    found = tables.as_planted("suppressor", 0.0, data, 0)
    assert found.accuracy > 0.99
    assert tables.valued(found, data, data.test.inputs[:50])[:, 1].mean() > 0.9
