"""`explain`: the same samples however they are computed, everything left as found, and what is refused."""

import functools
import os
import random
import signal
import threading
import time
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from captum import attr

import metfa
from metfa._base.warnings import (
    DegenerateAttributionsWarning,
    MetfaWarning,
    ModelStateWarning,
    ReproducibilityWarning,
    RowDependenceWarning,
)
from metfa.explainers import Gradient
from metfa.noise import Gaussian, Uniform
from metfa.sampling.request import usual_batch_size
from metfa.sampling.rows import Rows

NOISE = Uniform(0.1)


def network(dtype=torch.float32):
    """The network of the first case of bugs.md: Linear(12 -> 8), ReLU, Linear(8 -> 3), on 3 x 2 x 2 inputs."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = torch.nn.Flatten(), torch.nn.Linear(12, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)
        return torch.nn.Sequential(*layers).to(dtype).eval()


NET = network()
PICTURES = np.random.default_rng(1).random((5, 3, 2, 2)).astype(np.float32)
TABLE = PICTURES.reshape(5, 12)
WEIGHTS = np.random.default_rng(2).normal(size=12).astype(np.float32)


def linear(inputs, target):
    return np.abs(inputs * WEIGHTS)


def with_own_draws(inputs, target, *, rngs):
    return np.stack([row + rng.normal(size=row.shape) for row, rng in zip(inputs, rngs, strict=True)])


def with_global_numpy(inputs, target):
    return inputs + np.random.normal(size=inputs.shape)


def with_global_torch(inputs, target):
    return inputs + torch.randn(inputs.shape)


def with_python_random(inputs, target):
    return inputs + np.array([[random.random() for _ in row] for row in inputs])


# name: explainer, inputs, tolerance (0: the same to the bit)
EXPLAINERS = {
    "numpy": (linear, TABLE, 0),
    "numpy, own draws": (metfa.randomised(with_own_draws), TABLE, 0),
    "numpy, seeded": (metfa.seeded(with_global_numpy), TABLE, 0),
    "python, seeded": (metfa.seeded(with_python_random), TABLE, 0),
    "torch, seeded": (metfa.seeded(with_global_torch), torch.tensor(TABLE), 0),
    "torch gradient": (Gradient(NET), torch.tensor(PICTURES), 1e-5),
    "captum": (functools.partial(attr.IntegratedGradients(NET).attribute, n_steps=5), torch.tensor(PICTURES), 1e-5),
    "smoothed": (metfa.Smoothed(linear, noise=Gaussian(0.1), n_samples=6), TABLE, 1e-6),
}


@pytest.fixture(params=EXPLAINERS)
def case(request):
    explainer, inputs, tolerance = EXPLAINERS[request.param]
    settings = {"noise": NOISE, "n_samples": 6, "rng": 3}

    def run(inputs=inputs, target=(0, 1, 2, 1, 0), first_sample=0, **changed):
        settings["run"] = metfa.Run(first_sample=first_sample)
        return metfa.explain(explainer, inputs, list(target), **{**settings, **changed})

    def same(a, b):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)

    return run, same, inputs


class TestAddressedSamples:
    @pytest.mark.parametrize("batch_size", [1, 3, 4, 7, 29, 1000])
    def test_batch_size_does_not_show(self, case, batch_size):
        run, same, _ = case
        expected, sample = run(), run(batch_size=batch_size)
        same(sample.values, expected.values)
        same(sample.vanilla, expected.vanilla)

    def test_order_of_the_inputs_does_not_show(self, case):
        run, same, inputs = case
        expected = run()
        order = [3, 0, 4, 2, 1]
        sample = run(inputs[order], np.array([0, 1, 2, 1, 0])[order])
        same(sample.values, expected.values[:, order])
        same(sample.vanilla, expected.vanilla[order])
        assert sample.input_names == tuple(expected.input_names[i] for i in order)

    def test_position_in_the_batch_does_not_show(self, case):
        run, same, inputs = case
        expected = run()
        for i, target in enumerate([0, 1, 2, 1, 0]):
            same(run(inputs[i : i + 1], [target]).values[:, 0], expected.values[:, i])

    @pytest.mark.parametrize("parts", [((0, 6),), ((0, 2), (2, 4)), ((0, 1), (1, 1), (2, 4)), ((4, 2), (0, 4))])
    def test_split_of_the_sample_ids_does_not_show(self, case, parts):
        run, same, _ = case
        pieces = [run(first_sample=first, n_samples=n, batch_size=4) for first, n in parts]
        joined = functools.reduce(lambda a, b: a.concat(b), pieces)
        same(joined.values, run().values)
        assert joined.sample_ids == tuple(range(6))

    def test_other_seeds_give_other_samples(self, case):
        run, _, _ = case
        first, second = run(rng=3), run(rng=4)
        assert (first.values != second.values).any()
        assert first.provenance["rng"] == "0x3"

    def test_fresh_entropy_is_recorded_and_can_be_repeated(self, case):
        run, same, _ = case
        first, second = run(rng=None), run(rng=None)
        assert (first.values != second.values).any()
        same(run(rng=int(first.provenance["rng"], 16), batch_size=4).values, first.values)

    def test_a_generator_gives_one_root_for_the_whole_call(self, case):
        run, same, _ = case
        rng, reference = np.random.default_rng(9), np.random.default_rng(9)
        first = run(rng=rng)
        reference.integers(0, 2**32, size=4, dtype=np.uint32)
        assert rng.bit_generator.state == reference.bit_generator.state
        same(run(rng=np.random.default_rng(9), batch_size=2).values, first.values)
        assert (run(rng=rng).values != first.values).any()


class TestIdsOfInputs:
    def explained(self, inputs, input_names=None, **settings):
        """The maps are the noisy inputs."""
        run = metfa.Run(input_names=input_names)
        return metfa.explain(lambda x, target: x + 0, inputs, 0, noise=NOISE, n_samples=4, rng=0, run=run, **settings)

    def test_every_sample_of_every_input_has_noise_of_its_own(self):
        added = self.explained(TABLE).values - TABLE
        assert len(np.unique(added.reshape(20, 12).round(4), axis=0)) == 20

    def test_equal_inputs_have_other_noise(self):
        sample = self.explained(np.repeat(TABLE[:1], 3, axis=0))
        assert len(np.unique(sample.values.reshape(12, -1), axis=0)) == 12
        assert (sample.vanilla == sample.vanilla[0]).all()
        assert (sample.values[:, 0] == self.explained(TABLE[:1]).values[:, 0]).all()

    def test_ids_of_the_caller_are_the_address(self):
        by_id = self.explained(TABLE, input_names=["a", "b", "c", "d", "e"])
        assert by_id.input_names == ("a", "b", "c", "d", "e")
        assert (by_id.values != self.explained(TABLE).values).any()
        moved = self.explained(TABLE[::-1] + 1, input_names=["e", "d", "c", "b", "a"])
        np.testing.assert_allclose((moved.values - TABLE[::-1] - 1)[:, ::-1], by_id.values - TABLE, atol=1e-6)

    def test_all_explainers_meet_the_same_noise(self):
        seen = {}

        def watching(name, inputs, target):
            seen.setdefault(name, []).append(inputs)
            return inputs if name == "a" else -inputs

        for name, batch_size in (("a", 3), ("b", 5)):
            metfa.explain(functools.partial(watching, name), TABLE, 0, noise=NOISE, rng=0, batch_size=batch_size)
        rows = {name: {row.tobytes() for batch in batches for row in batch} for name, batches in seen.items()}
        assert rows["a"] == rows["b"]
        assert len(rows["a"]) == 55  # ten samples of five inputs, and the clean ones


def test_a_repeated_input_has_samples_of_its_own():
    """Copies in one call are independent, so that they count as several inputs; in another call each is the first."""
    both = metfa.explain(linear, TABLE[[0, 0]], 0, noise=NOISE, rng=0)
    alone = metfa.explain(linear, TABLE[[0]], 0, noise=NOISE, rng=0)
    assert (both.values[:, 0] == alone.values[:, 0]).all()
    assert (both.values[:, 1] != alone.values[:, 0]).any()
    names = [metfa.Run(input_names=[name]) for name in ("first", "second")]
    both = metfa.explain(linear, TABLE[[0, 0]], 0, noise=NOISE, rng=0, run=metfa.Run(input_names=["first", "second"]))
    for row, run in enumerate(names):
        alone = metfa.explain(linear, TABLE[[0]], 0, noise=NOISE, rng=0, run=run)
        assert (both.values[:, row] == alone.values[:, 0]).all()


def test_chunks_of_noisy_samples_do_not_show():
    """Case 1 of bugs.md: ten noisy samples, std .1, seed 0; in one batch and in chunks of three."""
    explainer, inputs = attr.IntegratedGradients(NET).attribute, torch.tensor(PICTURES[:1])
    one, three = (metfa.explain(explainer, inputs, 0, noise=Gaussian(0.1), rng=0, batch_size=n) for n in (10, 3))
    np.testing.assert_allclose(one.values, three.values, atol=1e-6)
    np.testing.assert_allclose(one.mean(), three.mean(), atol=1e-6)


class TestWhatTheExplainerMeets:
    def test_batches_mix_inputs_and_samples_and_are_the_explainers_own(self):
        sizes = []

        def destructive(inputs, target):
            sizes.append((len(inputs), target.tolist()))
            maps = inputs * WEIGHTS
            inputs[:] = np.nan
            target[:] = 99
            return maps

        sample = metfa.explain(destructive, TABLE[:3], [2, 1, 0], noise=NOISE, n_samples=3, rng=0, batch_size=4)
        looked_at = [(4, [2, 1, 0, 2]), (1, [0]), (1, [2])]  # the first batch, and its middle and last row alone
        assert sizes == [*looked_at, (3, [2, 1, 0]), (4, [1, 0, 2, 1]), (1, [0])]
        assert np.isfinite(sample.values).all()
        assert (sample.inputs == TABLE[:3]).all()
        assert sample.target == (2, 1, 0)

    def test_row_arguments_stay_with_their_row(self):
        baselines = np.arange(5.0)[:, None] * np.ones(12)
        names = ["a", "bb", "ccc", "dddd", "eeeee"]

        def explainer(inputs, target, *, baselines, names):
            assert isinstance(names, list)
            return np.broadcast_to(baselines + np.array(list(map(len, names)))[:, None], inputs.shape)

        with pytest.warns(DegenerateAttributionsWarning):
            sample = metfa.explain(
                explainer, TABLE, 0, noise=NOISE, rng=0, batch_size=4, row_args={"baselines": baselines, "names": names}
            )
        assert (sample.values == (2 * np.arange(5.0) + 1)[:, None]).all()

    @pytest.mark.parametrize("library", ["torch", "array_api_strict", "jax.numpy"])
    def test_row_arguments_of_other_libraries(self, library):
        xp = pytest.importorskip(library)
        masks = xp.asarray(np.arange(60.0, dtype=np.float32).reshape(5, 12))

        def explainer(inputs, target, *, masks):
            assert type(masks) is type(inputs)
            return inputs * 0 + masks

        inputs = xp.asarray(TABLE)
        sample = metfa.explain(explainer, inputs, 0, noise=NOISE, rng=0, batch_size=4, row_args={"masks": masks})
        assert (sample.values == np.arange(60.0).reshape(5, 12)).all()

    def test_captum_takes_row_arguments(self):
        baselines = torch.rand(5, 3, 2, 2)
        explainer = attr.IntegratedGradients(NET).attribute
        sample = metfa.explain(
            explainer, torch.tensor(PICTURES), noise=NOISE, n_samples=2, rng=0, row_args={"baselines": baselines}
        )
        expected = explainer(torch.tensor(PICTURES), baselines, target=torch.tensor(sample.target))
        np.testing.assert_allclose(sample.vanilla, expected, atol=1e-5)

    def test_clean_maps_are_not_noised(self):
        sample = metfa.explain(linear, TABLE, 0, noise=NOISE, rng=0)
        assert (sample.vanilla == linear(TABLE, 0)).all()
        assert (sample.values != sample.vanilla).any()

    def test_noise_none_samples_the_explainers_own_draws(self):
        sample = metfa.explain(metfa.randomised(with_own_draws), TABLE, 0, noise=None, n_samples=3, rng=0)
        draws = (sample.values - TABLE).reshape(15, 12)
        assert len(np.unique(draws, axis=0)) == 15
        assert not (sample.vanilla[:, None] == sample.values.swapaxes(0, 1)).all(axis=2).any()  # a stream of its own


class TestFeatureNames:
    NAMES = tuple("abcdefghijkl")

    @pytest.mark.parametrize("names", [NAMES, list(NAMES), np.array(NAMES), pd.Index(NAMES)])
    def test_are_kept(self, names, tmp_path):
        sample = metfa.explain(
            linear, TABLE, 0, noise=NOISE, rng=0, run=metfa.Run(feature_names=names, store=tmp_path / "s")
        )
        assert sample.feature_names == self.NAMES
        assert all(type(name) is str for name in sample.feature_names)
        assert metfa.load(tmp_path / "s").feature_names == self.NAMES

    def test_of_a_data_frame_are_its_columns(self):
        frame = pd.DataFrame(TABLE, columns=list(self.NAMES))
        sample = metfa.explain(linear, frame, 0, noise=NOISE, rng=0)
        plain = metfa.explain(linear, TABLE, 0, noise=NOISE, rng=0)
        np.testing.assert_array_equal(sample.values, plain.values)
        assert sample.input_names == plain.input_names
        assert sample.feature_names == self.NAMES
        assert plain.feature_names is None
        given = metfa.explain(linear, frame, 0, noise=NOISE, rng=0, run=metfa.Run(feature_names=self.NAMES[::-1]))
        assert given.feature_names == self.NAMES[::-1]

    def test_of_a_data_frame_that_are_not_those_of_the_features_are_left(self):
        frame = pd.DataFrame(TABLE, columns=list(self.NAMES))
        sample = metfa.explain(lambda x, target: x.iloc[:, :3], frame, 0, noise=NOISE, rng=0)
        assert sample.feature_names is None
        assert metfa.explain(linear, pd.DataFrame(TABLE), 0, noise=NOISE, rng=0).feature_names is None

    def test_noise_on_texts_is_refused(self):
        frame = pd.DataFrame({"age": [1.0, 2.0], "town": ["a", "b"]})
        with pytest.raises(TypeError, match=r"`noise` made .* of column 'town' of input 0, sample 0, which holds"):
            metfa.explain(linear, frame, 0, noise=NOISE)

    @pytest.mark.parametrize(
        ("names", "error", "message"),
        [
            ("abcdefghijkl", TypeError, "must be a list of texts, got str: 'abcdefghijkl'"),
            (12, TypeError, "must be a list of texts, got int: 12"),
            (range(12), TypeError, "must be a list of texts, but holds int: 0"),
        ],
    )
    def test_unfit_names_are_refused_before_the_model_is_touched(self, names, error, message):
        def never(inputs, target):
            raise AssertionError

        with pytest.raises(error, match=f"`feature_names` {message}"):
            metfa.explain(never, TABLE, 0, noise=NOISE, run=metfa.Run(feature_names=names))

    @pytest.mark.parametrize(
        ("explainer", "inputs", "message"),
        [
            (linear, TABLE, "has 2 names, but an attribution has 12 features"),
            (lambda x, target: x, PICTURES, r"has 2 names, but an attribution has features of shape \(3, 2, 2\)"),
        ],
    )
    def test_another_number_is_refused_before_the_second_batch(self, explainer, inputs, message):
        calls = []

        def counted(inputs, target):
            calls.append(len(inputs))
            return explainer(inputs, target)

        counted.rows_independent = True
        names = metfa.Run(feature_names=["a", "b"])
        with pytest.raises(ValueError, match=f"`feature_names` {message}"):
            metfa.explain(counted, inputs, 0, noise=NOISE, n_samples=100, batch_size=10, run=names)
        assert calls == [10, 1, 5]


# Inputs of every kind.


class TestInputs:
    @pytest.mark.parametrize(
        "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=lambda dtype: str(dtype)[6:]
    )
    def test_torch_dtypes(self, dtype):
        """Case 4 of bugs.md: half and bfloat16 model and input."""
        net, kinds = network(dtype), set()

        def explainer(inputs, target):
            kinds.add(inputs.dtype)
            return Gradient(net, scale=False)(inputs, target)

        inputs = torch.tensor(PICTURES).to(dtype)
        sample = metfa.explain(explainer, inputs, 0, noise=Uniform(0.1, bounds=(0, 1)), n_samples=6, rng=0)
        assert kinds == {dtype}
        assert sample.values.dtype == (np.float64 if dtype == torch.float64 else np.float32)
        exact = metfa.explain(
            Gradient(network(torch.float64), scale=False), inputs.double(), 0, noise=NOISE, n_samples=6, rng=0
        )
        np.testing.assert_allclose(sample.vanilla, exact.vanilla, atol={torch.bfloat16: 2e-2}.get(dtype, 2e-3))

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
    def test_numpy_dtypes(self, dtype):
        sample = metfa.explain(lambda x, target: x, TABLE.astype(dtype), 0, noise=NOISE, rng=0)
        assert sample.values.dtype == sample.vanilla.dtype == sample.inputs.dtype == dtype

    @pytest.mark.parametrize("library", ["torch", "array_api_strict", "jax.numpy"])
    def test_every_library_gives_the_numpy_samples(self, library):
        xp = pytest.importorskip(library)
        kinds = set()

        def explainer(inputs, target):
            kinds.update((type(inputs), type(target)))
            return inputs * 2

        sample = metfa.explain(explainer, xp.asarray(TABLE), [0, 1, 2, 0, 1], noise=NOISE, rng=0)
        assert kinds == {type(xp.asarray(TABLE))}
        expected = metfa.explain(lambda x, target: x * 2, TABLE, 0, noise=NOISE, rng=0)
        np.testing.assert_allclose(sample.values, expected.values, rtol=1e-6)
        assert sample.input_names == expected.input_names

    def test_layouts_do_not_show(self):
        expected = metfa.explain(linear, TABLE, 0, noise=NOISE, rng=0).values
        for inputs in (np.asfortranarray(TABLE), np.repeat(TABLE, 2, axis=1)[:, ::2], TABLE[:, ::-1][:, ::-1]):
            assert (metfa.explain(linear, inputs, 0, noise=NOISE, rng=0).values == expected).all()

    def test_tensors_with_gradients_and_subclasses(self):
        expected = metfa.explain(Gradient(NET), torch.tensor(PICTURES), noise=NOISE, rng=0)
        parameter = torch.nn.Parameter(torch.tensor(PICTURES))
        gradient = parameter.grad = torch.ones_like(parameter)
        sample = metfa.explain(Gradient(NET), parameter, noise=NOISE, rng=0)
        assert (sample.values == expected.values).all()
        assert parameter.grad is gradient
        assert parameter.requires_grad
        assert (gradient == 1).all()

    def test_rows_that_are_single_numbers(self):
        sample = metfa.explain(lambda x, target: x[:, None] * np.array([1, 2]), np.arange(3.0), 0, noise=NOISE, rng=0)
        assert sample.values.shape == (10, 3, 2)

    def test_texts(self):
        def drop_a_word(text, rng):
            words = text.split()
            words[rng.integers(len(words))] = "*"
            return " ".join(words)

        def length_of_words(texts, target):
            return np.array([[len(word) for word in text.split()] for text in texts])

        texts = ["one twenty hundred", "a cat sat", "one twenty hundred"]
        sample = metfa.explain(length_of_words, texts, 0, noise=drop_a_word, n_samples=20, rng=0)
        assert sample.inputs == texts
        assert sample.vanilla.tolist() == [[3, 6, 7], [1, 3, 3], [3, 6, 7]]
        assert (sample.values[:, 0] == 1).sum(axis=1).tolist() == [1] * 20
        assert (sample.values[:, 0] != sample.values[:, 2]).any()
        moved = metfa.explain(length_of_words, texts[1:2], 0, noise=drop_a_word, n_samples=20, rng=0, batch_size=3)
        assert (moved.values[:, 0] == sample.values[:, 1]).all()

    @pytest.mark.parametrize("keys", [(0, 1), ("ids", "mask")])
    def test_parts(self, keys):
        ids, mask = np.arange(12).reshape(3, 4), np.ones((3, 4), np.float32)
        make = tuple if keys == (0, 1) else lambda parts: dict(zip(keys, parts, strict=True))
        seen = []

        def explainer(inputs, target):
            seen.append(inputs)
            return inputs[keys[0]] * inputs[keys[1]]

        each = metfa.explain(explainer, make([ids, mask]), 0, noise=make([None, NOISE]), rng=0)
        assert type(seen[-1]) is type(make([ids, mask]))
        assert seen[-1][keys[0]].dtype == ids.dtype
        joint = metfa.explain(
            explainer,
            make([ids, mask]),
            0,
            noise=lambda row, rng: make([row[keys[0]], NOISE(row[keys[1]], rng)]),
            rng=0,
        )
        assert (each.values == joint.values).all()
        assert (each.values != each.vanilla).any()

    def test_captum_with_two_inputs(self):
        def model(a, b):
            return torch.stack([(a * b).sum(1), a.sum(1)], dim=1)

        a, b = torch.rand(3, 4) + 1, torch.rand(3, 4) + 1
        method = attr.InputXGradient(model).attribute
        noise = (NOISE, NOISE)
        parts = with_hidden_captum_warnings(lambda: metfa.explain(method, (a, b), 0, noise=noise, rng=0))
        sample = with_hidden_captum_warnings(
            lambda: metfa.explain(lambda x, target: method(x, target=target)[0], (a, b), 0, noise=noise, rng=0)
        )
        np.testing.assert_allclose(sample.vanilla, a * b, rtol=1e-6)
        assert np.array_equal(parts[0].values, sample.values)

    @pytest.mark.parametrize(
        ("inputs", "message"),
        [
            (
                np.arange(6).reshape(2, 3),
                "numeric noise needs floating-point inputs, got int64: token ids need a noise on",
            ),
            (
                torch.arange(6).reshape(2, 3),
                "numeric noise needs floating-point inputs, got int64: token ids need a noise",
            ),
            (np.zeros((2, 3), np.uint8), r"got uint8: scale the image to floats first.*/ 255"),
            ([[0.5, 0.5], [0.1, 0.2]], r"got list: a list is a batch of objects, so write np\.array\(inputs\)"),
            ([0.5, 0.1], r"got float: a list is a batch of objects, so write np\.array\(inputs\)"),
            (["a text"], "got str: .*texts need a noise on words"),
            (
                (TABLE, TABLE),
                r"got tuple: .*one noise for each part, as in `noise=\(metfa.noise.Uniform\(0\.1\), None\)`",
            ),
        ],
    )
    def test_numeric_noise_says_what_it_needs(self, inputs, message):
        """Cases 2 and 3 of bugs.md, and Python lists."""
        with pytest.raises(TypeError, match=message):
            metfa.explain(untouchable, inputs, 0, noise=NOISE)


def with_hidden_captum_warnings(call):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Input Tensor", UserWarning)
        return call()


def untouchable(*_, **__):
    pytest.fail("the model was touched")


class TestRefusedBeforeTheModelIsTouched:
    @pytest.mark.parametrize(
        ("changed", "error", "message"),
        [
            ({"n_samples": 0}, ValueError, "`n_samples` must be at least 1, got 0"),
            ({"n_samples": -5}, ValueError, "`n_samples` must be at least 1, got -5"),
            ({"n_samples": 10.0}, TypeError, r"`n_samples` must be an integer, got float: 10\.0"),
            ({"n_samples": True}, TypeError, "`n_samples` must be an integer, got bool: True"),
            ({"batch_size": 0}, ValueError, "`batch_size` must be at least 1, got 0"),
            ({"batch_size": "10"}, TypeError, "`batch_size` must be an integer, got str: '10'"),
            ({"run": metfa.Run(first_sample=2**32 - 5)}, ValueError, f"must not exceed {2**32}, got {2**32 + 5}"),
            ({"rng": "7"}, TypeError, "`rng` must be None, an int or a numpy.random.Generator, got str: '7'"),
            ({"rng": -7}, ValueError, "`rng` must not be negative, got -7"),
            ({"noise": 0.1}, TypeError, r"`noise` must be a function.*got float: 0\.1"),
            ({"noise": None}, ValueError, "`noise` is None.*but `explainer` takes no `rngs`"),
            ({"predict": 3}, TypeError, "`predict` must be a function inputs -> scores, got int"),
            ({"inputs": np.full((2, 3), np.nan)}, ValueError, "`inputs` must be finite, but input 0 holds NaN"),
            ({"inputs": np.zeros((0, 3))}, ValueError, "`inputs` is empty: there is nothing to explain"),
            ({"inputs": torch.zeros(0, 3)}, ValueError, "`inputs` is empty: there is nothing to explain"),
            ({"inputs": 3.0}, ValueError, "`inputs` must have a batch axis, got a single number"),
            ({"inputs": "text"}, TypeError, r"got the text 'text': write a list, such as \[text\]"),
            ({"inputs": TABLE[:2] * 255, "noise": Uniform(0.1, bounds=(0, 1))}, ValueError, "outside the"),
            ({"target": [0]}, ValueError, "each of the 2 inputs, got 1 entries"),
            ({"target": torch.tensor([0, 1, 2])}, ValueError, "each of the 2 inputs, got 3 entries"),
            ({"target": True}, TypeError, "got bool: True"),
            ({"target": 1.0}, TypeError, r"got float: 1\.0"),
            ({"target": "cat"}, TypeError, "got the text 'cat'"),
            ({"target": -1}, ValueError, "`target` must not be negative, got -1 for input 0"),
            ({"target": None}, ValueError, "explainer's model is unknown: pass `target=`, or `predict=`"),
            ({"run": metfa.Run(input_names=["a"])}, ValueError, "each of the 2 inputs, got 1"),
            ({"run": metfa.Run(input_names="ab")}, TypeError, "`input_names` must be a sequence"),
            ({"run": {"store": "s"}}, TypeError, r"`run` must be a metfa\.Run, such as .*, got dict"),
            ({"row_args": [1]}, TypeError, "`row_args` must be a dict of arrays, got list"),
            ({"row_args": {"m": np.zeros(3)}}, ValueError, r"`row_args\['m'\]` .*each of the 2 inputs, got 3 entries"),
            ({"row_args": {"m": [1]}}, ValueError, r"`row_args\['m'\]` .*each of the 2 inputs, got 1 entries"),
            ({"row_args": {"m": 0.5}}, ValueError, r"`row_args\['m'\]` .*each of the 2 inputs, got float: 0\.5"),
            ({"row_args": {"m": np.array(0.5)}}, ValueError, r"`row_args\['m'\]` .*each of the 2 inputs, got ndarray"),
            ({"row_args": {"m": "ab"}}, ValueError, r"`row_args\['m'\]` .*each of the 2 inputs, got str: 'ab'"),
            ({"row_args": {"target": [0, 1]}}, ValueError, "`row_args` must not hold 'target'"),
            ({"explainer": attr.Saliency(NET)}, TypeError, r"got Saliency; pass its method, .*\.attribute`"),
            ({"explainer": None}, TypeError, "`explainer` must be callable, got NoneType"),
        ],
    )  # fmt: skip
    def test_bad_arguments(self, changed, error, message):
        call = {"explainer": untouchable, "inputs": TABLE[:2], "target": 0, "noise": NOISE, **changed}
        with pytest.raises(error, match=message):
            metfa.explain(call.pop("explainer"), call.pop("inputs"), call.pop("target"), **call)

    def test_noise_that_cannot_be(self):
        """Case 5 of bugs.md: a negative std."""
        with pytest.raises(ValueError, match=r"`std` must be finite and not negative, got -0\.1"):
            metfa.explain(untouchable, TABLE, 0, noise=Gaussian(-0.1))

    def test_targets_beyond_the_classes_are_refused_before_anything_is_explained(self):
        with pytest.raises(ValueError, match=r"0\.\.2 .*got 3 for input 1"):
            metfa.explain(untouchable, torch.tensor(PICTURES), [0, 3, 0, 0, 0], noise=NOISE, predict=NET)

    def test_one_sample_is_enough_for_maps(self):
        """Case 5 of bugs.md: N = 1 gives maps and no interval."""
        sample = metfa.explain(linear, TABLE, 0, noise=NOISE, n_samples=1, rng=0)
        assert (sample.median() == sample.values[0]).all()
        with pytest.raises(ValueError, match="got 1, at least 6"):
            sample.confidence_interval()


class TestTarget:
    def seen(self, target, **settings):
        targets = []

        def explainer(inputs, target):
            targets.append(target)
            return Gradient(NET)(inputs, target)

        sample = metfa.explain(explainer, torch.tensor(PICTURES), target, noise=NOISE, rng=0, batch_size=5, **settings)
        assert all(isinstance(t, torch.Tensor) and t.dtype == torch.int64 for t in targets)
        return targets[-1].tolist(), sample

    @pytest.mark.parametrize(
        ("target", "expected"),
        [
            (2, [2] * 5),
            (np.int8(2), [2] * 5),
            ([0, 1, 2, 1, 0], [0, 1, 2, 1, 0]),
            (np.array([0, 1, 2, 1, 0]), [0, 1, 2, 1, 0]),
            (torch.tensor([0, 1, 2, 1, 0]), [0, 1, 2, 1, 0]),
        ],
    )
    def test_forms(self, target, expected):
        seen, sample = self.seen(target)
        assert seen == expected
        assert sample.target == tuple(expected)

    def test_tuples_index_scores_with_more_axes(self):
        def model(x):
            return torch.stack([x.flatten(1), 2 * x.flatten(1)], dim=1)  # (batch, 2, 12)

        targets = [(0, 1), (1, 2), (0, 3), (1, 4), (0, 5)]
        sample = metfa.explain(
            Gradient(model, scale=False), torch.tensor(PICTURES), targets, noise=NOISE, n_samples=2, rng=0
        )
        expected = np.zeros((5, 12))
        for row, (which, place) in enumerate(targets):
            expected[row, place] = which + 1
        assert (sample.vanilla == expected.reshape(5, 3, 4).max(axis=1).reshape(5, 2, 2)).all()
        assert sample.target == tuple(targets)

    def test_predicted_once_on_the_clean_input_and_held_fixed(self):
        calls = []

        def predict(inputs):
            calls.append(inputs)
            return NET(inputs)

        seen, sample = self.seen(None, predict=predict)
        clean = torch.tensor(PICTURES)
        # The clean inputs at once, two of their rows alone, then each noisy row once.
        assert [len(call) for call in calls[:3]] == [len(clean), 1, 1]
        assert torch.equal(calls[0], clean)
        assert seen == NET(clean).argmax(1).tolist() == list(sample.target)
        np.testing.assert_array_equal(sample.scores, NET(clean).detach())

    def test_prediction_goes_in_batches(self):
        sizes = []

        def predict(inputs):
            sizes.append(len(inputs))
            return np.stack([inputs.sum(1), -inputs.sum(1)], axis=1)

        sample = metfa.explain(linear, TABLE, noise=NOISE, rng=0, predict=predict, batch_size=2)
        assert sizes[:5] == [2, 2, 1, 1, 1]  # the clean inputs, and the rows of their first batch alone
        assert max(sizes) == 2
        assert sample.target == (0,) * 5

    def test_no_target_for_one_score_a_row(self):
        seen = []

        def explainer(inputs, target):
            seen.append(target)
            return inputs

        sample = metfa.explain(explainer, TABLE, noise=NOISE, rng=0, predict=lambda x: x.sum(axis=1))
        assert set(seen) == {None}
        assert sample.target == (None,) * 5
        assert sample.flip_rate is None
        gradient = Gradient(lambda x: (x**2).flatten(1).sum(1), scale=False)
        sample = metfa.explain(gradient, torch.tensor(PICTURES), noise=NOISE, rng=0)
        np.testing.assert_allclose(sample.vanilla, (2 * PICTURES).max(axis=1), rtol=1e-6)
        with pytest.raises(ValueError, match=r"`target` must be None for a model with one score a row.*got 0"):
            metfa.explain(gradient, torch.tensor(PICTURES), 0, noise=NOISE, rng=0)

    def test_unfit_predictions(self):
        for predict, error, message in (
            (
                lambda x: x[:2],
                ValueError,
                r"return one row of scores an input, got shape \(2, 12\) for 5 inputs",
            ),
            (lambda x: x * np.nan, ValueError, "scores of the clean input 0 are not finite"),
            (lambda x: np.zeros(5, int), TypeError, "got one int64 a row, like class labels"),
            (lambda x: np.zeros((len(x), 2, 3)), ValueError, r"scores have shape \(5, 2, 3\), not \(batch, classes\)"),
        ):
            with pytest.raises(error, match=message):
                metfa.explain(untouchable, TABLE, noise=NOISE, predict=predict)


class TestOutputs:
    def test_flips_are_counted(self):
        def model(x):
            return np.stack([x[:, 0], np.full(len(x), 0.5)], axis=1)  # class 0 where the first feature is above 0.5

        inputs = np.array([[0.9, 0.0], [0.5, 0.0], [0.45, 0.0]])
        sample = metfa.explain(
            lambda x, target: (x, model(x)),
            inputs,
            noise=Uniform(0.1),
            n_samples=200,
            rng=0,
            predict=model,
            batch_size=7,
        )
        expected = (sample.values[:, :, 0] < 0.5).astype(int)  # the map is the noisy input
        assert (sample.predictions == expected).all()
        clean = np.array([0, 0, 1])
        assert sample.target == tuple(clean)
        np.testing.assert_array_equal(sample.flip_rate, (expected != clean).mean(axis=0))
        assert sample.flip_rate[0] == 0
        assert 0.3 < sample.flip_rate[1] < 0.7

    def test_clean_scores_of_the_explainer_serve_where_there_is_no_prediction(self):
        def model(x):
            return np.stack([x[:, 0], 1 - x[:, 0]], axis=1)

        sample = metfa.explain(lambda x, target: (x, model(x)), TABLE, 0, noise=NOISE, rng=0, batch_size=3)
        np.testing.assert_array_equal(sample.scores, model(TABLE))
        flips = sample.predictions != model(TABLE).argmax(1)
        np.testing.assert_array_equal(sample.flip_rate, flips.mean(axis=0))

    def test_a_delta_beside_the_attributions_is_no_score(self):
        explainer = functools.partial(attr.IntegratedGradients(NET).attribute, return_convergence_delta=True, n_steps=4)
        sample = metfa.explain(explainer, torch.tensor(PICTURES), noise=NOISE, rng=0, n_samples=2)
        assert sample.predictions is None
        assert sample.flip_rate is None
        sample = metfa.explain(lambda x, target: (x, x.sum(axis=1)), TABLE, 0, noise=NOISE, rng=0)
        assert sample.scores is None

    def test_one_column_of_scores_is_no_class(self):
        def column(inputs):
            return inputs.sum(axis=1, keepdims=True)

        settings = {"noise": NOISE, "predict": column, "rng": 0}
        sample = metfa.explain(lambda x, target: x, TABLE, **settings)
        assert sample.flip_rate is None
        assert sample.summary()[0].explained == "output 0"
        assert sample.across_inputs().summary(0.0)[0].explained == "output 0"
        named = metfa.explain(lambda x, target: x, TABLE, **settings, run=metfa.Run(class_names=["ill"]))
        assert named.summary()[0].explained == "class 0 (ill)"

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_numbers_that_are_not_finite_name_input_and_sample(self, bad):
        def explain(poisoned, inputs, target):
            maps = inputs.copy()
            maps[(inputs == poisoned).all(axis=1), 3] = bad
            return maps

        noisy = metfa.explain(lambda x, target: x, TABLE, 0, noise=NOISE, rng=0).values
        for poisoned, named in (
            (noisy[4, 2], "input 2, sample 4"),
            (noisy[0, 0], "input 0, sample 0"),
            (TABLE[3], "the clean input 3"),
        ):
            said = f"returned NaN or infinity for {named}, at feature 3: a test needs a number from each sample"
            with pytest.raises(ValueError, match=said):
                metfa.explain(functools.partial(explain, poisoned), TABLE, 0, noise=NOISE, rng=0, batch_size=7)

    @pytest.mark.parametrize(
        ("dtype", "kept"),
        [(bool, np.float32), (np.int8, np.float32), (np.uint8, np.float32), (np.int64, np.float64)],
    )
    def test_integers_and_booleans_become_real_numbers_exactly(self, dtype, kept):
        high = np.iinfo(dtype).max if dtype is not bool else 1
        high = min(high, 2**53 - 1)
        sample = metfa.explain(
            lambda x, target: np.tile([0, high], (len(x), 1)).astype(dtype), TABLE, 0, noise=NOISE, rng=0
        )
        assert sample.values.dtype == kept
        assert (sample.values == [0, high]).all()

    def test_complex_maps_are_refused(self):
        with pytest.raises(TypeError, match="`explainer` must return real attributions, got complex64"):
            metfa.explain(lambda x, target: x * 1j, TABLE, 0, noise=NOISE)

    def test_maps_of_other_libraries(self):
        sample = metfa.explain(lambda x, target: torch.tensor(x).to(torch.bfloat16), TABLE, 0, noise=NOISE, rng=0)
        assert sample.values.dtype == np.float32

    @pytest.mark.parametrize("batch_size", [1, 4])
    def test_every_row_needs_the_same_features(self, batch_size):
        def explainer(texts, target):
            return [list(map(len, text.split())) for text in texts]

        with pytest.raises(ValueError, match=r"features of shape \(2,\) after \(3,\)|that cannot become one"):
            metfa.explain(explainer, ["a b c", "a b"], 0, noise=lambda text, rng: text, batch_size=batch_size)

    def test_features_that_change_with_the_noise(self):
        with pytest.raises(ValueError, match=r"features of shape \(11,\) after \(12,\): every row needs the same"):
            metfa.explain(
                lambda x, target: x[:, : 12 - (not np.isin(x, TABLE).all())], TABLE, 0, noise=NOISE, batch_size=1
            )

    def test_constant_maps_are_counted_once(self):
        def explainer(inputs, target):
            return inputs * (inputs[:, :1] > 0.5)

        inputs = np.array([[0.9, 0.1], [0.1, 0.9]])
        with pytest.warns(DegenerateAttributionsWarning, match="10 of 20 maps are constant") as record:
            metfa.explain(explainer, inputs, 0, noise=NOISE, rng=0, batch_size=3)
        assert len(record) == 1
        assert record[0].filename == __file__

    def test_one_feature_is_never_constant(self):
        metfa.explain(lambda x, target: np.ones((len(x), 1)), TABLE, 0, noise=NOISE, rng=0)


# Everything is left as found.


def model_state(net):
    return [(module.training, dict(module._forward_hooks), dict(module._backward_hooks)) for module in net.modules()], [
        (p.requires_grad, id(p.grad), None if p.grad is None else p.grad.tolist()) for p in net.parameters()
    ]


def global_state():
    return random.getstate(), str(np.random.get_state(legacy=False)["state"]), torch.get_rng_state().tolist()


def backward(net, inputs):
    net(inputs).sum().backward()


def change_everything(net, inputs):
    net.train()
    net.requires_grad_(False)
    net.zero_grad()
    net[1].register_forward_hook(lambda *_: None)
    net[3].register_full_backward_hook(lambda *_: None)
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)


def evaluate(net, inputs):
    net.eval()


@pytest.mark.parametrize("error", [None, ZeroDivisionError, KeyboardInterrupt])
@pytest.mark.parametrize("moment", ["predict", "probe", "clean", "sample"])
@pytest.mark.parametrize("meddle", [backward, change_everything, evaluate])
def test_model_and_generators_are_as_found(meddle, moment, error):
    net = network().train()
    net[1].eval()
    net[2].register_forward_hook(lambda *_: None)
    net[1].requires_grad_(False)
    net[3].weight.grad = torch.full_like(net[3].weight, 7.0)
    found = model_state(net), global_state()
    calls = {"predict": 0, "probe": 4, "clean": 5, "sample": 7}
    n_calls = 0

    def failing(net, inputs):
        nonlocal n_calls
        meddle(net, inputs)
        if error is not None and n_calls == calls[moment]:
            raise error
        n_calls += 1

    class Explainer:
        model = net

        def __call__(self, inputs, target):
            failing(net, inputs)
            return Gradient(net)(inputs, target)

    def predict(inputs):
        with torch.enable_grad():
            failing(net, inputs)
        return net(inputs)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelStateWarning)
        warnings.simplefilter("ignore", ReproducibilityWarning)
        if error is None:
            metfa.explain(Explainer(), torch.tensor(PICTURES[:2]), noise=NOISE, predict=predict, batch_size=4)
        else:
            with pytest.raises(error):
                metfa.explain(Explainer(), torch.tensor(PICTURES[:2]), noise=NOISE, predict=predict, batch_size=4)
            assert n_calls == calls[moment]
    assert (model_state(net), global_state()) == found
    assert not noise_threads()


def noise_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("metfa")]


def test_training_mode_warns_once_and_comes_back():
    """Case 19 of bugs.md."""
    net = torch.nn.Sequential(network(), torch.nn.Dropout(0.9)).train()
    inputs = torch.tensor(PICTURES)
    with pytest.warns(ModelStateWarning, match="explained in evaluation mode and put back") as record:
        sample = metfa.explain(Gradient(net), inputs, noise=NOISE, rng=0)
    assert len(record) == 1
    assert record[0].filename == __file__
    assert all(module.training for module in net.modules())
    assert (sample.values == metfa.explain(Gradient(NET), inputs, noise=NOISE, rng=0).values).all()


def test_the_model_that_predicts_is_guarded_too():
    net = network().train()
    with pytest.warns(ModelStateWarning):
        metfa.explain(linear, TABLE, noise=NOISE, rng=0, predict=scores_method(net))
    assert net.training


def scores_method(net):
    """A bound method of a module, through which the module is found."""

    class Wrapped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def scores(self, inputs):
            assert not self.net.training
            return self.net(torch.tensor(inputs))

    return Wrapped().scores


@pytest.mark.parametrize("explainer", [with_global_numpy, with_python_random, with_global_torch])
@pytest.mark.parametrize("batch_size", [1, 10])
def test_global_generators_are_reported_and_put_back(explainer, batch_size):
    inputs = torch.tensor(TABLE) if explainer is with_global_torch else TABLE
    before = global_state()
    with pytest.warns(MetfaWarning) as record:
        sample = metfa.explain(explainer, inputs, 0, noise=NOISE, rng=0, batch_size=batch_size)
    assert [w.category for w in record] == [RowDependenceWarning] * (batch_size > 1) + [ReproducibilityWarning]
    assert "wrap the explainer as `metfa.seeded(explainer)`" in str(record[-1].message)
    assert {w.filename for w in record} == {__file__}
    assert sample.provenance["batch_size"] == 1
    assert global_state() == before


def test_a_private_seed_does_not_disturb_the_caller():
    """Case 31 of bugs.md: an explainer that reseeds torch while the caller holds a generator state."""

    def reseeding(inputs, target):
        torch.manual_seed(42)
        return inputs * torch.rand(12)

    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with pytest.warns(ReproducibilityWarning):
        metfa.explain(reseeding, torch.tensor(TABLE), 0, noise=NOISE, rng=0, batch_size=1)
    assert torch.equal(torch.rand(3), expected)


def test_shared_draws_are_told_apart_from_own_ones():
    def shared(inputs, target, *, rngs):
        return inputs + rngs[0].normal(size=12)

    with pytest.warns(RowDependenceWarning):
        sample = metfa.explain(metfa.randomised(shared), TABLE, 0, noise=NOISE, rng=0)
    assert sample.provenance["batch_size"] == 1
    own = metfa.explain(metfa.randomised(with_own_draws), TABLE, 0, noise=NOISE, batch_size=10, rng=0)
    assert own.provenance["batch_size"] == 10
    np.testing.assert_array_equal(sample.values, own.values)  # one row a call, both draw the same


def test_explain_does_not_need_the_callers_gradient_mode():
    expected = metfa.explain(Gradient(NET), torch.tensor(PICTURES), noise=NOISE, rng=0).values
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            assert (metfa.explain(Gradient(NET), torch.tensor(PICTURES), noise=NOISE, rng=0).values == expected).all()


@pytest.mark.parametrize(
    ("inputs", "size"),
    [
        (np.zeros((2, 1000)), 200),
        (np.zeros((2, 1001)), 10),  # a sound, perhaps
        (np.zeros((2, 30), int), 10),  # token ids
        (np.zeros((2, 3, 8, 8)), 10),
        (pd.DataFrame({"age": [1, 2]}), 200),
    ],
)
def test_tables_go_many_rows_a_call(inputs, size):
    assert usual_batch_size(Rows(inputs)) == size


# Noise in threads.


class TestThreads:
    def test_noise_is_drawn_ahead_in_threads(self):
        names = set()

        def noise(x, rng):
            names.add(threading.current_thread().name.partition("_")[0])
            return x + rng.normal(size=x.shape)

        metfa.explain(linear, TABLE, 0, noise=noise, batch_size=10, rng=0)
        assert names == {"MainThread", "metfa-noise"}
        assert not noise_threads()

    @pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
    @pytest.mark.parametrize("nth", [0, 2, 10, 29])
    def test_errors_of_the_noise_come_through(self, error, nth):
        lock, calls = threading.Lock(), []

        def noise(x, rng):
            with lock:
                calls.append(x)
                if len(calls) == nth + 1:
                    raise error("from the noise")
            return x

        with pytest.raises(error, match="from the noise"):
            metfa.explain(linear, TABLE, 0, noise=noise, batch_size=4, n_samples=6)
        assert not noise_threads()

    def test_an_interrupt_waits_for_one_noise_and_not_for_a_batch(self, interrupts_heard):
        pl.DataFrame({"a": [1]}).sum()  # from here on a signal wakes nobody who waits
        drawn, once = [], threading.Lock()

        def slow(x, rng):
            if threading.current_thread() is not threading.main_thread():
                time.sleep(0.05)
                if len(drawn) > 20 and once.acquire(blocking=False):
                    os.kill(os.getpid(), signal.SIGINT)
            drawn.append(x)
            return x + rng.normal(size=x.shape).astype(x.dtype)

        with pytest.raises(KeyboardInterrupt):
            metfa.explain(linear, TABLE, 0, noise=slow, batch_size=20, n_samples=20)
        assert len(drawn) <= 20 + 6  # the first batch, and what two threads had begun
        assert not noise_threads()

    @pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning")
    def test_a_noise_in_a_thread_may_ask_the_model_that_is_explained(self):
        """The run owns the model, and its threads belong to the run."""
        called = metfa.Called(NET)

        def noise(x, rng):
            called.scores(torch.tensor(x)[None])
            return x + rng.normal(size=x.shape).astype(x.dtype)

        sample = metfa.explain(Gradient(called), torch.tensor(PICTURES), 0, noise=noise, rng=0, n_samples=30)
        assert len(sample.values) == 30

    def test_an_interrupt_of_the_explainer_leaves_no_thread(self):
        calls = []

        def explainer(inputs, target):
            calls.append(len(inputs))
            if len(calls) == 6:
                raise KeyboardInterrupt
            return inputs

        drawn = []
        with pytest.raises(KeyboardInterrupt):
            metfa.explain(
                explainer, TABLE, 0, noise=lambda x, rng: drawn.append(1) or x + 0, batch_size=2, n_samples=1000
            )
        assert len(drawn) < 30  # the rest was cancelled
        assert not noise_threads()

    @pytest.mark.parametrize(
        ("noise", "error", "message"),
        [
            (lambda x, rng: x[:3], ValueError, r"changed the shape of input 0, sample 0 from \(12,\) to \(3,\)"),
            (lambda x, rng: x * np.nan, ValueError, "made NaN or infinity of input 0, sample 0"),
            (lambda x, rng: None, TypeError, r"`noise\(x, rng\)` must be an array of real numbers, got NoneType"),
        ],
    )
    def test_unfit_noise_is_named(self, noise, error, message):
        with pytest.raises(error, match=message):
            metfa.explain(untouchable, TABLE, 0, noise=noise)

    def test_noise_in_double_precision_comes_in_the_inputs_dtype(self):
        sample = metfa.explain(lambda x, target: x, TABLE, 0, noise=lambda x, rng: x + rng.normal(size=12), rng=0)
        assert sample.values.dtype == np.float32


def test_provenance_tells_how_it_was_made():
    sample = metfa.explain(
        Gradient(NET), torch.tensor(PICTURES), noise=NOISE, rng=255, n_samples=3, run=metfa.Run(first_sample=2)
    )
    made = sample.provenance
    assert made["rng"] == "0xff"
    assert made["noise"] == "Uniform(radius=0.1, bounds=None)"
    assert made["explainer"].startswith("Gradient(called=Called(model=")
    assert (made["n_samples"], made["first_sample"], made["batch_size"], made["device"]) == (3, 2, 10, "cpu")
    assert made["streams"] == "philox-blake2b-1"
    assert {"numpy", "torch", "metfa", "python"} <= set(made["versions"])
    assert sample.sample_ids == (2, 3, 4)


def test_progress_counts_maps(capsys):
    pytest.importorskip("tqdm")
    metfa.explain(linear, TABLE, 0, noise=NOISE, n_samples=4, rng=0, run=metfa.Run(progress=True))
    assert "20/20" in capsys.readouterr().err
    metfa.explain(linear, TABLE, 0, noise=NOISE, n_samples=4, rng=0)
    assert capsys.readouterr() == ("", "")
