"""Explainers seen from outside: their model, their generators, their output, and whether their rows are independent."""

import functools
import warnings

import numpy as np
import pytest
import torch
from captum import attr

import metfa
from metfa._base.warnings import MetfaWarning, ReproducibilityWarning, RowDependenceWarning
from metfa.calls.generators import random_state_as_found
from metfa.explainers import Gradient, heatmap
from metfa.sampling.protocol import (
    call_explainer,
    explained_model,
    known_independent,
    predict_scores,
    prediction_of,
    safe_batch_size,
    takes_rngs,
)

torch.manual_seed(0)
NET = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).eval()
PICTURES = torch.rand(3, 3, 2, 2, generator=torch.Generator().manual_seed(1))


def plain(inputs, target):
    return inputs


class TestModelOfAnExplainer:
    @pytest.mark.parametrize(
        "explainer",
        [
            attr.Saliency(NET).attribute,
            attr.IntegratedGradients(NET).attribute,
            attr.NoiseTunnel(attr.Saliency(NET)).attribute,
            functools.partial(attr.Occlusion(NET).attribute, sliding_window_shapes=(3, 1, 1)),
            functools.partial(functools.partial(attr.Saliency(NET).attribute), abs=False),
            Gradient(NET),
            Gradient(NET).__call__,
            functools.partial(Gradient(NET)),
            heatmap(attr.Saliency(NET).attribute),
            metfa.seeded(attr.Saliency(NET).attribute),
            metfa.seeded(functools.partial(attr.Lime(NET).attribute, n_samples=5)),
            metfa.randomised(Gradient(NET)),
            metfa.Smoothed(attr.Saliency(NET).attribute, noise=metfa.noise.Uniform(0.1)),
            metfa.Smoothed(Gradient(NET), noise=metfa.noise.Uniform(0.1)).attribute,
        ],
    )
    def test_is_found(self, explainer):
        assert explained_model(explainer) is NET
        scores = predict_scores(prediction_of(explainer), PICTURES)
        np.testing.assert_array_equal(scores, NET(PICTURES).detach().numpy())

    def test_forward_functions_are_found_as_they_are(self):
        def doubled(inputs):
            return 2 * NET(inputs)

        for function in (NET.forward, doubled):
            assert explained_model(attr.Saliency(function).attribute) == function
        scores = predict_scores(prediction_of(attr.Saliency(doubled).attribute), PICTURES)
        np.testing.assert_array_equal(scores, 2 * NET(PICTURES).detach().numpy())

    @pytest.mark.parametrize("explainer", [plain, lambda inputs, target: inputs, "abc".join, len, metfa.seeded(plain)])
    def test_is_none_where_unknown(self, explainer):
        assert explained_model(explainer) is None
        assert prediction_of(explainer) is None

    def test_parts_of_a_tuple_are_given_one_by_one(self):
        def model(a, b):
            return a + b

        parts = (PICTURES, 2 * PICTURES)
        for explainer in (attr.Saliency(model).attribute, functools.partial(attr.Saliency(model).attribute, abs=False)):
            np.testing.assert_array_equal(predict_scores(prediction_of(explainer), parts), 3 * PICTURES)

    def test_scores_come_without_a_graph(self):
        seen = []
        predict_scores(lambda x: seen.append(torch.is_grad_enabled()) or NET(x), PICTURES)
        assert seen == [False]

    def test_class_labels_are_no_scores(self):
        with pytest.raises(
            TypeError, match=r"`predict` must return scores \(batch, classes\), got one int64 a row.*predict_proba"
        ):
            predict_scores(lambda x: np.array([0, 1, 1]), PICTURES)
        with pytest.raises(TypeError, match=r"`predict` must return an array of scores .*, got NoneType"):
            predict_scores(lambda x: None, PICTURES)


class TestWhoTakesGenerators:
    def test_by_signature(self):
        def with_rngs(inputs, target, *, rngs):
            return inputs

        assert takes_rngs(with_rngs)
        assert takes_rngs(metfa.randomised(with_rngs))
        assert takes_rngs(metfa.seeded(plain))
        smooth = metfa.Smoothed(plain, noise=metfa.noise.Uniform(0.1))
        assert takes_rngs(smooth)
        assert takes_rngs(smooth.attribute)
        assert takes_rngs(heatmap(with_rngs))
        assert takes_rngs(functools.partial(with_rngs))
        assert not takes_rngs(plain)
        assert not takes_rngs(heatmap(plain))
        assert not takes_rngs(lambda inputs, target, **more: inputs)
        assert not takes_rngs(attr.Saliency(NET).attribute)
        assert not takes_rngs(np.add)


def test_explainers_may_need_generators_and_row_arguments():
    def between(inputs, target, baselines, *, rngs):
        return np.stack([row - base for row, base in zip(inputs, baselines, strict=True)])

    settings = {"noise": metfa.noise.Uniform(0.1), "n_samples": 2, "rng": 0}
    rows = np.ones((2, 3))
    sample = metfa.explain(between, rows, 0, row_args={"baselines": rows}, **settings)
    assert sample.values.shape == (2, 2, 3)
    with pytest.raises(TypeError, match="missing a required argument: 'baselines'"):
        metfa.explain(between, rows, 0, **settings)


class TestPromise:
    def test_ours_and_their_wrappers(self):
        promising = Gradient(NET)
        for explainer in (
            promising,
            promising.__call__,
            functools.partial(promising),
            heatmap(promising),
            metfa.seeded(plain),
            metfa.Smoothed(plain, noise=metfa.noise.Uniform(0.1)),
            metfa.Smoothed(plain, noise=metfa.noise.Uniform(0.1)).attribute,
        ):
            assert known_independent(explainer)
        for explainer in (plain, heatmap(plain), metfa.randomised(plain), attr.Saliency(NET).attribute):
            assert not known_independent(explainer)

    def test_a_gradient_promises_nothing_for_models_that_may_mix_rows(self):
        without_statistics = torch.nn.Sequential(NET, torch.nn.BatchNorm1d(3, track_running_stats=False)).eval()
        assert known_independent(Gradient(torch.nn.Sequential(NET, torch.nn.BatchNorm1d(3))))
        with pytest.warns(RowDependenceWarning, match="normalises each batch"):
            assert not known_independent(Gradient(without_statistics))
        assert not known_independent(Gradient(lambda x: NET(x) / NET(x).max()))


class TestOutput:
    def call(self, output, n_rows=2, batch=None):
        batch = np.zeros((n_rows, 3)) if batch is None else batch
        return call_explainer(lambda inputs, target: output, batch, None, n_rows, None, {})

    def test_maps_and_scores(self):
        maps, scores = self.call(np.ones((2, 3)))
        assert scores is None
        maps, scores = self.call((np.ones((2, 3)), np.zeros((2, 5))))
        assert (maps.shape, scores.shape) == ((2, 3), (2, 5))
        maps, _ = self.call([[1.0, 2.0], [3.0, 4.0]])
        assert maps.tolist() == [[1, 2], [3, 4]]

    @pytest.mark.parametrize(
        ("output", "error", "message"),
        [
            (np.ones((3, 3)), ValueError, r"one map for each row, got shape \(3, 3\) for 2 rows.*batch_size=1"),
            (np.ones((1, 3)), ValueError, r"one map for each row, got shape \(1, 3\) for 2 rows.*batch_size=1"),
            (np.float64(3), ValueError, r"one map for each row, got shape \(\) for 2 rows"),
            (np.ones(2), ValueError, r"\(batch, \*features\), got shape \(2,\), which leaves no features to test"),
            (
                np.ones((2, 0)),
                ValueError,
                r"\(batch, \*features\), got shape \(2, 0\), which leaves no features to test",
            ),
            (None, TypeError, "`attributions` must be an array of real numbers, got NoneType"),
            ("map", TypeError, "`attributions` must be an array of real numbers, got str"),
            ([np.ones(2), np.ones(3)], ValueError, "`attributions` must be an array, got list that cannot become one"),
            ((np.ones((2, 3)),), TypeError, r"returned a tuple of 1, one array is needed.*\[0\]"),
            ((np.ones((2, 3)),) * 3, TypeError, "returned a tuple of 3, one array is needed"),
            (
                (np.ones((2, 3)), np.ones((5, 3))),
                ValueError,
                r"return scores \(batch, classes\).* got shape \(5, 3\) for 2 rows",
            ),
            (
                (np.ones((2, 3)), np.float64(1)),
                ValueError,
                r"return scores \(batch, classes\).* got shape \(\) for 2 rows",
            ),
        ],
    )
    def test_unfit_outputs(self, output, error, message):
        with pytest.raises(error, match=message):
            self.call(output)


# Toy explainers of every kind. `run` explains five rows, which differ, in any combination.

RANDOM = np.random.default_rng(7)
ROWS = np.random.default_rng(0).random((5, 30)) + 0.5


def probe(explainer, batch_size=10, rows=ROWS, *, promise=False):
    calls = []

    def run(indices):
        calls.append(list(indices))
        return explainer(rows[list(indices)])

    def asked(inputs, target):
        raise AssertionError("it is asked through `run`")

    asked.rows_independent = promise
    with random_state_as_found() as drawn:
        return safe_batch_size(asked, batch_size, len(rows), run, drawn), calls


def independent(x):
    return x**2


def noisy_each(x):
    return x + RANDOM.normal(size=x.shape)


def noisy_each_from_global_numbers(x):
    return x + np.random.normal(size=x.shape)


def noisy_shared_a_little(x):  # less than what the rounding of kernels may be
    return x + 5e-3 * RANDOM.normal(size=x.shape[1:])


def noisy_shared(x):
    return x + RANDOM.normal(size=x.shape[1:])


def scaled_by_the_batch(x):
    return x / x.sum()


def scaled_by_the_number_of_rows(x):
    return x / len(x)


def relative_to_the_first(x):
    return x - 0.9 * x[:1]


def relative_to_the_last(x):
    return x - 0.9 * x[-1:]


def a_little_of_the_mean(x):  # less than what the rounding of kernels may be
    return x + 1e-3 * x.mean(0)


def running_along_the_batch(x):  # a recurrent network that takes rows for moments
    return np.cumsum(x, axis=0)


def batch_normalised(x):
    return (x - x.mean(0)) / (x.std(0) + 1e-9)


def permuted(x):
    return np.abs(x - np.roll(x, 1, axis=0)) * RANDOM.random(x.shape)


def all_zero(x):
    return np.zeros_like(x)


def often_zero(x):
    return noisy_each(x) * (RANDOM.random((len(x), 1)) < 0.4)


def rounded_otherwise_in_company(x):
    return x * (1 + 2e-3 * len(x))


@pytest.mark.parametrize("promise", [False, True])
def test_independent_rows_take_one_call_more(promise):
    batch_size, calls = probe(independent, promise=promise)
    assert batch_size == 10
    assert calls == [[0, 1, 2, 3, 4], [2], *[[4]] * (not promise)]


@pytest.mark.parametrize("explainer", [all_zero, rounded_otherwise_in_company])
def test_further_calls_show_that_rows_are_independent(explainer):
    assert probe(explainer)[0] == 10


DEPENDENT = [
    *(scaled_by_the_batch, scaled_by_the_number_of_rows, relative_to_the_first, relative_to_the_last),
    *(a_little_of_the_mean, running_along_the_batch),
]


@pytest.mark.parametrize("promise", [False, True])
@pytest.mark.parametrize("n_rows", [2, 3, 5])
@pytest.mark.parametrize("explainer", DEPENDENT)
def test_dependent_explainers_go_one_row_a_call(explainer, n_rows, promise):
    with pytest.warns(RowDependenceWarning, match="of a row moves by .* one row a call; pass `batch_size=1`"):
        batch_size, _ = probe(explainer, rows=ROWS[:n_rows], promise=promise)
    assert batch_size == 1


@pytest.mark.parametrize("explainer", [noisy_each, noisy_shared, noisy_shared_a_little, often_zero])
def test_explainers_that_draw_go_one_row_a_call(explainer):
    with pytest.warns(MetfaWarning) as record:
        assert [probe(explainer)[0] for _ in range(10)] == [1] * 10
    assert {w.category for w in record} == {ReproducibilityWarning, RowDependenceWarning}
    messages = {w.category: str(w.message) for w in record}
    assert "(by a random generator or a state of its own)" in messages[ReproducibilityWarning]
    assert "draws random numbers, which the rows of a batch may share" in messages[RowDependenceWarning]


def test_explainers_that_draw_from_global_generators_go_one_row_a_call():
    with pytest.warns(RowDependenceWarning, match="draws random numbers, which the rows of a batch may share"):
        assert probe(noisy_each_from_global_numbers)[0] == 1


def test_a_promise_is_believed_of_explainers_that_draw():
    assert probe(noisy_each_from_global_numbers, promise=True)[0] == 10
    with pytest.warns(ReproducibilityWarning, match=r"a random generator or a state of its own.*metfa.randomised"):
        assert probe(noisy_each, promise=True)[0] == 10


@pytest.mark.parametrize("explainer", [batch_normalised, permuted])
def test_explainers_that_need_company_are_refused(explainer):
    with pytest.raises(ValueError, match=r"one row alone gets a constant map.*such as feature ablation"):
        probe(explainer)


@pytest.mark.parametrize(("batch_size", "n_rows"), [(1, 5), (10, 1), (10, 0)])
def test_nothing_to_look_at_leaves_the_size(batch_size, n_rows):
    assert probe(scaled_by_the_batch, batch_size, ROWS[:n_rows]) == (batch_size, [])


def test_other_shapes_in_company_are_a_dependence():
    with pytest.warns(RowDependenceWarning, match="takes another shape"):
        assert probe(lambda x: np.ones((len(x), 2 + len(x))) * np.arange(2 + len(x)))[0] == 1


# Networks whose rows depend on each other although they are in evaluation mode.


class Mixing(torch.nn.Module):
    def __init__(self, mix):
        super().__init__()
        torch.manual_seed(0)
        self.before = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.ReLU())
        self.after = torch.nn.Linear(4, 3)
        self.mix = Applied(lambda x: mix(x).tanh())

    def forward(self, images):
        return self.after(self.mix(self.before(images)).mean((2, 3)))


class Applied(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


MIXING = {
    "mean": lambda x: x - 0.5 * x.mean(0),
    "min and max": lambda x: (x - x.amin()) / (x.amax() - x.amin() + 1e-3),
    "a little": lambda x: x + 0.02 * x.mean(0),
}
IMAGES = torch.rand(3, 3, 8, 8, generator=torch.Generator().manual_seed(2))


def gradient_alone(model, inputs, target):
    leaf = inputs.clone().requires_grad_()
    return torch.autograd.grad(model(leaf)[range(len(leaf)), target].sum(), leaf)[0]


def quarters(image):
    return np.arange(64).reshape(8, 8) // 16


OWN = {
    "Gradient": Gradient,
    "SmoothGrad": lambda model: metfa.explainers.SmoothGrad(model, n_perturbations=4, rng=0),
    "RISE": lambda model: metfa.explainers.RISE(model, n_masks=12, rng=0),
    "LIME": lambda model: metfa.explainers.LIME(model, n_perturbations=64, segmentation=quarters, rng=0),
    "CAM": metfa.explainers.CAM,
    "ScoreCAM": lambda model: metfa.explainers.ScoreCAM(model, layer="before"),
    "Smoothed": lambda model: metfa.Smoothed(Gradient(model), noise=metfa.noise.Uniform(0.1), n_samples=6, rng=0),
    "Captum": lambda model: attr.Saliency(model).attribute,
    "a function": lambda model: lambda inputs, target: gradient_alone(model, inputs, target),
    "of a function": lambda model: Gradient(lambda x: model(x)),
}


@pytest.mark.parametrize(
    ("name", "mix"),
    [*((name, "mean") for name in OWN), *(("Gradient", mix) for mix in MIXING), ("Captum", "min and max")],
)
def test_samples_are_those_of_rows_alone(name, mix):
    """However large a batch is: this was wrong by up to .94, without a word."""
    model = Mixing(MIXING[mix]).eval()
    settings = {"noise": metfa.noise.Uniform(0.3), "n_samples": 3, "rng": 0, "predict": model}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Input Tensor", UserWarning)
        warnings.simplefilter("ignore", metfa.DegenerateAttributionsWarning)
        with pytest.warns(RowDependenceWarning) as record:
            together = metfa.explain(OWN[name](model), IMAGES, batch_size=9, **settings)
        assert {w.filename for w in record if w.category is RowDependenceWarning} == {__file__}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RowDependenceWarning)  # of the copies that RISE makes of one row
            parts = [metfa.explain(OWN[name](model), image[None], batch_size=1, **settings) for image in IMAGES]
    for row, alone in enumerate(parts):
        np.testing.assert_allclose(together.values[:, row], alone.values[:, 0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(together.vanilla[row], alone.vanilla[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(together.scores[row], alone.scores[0], rtol=1e-5, atol=1e-6)
    assert together.target == tuple(part.target[0] for part in parts)


@pytest.mark.parametrize("mix", MIXING)
def test_metrics_are_those_of_images_alone(mix):
    model, maps = Mixing(MIXING[mix]).eval(), IMAGES.numpy().mean(1)
    with pytest.warns(RowDependenceWarning, match="asked about one row at a time"):
        together = metfa.metrics.insertion(model, IMAGES, maps, steps=8)
    alone = [
        metfa.metrics.insertion(metfa.Called(model, batch_size=1), image[None], one[None], steps=8)
        for image, one in zip(IMAGES, maps, strict=True)
    ]
    np.testing.assert_allclose(together.score, [curve.score[0] for curve in alone], rtol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_rounding_is_no_dependence(dtype):
    """Nor is it in half precision, where kernels of other sizes differ by per cents."""
    model = Mixing(lambda x: x).eval()
    called = metfa.Called(model.to(dtype) if dtype == torch.float64 else model, fast=CASTS.get(dtype))
    inputs = IMAGES.to(dtype) if dtype == torch.float64 else IMAGES
    for explainer in (Gradient(called), lambda x, target: Gradient(called)(x, target)[0]):
        sample = metfa.explain(explainer, inputs, 0, noise=metfa.noise.Uniform(0.1), n_samples=4, rng=0)
        assert sample.provenance["batch_size"] == 10


CASTS = {torch.bfloat16: "bfloat16"}


# Captum, as it is installed.


def explained(explainer, **settings):
    settings = {"noise": metfa.noise.Uniform(0.1), "n_samples": 3, "rng": 0, **settings}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s)(Input Tensor|Setting .*hooks|You are providing multiple)", UserWarning)
        return metfa.explain(explainer, PICTURES, **settings)


CAPTUM = {
    "Saliency": attr.Saliency(NET).attribute,
    "IntegratedGradients": functools.partial(attr.IntegratedGradients(NET).attribute, n_steps=8),
    "FeatureAblation": attr.FeatureAblation(NET).attribute,
    "Occlusion": functools.partial(attr.Occlusion(NET).attribute, sliding_window_shapes=(3, 1, 1)),
    "InputXGradient": attr.InputXGradient(NET).attribute,
    "DeepLift": attr.DeepLift(NET).attribute,
    "GuidedBackprop": attr.GuidedBackprop(NET).attribute,
}


@pytest.mark.parametrize("method", CAPTUM)
def test_captum_methods_with_independent_rows_pass(method):
    sample = explained(CAPTUM[method])
    assert sample.provenance["batch_size"] == 10
    assert sample.values.shape == (3, *PICTURES.shape)
    assert sample.target == tuple(NET(PICTURES).argmax(1).tolist())
    np.testing.assert_array_equal(sample.scores, NET(PICTURES).detach().numpy())
    alone = explained(CAPTUM[method], batch_size=1)
    np.testing.assert_allclose(sample.values, alone.values, atol=1e-5)


BACKGROUND = torch.rand(6, 3, 2, 2, generator=torch.Generator().manual_seed(3))


def by_gradient_shap_of_a_subset(inputs, target):
    subset = BACKGROUND[torch.randperm(len(BACKGROUND))[:2]]  # shared by all rows of a call
    return attr.GradientShap(NET).attribute(inputs, baselines=subset, n_samples=2, target=target)


SAMPLERS = {
    "ShapleyValueSampling": functools.partial(attr.ShapleyValueSampling(NET).attribute, n_samples=2),
    "GradientShap": by_gradient_shap_of_a_subset,
    "NoiseTunnel(ShapleyValueSampling)": functools.partial(
        attr.NoiseTunnel(attr.ShapleyValueSampling(NET)).attribute, nt_samples=2, stdevs=0.1, n_samples=2
    ),
    "NoiseTunnel(Saliency)": functools.partial(attr.NoiseTunnel(attr.Saliency(NET)).attribute, nt_samples=2),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_go_one_row_a_call(name):
    explainer = SAMPLERS[name]
    with pytest.warns(MetfaWarning) as record:
        sample = explained(explainer, target=1)
    assert {w.category for w in record} == {RowDependenceWarning, ReproducibilityWarning}
    assert all(w.filename == __file__ for w in record)
    assert sample.provenance["batch_size"] == 1
    seeded = explained(metfa.seeded(explainer), target=1, n_samples=2)
    assert seeded.provenance["batch_size"] == 10
    again = explained(metfa.seeded(explainer), target=1, n_samples=2, batch_size=4)
    np.testing.assert_array_equal(seeded.values, again.values)


def test_feature_permutation_is_refused():
    with pytest.raises(ValueError, match=r"explains a row by means of the other rows.*feature ablation"):
        explained(attr.FeaturePermutation(NET).attribute)


@pytest.mark.parametrize("batch_size", [1, 10])
def test_lime_is_reported_and_seeded_lime_is_reproducible(batch_size):
    lime = functools.partial(attr.KernelShap(NET).attribute, n_samples=12)
    with pytest.warns(MetfaWarning) as record:
        explained(lime, batch_size=batch_size)
    assert any("metfa.seeded(explainer)" in str(w.message) for w in record)
    assert {w.category for w in record} == {ReproducibilityWarning} | (
        {RowDependenceWarning} if batch_size > 1 else set()
    )
    seeded = [explained(metfa.seeded(lime), batch_size=size).values for size in (batch_size, 3)]
    np.testing.assert_array_equal(*seeded)
    assert (seeded[0][0] != seeded[0][1]).any()


@pytest.mark.parametrize("wrapped", [lambda model: model, metfa.Called])
def test_a_model_is_no_explainer(wrapped):
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3)).eval()
    with pytest.raises(TypeError, match=r"got the model itself .*`metfa.explainers.Gradient\(model\)`"):
        metfa.explain(wrapped(model), torch.rand(2, 1, 4, 4), 0, noise=metfa.noise.Uniform(0.1), n_samples=6, rng=0)


def test_a_module_that_takes_a_target_is_an_explainer():
    class Explainer(torch.nn.Module):
        def forward(self, inputs, target):
            return inputs[:, 0] ** 2

    images = torch.rand(2, 1, 4, 4)
    sample = metfa.explain(Explainer().eval(), images, 0, noise=metfa.noise.Uniform(0.1), n_samples=6, rng=0)
    assert sample.values.shape == (6, 2, 4, 4)
