"""What networks return, regions, and a network as a classifier of a region."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import metfa
from metfa.explainers import MASK, RISE, Gradient, ScoreCAM
from metfa.segmentation import RegionModel, predicted_region
from metfa.segmentation._class_maps import class_maps

IMAGES = torch.rand(2, 3, 8, 12, generator=torch.Generator().manual_seed(0))
MAPS = torch.randn(2, 4, 8, 12, generator=torch.Generator().manual_seed(1))
REGION = np.zeros((8, 12), dtype=bool)
REGION[2:5, 3:7] = True


def network():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return torch.nn.Sequential(
            torch.nn.Conv2d(3, 5, 3, padding=1), torch.nn.BatchNorm2d(5), torch.nn.ReLU(), torch.nn.Conv2d(5, 4, 1)
        ).eval()


@pytest.mark.parametrize(
    "output",
    [
        MAPS,
        {"out": MAPS, "aux": MAPS[:, :2]},
        {"logits": MAPS},
        SimpleNamespace(logits=MAPS, loss=None),
    ],
    ids=["tensor", "torchvision", "dict of logits", "object"],
)
def test_maps_are_found_in_what_networks_return(output):
    assert torch.equal(class_maps(output, IMAGES), MAPS)


def test_coarse_maps_are_enlarged_as_by_torch():
    coarse = MAPS[:, :, ::2, ::3]
    expected = torch.nn.functional.interpolate(coarse, (8, 12), mode="bilinear", align_corners=False)
    assert torch.allclose(class_maps(coarse, IMAGES), expected, atol=1e-6)


def test_one_class_becomes_background_and_foreground():
    logits = MAPS[:, :1]
    maps = class_maps(logits, IMAGES)
    assert torch.allclose(maps.softmax(1)[:, 1], logits[:, 0].sigmoid())
    probabilities = logits.sigmoid()
    expected = torch.cat([1 - probabilities, probabilities], dim=1)
    assert torch.equal(class_maps(probabilities, IMAGES, softmax=False), expected)


@pytest.mark.parametrize(
    ("output", "error", "said"),
    [
        (MAPS[0], ValueError, r"4, 8, 12"),
        (MAPS[:, :, 0, 0], ValueError, r"class scores \(batch, classes, height, width\), got shape \(2, 4\)"),
        (MAPS[:1], ValueError, r"\(1, 4, 8, 12\) for 2 inputs"),
        ((MAPS, MAPS), TypeError, "tuple"),
        ({"masks": MAPS}, TypeError, "'out' or 'logits', got one with 'masks'"),
        (None, TypeError, "NoneType"),
        ({}, TypeError, "got one with nothing"),
        (MAPS.argmax(1, keepdim=True), TypeError, "floating point, got torch.int64: labels have none"),
        (MAPS * torch.nan, ValueError, "NaN for row 0"),
    ],
)
def test_anything_else_is_refused(output, error, said):
    with pytest.raises(error, match=said):
        class_maps(output, IMAGES)


def test_numpy_maps_stay_numpy():
    maps = class_maps(MAPS.numpy()[:, :, ::2], IMAGES.numpy())
    assert isinstance(maps, np.ndarray)
    assert maps.shape == (2, 4, 8, 12)


def test_a_region_model_gives_the_means_of_its_pixels():
    net = network()
    with torch.no_grad():
        expected = net(IMAGES)[:, :, REGION].mean(2)
        assert torch.allclose(RegionModel(net, REGION)(IMAGES), expected)
        assert torch.allclose(RegionModel(lambda images: {"out": net(images)}, torch.tensor(REGION))(IMAGES), expected)


def test_a_region_model_is_in_the_mode_of_its_network():
    net = network()
    assert not RegionModel(net, REGION).training
    assert RegionModel(net.train(), REGION).training
    assert not RegionModel(lambda images: images, REGION).training


@pytest.mark.parametrize(
    ("region", "error", "said"),
    [
        (REGION.astype(int), TypeError, "boolean, got int64"),
        (REGION[0], ValueError, r"\(height, width\), got shape \(12,\)"),
        (REGION & False, ValueError, "no pixel"),
        (REGION | True, ValueError, "leaves no context"),
        ("car", TypeError, "region"),
    ],
)
def test_bad_regions_are_refused(region, error, said):
    with pytest.raises(error, match=said):
        RegionModel(network(), region)


def test_bad_networks_are_refused():
    with pytest.raises(TypeError, match="got 3"):
        RegionModel(3, REGION)
    with pytest.raises(TypeError, match="True or False, got str: 'no'"):
        RegionModel(network(), REGION, softmax="no")
    with pytest.raises(TypeError, match="got a RegionModel"):
        RegionModel(RegionModel(network(), REGION), REGION)
    with pytest.raises(ValueError, match=r"\(6, 6\), got \(8, 12\)"):
        RegionModel(network(), REGION)(torch.zeros(1, 3, 6, 6))


def test_the_predicted_region_is_where_the_class_wins():
    net = network()
    with torch.no_grad():
        winners = net(IMAGES[:1]).argmax(1)[0].numpy()
    for target in np.unique(winners):
        assert np.array_equal(predicted_region(net, IMAGES[0], int(target)), winners == target)
        assert np.array_equal(predicted_region(net, IMAGES[:1], int(target)), winners == target)


def test_a_class_that_is_nowhere_is_an_error_that_names_those_that_are():
    dark = lambda images: torch.cat([0 * images[:, :2] + 3, 0 * images], 1)  # noqa: E731
    with pytest.raises(ValueError, match=r"class 3 nowhere in the image; it finds 0 \(96 pixels\)"):
        predicted_region(dark, IMAGES[:1], 3)
    with pytest.raises(ValueError, match=r"0\.\.4, the classes of the model, got 7"):
        predicted_region(dark, IMAGES[:1], 7)


@pytest.mark.parametrize(
    ("image", "target", "error", "said"),
    [
        (IMAGES, 0, ValueError, "one image, got 2"),
        (IMAGES[0].numpy(), 0, TypeError, "torch.Tensor, got ndarray"),
        (IMAGES[0, 0], 0, ValueError, r"\(8, 12\)"),
        ((IMAGES[0] * 255).to(torch.uint8), 0, TypeError, "images / 255"),
        (IMAGES[0] * torch.inf, 0, ValueError, "NaN or infinity"),
        (IMAGES[0], -1, ValueError, "at least 0, got -1"),
        (IMAGES[0], "car", TypeError, "'car'"),
    ],
)
def test_bad_arguments_of_predicted_region(image, target, error, said):
    def never(images):
        raise AssertionError("the model was asked")

    with pytest.raises(error, match=said):
        predicted_region(never, image, target)


@pytest.mark.parametrize(
    "explainer",
    [
        Gradient,
        lambda model: RISE(model, n_masks=40),
        lambda model: MASK(model, n_iterations=3, grid=4, jitter=0, init=0.5),
        lambda model: ScoreCAM(model, layer=model.network[2]),
    ],
    ids=["Gradient", "RISE", "MASK", "ScoreCAM"],
)
def test_explainers_of_classifiers_explain_a_region(explainer):
    model = RegionModel(network(), REGION)
    sample = metfa.explain(
        explainer(model), IMAGES[:1], 2, noise=metfa.noise.Uniform(0.1, bounds=(0, 1)), n_samples=3, rng=0
    )
    assert sample.values.shape == (3, 1, 8, 12)
    assert sample.flip_rate is not None
    with torch.no_grad():
        assert np.allclose(sample.scores, model(IMAGES[:1]), atol=1e-6)


def test_the_gradient_of_a_region_is_that_of_its_mean_score():
    net, images = network(), IMAGES.clone().requires_grad_()
    (expected,) = torch.autograd.grad(net(images)[:, 1, REGION].mean(1).sum(), images)
    maps, _ = Gradient(RegionModel(net, REGION), scale=False)(IMAGES, target=1)
    assert torch.allclose(maps, expected.abs().amax(1), atol=1e-7)


def test_rows_are_known_to_be_independent_of_modules_alone():
    assert RegionModel(network(), REGION).rows_independent
    assert not RegionModel(lambda images: network()(images), REGION).rows_independent
    assert not Gradient(RegionModel(lambda images: network()(images), REGION)).rows_independent


def test_a_function_that_mixes_rows_is_noticed():
    def centred(images):
        return network()(images - images.mean(0, keepdim=True))

    with pytest.raises(
        ValueError, match=r"beside others, the scores of a row move by .* write `metfa\.FixedBatch\(model, 1\)`"
    ):
        metfa.explain(
            Gradient(RegionModel(centred, REGION)), IMAGES, 1, noise=metfa.noise.Uniform(0.1), n_samples=2, rng=0
        )


def test_one_image_without_a_batch_is_told_so():
    with pytest.raises(ValueError, match=r"\(batch, channels, height, width\), got \(3, 8, 12\)"):
        RegionModel(network(), REGION)(IMAGES[0])


def test_a_region_model_is_no_network():
    with pytest.raises(ValueError, match=r"for a RegionModel give its `\.network`"):
        predicted_region(RegionModel(network(), REGION), IMAGES[0], 1)


def test_weights_of_another_precision():
    with pytest.raises(TypeError, match="float32, but the model's weights"):
        predicted_region(network().double(), IMAGES[0].float(), 1)
    with pytest.raises(TypeError, match="float32, but the model's weights"):
        RegionModel(network().double(), REGION)(IMAGES.float())


def test_probabilities_are_not_taken_for_logits():
    def foreground(images):
        return (images[:, :1] * 8 - 4).sigmoid()

    assert predicted_region(metfa.Called(foreground, softmax=False), torch.rand(3, 8, 12), 1).any()
    with pytest.warns(metfa.ModelOutputWarning, match="look like probabilities"):
        predicted_region(foreground, torch.rand(3, 8, 12), 1)
    with pytest.warns(metfa.ModelOutputWarning, match="look like probabilities"):
        predicted_region(lambda images: network()(images).softmax(1), IMAGES[0], 1)


def test_logits_are_not_taken_for_probabilities():
    with pytest.raises(ValueError, match=r"`softmax=False` is for networks that give probabilities.* reach from -"):
        predicted_region(metfa.Called(lambda images: 9 * network()(images), softmax=False), IMAGES[0], 1)
