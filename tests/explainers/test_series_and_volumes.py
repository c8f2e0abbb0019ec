"""Series and volumes against images: the same network and input with an axis of one step, and planted regions."""

import copy
import math
import re

import numpy as np
import pytest
import torch
from pytorch_grad_cam import GradCAM as TheirGradCAM
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget
from skimage.segmentation import slic
from torch import nn

import metfa
from metfa.calls.enlargement import enlargement, enlargements, stretched
from metfa.explainers import (
    CAM,
    IGOS,
    LIME,
    LRP,
    MASK,
    RISE,
    Blocks,
    Blur,
    Gradient,
    ScoreCAM,
    SmoothGrad,
    from_gradcam,
    mean_colour,
)
from metfa.explainers._gradcam_methods import ALONE, OF_ANY_GRID

DTYPE = torch.float64
TARGETS = [0, 2]
OF_AXES = {
    1: (nn.Conv1d, nn.BatchNorm1d, nn.MaxPool1d, nn.AvgPool1d, nn.AdaptiveAvgPool1d),
    2: (nn.Conv2d, nn.BatchNorm2d, nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d),
    3: (nn.Conv3d, nn.BatchNorm3d, nn.MaxPool3d, nn.AvgPool3d, nn.AdaptiveAvgPool3d),
}
pytestmark = [
    pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning"),  # networks and budgets are tiny
]


def network(n_axes, in_channels=3, kernel=3, pool=2):
    """Convolutions, batch normalisations, both poolings, an average and a linear layer, of any number of axes.

    `kernel` and `pool` are numbers, or one for each axis, 1 for an axis of one step.
    """
    conv, norm, max_pool, avg_pool, average = OF_AXES[n_axes]
    padding = kernel // 2 if isinstance(kernel, int) else tuple(side // 2 for side in kernel)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = nn.Sequential(
            conv(in_channels, 5, kernel, padding=padding), norm(5), nn.ReLU(), max_pool(pool),
            conv(5, 6, kernel, padding=padding), nn.ReLU(), avg_pool(pool), conv(6, 4, 1), norm(4), nn.ReLU(),
            average(1), nn.Flatten(), nn.Linear(4, 3),
        )  # fmt: skip
        for part in net:
            if isinstance(part, norm):
                part.running_mean.uniform_(-0.1, 0.1)
                part.running_var.uniform_(0.5, 2)
                nn.init.uniform_(part.weight, 0.5, 2)
        nn.init.normal_(net[-1].weight, std=5)
    return net.to(DTYPE).eval()


def lifted(net, n_axes):
    """The network with one more axis in front, of one step: each kernel gets a side of 1 there."""
    other = network(n_axes, net[0].in_channels, (1, *net[0].kernel_size), _pools(net, n_axes))
    weights = {
        name: value.unsqueeze(2) if value.ndim > 2 else value for name, value in copy.deepcopy(net.state_dict()).items()
    }
    other.load_state_dict(weights)
    return other


def _pools(net, n_axes):
    size = next(part.kernel_size for part in net if "MaxPool" in type(part).__name__)
    sides = (size,) * (n_axes - 1) if isinstance(size, int) else tuple(size)
    return (1, *sides)


def inputs(*shape, seed=1):
    return torch.rand(shape, dtype=DTYPE, generator=torch.Generator().manual_seed(seed))


SERIES = inputs(2, 3, 24)
PICTURES = inputs(2, 3, 12, 16)
FLAT = {1: (network(1), SERIES), 2: (network(2), PICTURES)}
LABELS = {1: np.arange(24) // 4, 2: np.kron([[0, 1], [2, 3]], np.ones((6, 8), dtype=int))}


def generators(n=2, seed=5):
    return [np.random.default_rng([seed, row]) for row in range(n)]


EXPLAINERS = {
    "Gradient": lambda net, n, lead: Gradient(net, scale=False),
    "SmoothGrad": lambda net, n, lead: SmoothGrad(net, n_perturbations=3, scale=False),
    "RISE": lambda net, n, lead: RISE(net, n_masks=30, grid=(*lead, *(4, 3)[:n]), scale=False),
    "LIME": lambda net, n, lead: LIME(
        net,
        n_perturbations=40,
        segmentation=LABELS[n].reshape(*lead, *LABELS[n].shape),
        n_segments_shown=None,
        scale=False,
    ),
    "IGOS": lambda net, n, lead: IGOS(net, n_iterations=2, n_steps=3, grid=(*lead, *(4, 3)[:n]), scale=False),
    "MASK": lambda net, n, lead: MASK(net, n_iterations=8, grid=(*lead, *(4, 3)[:n]), jitter=0, scale=False),
    "MASK by gildenblat": lambda net, n, lead: MASK.gildenblat(
        net, n_iterations=8, grid=(*lead, *(4, 3)[:n]), scale=False
    ),
    "CAM": lambda net, n, lead: CAM(net, scale=False),
    "ScoreCAM": lambda net, n, lead: ScoreCAM(net, scale=False),
    "ScoreCAM of metfa": lambda net, n, lead: ScoreCAM(net, "4", variant="metfa", scale=False),
    "LRP": lambda net, n, lead: LRP(net, scale=False),
    "LRP by epsilon": lambda net, n, lead: LRP(net, composite="epsilon_plus_flat", scale=False),
    "GradCAM": lambda net, n, lead: from_gradcam("GradCAM", net),
}


@pytest.mark.parametrize("n_axes", [1, 2])
@pytest.mark.parametrize("name", EXPLAINERS)
def test_an_axis_of_one_step_changes_nothing(name, n_axes):
    """A series is an image of height 1, an image a volume of depth 1: the network's kernels have a side of 1 there."""
    net, rows = FLAT[n_axes]
    made, raised = (EXPLAINERS[name](one, n_axes, lead) for one, lead in ((net, ()), (lifted(net, n_axes + 1), (1,))))
    random = {"rngs": None} if metfa.sampling.protocol.takes_rngs(made) else {}
    maps, scores = made(rows, TARGETS, **(random and {"rngs": generators()}))
    expected, same = raised(rows[:, :, None], TARGETS, **(random and {"rngs": generators()}))
    assert maps.shape == (2, *rows.shape[2:])
    torch.testing.assert_close(scores, same)
    close = {"rtol": 1e-6, "atol": 1e-6} if "CAM" in name else {"rtol": 1e-8, "atol": 1e-10}
    torch.testing.assert_close(torch.as_tensor(maps), torch.as_tensor(expected)[:, 0], check_dtype=False, **close)
    assert np.ptp(np.asarray(maps)) > 0


def test_cam_of_a_series_is_the_closed_form():
    net = FLAT[1][0]
    maps, _ = CAM(net, scale=False, upsample=False)(SERIES, TARGETS)
    with torch.no_grad():
        features = net[:10](SERIES)
    expected = (net[-1].weight[TARGETS][:, :, None] * features).sum(1)
    torch.testing.assert_close(maps, expected.detach())
    torch.testing.assert_close(maps.mean(1), (net(SERIES)[[0, 1], TARGETS] - net[-1].bias[TARGETS]).detach())


class Planted(nn.Module):
    """Logits of two classes by the first channel within a box, whatever lies elsewhere."""

    def __init__(self, box):
        super().__init__()
        n_axes = len(box)
        self.box = (slice(None), slice(None), *(slice(*side) for side in box))
        self.features = nn.Sequential(OF_AXES[n_axes][0](2, 3, 3, padding=1), nn.Sigmoid())
        self.classes = nn.Linear(3, 2)
        with torch.no_grad():
            for parameter in self.features[0].parameters():
                parameter.zero_()
            self.features[0].weight[0, 0][(1,) * n_axes] = 1
            self.classes.weight.copy_(torch.tensor([[12.0, 0, 0], [-12.0, 0, 0]]))
            self.classes.bias.copy_(torch.tensor([-7.4, 7.4]))

    def forward(self, x):
        return self.classes(self.features(x)[self.box].mean(tuple(range(2, x.ndim))))


BOXES = {1: ((40,), ((12, 20),)), 3: ((8, 12, 12), ((2, 6), (6, 12), (0, 6)))}
FINDERS = {
    "RISE": lambda net, n: RISE(net, n_masks=400, grid=5 if n == 1 else (2, 3, 3), rng=0),
    "LIME": lambda net, n: LIME(
        net,
        segmentation=Blocks(10) if n == 1 else Blocks((4, 2, 2)),
        n_perturbations=300,
        hide=0,
        n_segments_shown=2,
        rng=0,
    ),
    "MASK": lambda net, n: MASK(net, n_iterations=25, grid=10 if n == 1 else 4, baseline=0, mask_blur=None, rng=0),
    "IGOS": lambda net, n: IGOS(
        net, n_iterations=4, n_steps=5, grid=10 if n == 1 else 4, baseline=0, noise_std=0, first_step=20, rng=0
    ),
    "ScoreCAM": lambda net, n: ScoreCAM(net, "features"),
    "GradCAM": lambda net, n: from_gradcam("GradCAM", net, "features"),
}


@pytest.mark.parametrize("n_axes", BOXES)
@pytest.mark.parametrize("name", FINDERS)
def test_what_the_network_reads_is_found(name, n_axes):
    size, box = BOXES[n_axes]
    net = Planted(box).eval()
    rows = 0.2 * torch.rand(2, 2, *size, generator=torch.Generator().manual_seed(0))
    rows[net.box][:, 0] = 1
    maps, scores = FINDERS[name](net, n_axes)(rows, 0)
    assert maps.shape == (2, *size)
    assert (scores[:, 0] > scores[:, 1]).all()
    inside = np.zeros(size, dtype=bool)
    inside[tuple(slice(*side) for side in box)] = True
    for found in np.asarray(maps):
        assert found[inside].mean() > found[~inside].mean() + 0.3  # of a map in [0, 1]


class TestGradCAM:
    def test_a_volume_is_enlarged_linearly_from_the_maps_of_grad_cam(self):
        """grad-cam enlarges volumes by cubic splines. Where the layer is as large as the input, nothing is enlarged."""
        conv, average = nn.Conv3d(1, 4, 3, padding=1), nn.AdaptiveAvgPool3d(1)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            net = nn.Sequential(conv, nn.ReLU(), average, nn.Flatten(), nn.Linear(4, 3)).eval()
        volumes = torch.rand(2, 1, 4, 5, 6, generator=torch.Generator().manual_seed(0))
        maps, _ = from_gradcam("GradCAM", net, "1")(volumes, TARGETS)
        with TheirGradCAM(net, [net[1]]) as theirs:
            expected = theirs(volumes, [ClassifierOutputTarget(target) for target in TARGETS])
        np.testing.assert_allclose(maps, expected, atol=1e-5)

    @pytest.mark.parametrize("name", sorted(set(OF_ANY_GRID) - {"GradCAM"} - set(ALONE)))
    def test_other_methods_of_a_series_are_those_of_a_picture(self, name):
        net = FLAT[1][0].float()
        maps, _ = from_gradcam(name, net)(SERIES.float(), TARGETS)
        expected, _ = from_gradcam(name, lifted(FLAT[1][0], 2).float())(SERIES.float()[:, :, None], TARGETS)
        FLAT[1][0].to(DTYPE)
        torch.testing.assert_close(maps, expected[:, 0], atol=1e-4, rtol=1e-4)

    @pytest.mark.parametrize("name", ["ScoreCAM", "AblationCAM", "FullGrad"])
    def test_methods_for_images_are_refused(self, name):
        with pytest.raises(
            ValueError, match=rf"{name} of grad-cam takes images, not series \(batch, channels, length\)"
        ):
            from_gradcam(name, FLAT[1][0])(SERIES, TARGETS)

    def test_objects_are_refused_with_the_class_to_give(self):
        net = FLAT[1][0]
        explainer = from_gradcam(TheirGradCAM(net, [net[4]]))
        with pytest.raises(ValueError, match=r"give its class: `from_gradcam\('GradCAM', model\)`"):
            explainer(SERIES, TARGETS)
        assert from_gradcam("GradCAM", net)(SERIES, TARGETS)[0].shape == (2, 24)
        with pytest.raises(ValueError, match="`aug_smooth` of grad-cam flips images"):
            from_gradcam("GradCAM", net, aug_smooth=True)(SERIES, TARGETS)


class Attending(nn.Module):
    """A transformer of patches of a series, with a class token."""

    def __init__(self, read="mean", prefix=True):
        super().__init__()
        self.patches = nn.Conv1d(3, 8, 4, stride=4)
        self.token = nn.Parameter(torch.ones(1, 1, 8)) if prefix else None
        self.norm = nn.LayerNorm(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.last = nn.LayerNorm(8)
        self.head = nn.Linear(8, 3)
        self.read = read

    def forward(self, x):
        tokens = self.patches(x).transpose(1, 2)
        if self.token is not None:
            tokens = torch.cat([self.token.expand(len(x), -1, -1), tokens], dim=1)
        normal = self.norm(tokens)
        tokens = self.last(tokens + self.attention(normal, normal, normal)[0])
        return self.head(tokens.mean(1) if self.read == "mean" else tokens[:, 0])


class LinearAlongTime(nn.Module):
    """Works along the last axis, as a layer on tokens does: what shows channels last is not the channels."""

    def __init__(self):
        super().__init__()
        self.along = nn.Linear(24, 24)
        self.head = nn.Linear(24, 3)

    def forward(self, x):
        return self.head(torch.tanh(self.along(x)).mean(1))


def seeded(make):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make().to(DTYPE).eval()


class TestLayouts:
    @pytest.mark.parametrize("prefix", [True, False])
    def test_tokens_of_a_series(self, prefix):
        """The layer before the attention; a class token lies nowhere in the series."""
        net = seeded(lambda: Attending(prefix=prefix))
        maps, _ = ScoreCAM(net)(SERIES, TARGETS)
        kept = (lambda tokens: tokens[:, 1:].movedim(-1, 1)) if prefix else (lambda tokens: tokens.movedim(-1, 1))
        expected, _ = ScoreCAM(net, "norm", reshape_transform=kept)(SERIES, TARGETS)
        torch.testing.assert_close(maps, expected)
        assert maps.shape == (2, 24)

    def test_a_layer_whose_patches_nobody_reads_is_refused(self):
        with pytest.raises(ValueError, match=r"'last' gives tokens of shape .* of which the model reads no patch"):
            ScoreCAM(seeded(lambda: Attending(read="token")), "last")(SERIES, TARGETS)

    @pytest.mark.filterwarnings("ignore:the model's scores all lie between 0 and 1")  # small logits, not sigmoids
    @pytest.mark.parametrize("explain", [ScoreCAM, lambda *a, **k: from_gradcam("GradCAM", *a, **k)])
    def test_where_two_readings_fit_it_is_refused_with_what_to_write(self, explain):
        net = seeded(LinearAlongTime)
        with pytest.raises(ValueError, match="'along' gives a map whose channels may be its second or its last") as e:
            explain(net, "along")(SERIES, TARGETS)
        for advice in ("lambda output: output.movedim(-1, 1)", "lambda output: output"):
            assert f"`reshape_transform={advice}`" in str(e.value)
            maps, _ = explain(net, "along", reshape_transform=eval(advice))(SERIES, TARGETS)
            assert maps.shape == (2, 24)

    def test_a_layer_of_other_axes_is_refused(self):
        """An electroencephalogram, read as a picture of electrodes by time."""
        net = seeded(lambda: nn.Sequential(nn.Unflatten(1, (1, 3)), nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(88, 3)))
        with pytest.raises(ValueError, match=r"\(batch, channels, length\) of 2 rows, got shape \(2, 4, 1, 22\)"):
            ScoreCAM(net, "1")(SERIES, TARGETS)
        squeezed, _ = ScoreCAM(net, "1", reshape_transform=lambda output: output[:, :, 0])(SERIES, TARGETS)
        assert squeezed.shape == (2, 24)
        with pytest.raises(ValueError, match="no convolution that gives a feature map"):
            ScoreCAM(net)(SERIES, TARGETS)

    def test_channels_last_and_back_again(self):
        """A block of a one-dimensional ConvNeXt."""

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.depthwise = nn.Conv1d(3, 3, 3, padding=1, groups=3)
                self.norm, self.mixed = nn.LayerNorm(3), nn.Linear(3, 3)

            def forward(self, x):
                y = self.mixed(self.norm(self.depthwise(x).transpose(1, 2))).relu()
                return x + y.transpose(1, 2)

        net = seeded(
            lambda: nn.Sequential(nn.Conv1d(3, 3, 1), Block(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(3, 3))
        )
        torch.testing.assert_close(ScoreCAM(net)(SERIES, TARGETS)[0], ScoreCAM(net, "1")(SERIES, TARGETS)[0])
        inner, _ = ScoreCAM(net, "1.mixed")(SERIES, TARGETS)
        by_hand, _ = ScoreCAM(net, "1.mixed", reshape_transform=lambda y: y.movedim(-1, 1))(SERIES, TARGETS)
        torch.testing.assert_close(inner, by_hand)

    def test_tokens_of_a_volume(self):
        class OfVolumes(nn.Module):
            def __init__(self):
                super().__init__()
                self.patches, self.norm = nn.Conv3d(1, 4, 2, stride=2), nn.LayerNorm(4)
                self.head = nn.Linear(4, 3)

            def forward(self, x):
                return self.head(self.norm(self.patches(x).flatten(2).transpose(1, 2)).square().mean(1))

        net = seeded(OfVolumes)
        volumes = inputs(2, 1, 4, 6, 8)
        maps, _ = ScoreCAM(net, "norm")(volumes, TARGETS)
        by_hand = lambda tokens: tokens.unflatten(1, (2, 3, 4)).movedim(-1, 1)  # noqa: E731
        torch.testing.assert_close(maps, ScoreCAM(net, "norm", reshape_transform=by_hand)(volumes, TARGETS)[0])


class TestLongSeries:
    """Longer than what a square matrix is made for: the same numbers by other means."""

    @pytest.fixture(autouse=True)
    def short_is_long(self, monkeypatch):
        monkeypatch.setattr("metfa.calls.blur.LONG", 100)
        monkeypatch.setattr("metfa.calls.enlargement.LONG", 100)

    @pytest.mark.parametrize("blur", [Blur(3.0), Blur(20.0, kernel=21, border="reflect"), Blur(60.0)])
    def test_blur(self, blur):
        rows = inputs(1, 2, 130).requires_grad_()
        matrix = torch.as_tensor(blur.matrix(130))
        torch.testing.assert_close(blur(rows), rows @ matrix.T)
        (gradient,) = torch.autograd.grad(blur(rows)[0, 0, 5], rows)
        torch.testing.assert_close(gradient[0, 0], matrix[5])
        half = rows.detach().half()
        assert blur(half).dtype == torch.float16
        torch.testing.assert_close(blur(half).double(), rows.detach() @ matrix.T, atol=2e-3, rtol=0)

    def test_a_blurred_mask_and_jitter(self):
        rows = inputs(1, 2, 130)
        for size in (134, 131):
            by_matrix = rows @ torch.as_tensor(enlargement(130, size, "centres")).T
            torch.testing.assert_close(stretched(rows, [size]), by_matrix)
        expected = Blur(5.0).matrix(130) @ enlargement(8, 130, "nearest")
        np.testing.assert_allclose(enlargements(8, [130], "nearest", Blur(5.0))[0], expected, atol=1e-12)


class TestAnisotropicVoxels:
    def test_a_sigma_for_each_axis(self):
        volumes = inputs(1, 2, 6, 8, 9)
        expected = volumes
        for axis, sigma in zip((2, 3, 4), (0.5, 2.0, 3.0), strict=True):
            matrix = torch.as_tensor(Blur(sigma).matrix(volumes.shape[axis]))
            expected = torch.tensordot(matrix, expected, dims=([1], [axis])).movedim(0, axis)
        torch.testing.assert_close(Blur((0.5, 2.0, 3.0))(volumes), expected)

    def test_the_number_of_axes_must_fit(self):
        with pytest.raises(ValueError, match="`sigma` has 3 numbers, one for each axis, but the inputs have 2 beside"):
            MASK(FLAT[2][0], baseline=Blur((1, 2, 3)), n_iterations=1)(PICTURES, 0)
        with pytest.raises(ValueError, match=r"`grid` must be an integer, or three numbers for volumes, got \(3, 4\)"):
            RISE(lifted(FLAT[2][0], 3), grid=(3, 4))(PICTURES[:, :, None], 0)


class TestBlocks:
    def test_by_number_and_by_size(self):
        np.testing.assert_array_equal(Blocks(3)(np.zeros((7, 1))), [0, 0, 0, 1, 1, 2, 2])
        np.testing.assert_array_equal(Blocks(size=3)(np.zeros((7, 1))), [0, 0, 0, 1, 1, 1, 2])
        assert Blocks((2, 3, 4))(np.zeros((5, 6, 7, 2))).max() == 23
        np.testing.assert_array_equal(Blocks(9)(np.zeros((4, 1))), [0, 1, 2, 3])

    def test_are_the_default_of_series_and_volumes(self):
        (surrogate, _), _ = LIME(FLAT[1][0], n_perturbations=40, rng=0).fit(inputs(2, 3, 80), 0)
        np.testing.assert_array_equal(surrogate.labels, np.arange(80) // 2)
        (surrogate, _), _ = LIME(lifted(FLAT[2][0], 3), n_perturbations=40, rng=0).fit(PICTURES[:, :, None], 0)
        assert surrogate.labels.max() == 24  # a volume of one slice has one block along the depth

    @pytest.mark.parametrize("wrong", [{}, {"grid": 3, "size": 4}])
    def test_one_of_the_two(self, wrong):
        with pytest.raises(TypeError, match="either `grid`, the number of blocks along each axis, or `size`"):
            Blocks(**wrong)

    def test_of_other_axes(self):
        with pytest.raises(ValueError, match="`size` has 2 numbers, one for each axis, but the inputs have 1"):
            LIME(FLAT[1][0], segmentation=Blocks(size=(3, 4)))(SERIES, 0)


def test_supervoxels_are_those_of_scikit_image():
    volume = torch.zeros(1, 1, 6, 8, 8, dtype=DTYPE)
    volume[..., 4:] = 1
    explainer = LIME(
        lambda x: np.stack([np.asarray(x).mean((1, 2, 3, 4)), np.full(len(x), 2.0)], 1),
        segmentation="slic",
        n_perturbations=9,
    )
    (surrogate,), _ = explainer.fit(volume, 0, rngs=generators(1))
    grey = np.repeat(volume.numpy()[0, 0, ..., None], 3, axis=-1)
    np.testing.assert_array_equal(surrogate.labels, slic(grey, sigma=1, start_label=0))


@pytest.mark.parametrize(
    ("rows", "name", "instead"),
    [
        (SERIES, "quickshift", r"Blocks\(40\)` for windows"),
        (SERIES, "slic", r"Blocks\(40\)` for windows"),
        (PICTURES[:, :, None], "quickshift", "'slic'` for supervoxels"),
    ],
)
def test_segmentations_of_images_are_refused_with_another(rows, name, instead):
    with pytest.raises(ValueError, match=rf"`segmentation` '{name}' cuts images .*{instead}"):
        LIME(lambda x: x.flatten(1)[:, :2], segmentation=name)(rows, 0)


def test_mean_colour_is_the_mean_of_each_channel():
    for rows in (SERIES, PICTURES, PICTURES[:, :, None]):
        expected = rows.flatten(2).mean(2)
        torch.testing.assert_close(mean_colour(rows).flatten(2)[..., 0], expected)
        assert mean_colour(rows).shape == rows.shape


class TestUnfit:
    def test_series_without_channels(self):
        with pytest.raises(ValueError, match=r"got shape \(2, 24\); .* write `inputs\[:, None\]`"):
            RISE(network(1, 1))(SERIES[:, 0], 0)
        assert RISE(network(1, 1), n_masks=5, rng=0)(SERIES[:, 0][:, None], 0)[0].shape == (2, 24)

    def test_volumes_without_channels(self):
        net = lifted(network(2, 1), 3)
        volumes = inputs(2, 2, 12, 16)
        with pytest.raises(ValueError, match=r"have 4 axes, but the model's convolutions work on volumes"):
            RISE(net)(volumes, 0)
        assert RISE(net, n_masks=5, rng=0)(volumes[:, None], 0)[0].shape == (2, 2, 12, 16)
        adds_it_itself = nn.Sequential(nn.Unflatten(1, (1, 2)), *net).eval()
        squeezing = torch.nn.Sequential(torch.nn.Flatten(1, 2), adds_it_itself).eval()
        assert RISE(squeezing, n_masks=5, rng=0)(volumes[:, None], 0)[0].shape == (2, 2, 12, 16)

    def test_channels_last(self):
        with pytest.raises(ValueError, match=r"seem to have their 5 channels last: write `inputs.movedim\(-1, 1\)`"):
            Gradient(network(1, 5))(inputs(2, 24, 5), 0)
        with pytest.raises(ValueError, match=r"look like volumes \(batch, depth, height, width, channels\)"):
            RISE(lambda x: x)(torch.rand(1, 8, 9, 10, 3), 0)

    @pytest.mark.parametrize("n_channels", [1, 6])
    def test_series_of_a_recurrent_network(self, n_channels):
        """They would be read as `length` channels of few steps. One channel is known by its size, six by the layer."""

        class Recurrent(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer, self.head = nn.GRU(n_channels, 4, batch_first=True), nn.Linear(4, 3)

            def forward(self, x):
                return self.head(self.layer(x)[0][:, -1])

        net, series = seeded(Recurrent), inputs(2, 24, n_channels)
        explainers = RISE(net, n_masks=5, rng=0), Gradient(net, scale=False)
        for explainer in explainers:
            with pytest.raises(ValueError, match=r"look like series \(batch, length, channels\)") as error:
                explainer(series, 0)
        _, first, function, _, axis = re.findall("`([^`]*)`", str(error.value))
        rows, asked = eval(first, {"inputs": series}), eval(function, {"model": net})
        assert RISE(asked, n_masks=5, rng=0)(rows, 0)[0].shape == (2, 24)
        by_axis, _ = Gradient(net, scale=False, **eval(f"dict({axis})"))(series, 0)
        torch.testing.assert_close(by_axis, Gradient(asked, scale=False)(rows, 0)[0])

    def test_without_a_batch_axis(self):
        for explainer in (RISE(FLAT[2][0]), CAM(FLAT[2][0]), Gradient(FLAT[2][0])):
            with pytest.raises(ValueError, match=r"take images .*without the batch axis write `inputs\[None\]`"):
                explainer(PICTURES[0], 0)

    def test_ragged_series(self):
        ragged = [SERIES[0], SERIES[1, :, :20]]
        message = r"a list of 2 arrays of different shapes, from \(3, 20\) to \(3, 24\).*`inputs=series\[None\]`"
        for explainer in (RISE(FLAT[1][0], n_masks=5), Gradient(FLAT[1][0])):
            with pytest.raises(ValueError, match=message):
                explainer(ragged, 0)
            with pytest.raises(ValueError, match=message):
                metfa.explain(explainer, ragged, noise=metfa.noise.Uniform(0.1), n_samples=3)
            for series in ragged:
                sample = metfa.explain(explainer, series[None], noise=metfa.noise.TimeShift(2), n_samples=3, rng=0)
                assert sample.values.shape == (3, 1, series.shape[1])

    def test_a_list_of_series(self):
        rows = [SERIES[0], SERIES[1]]
        message = r"a list of 2 arrays of shape \(3, 24\), and a batch is one array: write `torch.stack\(inputs\)`"
        for explainer in (RISE(FLAT[1][0], n_masks=5), Gradient(FLAT[1][0])):
            with pytest.raises(TypeError, match=message):
                explainer(rows, 0)
            with pytest.raises(TypeError, match=message):
                metfa.explain(explainer, rows, noise=metfa.noise.Uniform(0.1), n_samples=3)

    def test_four_axes(self):
        with pytest.raises(
            ValueError, match=r"or volumes \(batch, channels, depth, height, width\), got shape \(1, 1, 2"
        ):
            RISE(lambda x: x)(torch.rand(1, 1, 2, 3, 4, 5), 0)


def test_volumes_are_explained_a_mask_at_a_time():
    """Sixteen copies of a volume of 64 x 128 x 128 would take a gigabyte in a layer of 16 channels."""
    seen = []

    def model(x):
        seen.append(len(x))
        return np.stack([x[:, 0, 0, 0, 0], np.full(len(x), 2.0)], axis=1)

    side = math.ceil((16 * 256 * 256) ** (1 / 3))
    RISE(model, n_masks=2, rng=0)(np.ones((1, 1, side, side, side), np.float32), 0)
    assert set(seen) == {1}
