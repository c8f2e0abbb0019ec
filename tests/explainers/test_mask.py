"""MASK against torch's Adam row by row, in all four of its forms, and its step as a differentiable function."""

import itertools

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage
from skimage import data

import metfa
from metfa._base.warnings import DegenerateAttributionsWarning
from metfa.calls.blur import Blur, blur_and_median
from metfa.explainers.mask import MASK, MaskState


def network(dtype=torch.float64):
    """A small smooth network with decided opinions."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        layers = [
            torch.nn.Conv2d(2, 4, 3, padding=1),
            torch.nn.Tanh(),
            torch.nn.AvgPool2d(3),
            torch.nn.Flatten(),
            torch.nn.Linear(4 * 5 * 4, 3),
        ]
    net = torch.nn.Sequential(*layers).eval().to(dtype)
    with torch.no_grad():
        net[-1].weight *= 5
    return net


NET = network()
PICTURES = torch.rand(3, 2, 16, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
TARGETS = [0, 1, 2]
SMALL = {"n_iterations": 8, "grid": (4, 6)}
FORMS = {"fong": MASK, "gildenblat": MASK.gildenblat, "adv2": MASK.adv2, "adv2_v2": MASK.adv2_v2}


def generators(n=3):
    return [np.random.default_rng(100 + row) for row in range(n)]


def interpolated(image, size, how):
    layer = {"mode": "nearest"} if how == "nearest" else {"mode": "bilinear", "align_corners": how == "corners"}
    return torch.nn.functional.interpolate(image[None], size, **layer)[0]


def gaussian(image, sigma, reach=None, mode="nearest"):
    blurred = np.asarray(image)
    for axis in (-2, -1):
        blurred = ndimage.gaussian_filter1d(
            blurred, sigma, axis=axis, mode=mode, radius=int(np.ceil(4 * sigma)) if reach is None else reach
        )
    return torch.from_numpy(blurred)


def convolved(mask, sigma, reach=None, mode="replicate"):
    """A blur that torch can differentiate: one loop for each tap."""
    reach = int(np.ceil(4 * sigma)) if reach is None else reach
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    weights /= weights.sum()
    padded = torch.nn.functional.pad(mask[None, None], (reach,) * 4, mode=mode)[0, 0]
    rows = sum(weight * padded[i : i + len(mask)] for i, weight in enumerate(weights))
    return sum(weight * rows[:, j : j + mask.shape[1]] for j, weight in enumerate(weights))


def median(image):
    return torch.from_numpy(np.stack([ndimage.median_filter(channel, 11, mode="nearest") for channel in image.numpy()]))


def pairs_written_out(mask, beta):
    total, floor = 0, 1e-5 ** (2 / beta)
    for i, j in itertools.product(*map(range, mask.shape)):
        down = mask[i + 1, j] - mask[i, j] if i + 1 < mask.shape[0] else 0 * mask[i, j]
        right = mask[i, j + 1] - mask[i, j] if j + 1 < mask.shape[1] else 0 * mask[i, j]
        square = down**2 + right**2
        total = total + (square ** (beta / 2) if square > floor else beta / 2 * floor ** (beta / 2 - 1) * square)
    return total


def disc(radius, shape):
    away = [(i - shape[0] // 2) ** 2 + (j - shape[1] // 2) ** 2 for i in range(shape[0]) for j in range(shape[1])]
    hidden = (np.array(away).reshape(shape) <= radius**2).astype(float)
    return 1 - gaussian(hidden, 10 / 224 * max(shape))


@torch.no_grad()
def circle(model, image, blurred, target, grid):
    """The smallest disc of 35 that takes 99 % of what the largest takes."""
    shape = tuple(image.shape[1:])

    def score(mask):
        return float(model((image * mask + blurred * (1 - mask))[None])[0].softmax(0)[target])

    discs = [disc(k * 5 / 224 * max(shape), shape) for k in range(35)]
    scores = [score(mask) for mask in discs]
    left = [(one - scores[-1]) / (score(torch.ones(shape)) - scores[-1]) for one in scores]
    chosen = next((mask for mask, share in zip(discs, left, strict=True) if share < 0.01), discs[-1])
    small = torch.zeros(grid, dtype=torch.float64)
    for i, j in itertools.product(*map(range, grid)):
        small[i, j] = chosen[int((i + 0.5) * shape[0] / grid[0]), int((j + 0.5) * shape[1] / grid[1])]
    small = small.round(decimals=6)  # a disc that covers the image is flat but for rounding
    spread = small.max() - small.min()
    return (small - small.min()) / spread if spread > 0 else 0 * small


def by_hand(form, model, image, target, rng, *, n_iterations, grid):
    """Map of one image, by torch's Adam."""
    fong, jittered = form == "fong", form in ("fong", "adv2_v2")
    how = {"fong": "nearest", "gildenblat": "corners"}.get(form, "centres")
    shape = tuple(image.shape[1:])

    def baseline(image):
        if fong:
            return gaussian(image, 10)
        if form == "gildenblat":
            return (gaussian(image, 5, 5, "mirror") + median(image)) / 2
        return gaussian(image, 10, 5, "mirror") if form == "adv2" else gaussian(image, 3.5, 10, "mirror")

    def enlarged(mask):
        large = interpolated(mask[None], shape, how)[0]
        if fong:
            return convolved(large, 5)
        return convolved(large, 2, 5, "reflect") if form == "adv2_v2" else large

    if fong:
        mask = circle(model, image, baseline(image), target, grid)
    else:
        mask = torch.full(grid, 1.0 if form == "gildenblat" else 0.5, dtype=image.dtype)
    mask = mask.clone().requires_grad_()
    optimiser = torch.optim.Adam([mask], lr=0.1)
    shifts = rng.integers(0, 4, (n_iterations, 2))
    wide = interpolated(image, (shape[0] + 4, shape[1] + 4), "centres") if jittered else image
    hidden = baseline(wide)
    for iteration in range(n_iterations):
        i, j = shifts[iteration] if jittered else (0, 0)
        window = slice(None), slice(i, i + shape[0]), slice(j, j + shape[1])
        kept = enlarged(mask)
        score = model((wide[window] * kept + hidden[window] * (1 - kept))[None])[0].softmax(0)[target]
        deleted = (1 - mask).abs()
        if form == "gildenblat":
            vertical, horizontal = (mask.diff(dim=axis).abs() for axis in (0, 1))
            loss = score + 1e-4 * deleted.mean() + 1e-2 * ((vertical**3).mean() + (horizontal**3).mean())
        elif form == "adv2":
            loss = score + 1e-2 * deleted.mean() + 1e-4 * pairs_written_out(mask, 3)
        else:
            loss = score + 1e-4 * deleted.sum() + 1e-2 * pairs_written_out(mask, 3)
        optimiser.zero_grad()
        (mask.grad,) = torch.autograd.grad(loss, mask)
        optimiser.step()
        mask.data.clamp_(0, 1)
    return 1 - enlarged(mask).detach().numpy()


def all_by_hand(form, model=NET, pictures=PICTURES):
    rows = zip(pictures, TARGETS, generators(), strict=True)
    return np.array([by_hand(form, model, *row, **SMALL) for row in rows])


class TestDefinition:
    @pytest.mark.parametrize("form", FORMS)
    def test_equals_torchs_adam_row_by_row(self, form):
        maps, scores = FORMS[form](NET, scale=False, **SMALL)(PICTURES, TARGETS, rngs=generators())
        expected = all_by_hand(form)
        np.testing.assert_allclose(maps, expected, atol=1e-7)
        np.testing.assert_allclose(scores, NET(PICTURES).detach())
        assert expected.std((1, 2)).min() > 0.01
        scaled, _ = FORMS[form](NET, **SMALL)(PICTURES, TARGETS, rngs=generators())
        low, high = expected.min((1, 2), keepdims=True), expected.max((1, 2), keepdims=True)
        np.testing.assert_allclose(scaled, (expected - low) / (high - low), atol=1e-6)

    def test_circles_differ_by_row(self):
        starts = MASK(NET, **SMALL).start(PICTURES, TARGETS).masks
        for row, image in enumerate(PICTURES):
            expected = circle(NET, image, gaussian(image, 10), TARGETS[row], SMALL["grid"])
            np.testing.assert_allclose(starts[row], expected, atol=1e-9)
        assert len({tuple(start.flatten().tolist()) for start in starts}) > 1

    def test_defaults_are_those_of_the_authors(self):
        explainer = MASK(NET)
        assert (explainer.n_iterations, explainer.learning_rate, explainer.grid, explainer.jitter) == (300, 0.1, 28, 4)
        assert (explainer.l1_weight, explainer.l1_reduction) == (1e-4, "sum")
        assert (explainer.tv_weight, explainer.tv_beta, explainer.tv_reduction) == (1e-2, 3, "sum")
        assert (explainer.baseline, explainer.mask_blur) == (Blur(10.0), Blur(5.0))

    def test_settings_replace_those_of_a_form(self):
        explainer = MASK.adv2(NET, n_iterations=7, init=0.25)
        assert (explainer.n_iterations, explainer.init, explainer.l1_weight) == (7, 0.25, 1e-2)

    def test_blur_and_median(self):
        expected = torch.stack([(gaussian(image, 5, 5, "mirror") + median(image)) / 2 for image in PICTURES])
        np.testing.assert_allclose(blur_and_median(PICTURES), expected, atol=1e-12)

    @pytest.mark.parametrize("make", FORMS.values(), ids=FORMS)
    def test_marks_the_patch_that_alone_matters(self, make):
        def model(images):
            return torch.stack([10 * images[:, :, 12:24, 24:36].mean((1, 2, 3)) - 5, 0 * images[:, 0, 0, 0]], dim=1)

        maps, _ = make(model, n_iterations=150, grid=(8, 10), baseline=0, rng=0)(torch.ones(2, 1, 48, 60), 0)
        where = torch.zeros(48, 60, dtype=torch.bool)
        where[12:24, 24:36] = True
        assert (maps[:, where].mean(1) > 0.5).all()
        assert (maps[:, :, 52:].mean((1, 2)) < 0.5 * maps[:, where].mean(1)).all()


class TestRows:
    @pytest.mark.parametrize("batch_size", [1, 2])
    def test_chunks_do_not_matter(self, batch_size):
        expected, _ = MASK(NET, **SMALL)(PICTURES, TARGETS, rngs=generators())
        maps, _ = MASK(metfa.Called(NET, batch_size=batch_size), **SMALL)(PICTURES, TARGETS, rngs=generators())
        np.testing.assert_allclose(maps, expected, atol=1e-8)

    def test_same_seed_same_maps_in_any_position(self):
        first, _ = MASK(NET, rng=5, **SMALL)(PICTURES, TARGETS)
        again, _ = MASK(NET, rng=5, **SMALL)(PICTURES.flip(0), TARGETS[::-1])
        other, _ = MASK(NET, rng=6, **SMALL)(PICTURES, TARGETS)
        np.testing.assert_allclose(again.flip(0), first, atol=1e-8)
        assert (first - other).abs().max() > 1e-4

    def test_a_pass_that_is_too_large_is_repeated_by_halves(self):
        def model(images):
            if len(images) > 1:
                raise RuntimeError("CUDA out of memory. Tried to allocate ...")
            return NET(images)

        maps, _ = MASK(model, **SMALL)(PICTURES[:1], TARGETS[:1], rngs=generators(1))
        with pytest.raises(RuntimeError, match="out of memory"):
            MASK(metfa.Called(model, batch_size=3), **SMALL)(PICTURES, TARGETS)
        together, _ = MASK(model, **SMALL)(PICTURES, TARGETS, rngs=generators())
        np.testing.assert_allclose(together[:1], maps, atol=1e-8)


class TestStep:
    @pytest.mark.parametrize("form", FORMS)
    def test_a_call_is_its_steps(self, form):
        explainer = FORMS[form](NET, scale=False, **SMALL)
        shifts = np.stack([rng.integers(0, max(explainer.jitter, 1), (8, 2)) for rng in generators()])
        state = explainer.start(PICTURES, TARGETS)
        for iteration in range(8):
            state = explainer.step(PICTURES, TARGETS, state, shifts=shifts[:, iteration])
        assert state.count == 8
        assert not state.masks.requires_grad
        maps, _ = explainer(PICTURES, TARGETS, rngs=generators())
        np.testing.assert_allclose(explainer.maps(state.masks, PICTURES), maps, atol=1e-12)

    @pytest.mark.parametrize("form", ["adv2", "adv2_v2"])
    def test_is_differentiable_in_inputs_and_state(self, form):
        """Finite differences of three steps, where no mask is clipped."""
        explainer = FORMS[form](NET, learning_rate=0.02, **SMALL)
        start = explainer.start(PICTURES[:1], 0)

        def masks(inputs, begin):
            state = MaskState(begin, start.mean, start.square)
            for shift in (0, 1, 3):
                shifts = np.full((1, 2), min(shift, explainer.jitter))
                state = explainer.step(inputs, 0, state, shifts=shifts, create_graph=True)
            return state.masks

        begin = 0.4 + 0.2 * torch.rand(1, 4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        point = PICTURES[:1].clone().requires_grad_(), begin.requires_grad_()
        assert torch.autograd.gradcheck(masks, point, eps=1e-7, atol=1e-4, rtol=1e-3, fast_mode=True)

    @pytest.mark.parametrize("form", FORMS)
    def test_gradients_stay_finite_where_nothing_changes(self, form):
        """Flat masks, and cells whose gradient is exactly 0: square roots and powers have no derivative there."""

        def model(images):
            return torch.stack([(images[:, 0, :4, :4] ** 2).sum((1, 2)), images[:, 0, 0, 0]], dim=1)

        explainer = FORMS[form](model, grid=(4, 6), init=1.0, mask_blur=None)
        inputs = PICTURES.clone().requires_grad_()
        state = explainer.start(inputs, 0)
        for _ in range(3):
            state = explainer.step(inputs, 0, state, create_graph=True)
        (gradient,) = torch.autograd.grad(state.masks.sum(), inputs)
        assert torch.isfinite(gradient).all()
        assert (state.masks == 1).any()

    def test_shifts_default_to_the_middle(self):
        explainer = MASK(NET, **SMALL)
        state = explainer.start(PICTURES, TARGETS)
        middle = explainer.step(PICTURES, TARGETS, state, shifts=np.full((3, 2), 2))
        assert torch.equal(explainer.step(PICTURES, TARGETS, state).masks, middle.masks)

    @pytest.mark.parametrize(
        ("shifts", "message"),
        [
            (np.zeros((2, 2), int), r"`shifts` must be integers \(3, 2\), got int64 \(2, 2\)"),
            (np.zeros((3, 2)), r"`shifts` must be integers \(3, 2\), got float64 \(3, 2\)"),
            (np.full((3, 2), 5), r"`shifts` must lie in 0\.\.4, got 5\.\.5"),
        ],
    )
    def test_unfit_shifts(self, shifts, message):
        explainer = MASK(NET, **SMALL)
        with pytest.raises(ValueError, match=message):
            explainer.step(PICTURES, TARGETS, explainer.start(PICTURES, TARGETS), shifts=shifts)

    def test_needs_a_target(self):
        with pytest.raises(ValueError, match="`target` must be a class, or one for each row"):
            MASK(NET).start(PICTURES, None)


class TestModel:
    def test_a_constant_model_marks_nothing(self):
        def model(images):
            return 0 * images.flatten(1)[:, :3]

        with pytest.warns(
            DegenerateAttributionsWarning,
            match=r"masks of 3 of 3 rows of one call \(inputs, or noisy copies of them\) are the same everywhere",
        ):
            maps, _ = MASK(model, init=1.0, **SMALL)(PICTURES, 0)
        assert (maps == 0).all()

    def test_no_disc_changes_a_constant_model(self):
        def model(images):
            return 0 * images.flatten(1)[:, :3]

        starts = MASK(model, **SMALL).start(PICTURES, 0).masks
        assert (starts == 0).all()  # the largest disc hides all

    def test_none_explains_the_predicted_class(self):
        ours, _ = MASK(NET, **SMALL)(PICTURES, rngs=generators())
        best = NET(PICTURES).argmax(1)
        np.testing.assert_array_equal(ours, MASK(NET, **SMALL)(PICTURES, best, rngs=generators())[0])


class TestPrecision:
    def test_float32_is_close_to_float64(self):
        exact, _ = MASK(NET, **SMALL)(PICTURES, TARGETS, rngs=generators())
        maps, _ = MASK(network(torch.float32), **SMALL)(PICTURES.float(), TARGETS, rngs=generators())
        assert maps.dtype == torch.float32
        np.testing.assert_allclose(maps, exact, atol=1e-3)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_halves_give_float32_maps(self, dtype):
        maps, scores = MASK(network(dtype), **SMALL)(PICTURES.to(dtype), TARGETS)
        assert maps.dtype == torch.float32
        assert scores.dtype == torch.float32
        assert torch.isfinite(maps).all()

    def test_autocast_and_layout(self):
        net, layouts = network(torch.float32), []
        net.register_forward_pre_hook(
            lambda _, args: layouts.append(args[0].is_contiguous(memory_format=torch.channels_last))
        )
        plain, _ = MASK(net, **SMALL)(PICTURES.float(), TARGETS, rngs=generators())
        layouts.clear()
        last, _ = MASK(metfa.Called(net, memory_format=torch.channels_last), **SMALL)(
            PICTURES.float(), TARGETS, rngs=generators()
        )
        assert all(layouts)
        np.testing.assert_allclose(last, plain, atol=1e-3)
        maps, _ = MASK(metfa.Called(net, fast="bfloat16"), **SMALL)(PICTURES.float(), TARGETS, rngs=generators())
        assert maps.dtype == torch.float32
        assert not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("shape", [(1, 2, 1, 1), (1, 2, 1, 9), (2, 2, 9, 1), (1, 1, 3, 40)])
@pytest.mark.filterwarnings("ignore::metfa._base.warnings.DegenerateAttributionsWarning")
def test_any_size(make, shape):
    def model(images):
        bright = 8 * images.mean((1, 2, 3)) - 4
        return torch.stack([bright, -bright], dim=1)

    maps, _ = make(model, n_iterations=3, grid=3, rng=0)(torch.rand(shape), 0)
    assert maps.shape == (shape[0], *shape[2:])
    assert torch.isfinite(maps).all()


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"n_iterations": 0}, ValueError, "`n_iterations` must be at least 1, got 0"),
        ({"learning_rate": 0.0}, ValueError, "`learning_rate` must be finite and above 0, got 0"),
        ({"grid": ()}, ValueError, r"one for each axis such as \(rows, columns\), got \(\)"),
        ({"enlargement": "bilinear"}, ValueError, "'nearest', 'corners', 'centres', got 'bilinear'"),
        ({"l1_reduction": "max"}, ValueError, "`l1_reduction` must be one of 'sum', 'mean', got 'max'"),
        ({"tv_reduction": None}, TypeError, "`tv_reduction` must be one of 'sum', 'mean', got NoneType"),
        ({"mask_blur": 5}, TypeError, "`mask_blur` must be a Blur or None, got int"),
        ({"init": "random"}, ValueError, "`init` must be 'circle' or a number, got 'random'"),
        ({"init": 1.5}, ValueError, r"`init` must be finite and not negative and at most 1, got 1.5"),
        ({"jitter": -1}, ValueError, "`jitter` must be at least 0, got -1"),
        ({"baseline": (0.5, float("nan"))}, ValueError, "`baseline` must hold finite numbers"),
    ],
)
def test_settings_are_checked(settings, error, message):
    with pytest.raises(error, match=message):
        MASK(NET, **settings)


@pytest.mark.parametrize(
    ("settings", "inputs", "error", "message"),
    [
        ({}, PICTURES.numpy(), TypeError, r"`inputs` must be a torch\.Tensor, got ndarray"),
        ({}, PICTURES[0, 0], ValueError, r"got shape \(16, 12\); for series .* write `inputs\[:, None\]`"),
        ({"grid": (3,)}, PICTURES, ValueError, r"a pair \(rows, columns\) for images, got \(3,\)"),
        ({"baseline": (0.1, 0.1, 0.1)}, PICTURES, ValueError, "`baseline` must be .* the 2 channels, got 3"),
    ],
)
def test_unfit_inputs_never_reach_the_model(settings, inputs, error, message):
    def model(images):
        raise AssertionError("the model was asked")

    with pytest.raises(error, match=message):
        MASK(model, **settings)(inputs, 0)


@pytest.mark.weights
def test_finds_the_cat():
    scene = Image.fromarray(data.grass()).convert("RGB").resize((256, 256)).crop((0, 0, 224, 224))
    scene.paste(Image.fromarray(data.chelsea()).crop((75, 0, 375, 300)).resize((120, 120)), (96, 92))
    pixels = torch.from_numpy(np.array(scene)).permute(2, 0, 1)[None].float() / 255
    net = metfa.models.fold_batch_norm(metfa.models.load("efficientnet-lite0").module, pixels)
    maps, scores = MASK(metfa.Called(net, memory_format=torch.channels_last), n_iterations=20, rng=0)(pixels)
    assert 281 <= int(scores.argmax()) <= 285  # a domestic cat
    strongest = maps[0] >= maps[0].quantile(0.9)
    assert strongest[92:212, 96:216].sum() > 0.9 * strongest.sum()  # the head covers 0.29 of the picture
