"""The laws of the noises, their dtypes, bounds and errors."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats as scipy_stats

import metfa
from metfa.noise import (
    Amplitude,
    Brightness,
    Compose,
    FilteredGaussian,
    Gaussian,
    Laplace,
    TimeShift,
    TimeWarp,
    Uniform,
    in_pixel_space,
    per_column,
)

N = 20_000
ALARM = 1e-3  # a test of a law fails with this probability on a right law; the seeds are fixed, so it passes or not


def rng(seed=0):
    return np.random.default_rng(seed)


LAWS = {
    "uniform": (Uniform(0.3), scipy_stats.uniform(-0.3, 0.6)),
    "gaussian": (Gaussian(0.2), scipy_stats.norm(0, 0.2)),
    "laplace": (Laplace(0.1), scipy_stats.laplace(0, 0.1)),
}
ADDED = [noise for noise, _ in LAWS.values()]
OF_SERIES = [Amplitude(0.9, 1.1), FilteredGaussian(0.1, exponent=1), TimeShift(1, beyond="wrap"), TimeWarp(0.5, 2)]
ALL = [
    *ADDED,
    Brightness(0.9, 1.1),
    Brightness(0.9, 1.1, per="pixel"),
    Compose(Uniform(0.1), Gaussian(0.1)),
    *OF_SERIES,
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("law", LAWS)
def test_added_numbers_follow_their_law(law, dtype):
    noise, expected = LAWS[law]
    draws = noise(np.zeros(N, dtype), rng(1)).astype(np.float64)
    assert scipy_stats.kstest(draws, expected.cdf).pvalue > ALARM
    assert scipy_stats.kstest(draws[::2], -draws[1::2]).pvalue > ALARM  # symmetric
    allowed = scipy_stats.norm.isf(ALARM / 2) * expected.std() / np.sqrt(N)
    assert abs(draws.mean()) < allowed
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < scipy_stats.norm.isf(ALARM / 2) / np.sqrt(N)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_uniform_covers_both_sides_up_to_its_radius(dtype):  # xplique perturbs in [0, radius] only
    draws = Uniform(0.1)(np.zeros(N, dtype), rng())
    assert np.abs(draws).max() <= dtype(0.1)
    assert draws.min() < -0.0999
    assert draws.max() > 0.0999


@pytest.mark.parametrize(
    "noise", [Uniform(0), Gaussian(0.0), Laplace(0), Brightness(1, 1), Brightness(1, 1, per="pixel")]
)
def test_no_strength_changes_nothing(noise):
    x = rng().random((3, 4, 4))
    assert (noise(x, rng()) == x).all()


@pytest.mark.parametrize("noise", ALL, ids=repr)
def test_input_is_left_alone_and_numbers_come_from_rng_only(noise):
    x = rng(5).random((3, 4, 4))
    x.flags.writeable = False
    first = noise(x, rng(1))
    assert first.shape == x.shape
    assert (first == noise(x, rng(1))).all()
    assert (first != noise(x, rng(2))).any()


def pixels(name):
    """Random pixels of one library and dtype, such as "torch-bfloat16"."""
    library, dtype = name.split("-")
    host = rng().random((3, 4, 4))
    if library == "torch":
        return torch.tensor(host).to(getattr(torch, dtype))
    xp = pytest.importorskip({"numpy": "numpy", "jax": "jax.numpy", "strict": "array_api_strict"}[library])
    return xp.asarray(host, dtype=getattr(xp, dtype))


KINDS = [
    *(f"numpy-{dtype}" for dtype in ("float16", "float32", "float64")),
    *(f"torch-{dtype}" for dtype in ("float16", "bfloat16", "float32", "float64")),
    *(f"jax-{dtype}" for dtype in ("bfloat16", "float32")),
    *(f"strict-{dtype}" for dtype in ("float32", "float64")),
]
PIXEL_NOISES = [dataclasses.replace(noise, bounds=(0.0, 1.0)) for noise in (*ADDED, ALL[3], ALL[4])] + [
    in_pixel_space(Uniform(0.5), (0.2, 0.2, 0.2), (0.8, 0.8, 0.8))
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noise", PIXEL_NOISES, ids=repr)
def test_library_dtype_and_bounds_are_kept(noise, kind):
    x = pixels(kind)
    normalised = "mean" in repr(noise)
    noisy = noise((x - 0.2) / 0.8 if normalised else x, rng())
    assert type(noisy) is type(x)
    assert noisy.dtype == x.dtype
    assert noisy.shape == x.shape
    host = np.asarray(noisy.double() if isinstance(noisy, torch.Tensor) else noisy).astype(np.float64)
    host = host * 0.8 + 0.2 if normalised else host
    assert 0 - 1e-2 * normalised <= host.min() < host.max() <= 1 + 1e-2 * normalised


@pytest.mark.parametrize("kind", ["torch-float32", "jax-float32", "strict-float32"])
@pytest.mark.parametrize("noise", ALL, ids=repr)
def test_same_numbers_on_every_library(noise, kind):
    expected = noise(pixels("numpy-float32"), rng(1))
    np.testing.assert_allclose(np.asarray(noise(pixels(kind), rng(1))), expected, rtol=1e-6)


def test_device_follows_the_input():
    x = torch.empty((3, 4), device="meta", dtype=torch.float16)
    for noise in ALL:
        assert noise(x, rng()).device == x.device


@pytest.mark.parametrize("noise", ALL, ids=repr)
def test_differentiable_on_torch(noise):
    x = torch.rand(3, 2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda values: noise(values, rng(3)), (x,))


def test_clamped_entries_have_no_gradient():
    x = torch.tensor([0.0, 0.5, 1.0], requires_grad=True)
    noisy = Uniform(0.1, bounds=(0, 1))(x, rng(0))
    noisy.sum().backward()
    inside = (noisy.detach() > 0) & (noisy.detach() < 1)
    assert (x.grad == inside).all()
    assert not inside.all()


def test_scalars_and_nothing_are_arrays_too():
    assert Uniform(0.1)(np.zeros(()), rng()).shape == ()
    assert Gaussian(0.1, bounds=(0, 1))(np.zeros((0, 3)), rng()).shape == (0, 3)


def test_brightness_per_image_is_one_factor():
    x = rng().random((3, 5, 5)) + 0.1
    factors = Brightness(0.5, 1.5)(x, rng(1)) / x
    np.testing.assert_allclose(factors, factors[0, 0, 0])
    many = np.array([Brightness(0.5, 1.5)(np.ones((1, 1)), rng(seed))[0, 0] for seed in range(2000)])
    assert scipy_stats.kstest(many, scipy_stats.uniform(0.5, 1.0).cdf).pvalue > ALARM


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_brightness_per_pixel_is_shared_by_its_channels(axis):
    x = rng().random((30, 30, 30)) + 0.1
    factors = Brightness(0.5, 1.5, per="pixel", channel_axis=axis)(x, rng(1)) / x
    np.testing.assert_allclose(factors, np.broadcast_to(factors.take([0], axis), x.shape))
    assert scipy_stats.kstest(factors.take(0, axis).ravel(), scipy_stats.uniform(0.5, 1.0).cdf).pvalue > ALARM


def test_brightness_per_pixel_without_channels_has_a_factor_for_each_entry():
    factors = Brightness(0.5, 1.5, per="pixel", channel_axis=None)(np.ones((4, 4)), rng(1))
    assert len(np.unique(factors)) == 16


def test_brightness_names_a_channel_axis_that_is_not_there():
    noise = Brightness(0.9, 1.1, per="pixel", channel_axis=2)
    with pytest.raises(ValueError, match=r"`channel_axis` is 2, but one input has shape \(3, 4\).*channel_axis=None"):
        noise(np.ones((3, 4)), rng())


def test_compose_applies_from_left_to_right_with_one_stream():
    x, stream = rng().random(6), rng(7)
    by_hand = Gaussian(0.1)(Brightness(0.5, 0.6)(x, stream), stream)
    assert (Compose(Brightness(0.5, 0.6), Gaussian(0.1))(x, rng(7)) == by_hand).all()
    assert (Compose(Gaussian(0.1), Brightness(0.5, 0.6))(x, rng(7)) != by_hand).all()
    assert (Compose(Uniform(0.1), Uniform(0.1))(x, rng(7)) != x + 2 * (Uniform(0.1)(x, rng(7)) - x)).all()


def test_noises_are_values():
    assert Uniform(0.1) == Uniform(0.1) != Uniform(0.2)
    assert Compose(Uniform(0.1)) == Compose(Uniform(0.1)) != Compose(Uniform(0.2))
    assert len({Compose(Uniform(0.1)), Compose(Uniform(0.1)), Gaussian(0.1), Gaussian(0.1)}) == 2
    assert repr(Compose(Uniform(0.1), Gaussian(0.2))) == (
        "Compose(Uniform(radius=0.1, bounds=None), Gaussian(std=0.2, bounds=None))"
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        Compose(Uniform(0.1)).noises = ()
    with pytest.raises(dataclasses.FrozenInstanceError):
        Uniform(0.1).radius = 1


MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def test_in_pixel_space_is_the_explicit_formula():
    mean, std = np.reshape(MEAN, (3, 1, 1)), np.reshape(STD, (3, 1, 1))
    pixels = rng().random((3, 8, 8))
    expected = (np.clip(Gaussian(0.3)(pixels, rng(1)), 0, 1) - mean) / std
    noisy = in_pixel_space(Gaussian(0.3), MEAN, STD)((pixels - mean) / std, rng(1))
    np.testing.assert_allclose(noisy, expected, atol=1e-12)
    assert (noisy * std + mean).min() < 1e-12  # it did clamp
    x = torch.tensor((pixels - mean) / std, requires_grad=True)
    assert torch.autograd.gradcheck(lambda values: in_pixel_space(Uniform(0.01), MEAN, STD)(values, rng(1)), (x,))


def test_in_pixel_space_refuses_images_that_were_not_normalised_that_way():
    noise = in_pixel_space(Uniform(0.1), MEAN, STD)
    with pytest.raises(
        ValueError, match=r"pixels from 0\.485 to 57\.78, outside \[0, 1\]: it was normalised in another way"
    ):
        noise(np.linspace(0, 255, 12).reshape(3, 2, 2), rng())
    with pytest.raises(ValueError, match=r"3 channels, but the input has shape \(2, 2, 3\)"):
        noise(np.zeros((2, 2, 3)), rng())
    with pytest.raises(ValueError, match=r"3 channels, but the input has shape \(\)"):
        noise(np.zeros(()), rng())
    with pytest.raises(TypeError, match="numeric noise needs floating-point inputs, got int64"):
        noise(np.zeros((3, 2, 2), int), rng())


@pytest.mark.parametrize(
    ("mean", "std", "error", "message"),
    [
        ((0.5,), (0.5, 0.5), ValueError, "got 1 and 2 numbers"),
        ((0.5,), (0.0,), ValueError, r"`std` must be positive, got \(0\.0,\)"),
        ((0.5,), (-1.0,), ValueError, r"`std` must be positive, got \(-1\.0,\)"),
        ((float("nan"),), (1.0,), ValueError, "`mean` must be finite, got nan"),
        ((0.5,), (float("inf"),), ValueError, "`std` must be finite, got inf"),
        (0.5, (1.0,), TypeError, r"`mean` must be a sequence.*got float: 0\.5"),
        ("0.5", (1.0,), TypeError, r"`mean` must be a sequence.*got str: '0\.5'"),
        ((), (), ValueError, r"`mean` must hold finite numbers, one for each channel, got shape \(0,\)"),
    ],
)
def test_in_pixel_space_checks_the_normalisation(mean, std, error, message):
    with pytest.raises(error, match=message):
        in_pixel_space(Uniform(0.1), mean, std)


def test_only_functions_are_noises():
    with pytest.raises(TypeError, match=r"`noise` must be a function, called as noise\(x, rng\), got float: 0\.1"):
        in_pixel_space(0.1, MEAN, STD)
    with pytest.raises(TypeError, match=r"`noises` must be a function, called as noise\(x, rng\), got float: 0\.1"):
        Compose(Uniform(0.1), 0.1)
    with pytest.raises(ValueError, match=r"`noises` is empty.*Compose\(Uniform\(0\.1\)\)"):
        Compose()


@pytest.mark.parametrize(
    "law", [Uniform, Gaussian, Laplace, lambda value: Brightness(value, 2), lambda v: Brightness(0, v)]
)
@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (-0.1, ValueError, "must be finite and not negative, got -0.1"),
        (float("nan"), ValueError, "must be finite and not negative, got nan"),
        (float("inf"), ValueError, "must be finite and not negative, got inf"),
        (True, TypeError, "must be a number, got bool: True"),
        ("0.1", TypeError, "must be a number, got str: '0.1'"),
        (None, TypeError, "must be a number, got NoneType: None"),
        ({"age": 0.1}, TypeError, "must be a number, got dict: {'age': 0.1}"),
        (np.array(-0.1), TypeError, "must be a number, got ndarray"),
    ],
)
def test_strengths_are_checked(law, value, error, message):
    with pytest.raises(error, match=rf"`(radius|std|scale|low|high)` {message}"):
        law(value)


def test_brightness_has_one_range_for_all():
    with pytest.raises(TypeError, match=r"`low` must be a number, got tuple: \(0.1, 0.2\)"):
        Brightness((0.1, 0.2), 2)


# One strength a column

COLUMNS = {
    "uniform": (Uniform, lambda size: scipy_stats.uniform(-size, 2 * size)),
    "gaussian": (Gaussian, lambda size: scipy_stats.norm(0, size)),
    "laplace": (Laplace, lambda size: scipy_stats.laplace(0, size)),
}


@pytest.mark.parametrize("law", COLUMNS)
def test_every_column_follows_its_own_law(law):
    kind, expected = COLUMNS[law]
    sizes = (0.1, 30.0, 0.0, 2e-4)
    draws = kind(sizes)(np.zeros((N, 4)), rng(2))
    for column, size in enumerate(sizes):
        if size:
            assert scipy_stats.kstest(draws[:, column], expected(size).cdf).pvalue > ALARM
    assert (draws[:, 2] == 0).all()
    assert abs(np.corrcoef(draws[:, 0], draws[:, 1])[0, 1]) < scipy_stats.norm.isf(ALARM / 2) / np.sqrt(N)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("law", COLUMNS)
def test_columns_left_alone_keep_their_bits(law, kind):
    host = rng().random((3, 4, 4))
    host[0, 0] = [-0.0, 0.0, 3e4, -1e-7]
    library, dtype = kind.split("-")
    if library == "torch":
        x = torch.tensor(host).to(getattr(torch, dtype))
    else:
        xp = pytest.importorskip({"numpy": "numpy", "jax": "jax.numpy", "strict": "array_api_strict"}[library])
        x = xp.asarray(host, dtype=getattr(xp, dtype))
    noisy = COLUMNS[law][0]([0, 0.5, 0, 0])(x, rng())
    assert type(noisy) is type(x)
    assert noisy.dtype == x.dtype
    before, after = (np.asarray(a.float() if isinstance(a, torch.Tensor) else a).astype(np.float64) for a in (x, noisy))
    assert before[..., [0, 2, 3]].tobytes() == after[..., [0, 2, 3]].tobytes()
    assert (before[..., 1] != after[..., 1]).all()


@pytest.mark.parametrize("law", COLUMNS)
def test_leaving_a_column_alone_does_not_change_the_others(law):
    kind = COLUMNS[law][0]
    x = rng().random(4)
    every, some = kind([1, 2, 3, 4])(x, rng(1)), kind([1, 0, 3, 0])(x, rng(1))
    assert (every[[0, 2]] == some[[0, 2]]).all()
    np.testing.assert_array_equal(kind([2.0] * 4)(x, rng(1)), kind(2.0)(x, rng(1)))


def test_strengths_of_columns_are_values():
    made = [
        Uniform([0.1, 2]),
        Uniform((0.1, 2.0)),
        Uniform(np.array([0.1, 2])),
        Uniform(torch.tensor([0.1, 2.0], dtype=torch.float64)),
    ]
    assert len(set(made)) == 1
    assert repr(made[0]) == "Uniform(radius=(0.1, 2.0), bounds=None)"
    assert Gaussian(pd.Series([1, 2])).std == (1.0, 2.0)


@pytest.mark.parametrize("law", COLUMNS)
@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ([0.1, -2], ValueError, "must be finite and not negative, got -2"),
        ([0.1, float("nan")], ValueError, "must be finite and not negative, got nan"),
        ([0.1, "2"], TypeError, "must be a number, got str: '2'"),
        ([[0.1], [0.2]], TypeError, r"must be a number, got list: \[0.1\]"),
        ([True, False], TypeError, "must be a number, got bool: True"),
        ([], ValueError, "is empty: it needs one number for each column"),
    ],
)
def test_strengths_of_columns_are_checked(law, value, error, message):
    with pytest.raises(error, match=rf"`(radius|std|scale)` {message}"):
        COLUMNS[law][0](value)


@pytest.mark.parametrize(
    ("shape", "seen"), [((3,), r"3 columns: \(3,\)"), ((2, 5), r"5 columns: \(2, 5\)"), ((), r"no axis: \(\)")]
)
def test_another_number_of_columns_is_named(shape, seen):
    with pytest.raises(ValueError, match=f"`std` has 2 numbers, one a column, but one input has {seen}"):
        Gaussian([0.1, 0.2])(np.zeros(shape), rng())


def test_a_row_of_the_batch_is_an_input():
    inputs = np.zeros((2, 3))
    sample = metfa.explain(lambda x, target: x + 1, inputs, 0, noise=Gaussian([1, 0, 5]), n_samples=200, rng=0)
    spread = sample.std().mean(axis=0)
    np.testing.assert_allclose(spread, [1, 0, 5], rtol=0.2)


TABLE = np.array([[1.0, 20.0, 0.0, 7.1], [3.0, 60.0, 1.0, 7.1], [1.0, 20.0, 2.0, 7.1], [3.0, 60.0, 1.0, 7.1]])
FRAME = pd.DataFrame({"age": [1.0, 3, 1, 3], "income": [20, 60, 20, 60], "town": ["a", None, "c", "b"]})


@pytest.mark.parametrize("law", [Gaussian, Uniform, Laplace])
def test_per_column_is_a_fraction_of_each_columns_standard_deviation(law):
    noise = per_column(TABLE, 0.5, law=law)
    np.testing.assert_allclose(getattr(noise, dataclasses.fields(law)[0].name), 0.5 * TABLE.std(axis=0), atol=1e-12)
    assert isinstance(noise, law)


def test_categorical_and_constant_columns_are_left_alone():
    assert per_column(TABLE, 0.5, categorical=[2]).std == (0.5, 10.0, 0.0, 0.0)
    many = np.column_stack([rng().random(1000), np.full(1000, 0.1)])  # the rounded mean is not .1
    assert per_column(many, 0.5).std[1] == 0
    assert per_column(TABLE.astype(int), 0.5, categorical=np.array([2, 3])).std == (0.5, 10.0, 0.0, 0.0)
    assert per_column(TABLE.tolist(), 0, categorical=(0,)).std == (0, 0, 0, 0)


def test_columns_by_name():
    assert per_column(FRAME, 0.5).law.std == per_column(FRAME, 0.5, categorical=["town"]).law.std == (0.5, 10.0, 0.0)
    assert per_column(TABLE, 0.5, categorical=["c"], feature_names=list("abcd")).std == (0.5, 10.0, 0.0, 0.0)
    assert per_column(FRAME, 0.5, categorical=[2, "age"]).law.std == (0.0, 10.0, 0.0)
    assert per_column(torch.tensor(TABLE), 0.5, categorical=[0, 2]).std == (0.0, 10.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("data", "settings", "error", "message"),
    [
        (FRAME.to_numpy(), {}, TypeError, r"column 2 of `data` holds no numbers, such as 'a': name it"),
        (TABLE > 1, {}, TypeError, "column 0 of `data` holds no numbers, such as (np.)?False"),
        (np.where(TABLE == 60, np.nan, TABLE), {}, ValueError, "column 1 of `data` holds NaN or infinity in 2 of 4"),
        (FRAME.replace(3, np.inf), {"categorical": [2]}, ValueError, "column .age. of `data` must be finite, but row"),
        (FRAME[["town"]], {}, ValueError, "1 of its 1 columns are categorical, and no other varies over its 4 rows"),
        (TABLE[0], {}, ValueError, r"must be a table \(rows, columns\), got ndarray of shape \(4,\)"),
        (TABLE[:0], {}, ValueError, r"got ndarray of shape \(0, 4\)"),
        (TABLE[:1], {}, ValueError, "0 of its 4 columns are categorical, and no other varies over its 1 row$"),
        (TABLE, {"categorical": [0, 1, 2, 3]}, ValueError, "4 of its 4 columns are categorical"),
        (TABLE, {"categorical": [4]}, ValueError, r"`categorical` must lie in 0\.\.3, got 4"),
        (TABLE, {"categorical": [-1]}, ValueError, "`categorical` must be at least 0, got -1"),
        (TABLE, {"categorical": [1.0]}, TypeError, "`categorical` must be an integer, got float: 1.0"),
        (TABLE, {"categorical": ["town"]}, ValueError, "names 'town', which is no column of `data`: its columns"),
        (FRAME, {"categorical": ["twon"]}, ValueError, "names 'twon', .* did you mean 'town'"),
        (FRAME, {"categorical": "town"}, TypeError, r"must be a list of columns, such as \[2\], got str: 'town'"),
        (FRAME, {"categorical": 2}, TypeError, r"must be a list of columns, such as \[2\], got int: 2"),
        (TABLE, {"categorical": TABLE[0] > 5}, TypeError, r"got true and false: write `np\.flatnonzero\(mask\)`"),
        (TABLE, {"feature_names": ["a"]}, ValueError, "`feature_names` has 1 name, but `data` has 4 columns"),
    ],
)  # fmt: skip
def test_tables_that_do_not_fit(data, settings, error, message):
    with pytest.raises(error, match=message):
        per_column(data, 0.5, **settings)


def test_the_fraction_is_checked():
    with pytest.raises(ValueError, match="`fraction` must be finite and not negative, got -1"):
        per_column(TABLE, -1)
    with pytest.raises(TypeError, match="`fraction` must be a number, got list"):
        per_column(TABLE, [0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize("law", [Uniform, Gaussian, Laplace])
@pytest.mark.parametrize(
    ("bounds", "error"),
    [
        ((1, 0), ValueError),
        ((0, 0), ValueError),
        ((0, float("nan")), ValueError),
        ((0,), TypeError),
        ((0, 1, 2), TypeError),
        ([0, 1], TypeError),
        (1, TypeError),
        (("0", "1"), TypeError),
        ((False, True), TypeError),
    ],
)
def test_bounds_are_checked(law, bounds, error):
    with pytest.raises(error, match=r"`bounds` must be .*got (tuple|list|int|str|bool|nan|\()"):
        law(0.1, bounds=bounds)
    with pytest.raises(error, match=r"`bounds` must be .*got (tuple|list|int|str|bool|nan|\()"):
        Brightness(0.9, 1.1, bounds=bounds)


def test_brightness_checks_its_own_settings():
    with pytest.raises(ValueError, match=r"low=1\.1 and high=0\.9"):
        Brightness(1.1, 0.9)
    with pytest.raises(ValueError, match="`per` must be one of 'image', 'pixel', got 'channel'"):
        Brightness(0.9, 1.1, per="channel")
    for axis in ("0", 0.0, True):
        with pytest.raises(TypeError, match=f"`channel_axis` must be an integer, got {type(axis).__name__}"):
            Brightness(0.9, 1.1, channel_axis=axis)


@pytest.mark.parametrize("noise", PIXEL_NOISES[:-1], ids=repr)
@pytest.mark.parametrize(
    ("x", "seen"),
    [
        (np.array([[-2.5, 0.5]]), r"from -2\.5 to 0\.5"),
        (np.array([[0.5, 255.0]]), r"from 0\.5 to 255"),
        (np.array([[0.5, np.nan]]), "from nan to nan"),
        (torch.tensor([[0.0, 1.5]]), r"from 0 to 1\.5"),
    ],
)
def test_inputs_outside_the_bounds_are_refused(noise, x, seen):
    with pytest.raises(ValueError, match=rf"{seen}, outside the noise's bounds \(0\.0, 1\.0\).*in_pixel_space"):
        noise(x, rng())


def test_rounding_at_the_bounds_is_forgiven():
    assert Uniform(0.1, bounds=(0, 1))(np.array([1 + 1e-7, -1e-7]), rng()).max() <= 1


@pytest.mark.parametrize("noise", ALL, ids=repr)
@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.arange(6).reshape(3, 2), "got int64: token ids need a noise on words"),
        (torch.arange(6).reshape(3, 2), "got torch.int64: token ids need a noise on words"),
        (np.zeros((3, 2), np.uint8), r"got uint8: scale the image to floats first.*astype\('float32'\) / 255"),
        (torch.zeros(3, 2, dtype=torch.uint8), "got torch.uint8: scale the image to floats first"),
        (np.zeros((3, 2), bool), "got bool"),
        ("a text", r"got str: .*texts need a noise on words"),
        ([0.5, 0.5], r"got list: .*write np\.array\(inputs\)"),
        ((np.ones(3), np.ones(3)), r"got tuple: .*one noise for each part"),
        (0.5, "got float"),
    ],
)
def test_numbers_are_never_added_to_anything_but_floating_point_arrays(noise, x, message):
    with pytest.raises(TypeError, match=f"numeric noise needs .*{message}"):
        noise(x, rng())
