"""I-GOS against a row-by-row optimisation straight from its definition, and what a batch costs."""

import numpy as np
import pytest
import torch
from scipy import ndimage

import metfa
from metfa._base.warnings import DegenerateAttributionsWarning, ModelOutputWarning
from metfa.calls.blur import Blur
from metfa.explainers.igos import IGOS


def network(dtype=torch.float64, gain=20.0):
    """A small smooth network with decided opinions."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        layers = [
            torch.nn.Conv2d(2, 4, 3, padding=1),
            torch.nn.Tanh(),
            torch.nn.Conv2d(4, 4, 3, padding=1),
            torch.nn.Tanh(),
            torch.nn.AvgPool2d(3),
            torch.nn.Flatten(),
            torch.nn.Linear(4 * 4 * 3, 3),
        ]
    net = torch.nn.Sequential(*layers).eval().to(dtype)
    with torch.no_grad():
        net[-1].weight *= gain
    return net


NET = network()
PICTURES = torch.rand(4, 2, 13, 11, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
PICTURES[1] *= 0.05  # a row on which hiding changes little: its penalty is tuned, and its searches are others
TARGETS = [2, 1, 1, 0]
SMALL = {
    "n_iterations": 6,
    "n_steps": 3,
    "grid": (4, 5),
    "l1_weight": 0.02,
    "tv_weight": 0.2,  # a difference weighs more where there are fewer cells
    "baseline": Blur(2.0, kernel=5, border="reflect"),
}


def generators(n=4):
    return [np.random.default_rng(100 + row) for row in range(n)]


def by_hand(model, image, target, rng, *, n_iterations, n_steps, grid, sigma, reach, l1, tv, std=0.045):
    """Map of one image, with the number of tried steps and of tunings, one forward pass at a time."""
    blurred = image.numpy()
    for axis in (1, 2):
        blurred = ndimage.gaussian_filter1d(blurred, sigma, axis=axis, mode="mirror", radius=reach)
    blurred = torch.from_numpy(blurred)
    seeds = rng.integers(0, 2**63, (n_iterations, n_steps))

    def enlarged(mask):
        return torch.nn.functional.interpolate(mask[None, None], image.shape[1:], mode="bilinear", align_corners=True)[
            0
        ]

    def score(share, noise=0.0):
        scores = model((image * share + blurred * (1 - share) + noise)[None])[0]
        return scores.softmax(0)[target]

    def penalty(mask):
        vertical, horizontal = mask[1:] - mask[:-1], mask[:, 1:] - mask[:, :-1]
        return l1 * (1 - mask).abs().mean() + tv * ((vertical**2).mean() + (horizontal**2).mean())

    mask = torch.ones(grid, dtype=image.dtype)
    history, tries, tunings = [], 0, 0
    for i in range(n_iterations):
        leaf = mask.clone().requires_grad_()
        loss = penalty(leaf)
        for k in range(n_steps):
            noise = np.random.default_rng(seeds[i, k]).standard_normal(tuple(image.shape), np.float32)
            loss = loss + score(enlarged(leaf) * (k + 1) / n_steps, torch.from_numpy(np.float32(std) * noise)) / 20
        (gradient,) = torch.autograd.grad(loss, leaf)
        with torch.no_grad():
            now = float(score(enlarged(mask)))
            history += [now, now] if i == 0 else [now]
            step, total = 200.0, penalty(mask) + now
            while True:
                tried = (mask - step * gradient).clamp(0, 1)
                tries += 1
                if step < 1e-5:
                    break
                if penalty(tried) + score(enlarged(tried)) <= total - 1e-4 * step * (gradient**2).sum():
                    break
                step *= 0.2
            mask = tried
        if n_iterations > 3:
            if i == int(n_iterations / 2) and abs(history[0] - history[i]) <= 0.001:
                l1, tunings = l1 / 10, tunings + 1
            elif i == int(n_iterations / 1.25) and abs(history[0] - history[i]) <= 0.01:
                l1, tunings = l1 / 5, tunings + 1
    return 1 - enlarged(mask)[0].numpy(), tries, tunings


def all_by_hand(model, pictures, targets, **changes):
    settings = {
        "n_iterations": 6,
        "n_steps": 3,
        "grid": (4, 5),
        "sigma": 2.0,
        "reach": 2,
        "l1": 0.02,
        "tv": 0.2,
        **changes,
    }
    return [by_hand(model, *row, **settings) for row in zip(pictures, targets, generators(len(pictures)), strict=True)]


class TestDefinition:
    @pytest.mark.parametrize("batch_size", [None, 1, 4, 5, 100])
    def test_equals_rows_by_hand(self, batch_size):
        maps, scores = IGOS(metfa.Called(NET, batch_size=batch_size), scale=False, **SMALL)(
            PICTURES, TARGETS, rngs=generators()
        )
        expected, tries, tunings = zip(*all_by_hand(NET, PICTURES, TARGETS), strict=True)
        np.testing.assert_allclose(maps, np.array(expected), atol=1e-9)
        np.testing.assert_allclose(scores, NET(PICTURES).detach())
        assert len(set(tries)) > 1  # the rows' searches differ
        assert len(set(tunings)) > 1  # and so do their penalties
        assert [one.max() > 0.05 for one in expected] == [True, False, True, True]

    def test_scaled(self):
        maps, _ = IGOS(NET, **SMALL)(PICTURES, TARGETS, rngs=generators())
        expected = np.array([one for one, *_ in all_by_hand(NET, PICTURES, TARGETS)])
        low, high = expected.min((1, 2), keepdims=True), expected.max((1, 2), keepdims=True)
        np.testing.assert_allclose(maps, (expected - low) / (high - low), atol=1e-9)

    def test_other_settings(self):
        settings = {"n_iterations": 3, "n_steps": 1, "grid": (3, 3), "baseline": Blur(1.0, kernel=3, border="reflect")}
        explainer = IGOS(NET, scale=False, l1_weight=0.1, tv_weight=0.01, noise_std=(0.1, 0.1), **settings)
        maps, _ = explainer(PICTURES, TARGETS, rngs=generators())
        rows = all_by_hand(
            NET, PICTURES, TARGETS, n_iterations=3, n_steps=1, grid=(3, 3), sigma=1.0, reach=1, l1=0.1, tv=0.01, std=0.1
        )
        np.testing.assert_allclose(maps, np.array([one for one, *_ in rows]), atol=1e-9)

    def test_probabilities_are_taken_as_they_are(self):
        def probabilities(x):
            return NET(x).softmax(1)

        ours, scores = IGOS(metfa.Called(probabilities, softmax=False), **SMALL)(PICTURES, TARGETS, rngs=generators())
        np.testing.assert_allclose(ours, IGOS(NET, **SMALL)(PICTURES, TARGETS, rngs=generators())[0], atol=1e-9)
        np.testing.assert_allclose(scores.sum(1), 1)
        with pytest.warns(ModelOutputWarning, match="softmax=False"):
            IGOS(probabilities, **SMALL)(PICTURES, TARGETS, rngs=generators())

    def test_defaults_are_those_of_the_authors_script(self):
        explainer = IGOS(NET)
        blur = explainer.baseline
        assert (explainer.grid, explainer.n_iterations, explainer.n_steps) == (28, 15, 20)
        assert (explainer.l1_weight, explainer.tv_weight, explainer.tv_beta) == (1, 20, 2)
        assert (blur.sigma, blur.kernel, blur.border) == (50, 51, "reflect")
        assert explainer.noise_std == pytest.approx(0.2 * np.mean([0.229, 0.224, 0.225]), abs=5e-4)

    def test_marks_the_patch_that_alone_matters(self):
        def model(images):
            return torch.stack([10 * images[:, :, 4:8, 8:12].mean((1, 2, 3)) - 5, 0 * images[:, 0, 0, 0]], dim=1)

        maps, _ = IGOS(model, grid=(4, 5), baseline=0, rng=0)(torch.ones(2, 1, 16, 20), 0)
        where = torch.zeros(16, 20, dtype=torch.bool)
        where[4:8, 8:12] = True
        assert (maps[:, where].mean(1) > 0.7).all()
        assert (maps[:, :, 16:] < 0.35).all()


class TestRows:
    def test_a_row_that_has_found_its_step_costs_nothing_more(self):
        seen = []

        def model(images):
            seen.append(len(images))
            return NET(images)

        IGOS(metfa.Called(model, batch_size=100), **SMALL)(PICTURES, TARGETS, rngs=generators())
        tries = [tries for _, tries, _ in all_by_hand(NET, PICTURES, TARGETS)]
        # clean scores, the first masks', all points, all tried steps
        alone = 2 * 2  # of the two batches that are larger than all before, two rows are asked about alone
        assert sum(seen) == alone + 4 + 4 + 4 * 6 * 3 + sum(tries)
        assert len(seen) < alone + 2 + 6 + 6 * 12

    def test_same_seed_same_maps_in_any_position(self):
        first, _ = IGOS(NET, rng=5, **SMALL)(PICTURES, TARGETS)
        again, _ = IGOS(metfa.Called(NET, batch_size=2), rng=5, **SMALL)(PICTURES.flip(0), TARGETS[::-1])
        other, _ = IGOS(NET, rng=6, **SMALL)(PICTURES, TARGETS)
        np.testing.assert_allclose(again.flip(0), first, atol=1e-9)
        assert (first - other).abs().max() > 1e-4

    def test_a_pass_that_is_too_large_is_repeated_by_halves(self):
        def model(images):
            if len(images) > 5:
                raise RuntimeError("CUDA out of memory. Tried to allocate ...")
            return NET(images)

        maps, _ = IGOS(model, **SMALL)(PICTURES, TARGETS, rngs=generators())
        np.testing.assert_allclose(maps, IGOS(NET, **SMALL)(PICTURES, TARGETS, rngs=generators())[0], atol=1e-9)
        with pytest.raises(RuntimeError, match="out of memory"):
            IGOS(metfa.Called(model, batch_size=12), **SMALL)(PICTURES, TARGETS, rngs=generators())


class TestModel:
    def test_no_graph_is_kept(self):
        maps, scores = IGOS(NET, **SMALL)(PICTURES.clone().requires_grad_(), TARGETS)
        assert not maps.requires_grad
        assert not scores.requires_grad

    def test_a_constant_model_marks_nothing(self):
        def model(images):
            return 0 * images.flatten(1)[:, :3]

        with pytest.warns(
            DegenerateAttributionsWarning,
            match=r"masks of 4 of 4 rows of one call \(inputs, or noisy copies of them\) are the same everywhere",
        ):
            maps, _ = IGOS(model, **SMALL)(PICTURES, 0)
        assert (maps == 0).all()

    def test_one_score_a_row_and_tuples(self):
        def one(images):
            return NET(images).softmax(1)[:, 1]

        def many(images):
            return NET(images).softmax(1).reshape(-1, 3, 1).expand(-1, -1, 2)

        expected, _ = IGOS(NET, **SMALL)(PICTURES, 1, rngs=generators())
        np.testing.assert_allclose(
            IGOS(metfa.Called(one, softmax=False), **SMALL)(PICTURES, rngs=generators())[0], expected, atol=1e-9
        )
        maps, _ = IGOS(metfa.Called(many, softmax=False), **SMALL)(PICTURES, [(1, 0)] * 4, rngs=generators())
        np.testing.assert_allclose(maps, expected, atol=1e-9)

    def test_none_explains_the_predicted_class(self):
        best = NET(PICTURES).argmax(1).tolist()
        ours, _ = IGOS(NET, **SMALL)(PICTURES, rngs=generators())
        np.testing.assert_array_equal(ours, IGOS(NET, **SMALL)(PICTURES, best, rngs=generators())[0])


class TestPrecision:
    def test_float32_is_close_to_float64(self):
        exact, _ = IGOS(NET, **SMALL)(PICTURES, TARGETS, rngs=generators())
        maps, _ = IGOS(network(torch.float32), **SMALL)(PICTURES.float(), TARGETS, rngs=generators())
        assert maps.dtype == torch.float32
        np.testing.assert_allclose(maps, exact, atol=1e-3)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_halves_give_float32_maps(self, dtype):
        maps, scores = IGOS(network(dtype), **SMALL)(PICTURES.to(dtype), TARGETS)
        assert maps.dtype == torch.float32
        assert scores.dtype == torch.float32
        assert torch.isfinite(maps).all()

    def test_autocast_and_layout(self):
        net, layouts = network(torch.float32), []
        net.register_forward_pre_hook(
            lambda _, args: layouts.append(args[0].is_contiguous(memory_format=torch.channels_last))
        )
        plain, _ = IGOS(net, **SMALL)(PICTURES.float(), TARGETS, rngs=generators())
        layouts.clear()
        last, _ = IGOS(metfa.Called(net, memory_format=torch.channels_last), **SMALL)(
            PICTURES.float(), TARGETS, rngs=generators()
        )
        assert all(layouts)
        np.testing.assert_allclose(last, plain, atol=1e-3)
        maps, _ = IGOS(metfa.Called(net, fast="bfloat16"), **SMALL)(PICTURES.float(), TARGETS, rngs=generators())
        assert maps.dtype == torch.float32
        assert not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("shape", [(1, 2, 1, 1), (1, 2, 1, 9), (2, 2, 9, 1), (1, 1, 3, 40)])
@pytest.mark.filterwarnings("ignore::metfa._base.warnings.DegenerateAttributionsWarning")
def test_any_size(shape):
    def model(images):
        bright = 8 * images.mean((1, 2, 3)) - 4
        return torch.stack([bright, -bright], dim=1)

    maps, _ = IGOS(model, n_iterations=4, n_steps=2, grid=3, baseline=0.0, rng=0)(torch.rand(shape), 0)
    assert maps.shape == (shape[0], *shape[2:])
    assert torch.isfinite(maps).all()


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"n_iterations": 0}, ValueError, "`n_iterations` must be at least 1, got 0"),
        ({"n_steps": 2.0}, TypeError, "`n_steps` must be an integer, got float"),
        ({"grid": 0}, ValueError, "`grid` must be at least 1, got 0"),
        ({"grid": (3, 3, 3, 3)}, ValueError, r"one for each axis such as \(rows, columns\), got \(3, 3, 3, 3\)"),
        ({"l1_weight": -1}, ValueError, "`l1_weight` must be finite and not negative, got -1"),
        ({"tv_weight": float("inf")}, ValueError, "`tv_weight` must be finite and not negative, got inf"),
        ({"tv_beta": 0.5}, ValueError, "`tv_beta` must be finite and at least 1, got 0.5"),
        ({"baseline": "black"}, TypeError, "`baseline` must be a number or a sequence .*got 'black'"),
        ({"noise_std": "0.2"}, TypeError, "`noise_std` must be a number, got str"),
        ({"noise_std": (0.1, -0.1)}, ValueError, "`noise_std` must be finite and not negative, got -0.1"),
        ({"first_step": 0}, ValueError, "`first_step` must be finite and above 0, got 0"),
        ({"score_weight": 0}, ValueError, "`score_weight` must be finite and above 0, got 0"),
    ],
)
def test_settings_are_checked(settings, error, message):
    with pytest.raises(error, match=message):
        IGOS(NET, **settings)


@pytest.mark.parametrize(
    ("settings", "inputs", "error", "message"),
    [
        ({}, PICTURES.numpy(), TypeError, r"`inputs` must be a torch\.Tensor, got ndarray"),
        ({}, PICTURES[0, 0], ValueError, r"got shape \(13, 11\); for series .* write `inputs\[:, None\]`"),
        ({"grid": (3, 3, 3)}, PICTURES, ValueError, r"a pair \(rows, columns\) for images, got \(3, 3, 3\)"),
        ({}, (PICTURES * 255).byte(), TypeError, "floating point, got torch.uint8"),
        ({"noise_std": (0.1, 0.1, 0.1)}, PICTURES, ValueError, "`noise_std` must be .* the 2 channels, got 3"),
        ({"baseline": (0.1, 0.1, 0.1)}, PICTURES, ValueError, "`baseline` must be .* the 2 channels, got 3"),
    ],
)
def test_unfit_inputs_never_reach_the_model(settings, inputs, error, message):
    def model(images):
        raise AssertionError("the model was asked")

    with pytest.raises(error, match=message):
        IGOS(model, **settings)(inputs, 0)


def test_a_baseline_of_another_shape():
    with pytest.raises(ValueError, match=r"`baseline` must return .*\(4, 2, 13, 11\), got \(4, 2, 13\)"):
        IGOS(NET, **{**SMALL, "baseline": lambda images: images[..., 0]})(PICTURES, 0)


@pytest.mark.weights
def test_finds_the_cat(cat_on_grass, cat_network):
    pixels, where = cat_on_grass
    maps, scores = IGOS(cat_network, n_iterations=4, n_steps=5, rng=0)(pixels)
    assert 281 <= int(scores.argmax()) <= 285  # a domestic cat
    strongest = (maps[0] >= maps[0].quantile(0.9)).numpy()
    assert strongest[where].sum() > 0.9 * strongest.sum()
