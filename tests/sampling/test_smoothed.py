"""An explainer made of an explainer: the same order statistics as `explain`, differentiable, nested, reproducible."""

import functools
import inspect

import array_api_strict
import numpy as np
import pytest
import torch

import metfa
from metfa import stats
from metfa._base.warnings import MetfaWarning, ModelStateWarning, ReproducibilityWarning, RowDependenceWarning
from metfa.explainers import Gradient
from metfa.noise import Gaussian, Uniform
from metfa.sampling.randomised import row_generators
from metfa.sampling.streams import root_entropy

NOISE = Uniform(0.1)


def network(dtype=torch.float64):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = torch.nn.Flatten(), torch.nn.Linear(12, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)
        return torch.nn.Sequential(*layers).to(dtype).eval()


NET = network()
PICTURES = torch.rand(3, 3, 2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
TABLE = PICTURES.numpy().reshape(3, 12)


def square(inputs, target):
    return inputs**2


def smoothed(explainer=square, **settings):
    return metfa.Smoothed(explainer, **{"noise": NOISE, "n_samples": 10, "rng": 0, **settings})


def with_own_draws(inputs, target, *, rngs):
    return np.stack([row + rng.normal(size=row.shape) for row, rng in zip(inputs, rngs, strict=True)])


class TestMaps:
    @pytest.mark.parametrize("level", [0.9, 0.95])
    @pytest.mark.parametrize("explainer", [square, metfa.randomised(with_own_draws)])
    def test_equal_those_of_explain_on_the_same_streams(self, explainer, level):
        """The streams of a row lie below a root of its own, at the empty id."""
        smooth = smoothed(explainer, n_samples=13, confidence_level=level)
        maps = smooth(TABLE, target=0)
        for row, rng in enumerate(row_generators(TABLE, None, 0)):
            one = TABLE[row : row + 1]
            sample = metfa.explain(
                explainer, one, 0, noise=NOISE, n_samples=13, rng=root_entropy(rng), run=metfa.Run(input_names=[""])
            )
            np.testing.assert_allclose(maps[row], sample.smoothed(level)[0], rtol=1e-12)

    def test_are_the_mean_of_the_inner_order_statistics(self):
        samples = []

        def watching(inputs, target):
            samples.append(inputs)
            return inputs

        maps = smoothed(watching, batch_size=1)(TABLE[:1], target=0)
        ordered = np.sort(np.concatenate(samples), axis=0)  # batch size 1: no probe
        np.testing.assert_allclose(maps[0], ordered[1:9].mean(axis=0))  # N = 10: ranks 2 to 9

    @pytest.mark.parametrize(
        ("convert", "kind"),
        [
            (np.asarray, np.ndarray),
            (torch.tensor, torch.Tensor),
            (array_api_strict.asarray, type(array_api_strict.asarray(0))),
        ],
    )
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_come_in_the_library_of_the_inputs(self, convert, kind, dtype):
        inputs = TABLE.astype(dtype)
        maps = smoothed()(convert(inputs), target=0)
        assert isinstance(maps, kind)
        assert str(maps.dtype).endswith(dtype)
        np.testing.assert_allclose(np.asarray(maps), smoothed()(inputs, target=0), rtol=1e-6)

    def test_halves_are_averaged_in_float32(self):
        inputs = PICTURES.to(torch.bfloat16)
        kinds = set()

        def explainer(batch, target):
            kinds.add(batch.dtype)
            return batch

        maps = smoothed(explainer)(inputs, target=0)
        assert kinds == {torch.bfloat16}
        assert maps.dtype == torch.float32

    def test_jax(self):
        jnp = pytest.importorskip("jax.numpy")
        maps = smoothed()(jnp.asarray(TABLE), target=[0, 1, 2])
        np.testing.assert_allclose(maps, smoothed()(TABLE.astype(np.float32), target=0), rtol=1e-5)


class TestReproducibility:
    @pytest.mark.parametrize("explainer", [square, metfa.randomised(with_own_draws)])
    @pytest.mark.parametrize("batch_size", [1, 3, 7, 100])
    def test_batch_size_order_and_company_do_not_show(self, explainer, batch_size):
        expected = smoothed(explainer)(TABLE, target=0)
        smooth = smoothed(explainer, batch_size=batch_size)
        np.testing.assert_array_equal(smooth(TABLE, target=0), expected)
        np.testing.assert_array_equal(smooth(TABLE[[2, 0, 1]], target=0), expected[[2, 0, 1]])
        np.testing.assert_array_equal(smooth(TABLE[1:2], target=0), expected[1:2])

    def test_an_integer_seed_gives_the_same_every_time_and_none_does_not(self):
        assert (smoothed()(TABLE, target=0) == smoothed()(TABLE, target=0)).all()
        assert (smoothed()(TABLE, target=0) != smoothed(rng=1)(TABLE, target=0)).all()
        fresh = smoothed(rng=None)
        assert (fresh(TABLE, target=0) != fresh(TABLE, target=0)).all()

    def test_a_generator_goes_on_from_call_to_call(self):
        smooth = smoothed(rng=np.random.default_rng(5))
        first, second = smooth(TABLE, target=0), smooth(TABLE, target=0)
        assert (first != second).all()
        assert (smoothed(rng=np.random.default_rng(5))(TABLE, target=0) == first).all()

    def test_equal_inputs_have_other_noise(self):
        maps = smoothed()(np.repeat(TABLE[:1], 2, axis=0), target=0)
        assert (maps[0] != maps[1]).all()

    def test_generators_given_are_used(self):
        rngs = [np.random.default_rng(7), np.random.default_rng(8), np.random.default_rng(7)]
        same = np.repeat(TABLE[:1], 3, axis=0)
        maps = smoothed()(same, target=0, rngs=rngs)
        assert (maps[0] == maps[2]).all()
        assert (maps[0] != maps[1]).all()
        with pytest.raises(ValueError, match="one generator for each of the 3 rows, got 2"):
            smoothed()(same, target=0, rngs=rngs[:2])


class TestInsideExplain:
    settings = {"noise": Gaussian(0.05), "n_samples": 6, "rng": 3}  # noqa: RUF012

    @pytest.mark.parametrize("which", [lambda smooth: smooth, lambda smooth: smooth.attribute, functools.partial])
    def test_inner_noise_differs_between_outer_samples(self, which):
        """With one fixed inner noise the outer samples of a linear explainer would differ by the outer noise alone."""
        seen = []

        def watching(inputs, target):
            seen.append(inputs.copy())
            return inputs

        explainer = which(smoothed(watching, batch_size=1, n_samples=6))
        metfa.explain(explainer, TABLE[:1], 0, **{**self.settings, "noise": None})
        inner = np.concatenate(seen)
        assert len(inner) == 48  # seven maps (one of the clean input) of six samples, and one sample's again, alone
        assert len(np.unique(inner, axis=0)) == 42

    def test_seed_of_explain_governs_all(self):
        for smooth in (smoothed(rng=None), smoothed(rng=None).attribute):
            first = metfa.explain(smooth, TABLE, 0, **self.settings)
            again = metfa.explain(smooth, TABLE, 0, **{**self.settings, "batch_size": 2})
            np.testing.assert_array_equal(first.values, again.values)
            other = metfa.explain(smooth, TABLE, 0, **{**self.settings, "rng": 4})
            assert (first.values != other.values).all()

    def test_the_model_is_found_for_the_prediction(self):
        sample = metfa.explain(smoothed(Gradient(NET)), PICTURES, **self.settings)
        assert sample.target == tuple(NET(PICTURES).argmax(1).tolist())

    def test_provenance_names_no_seed_of_direct_calls(self):
        made = metfa.explain(smoothed(rng=np.random.default_rng()), TABLE, 0, **self.settings).provenance
        assert made["explainer"] == (
            "Smoothed(explainer=square, noise=Uniform(radius=0.1, bounds=None), n_samples=10, batch_size=10, "
            "confidence_level=0.95)"
        )

    def test_shared_global_draws_of_the_inner_explainer_are_reported(self):

        def global_draws(inputs, target):
            return inputs + np.random.normal(size=inputs.shape)

        with pytest.warns(MetfaWarning) as record:
            metfa.explain(smoothed(global_draws), TABLE, 0, **self.settings)
        assert {w.category for w in record} == {ReproducibilityWarning, RowDependenceWarning}
        assert {w.filename for w in record} == {__file__}
        metfa.explain(smoothed(metfa.seeded(global_draws)), TABLE, 0, **self.settings)


class TestGraph:
    def test_maps_are_differentiable_through_the_order_statistics(self):
        smooth = smoothed(Gradient(NET), n_samples=6)
        inputs = PICTURES[:2].clone().requires_grad_()
        assert torch.autograd.gradcheck(lambda x: smooth.attribute(x, target=[0, 1], rngs=rngs()), (inputs,))
        assert all(parameter.grad is None for parameter in NET.parameters())

    def test_gradient_of_a_linear_inner_explainer_is_one(self):
        inputs = PICTURES.clone().requires_grad_()
        smoothed(lambda x, target: x)(inputs, target=0).sum().backward()
        np.testing.assert_allclose(inputs.grad, torch.ones_like(inputs), atol=1e-12)

    def test_no_graph_where_nobody_asks(self):
        assert not smoothed(Gradient(NET))(PICTURES, target=0).requires_grad
        with torch.no_grad():
            assert not smoothed(Gradient(NET))(PICTURES.clone().requires_grad_(), target=0).requires_grad

    def test_works_under_inference_mode(self):
        expected = smoothed(Gradient(NET))(PICTURES, target=0)
        with torch.inference_mode():
            np.testing.assert_allclose(smoothed(Gradient(NET))(PICTURES.clone(), target=0), expected)


class TestVectorJacobianProduct:
    @pytest.mark.parametrize("batch_size", [1, 5, 12, 100])
    def test_is_the_backward_pass_of_a_call(self, batch_size):
        """Of 12 samples, together or in parts, which are then explained twice."""
        smooth = smoothed(Gradient(NET), n_samples=6, batch_size=batch_size)
        derivative = torch.randn(2, 2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
        inputs = PICTURES[:2].clone().requires_grad_()
        expected = smoothed(Gradient(NET), n_samples=6)(inputs, [0, 1], rngs=rngs())
        (gradient,) = torch.autograd.grad(expected, inputs, derivative)
        maps, pull_back = smooth.vjp(inputs, [0, 1], rngs=rngs())
        torch.testing.assert_close(maps, expected.detach())
        assert not maps.requires_grad
        torch.testing.assert_close(pull_back(derivative), gradient)
        assert inputs.grad is None

    @pytest.mark.parametrize("batch_size", [4, 10])
    def test_equals_finite_differences(self, batch_size):
        """The whole of a map's squared distance to another, through noise, order statistics and scaling to [0, 1]."""
        smooth = smoothed(Gradient(NET), n_samples=10, batch_size=batch_size)
        other = torch.rand(1, 2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(3))

        def distance(inputs):
            return ((smooth(inputs, 1, rngs=rngs()[:1]) - other) ** 2).sum()

        maps, pull_back = smooth.vjp(PICTURES[:1], 1, rngs=rngs()[:1])
        gradient = pull_back(2 * (maps - other))
        step = 1e-6
        for index in np.ndindex(*PICTURES[:1].shape):
            there, back = PICTURES[:1].clone(), PICTURES[:1].clone()
            there[index] += step
            back[index] -= step
            slope = (distance(there) - distance(back)) / (2 * step)
            assert float(gradient[index]) == pytest.approx(float(slope), rel=1e-4, abs=1e-7)

    def test_holds_no_more_rows_than_the_batch_size(self):
        seen = []

        class Watching:
            rows_independent = True

            def __call__(self, inputs, target):
                seen.append((len(inputs), inputs.requires_grad))
                return inputs**2

        _, pull_back = smoothed(Watching(), n_samples=10, batch_size=4).vjp(PICTURES[:1], 0)
        assert seen == [(4, False), (1, False), (4, False), (4, False), (2, True)]  # the first two: a look at rows
        pull_back(torch.ones(1, 3, 2, 2, dtype=torch.float64))
        assert seen[5:] == [(4, True), (4, True)]

    def test_needs_maps_that_are_differentiable(self):
        for explainer in (lambda x, target: x.detach(), lambda x, target: (x * 0).detach() + NET[1].weight.sum()):
            _, pull_back = smoothed(explainer, n_samples=6, batch_size=1).vjp(PICTURES[:1], 0)
            with pytest.raises(ValueError, match="not differentiable in the inputs"):
                pull_back(torch.ones(1, 3, 2, 2, dtype=torch.float64))

    def test_needs_a_tensor_with_a_gradient(self):
        with pytest.raises(TypeError, match=r"floating-point torch\.Tensor .*got float64"):
            smoothed().vjp(TABLE, 0)
        with pytest.raises(TypeError, match=r"got torch\.int64"):
            smoothed().vjp(torch.ones(1, 3, dtype=torch.int64), 0)

    def test_leaves_the_model_as_found(self):
        net = network().train()
        with pytest.warns(ModelStateWarning):
            _, pull_back = smoothed(Gradient(net), n_samples=6, batch_size=3).vjp(PICTURES[:1], 0)
        assert net.training
        with pytest.warns(ModelStateWarning):
            pull_back(torch.ones(1, 2, 2, dtype=torch.float64))
        assert all(module.training for module in net.modules())
        assert all(parameter.requires_grad and parameter.grad is None for parameter in net.parameters())


def rngs():
    return [np.random.default_rng(seed) for seed in (1, 2)]


class TestTarget:
    def seen(self, inputs, target, explainer=None):
        targets = []

        class Watching:
            model = NET

            def __call__(self, batch, target):
                targets.append(target)
                return batch

        smoothed(explainer or Watching(), batch_size=10)(inputs, target)
        of_batches = [batch for batch in targets if len(batch) > 1]
        return torch.cat(of_batches).reshape(3, 10)

    def test_predicted_on_the_clean_input_and_held_fixed(self):
        expected = NET(PICTURES).argmax(1)
        assert (self.seen(PICTURES, None) == expected[:, None]).all()

    @pytest.mark.parametrize("target", [[2, 0, 1], np.array([2, 0, 1]), torch.tensor([2, 0, 1])])
    def test_one_entry_a_row(self, target):
        assert (self.seen(PICTURES, target) == torch.tensor([2, 0, 1])[:, None]).all()

    @pytest.mark.parametrize(
        ("target", "error", "message"),
        [
            (None, ValueError, "`target` is None and the explainer's model is unknown: pass `target=`"),
            ([0, 1], ValueError, "each of the 3 inputs, got 2 entries"),
            (1.5, TypeError, r"got float: 1\.5"),
        ],
    )
    def test_unfit(self, target, error, message):
        with pytest.raises(error, match=message):
            smoothed()(TABLE, target)


class TestState:
    def test_model_and_generators_are_as_found(self):
        net = network().train()
        state = torch.get_rng_state()

        def explainer(inputs, target):
            torch.rand(1)
            net.train()
            return Gradient(net)(inputs, target)

        explainer.model = net
        with pytest.warns((ModelStateWarning, ReproducibilityWarning)):
            smoothed(explainer, batch_size=1)(PICTURES, target=0)
        assert all(module.training for module in net.modules())
        assert torch.equal(torch.get_rng_state(), state)

    def test_dependent_rows_go_one_a_call(self):
        def mixing(inputs, target):
            return inputs / inputs.sum()

        with pytest.warns(RowDependenceWarning) as record:
            maps = smoothed(mixing)(TABLE, target=0)
        assert record[0].filename == __file__
        np.testing.assert_array_equal(maps, smoothed(mixing, batch_size=1)(TABLE, target=0))


class TestErrors:
    @pytest.mark.parametrize(
        ("n_samples", "level", "needed"), [(5, 0.95, 6), (1, 0.95, 6), (7, 0.99, 8), (12, 0.9999, 15)]
    )
    def test_too_few_samples_name_the_smallest_number(self, n_samples, level, needed):
        assert stats.min_samples(1 - level, "two-sided") == needed
        with pytest.raises(ValueError, match=rf"got {n_samples}, at least {needed}"):
            smoothed(n_samples=n_samples, confidence_level=level)
        smoothed(n_samples=needed, confidence_level=level)

    @pytest.mark.parametrize(
        ("settings", "error", "message"),
        [
            ({"explainer": 3}, TypeError, "`explainer` must be callable, got int"),
            ({"noise": 0.1}, TypeError, r"`noise` must be a function f\(x, rng\) -> x, got float"),
            ({"noise": None}, TypeError, r"`noise` must be a function f\(x, rng\) -> x, got NoneType"),
            ({"n_samples": 0}, ValueError, "`n_samples` must be at least 1, got 0"),
            ({"n_samples": 10.0}, TypeError, "`n_samples` must be an integer, got float"),
            ({"batch_size": 0}, ValueError, "`batch_size` must be at least 1, got 0"),
            ({"confidence_level": 95}, ValueError, r"`confidence_level` must lie strictly between 0 and 1, got 95"),
        ],
    )
    def test_settings_are_checked_at_once(self, settings, error, message):
        with pytest.raises(error, match=message):
            smoothed(**settings)

    @pytest.mark.parametrize(
        ("inputs", "error", "message"),
        [
            (["a", "b"], TypeError, "numeric noise needs a floating-point array, got str"),
            (np.zeros((0, 3)), ValueError, "`inputs` is empty"),
            (np.full((2, 3), np.nan), ValueError, "`inputs` must be finite, but input 0 holds NaN"),
            (np.float64(3), ValueError, "`inputs` must have a batch axis, got a single number"),
            (np.zeros((2, 3), int), TypeError, "numeric noise needs floating-point inputs, got int64"),
        ],
    )
    def test_unfit_inputs(self, inputs, error, message):
        with pytest.raises(error, match=message):
            smoothed()(inputs, target=0)

    @pytest.mark.parametrize(
        ("noise", "error", "message"),
        [
            (lambda x, rng: x[:2], ValueError, r"changed the shape of input 0, sample 0 from \(12,\) to \(2,\)"),
            (lambda x, rng: x * np.nan, ValueError, "`noise` made NaN or infinity of input 0, sample 0"),
            (lambda x, rng: None, TypeError, r"`noise\(x, rng\)` must be an array of real numbers, got NoneType"),
        ],
    )
    def test_unfit_noise(self, noise, error, message):
        with pytest.raises(error, match=message):
            smoothed(noise=noise)(TABLE, target=0)

    def test_noise_in_double_precision_comes_in_the_inputs_dtype(self):
        kinds = set()

        def explainer(inputs, target):
            kinds.add(inputs.dtype)
            return inputs

        smoothed(explainer, noise=lambda x, rng: x + torch.tensor(rng.normal(size=x.shape)))(PICTURES.float(), target=0)
        assert kinds == {torch.float32}

    def test_maps_that_are_not_finite(self):
        def explainer(inputs, target):
            return np.where((inputs == poisoned).all(axis=1, keepdims=True), np.inf, inputs)

        noisy = []
        smoothed(lambda x, target: noisy.append(x) or x, batch_size=100)(TABLE, target=0)
        poisoned = noisy[0][14]  # ten samples an input
        with pytest.raises(ValueError, match="`explainer` returned NaN or infinity for input 1, sample 4"):
            smoothed(explainer)(TABLE, target=0)


def test_texts_are_a_list():
    """As `explain` has them: the noise gets one text, the explainer a list of them."""
    texts = ["abc", "hello"]

    def lengths(inputs, target):
        return np.array([[len(text), text.count("x") - 9] for text in inputs], dtype=float)

    def crossed_out(text, rng):
        return "".join("x" if rng.random() < 0.5 else letter for letter in text) + "x" * rng.integers(3)

    maps = smoothed(lengths, noise=crossed_out)(texts, target=0)
    for row, rng in enumerate(row_generators(texts, None, 0)):
        sample = metfa.explain(
            lengths,
            [texts[row]],
            0,
            noise=crossed_out,
            n_samples=10,
            rng=root_entropy(rng),
            run=metfa.Run(input_names=[""]),
        )
        np.testing.assert_array_equal(maps[row], sample.smoothed()[0])


def test_attribute_is_captums_interface():
    smooth = smoothed(Gradient(NET))
    assert list(inspect.signature(smooth.attribute).parameters)[:2] == ["inputs", "target"]
    np.testing.assert_array_equal(smooth.attribute(PICTURES, target=1), smooth(PICTURES, 1))
