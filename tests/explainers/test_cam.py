"""CAM against the classifier's weights by hand, against grad-cam where both are defined, and on the real network."""

import numpy as np
import pytest
import torch
import torchvision
from PIL import Image
from pytorch_grad_cam import GradCAM
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget
from skimage import data
from torch import nn
from torch.nn import functional

import metfa
from metfa import DegenerateAttributionsWarning
from metfa.explainers.cam import CAM, enlarged, warn_if_constant

PICTURES = torch.rand(3, 2, 12, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def seeded_network(make, dtype=torch.float64):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make().to(dtype).eval()


def averaging(dtype=torch.float64, act=nn.Tanh):
    return seeded_network(
        lambda: nn.Sequential(
            nn.Conv2d(2, 6, 3, stride=2), act(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.5), nn.Linear(6, 4)
        ),
        dtype,
    )


class Convolutional(nn.Module):
    """Ends as SqueezeNet does, or without its ReLU."""

    def __init__(self, rectified):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(2, 6, 3), nn.ReLU(), nn.Dropout(0.5))
        self.classifier = nn.Sequential(nn.Conv2d(6, 4, 1), nn.ReLU(inplace=True) if rectified else nn.Identity())

    def forward(self, x):
        return self.classifier(self.features(x)).mean((2, 3))


class Functional(nn.Module):
    """A ReLU that no hook sees, and a classifier that is a convolution of one pixel."""

    def __init__(self):
        super().__init__()
        self.conv, self.classifier = nn.Conv2d(2, 6, 3), nn.Conv2d(6, 4, 1)

    def forward(self, x):
        return self.classifier(functional.relu(self.conv(x)).mean((2, 3), keepdim=True)).flatten(1)


NET = averaging()


def by_hand(features, weights, targets, size=None):
    """One row, one channel, one pixel at a time."""
    maps = []
    for row, target in zip(features.numpy(), targets, strict=True):
        total = np.zeros(row.shape[1:])
        for channel, weight in zip(row, weights.detach().numpy()[target], strict=True):
            total += weight * channel
        if size is not None:
            total = functional.interpolate(torch.from_numpy(total)[None, None], size, mode="bilinear")[0, 0].numpy()
        maps.append(total)
    return np.array(maps)


@pytest.mark.parametrize("upsample", [True, False])
def test_equals_the_sum_by_hand(upsample):
    with torch.no_grad():
        features, expected_scores = NET[:2](PICTURES), NET(PICTURES)
    maps, scores = CAM(NET, scale=False, upsample=upsample)(PICTURES, [0, 2, 1])
    expected = by_hand(features, NET[-1].weight, [0, 2, 1], (12, 9) if upsample else None)
    np.testing.assert_allclose(maps, expected, atol=1e-12)
    assert torch.equal(scores, expected_scores)
    assert not scores.requires_grad
    assert not maps.requires_grad


def test_mean_of_the_map_is_the_score_without_bias():
    maps, scores = CAM(NET, scale=False, upsample=False)(PICTURES, [0, 2, 1])
    expected = scores[range(3), [0, 2, 1]] - NET[-1].bias.detach()[[0, 2, 1]]
    np.testing.assert_allclose(maps.mean((1, 2)), expected, atol=1e-12)


def test_scaled_as_the_authors_do():
    """Subtract the smallest, divide by the largest, at the features' resolution; nothing is rectified."""
    raw, _ = CAM(NET, scale=False, upsample=False)(PICTURES)
    maps, _ = CAM(NET, upsample=False)(PICTURES)
    expected = raw - raw.amin((1, 2), keepdim=True)
    np.testing.assert_allclose(maps, expected / expected.amax((1, 2), keepdim=True), atol=1e-12)
    assert (raw < 0).any()


def test_equals_grad_cam_but_for_its_relu():
    """Grad-CAM's weights are the classifier's divided by the number of pixels, where the layer is averaged."""
    net, pictures = averaging(torch.float32), PICTURES.float()
    theirs = GradCAM(net, [net[1]])(pictures, [ClassifierOutputTarget(index) for index in (0, 2, 1)])
    maps, _ = CAM(net, scale=False, upsample=False)(pictures, [0, 2, 1])
    rectified = maps.relu()
    rectified = rectified - rectified.amin((1, 2), keepdim=True)
    scaled = enlarged(rectified / rectified.amax((1, 2), keepdim=True), (12, 9))
    np.testing.assert_allclose(theirs, metfa.explainers.heatmaps.scale_to_unit(scaled), atol=1e-5)


class TestKinds:
    @pytest.mark.parametrize("rectified", [True, False])
    def test_a_convolution_classifies(self, rectified):
        net = seeded_network(lambda: Convolutional(rectified))
        maps, _ = CAM(net, scale=False)(PICTURES, [0, 2, 1])
        with torch.no_grad():
            expected = by_hand(net.features(PICTURES), net.classifier[0].weight.flatten(1), [0, 2, 1], (12, 9))
        np.testing.assert_allclose(maps, expected, atol=1e-12)

    def test_functions_in_between(self):
        net = seeded_network(Functional)
        maps, _ = CAM(net, scale=False)(PICTURES, [0, 2, 1])
        with torch.no_grad():
            expected = by_hand(net.conv(PICTURES).relu(), net.classifier.weight.flatten(1), [0, 2, 1], (12, 9))
        np.testing.assert_allclose(maps, expected, atol=1e-12)

    @pytest.mark.parametrize(
        ("name", "features", "weights"),
        [
            ("resnet18", lambda n, x: torch.nn.Sequential(*list(n.children())[:-2])(x), lambda n: n.fc.weight),
            ("densenet121", lambda n, x: n.features(x).relu(), lambda n: n.classifier.weight),
            ("squeezenet1_1", lambda n, x: n.features(x), lambda n: n.classifier[1].weight.flatten(1)),
            ("mobilenet_v2", lambda n, x: n.features(x), lambda n: n.classifier[1].weight),
        ],
    )
    def test_networks_in_use(self, name, features, weights):
        """The layers of the authors' script."""
        net = seeded_network(lambda: getattr(torchvision.models, name)(weights=None), torch.float32)
        pixels = torch.rand(1, 3, 64, 96, generator=torch.Generator().manual_seed(0))
        maps, _ = CAM(net, scale=False, upsample=False)(pixels, 7)
        with torch.no_grad():
            expected = by_hand(features(net, pixels), weights(net), [7])
        np.testing.assert_allclose(maps, expected, atol=1e-5 * np.abs(expected).max())

    @pytest.mark.parametrize(
        ("make", "found"),
        [
            (lambda: nn.Sequential(nn.Conv2d(2, 6, 3), nn.Flatten(), nn.Linear(420, 4)), r"'2' takes .*\(3, 420\)"),
            (
                lambda: nn.Sequential(nn.Conv2d(2, 6, 3), nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(6, 4)),
                r"'3' takes an input of shape \(3, 6\) that is not the average of .* '0', of shape \(3, 6, 10, 7\)",
            ),
            (lambda: nn.Sequential(averaging(), nn.Linear(4, 5).double()), r"'1' takes an input of shape \(3, 4\)"),
            (lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.AdaptiveMaxPool2d(1), nn.Flatten()), "convolution '0'"),
            (lambda: nn.Sequential(averaging(), nn.Unflatten(1, (2, 2))), r"scores have shape \(3, 2, 2\)"),
        ],
    )
    def test_others_are_refused(self, make, found):
        with pytest.raises(ValueError, match=rf"^CAM needs .*{found}.*use `ScoreCAM\(model\)` or `from_gradcam"):
            CAM(seeded_network(make))(PICTURES, 0)


class TestGraph:
    @pytest.mark.slow
    @pytest.mark.parametrize("settings", [{}, {"scale": False}, {"upsample": False}])
    def test_maps_are_differentiable_where_the_inputs_require_it(self, settings):
        inputs = PICTURES[:2, :, :6, :5].clone().requires_grad_()
        assert torch.autograd.gradcheck(lambda x: CAM(NET, **settings)(x, [0, 1])[0], (inputs,))
        assert torch.autograd.gradgradcheck(lambda x: CAM(NET, **settings)(x, [0, 1])[0].square(), (inputs,))
        assert all(parameter.grad is None and parameter.requires_grad for parameter in NET.parameters())

    def test_no_graph_where_nobody_asks(self):
        assert not CAM(NET)(PICTURES, 0)[0].requires_grad
        with torch.no_grad():
            assert not CAM(NET)(PICTURES.clone().requires_grad_(), 0)[0].requires_grad


class TestPrecision:
    def test_float32_is_float64_to_rounding(self):
        maps, _ = CAM(averaging(torch.float32))(PICTURES.float(), 0)
        assert maps.dtype == torch.float32
        np.testing.assert_allclose(maps, CAM(NET)(PICTURES, 0)[0], atol=1e-5)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_halves_give_float32_maps(self, dtype):
        maps, _ = CAM(averaging(dtype))(PICTURES.to(dtype), 0)
        assert maps.dtype == torch.float32
        np.testing.assert_allclose(maps, CAM(NET)(PICTURES, 0)[0], atol=0.05)

    def test_autocast_and_layout(self):
        net, inputs = averaging(torch.float32), PICTURES.float()
        seen = []
        net[0].register_forward_pre_hook(lambda _, args: seen.append(args[0].stride(1)))
        explainer = CAM(metfa.Called(net, fast="bfloat16", memory_format=torch.channels_last))
        explainer(inputs, 0)  # shows how to fold
        seen.clear()
        maps, scores = explainer(inputs, 0)
        assert set(seen) == {1}
        assert scores.dtype == torch.bfloat16
        assert 0 < (maps - CAM(net)(inputs, 0)[0]).abs().max() < 0.05


@pytest.mark.parametrize("shape", [(2, 2, 1, 7), (1, 2, 8, 1), (1, 2, 3, 40)])
def test_any_size(shape):
    pool, classifier = nn.AdaptiveAvgPool2d(1), nn.Linear(6, 4)
    net = seeded_network(lambda: nn.Sequential(nn.Conv2d(2, 6, 1), pool, nn.Flatten(), classifier))
    maps, _ = CAM(net)(torch.rand(shape, dtype=torch.float64), 0)
    assert maps.shape == (shape[0], *shape[2:])
    assert maps.isfinite().all()


class TestConstant:
    def test_a_dead_layer_gives_zeros_and_one_warning(self):
        net = averaging(act=nn.ReLU)
        with torch.no_grad():
            net[0].weight.zero_()
            net[0].bias.fill_(-1)
        with pytest.warns(DegenerateAttributionsWarning, match="3 of 3 maps are constant: .* '1'") as caught:
            maps, _ = CAM(net)(PICTURES, 0)
        assert len(caught) == 1
        assert (maps == 0).all()

    def test_enlargement_keeps_a_constant(self):
        """The two weights of an interpolation need not sum to 1 in floating point."""
        assert (enlarged(torch.full((1, 7, 7), 0.7), (224, 224)) == 0.7).all()
        warn_if_constant(torch.arange(4.0).reshape(1, 2, 2), "not")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: CAM(len), TypeError, "`model` must be a torch.nn.Module for its layers to be found, got builtin"),
        (lambda: CAM(NET, upsample=1), TypeError, "`upsample` must be True or False, got int: 1"),
        (lambda: CAM(NET, scale=1), TypeError, "`scale` must be True or False, got int: 1"),
        (lambda: CAM(NET)(PICTURES.numpy()), TypeError, r"`inputs` must be a torch\.Tensor, got ndarray"),
        (lambda: CAM(NET)(PICTURES[0]), ValueError, r"on inputs of shape \(2, 12, 9\).*write `inputs\[None\]`"),
        (lambda: CAM(NET)(PICTURES, [0, 1]), ValueError, "each of the 3 inputs, got 2 entries"),
        (lambda: CAM(NET)(PICTURES, torch.ones(3, 4).bool()), TypeError, "`target` must be a class index"),
    ],
)
def test_unfit(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.weights
def test_finds_the_cup():
    loaded = metfa.models.load("efficientnet-lite0")
    pixels = loaded.preprocess(Image.fromarray(data.coffee()))[None]
    explainer = CAM(metfa.Called(loaded.module, fast="bfloat16", memory_format=torch.channels_last))
    sample = metfa.explain(explainer, pixels, noise=metfa.noise.Uniform(0.1, bounds=(0, 1)), n_samples=6, rng=0)
    assert loaded.class_names[sample.target[0]] in ("espresso", "cup")
    important = sample.significance_map()[0] == 1
    cup = np.zeros((224, 224), dtype=bool)
    cup[:170, 30:190] = True
    assert important.sum() > 1000
    assert important[cup].sum() > 0.85 * important.sum()  # the cup's box covers 0.54 of the picture
    row, column = np.unravel_index(sample.median()[0].argmax(), (224, 224))
    assert 20 < row < 110  # in the cup's mouth, where the coffee is
    assert 45 < column < 165
