"""RISE against the authors' recipe by hand, its masks against scikit-image, its samples against the exact level."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import torch
from scipy.stats import binom
from skimage.transform import resize
from torch.utils._python_dispatch import TorchDispatchMode

import metfa
from metfa import DegenerateAttributionsWarning, ModelOutputWarning, RowDependenceWarning
from metfa.calls.enlargement import enlargement
from metfa.explainers import RISE

IMAGES = np.random.default_rng(0).random((3, 2, 12, 9))
WEIGHTS = np.random.default_rng(1).normal(size=(2 * 12 * 9, 3))


def logits(images):
    return images.reshape(len(images), -1) @ WEIGHTS / 5


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


class Net(torch.nn.Module):
    """The same function in torch, of parameters."""

    def __init__(self, dtype=torch.float64):
        super().__init__()
        self.linear = torch.nn.Linear(*WEIGHTS.shape, bias=False, dtype=dtype)
        self.linear.weight.data.copy_(torch.from_numpy(WEIGHTS.T / 5))
        self.eval()

    def forward(self, images):
        return self.linear(images.flatten(1))


def generators(n=3, seed=5):
    return [np.random.default_rng([seed, row]) for row in range(n)]


def by_recipe(image, target, rng, n_masks, grid, keep, baseline=0.0):
    """The authors' code in words of ours: masks by scikit-image one by one, all sums by loops."""
    sides = np.broadcast_to(grid, 2)
    height, width = image.shape[1:]
    steps = np.ceil([height / sides[0], width / sides[1]]).astype(int)
    kept = rng.random((n_masks, *sides), np.float32) < keep
    shifts = [rng.integers(0, step, n_masks) for step in steps]
    total = np.zeros((height, width))
    for cells, down, across in zip(kept, *shifts, strict=True):
        large = resize(cells.astype(float), (sides + 1) * steps, order=1, mode="reflect", anti_aliasing=False)
        mask = large[down : down + height, across : across + width]
        masked = image * mask + np.reshape(baseline, (-1, 1, 1)) * (1 - mask)
        total += softmax(logits(masked[None]))[0, target] * mask
    return total / n_masks / keep


@pytest.mark.parametrize("cells", [1, 2, 7, 8])
@pytest.mark.parametrize("step", [1, 3, 28])
def test_masks_are_enlarged_as_scikit_image_does(cells, step):
    grid = np.random.default_rng(0).random((cells, cells))
    side = (cells + 1) * step
    expected = resize(grid, (side, side), order=1, mode="reflect", anti_aliasing=False)
    matrix = enlargement(cells, side, "mirrored")
    np.testing.assert_allclose(matrix @ grid @ matrix.T, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("grid", "keep", "baseline"), [(8, 0.5, 0.0), ((3, 4), 0.1, 0.0), (1, 0.5, 0.5), (20, 0.7, (0.2, 0.9))]
)
def test_equals_the_recipe(grid, keep, baseline):
    settings = {"n_masks": 30, "grid": grid, "keep": keep}
    maps, scores = RISE(logits, **settings, baseline=baseline, scale=False)(IMAGES, [0, 2, 1], rngs=generators())
    for row, (target, rng) in enumerate(zip([0, 2, 1], generators(), strict=True)):
        expected = by_recipe(IMAGES[row], target, rng, **settings, baseline=baseline)
        np.testing.assert_allclose(maps[row], expected, atol=1e-12)
    np.testing.assert_allclose(scores, logits(IMAGES))


def test_polarity_bright_where_the_class_is_seen():
    def model(images):
        seen = images[:, 0, 2:6, 2:6].mean((1, 2))
        return np.stack([seen, 1 - seen], axis=1)

    maps, _ = RISE(metfa.Called(model, softmax=False), grid=4, n_masks=2000, rng=0)(np.ones((1, 1, 16, 16)), 0)
    assert maps[0, 2:6, 2:6].mean() > 0.8
    assert maps[0, 9:, 9:].mean() < 0.3
    opposite, _ = RISE(metfa.Called(model, softmax=False), grid=4, n_masks=2000, rng=0)(np.ones((1, 1, 16, 16)), 1)
    assert opposite[0, 2:6, 2:6].mean() < 0.2


def test_scaled_by_default():
    raw, _ = RISE(logits, n_masks=20, scale=False, rng=0)(IMAGES, 0)
    maps, _ = RISE(logits, n_masks=20, rng=0)(IMAGES, 0)
    low, high = raw.min((1, 2), keepdims=True), raw.max((1, 2), keepdims=True)
    np.testing.assert_allclose(maps, (raw - low) / (high - low))


class TestRows:
    def test_never_meet_in_a_forward_pass(self):
        def model(images):  # a neighbour would show
            return logits(images - images.mean(axis=0) / 2)

        explainer = RISE(metfa.Called(model, batch_size=10), n_masks=10)
        assert explainer.rows_independent
        with pytest.warns(RowDependenceWarning, match="the model is asked about one row at a time"):
            together, _ = explainer(IMAGES, 0, rngs=generators())
        alone, _ = explainer(IMAGES[2:], 0, rngs=generators()[2:])
        np.testing.assert_allclose(alone[0], together[2], rtol=1e-12)

    @pytest.mark.parametrize("batch_size", [1, 7, 40, 1000])
    def test_batch_size_changes_nothing(self, batch_size):
        reference, _ = RISE(logits, n_masks=40, scale=False)(IMAGES, 0, rngs=generators())
        maps, _ = RISE(metfa.Called(logits, batch_size=batch_size), n_masks=40, scale=False)(
            IMAGES, 0, rngs=generators()
        )
        np.testing.assert_allclose(maps, reference, rtol=1e-12)

    def test_have_masks_of_their_own(self):
        same = np.repeat(IMAGES[:1], 2, axis=0)
        maps, _ = RISE(logits, n_masks=20, rng=0)(same, 0)
        assert np.abs(maps[0] - maps[1]).max() > 0.1

    def test_the_same_seed_gives_the_same_maps(self):
        np.testing.assert_array_equal(*(RISE(logits, n_masks=9, rng=3)(IMAGES, 0)[0] for _ in range(2)))


class TestLibraries:
    def test_torch_equals_numpy(self):
        expected, _ = RISE(logits, n_masks=50, scale=False)(IMAGES, None, rngs=generators())
        maps, scores = RISE(Net(), n_masks=50, scale=False)(torch.from_numpy(IMAGES), None, rngs=generators())
        assert isinstance(maps, torch.Tensor)
        assert not scores.requires_grad
        np.testing.assert_allclose(maps, expected, rtol=1e-12)

    def test_float32_is_float64_to_rounding(self):
        expected, _ = RISE(Net(), n_masks=50)(torch.from_numpy(IMAGES), 0, rngs=generators())
        maps, _ = RISE(Net(torch.float32), n_masks=50)(torch.from_numpy(IMAGES).float(), 0, rngs=generators())
        assert maps.dtype == torch.float32
        np.testing.assert_allclose(maps, expected, atol=1e-5)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_halves_give_float32_maps(self, dtype):
        expected, _ = RISE(Net(), n_masks=50)(torch.from_numpy(IMAGES), 0, rngs=generators())
        maps, _ = RISE(Net(dtype), n_masks=50)(torch.from_numpy(IMAGES).to(dtype), 0, rngs=generators())
        assert maps.dtype == torch.float32
        np.testing.assert_allclose(maps, expected, atol=0.1)

    def test_autocast_and_layout(self):
        seen = []
        net = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3), torch.nn.Flatten(), torch.nn.Linear(4 * 70, 3)).eval()
        net[0].register_forward_pre_hook(lambda _, args: seen.append(args[0].stride(1)))
        net[0].register_forward_hook(lambda _, args, output: seen.append(output.dtype))
        images = torch.from_numpy(IMAGES).float()
        exact, _ = RISE(net, n_masks=30)(images, 0, rngs=generators())
        assert set(seen) == {12 * 9, torch.float32}
        seen.clear()
        explainer = RISE(metfa.Called(net, fast="bfloat16", memory_format=torch.channels_last), n_masks=30)
        explainer(images, 0, rngs=generators())  # shows how to fold
        seen.clear()
        maps, _ = explainer(images, 0, rngs=generators())
        assert set(seen) == {1, torch.bfloat16}
        assert 0 < (maps - exact).abs().max() < 0.1

    def test_autocast_casts_the_weights_once(self):
        class Casts(TorchDispatchMode):
            of_weights = 0

            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                self.of_weights += function is torch.ops.aten._to_copy.default and args[0] is net.linear.weight
                return function(*args, **kwargs or {})

        explainer = RISE(metfa.Called(Net(torch.float32), fast="bfloat16"), n_masks=50)
        net = explainer.model
        with Casts() as casts:
            explainer(torch.from_numpy(IMAGES).float(), 0, rngs=generators())
        assert casts.of_weights == 1  # of 13 passes
        assert net.linear.weight.dtype == torch.float32

    @pytest.mark.slow
    def test_without_torch(self):
        code = (
            "import sys\n"
            "class NoTorch:\n"
            "    def find_spec(self, name, *_):\n"
            "        if name.partition('.')[0] == 'torch': raise ModuleNotFoundError(name)\n"
            "sys.meta_path.insert(0, NoTorch())\n"
            "import numpy as np, metfa\n"
            "from metfa.explainers import RISE\n"
            "model = lambda x: np.stack([x.mean((1, 2, 3)), -x[:, 0, 0, 0]], axis=1)\n"
            "images = np.random.default_rng(0).random((2, 3, 8, 8), dtype=np.float32)\n"
            "s = metfa.explain(RISE(model, n_masks=10, grid=2), images, noise=metfa.noise.Uniform(0.1), n_samples=6)\n"
            "assert s.values.shape == (6, 2, 8, 8) and s.values.dtype == np.float32, s\n"
            "assert s.flip_rate.shape == (2,)\n"
        )
        subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


@pytest.mark.filterwarnings("ignore:the model's scores all lie between 0 and 1")  # small logits, not sigmoids
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 3, 1, 7), (1, 4, 5, 1), (1, 2, 3, 40)])
def test_any_size_and_number_of_channels(shape):
    def model(images):
        return np.stack([images.mean((1, 2, 3)), np.zeros(len(images))], axis=1)

    images = np.random.default_rng(0).random(shape)
    maps, _ = RISE(model, n_masks=20, scale=False, rng=0)(images, 0)
    assert maps.shape == (shape[0], *shape[2:])
    assert np.isfinite(maps).all()


def test_masks_that_hide_everything_add_nothing():
    """At one cell and keep = 0.05 nearly all masks are empty: the map is that of the others, over all masks."""
    rng = np.random.default_rng(1)
    n_kept = (np.random.default_rng(1).random((100, 1, 1), np.float32) < 0.05).sum()
    called = metfa.Called(lambda x: softmax(logits(x)) * (x != 0).any((1, 2, 3))[:, None], softmax=False)
    maps, _ = RISE(called, n_masks=100, grid=1, keep=0.05, scale=False)(IMAGES[:1], 0, rngs=[rng])
    expected = n_kept * softmax(logits(IMAGES[:1]))[0, 0] / 100 / 0.05
    assert 0 < n_kept < 20
    np.testing.assert_allclose(maps[0], np.full((12, 9), expected))


def test_memory_does_not_grow_with_the_number_of_masks():
    def peak(n_masks):
        explainer = RISE(metfa.Called(logits, batch_size=16), n_masks=n_masks, rng=0)
        explainer(IMAGES[:1], 0)
        tracemalloc.start()
        explainer(IMAGES[:1], 0)
        _, highest = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return highest

    assert peak(4000) < peak(400) + 4000 * 8**2 * 6  # the cells, while they are drawn; masks would take 3.1 MB more


class TestBatches:
    def test_too_large_a_batch_is_halved(self):
        sizes = []

        def model(images):
            sizes.append(len(images))
            if len(images) > 5:
                raise RuntimeError("CUDA out of memory. Tried to allocate ...")
            return logits(images)

        maps, _ = RISE(model, n_masks=40, scale=False)(IMAGES[:1], 0, rngs=generators(1))
        np.testing.assert_allclose(maps[0], by_recipe(IMAGES[0], 0, *generators(1), 40, 8, 0.5))
        assert sizes == [1, 16, 8, 4, 1, 1] + [4] * 9  # and two masks alone

    def test_the_callers_batch_size_is_taken_as_it_is(self):
        def model(images):
            if len(images) > 5:
                raise RuntimeError("out of memory")
            return logits(images)

        with pytest.raises(RuntimeError, match="out of memory"):
            RISE(metfa.Called(model, batch_size=16), n_masks=40)(IMAGES[:1], 0)

    def test_other_faults_come_through(self):
        def model(images):
            if len(images) > 3:
                raise RuntimeError("of its own")
            return logits(images)

        with pytest.raises(RuntimeError, match="of its own"):
            RISE(model)(IMAGES[:1], 0)


class TestScores:
    def test_probabilities_are_used_as_they_are(self):
        expected, _ = RISE(logits, n_masks=20)(IMAGES, 0, rngs=generators())
        maps, _ = RISE(metfa.Called(lambda x: softmax(logits(x)), softmax=False), n_masks=20)(
            IMAGES, 0, rngs=generators()
        )
        np.testing.assert_allclose(maps, expected, atol=1e-12)

    def test_a_second_softmax_is_warned_of(self):
        with pytest.warns(ModelOutputWarning, match=r"write `metfa.Called\(model, softmax=False\)`"):
            RISE(lambda x: softmax(logits(x)), n_masks=20)(IMAGES, 0)

    def test_one_score_a_row(self):
        maps, scores = RISE(metfa.Called(lambda x: logits(x)[:, 0], softmax=False), n_masks=20)(IMAGES)
        assert maps.shape == (3, 12, 9)
        assert scores.shape == (3,)
        with pytest.raises(ValueError, match=r"scores of shape \(16,\).*write `metfa.Called\(model, softmax=False\)`"):
            RISE(lambda x: logits(x)[:, 0])(IMAGES)

    def test_a_model_that_ignores_the_masks_is_told(self):
        with pytest.warns(DegenerateAttributionsWarning, match=r"score 0\.5 under each of 20 masks"):
            maps, _ = RISE(lambda x: np.zeros((len(x), 2)), n_masks=20, rng=0)(IMAGES[:1], 0)
        assert np.isfinite(maps).all()


class TestUnfit:
    @pytest.mark.parametrize(
        ("settings", "error", "message"),
        [
            ({"n_masks": 0}, ValueError, "`n_masks` must be at least 1, got 0"),
            ({"n_masks": 1.5}, TypeError, "`n_masks` must be an integer, got float"),
            ({"grid": 0}, ValueError, "`grid` must be at least 1, got 0"),
            ({"grid": (3, 4, 5, 6)}, ValueError, r"one for each axis such as \(rows, columns\), got \(3, 4, 5, 6\)"),
            ({"keep": 1.0}, ValueError, r"`keep` must lie strictly between 0 and 1, got 1\.0"),
            ({"keep": "half"}, TypeError, "`keep` must be a number, got str: 'half'"),
            ({"baseline": np.nan}, ValueError, r"`baseline` must hold finite numbers.*got nan"),
            ({"baseline": "black"}, TypeError, r"`baseline` must be a number or a sequence.*got 'black'"),
            ({"scale": 1}, TypeError, "`scale` must be True or False, got int: 1"),
        ],
    )
    def test_settings(self, settings, error, message):
        with pytest.raises(error, match=message):
            RISE(logits, **settings)

    @pytest.mark.parametrize(
        ("inputs", "error", "message"),
        [
            (IMAGES[0, 0], ValueError, r"\(batch, channels, height, width\) or volumes .*, got shape \(12, 9\)"),
            (IMAGES[:0], ValueError, r"no rows or no pixels: shape \(0, 2, 12, 9\)"),
            ((IMAGES * 255).astype(np.uint8), TypeError, "got uint8: scale 8-bit images by `images / 255`"),
            ([[1.0]], TypeError, "must be an array of series, images or volumes, got list"),
        ],
    )
    def test_inputs_are_refused_before_the_model_is_called(self, inputs, error, message):
        def model(images):
            raise AssertionError("called")

        with pytest.raises(error, match=message):
            RISE(model)(inputs, 0)

    def test_baseline_of_other_channels(self):
        with pytest.raises(ValueError, match="each of the 2 channels, got 3"):
            RISE(logits, baseline=(0.1, 0.2, 0.3))(IMAGES, 0)

    def test_too_few_generators(self):
        with pytest.raises(ValueError, match="each of the 3 rows, got 1"):
            RISE(logits)(IMAGES, 0, rngs=generators(1))


@pytest.mark.slow
def test_intervals_cover_the_median_at_their_exact_level():
    """300 intervals at N = 10, of samples that lie in one batch; the median of RISE's law from 2,000 other runs.

    The number of intervals that cover is Binomial(300, level) for each of 4 pixels; an alarm with a right
    implementation has a probability below 4e-6. (That the median is an estimate changes the level in second order.)
    """

    def model(images):
        flat = images.reshape(len(images), -1)
        return np.stack([np.sin(5 * flat @ WEIGHTS[:16, 0]), flat @ WEIGHTS[:16, 1]], axis=1)

    image = np.random.default_rng(2).random((1, 1, 4, 4))
    explainer = RISE(model, n_masks=6, grid=3, scale=False)
    runs = metfa.explain(explainer, image, 0, noise=None, n_samples=2000, rng=1, batch_size=1000)
    median = np.median(runs.values[:, 0, ::3, ::3], axis=0)
    trials = metfa.explain(explainer, image, 0, noise=None, n_samples=3000, rng=10**6, batch_size=10)
    values = trials.values[:, 0, ::3, ::3].reshape(300, 10, 2, 2).swapaxes(0, 1)  # each ten of one batch
    interval = metfa.stats.median_interval(values, 0.95)
    covered = ((interval.low <= median) & (median <= interval.high)).sum(0)
    assert interval.confidence_level == pytest.approx(1 - 22 / 1024)
    low, high = binom.ppf([5e-7, 1 - 5e-7], 300, interval.confidence_level)
    assert (low <= covered).all()
    assert (covered <= high).all()


@pytest.mark.weights
def test_finds_the_cat(cat_on_grass, cat_network):
    pixels, where = cat_on_grass
    noise = metfa.noise.Uniform(0.1, bounds=(0, 1))
    sample = metfa.explain(RISE(cat_network, n_masks=60), pixels, noise=noise, n_samples=5, rng=0)
    assert 281 <= sample.target[0] <= 285  # a domestic cat
    important = sample.significance_map()[0] == 1
    assert important.mean() > 0.01
    assert important[where].sum() > 0.9 * important.sum()
