"""Retrained models as samples: independent units, one number each, and where the spread comes from."""

import re
from dataclasses import replace

import numpy as np
import pytest

import metfa
from metfa import stats

INPUTS = np.array([[1.0, 2.0, 3.0], [0.5, 1.0, 2.0]])
NOISE = metfa.noise.Gaussian(0.2)


def linear(model):
    """Scores of a linear model, its weights times the input."""

    def explainer(inputs, target):
        return inputs * model

    return explainer


def trained(n, seed=0, about=(3.0, 1.0, 0.0), by=0.5):
    return list(np.random.default_rng(seed).normal(about, by, size=(n, 3)))


def across(models=None, explainer=linear, inputs=INPUTS, target=0, **settings):
    return metfa.across_models(trained(8) if models is None else models, explainer, inputs, target, **settings)


class Noisy:
    """An explainer with randomness of its own."""

    def __init__(self, model, by=1.0):
        self.weights, self.by = model, by

    def __call__(self, inputs, target=None, *, rngs):
        return np.stack(
            [x * self.weights + self.by * rng.normal(size=x.shape) for x, rng in zip(inputs, rngs, strict=True)]
        )


def test_one_number_of_each_model():
    models = trained(8)
    found = across(models)
    np.testing.assert_allclose(found.values, INPUTS * np.array(models)[:, None])
    assert found.sample_noun == "model"
    assert found.population.names == tuple(f"model {number}" for number in range(8))
    assert found.vanilla is None
    assert "gaussian_std" not in found.provenance
    np.testing.assert_array_equal(found.inputs, INPUTS)


@pytest.mark.parametrize("of", ["mean", "smoothed", "median"])
def test_numbers_over_the_noise_are_those_of_explanations_of_each_model(of):
    models = trained(3)
    found = across(models, noise=NOISE, of=of, rng=7, n_samples=6)
    for number, model in enumerate(models):
        root = int.from_bytes(
            np.random.SeedSequence(7, spawn_key=(number,)).generate_state(4).astype("<u4").tobytes(), "little"
        )
        alone = metfa.explain(linear(model), INPUTS, 0, noise=NOISE, n_samples=6, rng=root)
        np.testing.assert_allclose(found.values[number], getattr(alone, of)())
    assert found.population.copies == 6


def test_each_model_has_noise_and_draws_of_its_own():
    same = [np.ones(3), np.ones(3) + 1e-12, np.ones(3) + 2e-12]
    means = across(same, noise=NOISE, of="mean", rng=0).values
    assert np.abs(np.diff(means, axis=0)).min() > 1e-6
    clean = across(same, Noisy, rng=0).values  # vanilla, whose randomness is the explainer's own
    assert np.abs(np.diff(clean, axis=0)).min() > 1e-6
    np.testing.assert_array_equal(clean, across(same, Noisy, rng=0).values)


def test_batch_size_and_a_store_change_nothing(tmp_path):
    settings = {"noise": NOISE, "of": "mean", "rng": 3}
    expected = across(trained(3), **settings).values
    np.testing.assert_allclose(across(trained(3), batch_size=1, **settings).values, expected)
    stored = across(trained(3), run=metfa.Run(store=tmp_path / "kept"), **settings)
    np.testing.assert_allclose(stored.values, expected)
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["model_0", "model_1", "model_2"]
    calls = []

    def counted(model):
        def explainer(inputs, target):
            calls.append(len(inputs))
            return inputs * model

        explainer.__qualname__ = linear(model).__qualname__
        return explainer

    metfa.spread(trained(3), counted, INPUTS, 0, noise=NOISE, rng=3, run=metfa.Run(store=tmp_path / "kept"))
    assert sum(calls) <= 3 * 4 * len(INPUTS)  # clean maps and looks at single rows; no noisy copy


@pytest.fixture(scope="module")
def many():
    return across(trained(1000), inputs=np.ones((1, 3)))


def retrainings(many, n):
    """Results of n models each, of which every one was trained by itself."""
    for start in range(0, many.n_samples - n + 1, n):
        population = replace(many.population, names=many.population.names[:n])
        values = many.values[start : start + n]
        yield replace(many, values=values, sample_ids=tuple(range(n)), population=population, provenance={})


@pytest.mark.parametrize("n", [6, 10])
def test_intervals_hold_the_median_over_trainings(many, n):
    held = []
    for found in retrainings(many, n):
        interval = found.confidence_interval(0.95)
        held.append(((interval.low <= [3, 1, 0]) & (interval.high >= [3, 1, 0]))[0])
    assert (np.mean(held, axis=0) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / len(held))).all()


@pytest.mark.parametrize("n", [6, 10])
def test_false_signs_are_at_most_alpha(many, n):
    marks = np.array([found.significance_map(0.0)[0] for found in retrainings(many, n)])
    most = 0.05 + 3 * np.sqrt(0.05 * 0.95 / len(marks))
    assert (marks[:, 2] == 1).mean() <= most
    assert (marks[:, 2] == -1).mean() <= most
    assert (marks[:, 0] == 1).mean() > 0.95  # what holds for every training is found


def test_too_few_models_say_how_many():
    with pytest.raises(metfa.TooFewSamplesError, match=r"too few models .*got 4, at least 5 are needed"):
        across(trained(4)).significance_map(0.0)
    wide = [np.random.default_rng(seed).normal(size=50) for seed in range(9)]
    with pytest.raises(metfa.TooFewSamplesError, match=r"holm over 50 features.* got 9, at least 10 are needed"):
        across(wide, inputs=np.ones((1, 50))).significance_map(0.0, correction="holm")
    assert "5 models are too few, 95% needs 6" in str(across(trained(5)).summary(0.0)[0])


def test_every_view_says_models(tmp_path):
    found = across(noise=NOISE, of="mean", rng=0)
    one = found.of_input(0)
    figure = one.plot()
    from matplotlib.text import Text

    said = {
        "summary": str(found.summary()[0]),
        "repr": repr(found),
        "plot": "\n".join(part.get_text() for part in figure.findobj(Text)),
        "plan": str(found.plan(0.0)),
    }
    for view, text in said.items():
        assert "models" in text, view
        assert not re.search(r"\bsamples\b", text.replace("AttributionSample", "")), (view, text)
    assert "models that are trained as these were" in said["summary"]
    assert "8 models" in found.report(tmp_path / "page.html").read_text("utf-8")
    for refused in (lambda: found.certified_radius(0.0), found.across_inputs):
        with pytest.raises(ValueError, match="models"):
            refused()


def test_saved_and_read(tmp_path):
    found = across(noise=NOISE, of="mean", rng=0)
    found.save(tmp_path / "kept")
    read = metfa.load(tmp_path / "kept")
    np.testing.assert_array_equal(read.values, found.values)
    assert read.population == found.population
    assert [str(one) for one in read.summary()] == [str(one) for one in found.summary()]
    assert read.over(np.array([0, 0, 1])).values.shape == (8, 2, 2)
    assert found.ranking(0).marks.tolist() == [[0, 1, 1], [-1, 0, 1], [-1, -1, 0]]


def test_maps_of_models_are_drawn_over_the_picture():
    images = np.random.default_rng(0).random((1, 6, 5))
    models = [np.full((6, 5), 1.0 + 0.1 * number) for number in range(8)]
    found = metfa.across_models(models, lambda model: lambda inputs, target: inputs * model, images, 0)
    figure = found.plot(threshold=0.5)
    titles = [ax.get_title() for ax in figure.axes]
    assert "picture\nread as rows and columns" in titles
    assert "median\nof 8 models" in titles[1] or "constant" in titles[1]


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"models": trained(1)}, ValueError, "two models or more, got 1"),
        ({"models": 3}, TypeError, "a list of two or more models"),
        ({"models": [np.ones(3)] * 1 + trained(2), "of": "max"}, ValueError, "'vanilla', 'mean'"),
        ({"explainer": 3}, TypeError, "a function that makes an explainer of a model"),
        ({"explainer": lambda model: 3}, TypeError, "must be callable"),
        ({"target": None}, ValueError, "do not say which model"),
        ({"of": "mean", "noise": NOISE, "n_samples": metfa.Until(undecided=0.1)}, TypeError, "n_samples"),
        ({"of": "mean"}, ValueError, "`noise` is None"),
    ],
)
def test_bad_arguments(settings, error, says):
    with pytest.raises(error, match=says):
        across(**settings)


def test_one_model_twice_is_no_new_unit():
    models = trained(3)
    with pytest.raises(ValueError, match="one model twice: 3 is 1 again"):
        across([*models, models[1]])


def test_maps_of_other_shapes():
    explainer = lambda model: lambda inputs, target: inputs[:, : int(model[0])]  # noqa: E731
    with pytest.raises(ValueError, match="the same features"):
        across([np.full(3, 2.0), np.full(3, 3.0)], explainer)


torch = pytest.importorskip("torch")


def torch_models(n, classes=3):
    found = []
    for seed in range(n):
        torch.manual_seed(seed)
        found.append(torch.nn.Linear(3, classes).eval())
    return found


def gradient(model):
    return metfa.explainers.Gradient(model, channel_axis=None)


def test_torch_models_with_equal_parameters_are_refused():
    models = torch_models(3)
    torch.manual_seed(1)
    with pytest.raises(ValueError, match="one model twice: 3 is 1 again"):
        across([*models, torch.nn.Linear(3, 3).eval()], gradient, torch.rand(1, 3))


def test_parameters_that_differ_by_little_or_are_coarse_are_told_apart():
    models = [model.double() for model in torch_models(2)]
    other = torch.nn.Linear(3, 3).double().eval()
    other.load_state_dict(models[1].state_dict())
    with torch.no_grad():
        other.weight[0, 0] += 1e-12
    assert across([*models, other], gradient, torch.rand(1, 3).double()).n_samples == 3
    half = [model.to(torch.bfloat16) for model in torch_models(2)]
    again = torch.nn.Linear(3, 3).to(torch.bfloat16).eval()
    again.load_state_dict(half[0].state_dict())
    with pytest.raises(ValueError, match="one model twice"):
        across([*half, again], gradient, torch.rand(1, 3))


def test_models_that_predict_other_classes_need_a_target():
    inputs = torch.from_numpy(np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32))
    with pytest.raises(ValueError, match=r"different classes for input \d: class \d by model 0, class \d by model \d"):
        across(torch_models(4), gradient, inputs, None)
    assert across(torch_models(4), gradient, inputs, [0] * 6).values.shape == (4, 6, 3)
    agreeing = torch_models(4)
    for model in agreeing:
        model.bias.data += torch.tensor([0.0, 50.0, 0.0])
    assert across(agreeing, gradient, inputs, None).target == (1,) * 6


def test_an_explainer_of_one_model_is_refused():
    models = torch_models(3)
    with pytest.raises(ValueError, match="the same model each time"):
        across(models, lambda model: gradient(models[0]), torch.rand(1, 3))
    with pytest.raises(TypeError, match="got Gradient"):
        across(models, gradient(models[0]), torch.rand(1, 3))


# Spread


def simulated(models, copies, draws=1, *, seed=0, sd=(2.0, 1.0, 0.5), features=4):
    rng = np.random.default_rng(seed)
    of_models = rng.normal(0, sd[0], size=(models, 1, 1, features))
    of_copies = rng.normal(0, sd[1], size=(models, copies, 1, features))
    of_draws = rng.normal(0, sd[2], size=(models, copies, draws, features))
    return of_models + of_copies + of_draws * (draws > 1)


def test_estimates_are_those_of_the_analysis_of_variance():
    values = simulated(5, 4, 3)
    found = stats.variance_shares(values, n_resamples=10)
    for feature in range(4):
        x = values[..., feature]
        draws = x.var(axis=2, ddof=1).mean()
        copies = 3 * x.mean(axis=2).var(axis=1, ddof=1).mean()
        models = 12 * x.mean(axis=(1, 2)).var(ddof=1)
        parts = np.maximum([(models - copies) / 12, (copies - draws) / 3, draws], 0)
        np.testing.assert_allclose(found.shares[:, feature], parts / parts.sum())
    assert found.shares.sum(axis=0) == pytest.approx(1)


@pytest.mark.parametrize(("draws", "expected"), [(1, [0.8, 0.2]), (4, [4 / 5.25, 1 / 5.25, 0.25 / 5.25])])
def test_shares_of_many_groups_are_those_planted(draws, expected):
    found = stats.variance_shares(simulated(2000, 5, draws), n_resamples=200)
    np.testing.assert_allclose(found.pooled, expected, atol=0.02)
    assert (found.pooled_low <= found.pooled).all()
    assert (found.pooled <= found.pooled_high).all()
    assert not found.negative.any()


def test_intervals_of_many_groups_cover():
    held = [
        (found.pooled_low[0] <= 0.8) & (found.pooled_high[0] >= 0.8)
        for seed in range(100)
        for found in [stats.variance_shares(simulated(60, 5, seed=seed, features=1), n_resamples=300)]
    ]
    assert np.mean(held) >= 0.84  # percentiles of a skewed estimate are somewhat short


def test_a_negative_estimate_is_set_to_zero_and_said():
    found = stats.variance_shares(simulated(6, 5, sd=(0.0, 1.0, 0.0), features=50))
    assert found.negative[0].any()
    assert (found.shares[0][found.negative[0]] == 0).all()
    nothing = stats.variance_shares(np.ones((4, 3, 1, 2)))
    assert np.isnan(nothing.shares).all()
    assert np.isnan(nothing.low).all()


def test_intervals_are_seeded_and_blocks_change_nothing(monkeypatch):
    values = simulated(6, 5, features=30)
    first = stats.variance_shares(values)
    monkeypatch.setattr("metfa.stats._variance_shares.BLOCK", 4000)
    again = stats.variance_shares(values)
    for name in ("shares", "low", "high", "pooled", "pooled_low", "negative"):
        np.testing.assert_allclose(getattr(again, name), getattr(first, name))


def test_spread_of_models_and_noise():
    found = metfa.spread(trained(12, by=0.7), linear, INPUTS, 0, noise=NOISE, n_samples=10, rng=0)
    assert found.sources == ("model", "noise")
    assert found.shares.shape == (2, 2, 3)
    np.testing.assert_allclose(found.shares.sum(axis=0), 1)
    text = str(found)
    assert re.search(r"input 0 of 2: of the variance of all features together \d+% between models \[", text)
    assert "this is no test" in text
    assert "12 models with 10 copies" in text


def test_spread_with_the_explainers_own_draws():
    found = metfa.spread(trained(12), Noisy, INPUTS, 0, noise=NOISE, n_samples=6, n_draws=3, rng=0)
    assert found.sources == ("model", "noise", "explainer's own draws")
    assert found.pooled[2].min() > 0.3  # they have the variance 1
    assert "each explained 3 times" in str(found)
    together = metfa.spread(trained(12), Noisy, INPUTS, 0, noise=NOISE, n_samples=6, rng=0)
    assert together.sources == ("model", "noise and the explainer's own draws")
    alone = metfa.spread(trained(12), Noisy, INPUTS, 0, n_samples=6, rng=0)
    assert alone.sources == ("model", "explainer's own draws")


def test_other_draws_are_of_the_same_copies():
    from metfa.sampling.models import Models

    asked = Models.of(trained(2), lambda model: Noisy(model, 0.0), INPUTS, 0, batch_size=None, rng=0, run=None)
    first, other = (asked.explained(0, NOISE, 5, draw).values for draw in (0, 1))
    np.testing.assert_array_equal(first, other)  # without randomness of their own
    asked = Models.of(trained(2), Noisy, INPUTS, 0, batch_size=None, rng=0, run=None)
    first, other = (asked.explained(0, NOISE, 5, draw).values for draw in (0, 1))
    assert np.abs(first - other).min() > 0


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"models": trained(2)}, "3 models or more"),
        ({"n_draws": 2}, "takes no `rngs`"),
        ({"explainer": Noisy, "n_draws": 2, "noise": None}, "`noise` is None"),
        ({"n_samples": 1}, "n_samples"),
    ],
)
def test_spread_refuses(settings, says):
    given = {"models": trained(5), "explainer": linear, "inputs": INPUTS, "target": 0, "noise": NOISE, **settings}
    with pytest.raises(ValueError, match=says):
        metfa.spread(**given)


def test_models_that_agree_in_every_number_are_warned_of():
    models = [np.array(weights) for weights in ([1.0, 2.0], [1.5, 2.0], [1.0, 2.0])]
    with pytest.warns(metfa.DegenerateAttributionsWarning, match="models 0 and 2 give exactly the same maps"):
        metfa.across_models(models, lambda weights: lambda x, target: x * weights, np.ones((1, 2)), 0)
