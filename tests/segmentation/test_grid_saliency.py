"""GridSaliency against the same descent written out row by row, and what it finds where the context is known."""

import numpy as np
import pytest
import torch

import metfa
from metfa.explainers import Blur, mean_colour
from metfa.segmentation import GridSaliency, RegionModel

REGION = np.zeros((12, 16), dtype=bool)
REGION[4:7, 9:13] = True


def network(dtype=torch.float64):
    """A small smooth network that sees some pixels around each."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        layers = [
            torch.nn.Conv2d(2, 4, 5, padding=2),
            torch.nn.BatchNorm2d(4),
            torch.nn.Tanh(),
            torch.nn.Conv2d(4, 3, 7, padding=3),
        ]
    net = torch.nn.Sequential(*layers).eval().to(dtype)
    with torch.no_grad():
        net[-1].weight *= 6
    return net


NET = network()
IMAGES = torch.rand(3, 2, 12, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
TARGETS = [0, 1, 2]
SMALL = {"n_iterations": 12, "grid": (3, 4)}


def by_hand(image, target, *, n_iterations, grid, learning_rate=0.05, momentum=0.5, init=0.5, l1_weight=0.3, sigma=10):
    """Map of one image: the loss of the documentation, and torch's SGD."""
    inside = torch.tensor(REGION)
    baseline = Blur(float(sigma))(image[None])[0]
    clean = NET(image[None]).softmax(1)[0, target][inside].detach()
    cells = torch.full(grid, init, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.SGD([cells], lr=learning_rate * grid[0] * grid[1], momentum=momentum)

    def enlarged():
        return torch.nn.functional.interpolate(cells[None, None], image.shape[1:], mode="bilinear")[0, 0]

    for _ in range(n_iterations):
        optimiser.zero_grad()
        mask = torch.where(inside, 1.0, enlarged())
        found = NET((mask * image + (1 - mask) * baseline)[None]).softmax(1)[0, target][inside]
        loss = l1_weight * cells.mean() + torch.relu(clean - found).sum() / inside.sum()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            cells.clamp_(0, 1)
    return torch.where(inside, 0.0, enlarged().detach())


def test_it_is_the_descent_written_out():
    maps, scores = GridSaliency(NET, region=REGION, **SMALL)(IMAGES, target=TARGETS)
    for image, target, found in zip(IMAGES, TARGETS, maps, strict=True):
        assert torch.allclose(found, by_hand(image, target, **SMALL), atol=1e-10)
    assert torch.allclose(scores, NET(IMAGES)[:, :, REGION].mean(2))


@pytest.mark.parametrize(
    "settings",
    [{"learning_rate": 0.2}, {"momentum": 0.0}, {"init": 0.9}, {"l1_weight": 0.7}],
    ids=lambda settings: next(iter(settings)),
)
def test_each_setting_is_the_one_written_out(settings):
    maps, _ = GridSaliency(NET, 1, region=REGION, **SMALL, **settings)(IMAGES[:1])
    assert torch.allclose(maps[0], by_hand(IMAGES[0], 1, **SMALL, **settings), atol=1e-10)


@pytest.mark.parametrize("batch_size", [1, 2, None])
def test_rows_do_not_depend_on_each_other(batch_size):
    explainer = GridSaliency(metfa.Called(NET, batch_size=batch_size), region=REGION, **SMALL)
    together, _ = explainer(IMAGES, target=TARGETS)
    alone = [GridSaliency(NET, region=REGION, **SMALL)(IMAGES[k : k + 1], target=TARGETS[k])[0][0] for k in range(3)]
    assert torch.allclose(together, torch.stack(alone), atol=1e-10)
    assert explainer.rows_independent


def test_the_object_is_never_in_the_map_and_maps_are_masks():
    maps, _ = GridSaliency(NET, region=REGION, **SMALL)(IMAGES, target=TARGETS)
    assert (maps[:, REGION] == 0).all()
    assert maps.min() >= 0
    assert maps.max() <= 1
    assert (maps[:, ~REGION] > 0).any()


def test_the_object_is_always_shown():
    """A network that sees single pixels needs no context at all."""
    own = torch.nn.Conv2d(2, 3, 1).double().eval()
    maps, _ = GridSaliency(own, 1, region=REGION, grid=(3, 4))(IMAGES[:1])
    assert (maps == 0).all()


def left_matters(images):
    """Class 1 is a bright pixel in an image whose left edge is bright."""
    left = images[:, :, :, :2].mean((1, 2, 3), keepdim=True)
    return torch.cat([0 * images[:, :1], 10 * images[:, :1] * left - 3], dim=1)


@pytest.mark.parametrize(
    "baseline", [0.0, (0.0, 0.0), lambda images: 0 * images], ids=["number", "channels", "function"]
)
def test_it_finds_the_context_that_a_network_needs(baseline):
    explainer = GridSaliency(left_matters, 1, region=REGION, grid=(3, 8), baseline=baseline)
    maps, _ = explainer(torch.ones(1, 2, 12, 16))
    assert maps[0, :, :2].min() > 0.5
    assert maps[0, :, 4:].max() < 0.05


def test_the_mean_colour_as_a_baseline():
    """What is hidden in a scene of one colour is no loss; in one with a bright shore the shore is."""
    explainer = GridSaliency(left_matters, 1, region=REGION, grid=(3, 8), baseline=mean_colour)
    plain, _ = explainer(torch.ones(1, 2, 12, 16))
    assert (plain == 0).all()
    shore = torch.full((1, 2, 12, 16), 0.1)
    shore[..., :2] = 1
    shore[:, :, torch.tensor(REGION)] = 1
    maps, _ = explainer(shore)
    assert maps[0, :, :2].min() > 0.5
    assert maps[0, :, 4:].max() < 0.05


def test_where_all_is_shown_rounding_decides_nothing():
    """From full masks the first step is the penalty's alone, whatever the kernels make of equal probabilities."""
    settings = {"grid": (3, 4), "n_iterations": 1, "init": 1.0}
    for net, images in ((NET, IMAGES), (network(torch.float32), IMAGES.float())):
        maps, _ = GridSaliency(net, 1, region=REGION, **settings)(images)
        assert torch.allclose(maps[:, ~REGION], torch.tensor(1 - 0.05 * 0.3, dtype=maps.dtype), atol=1e-6)


def test_a_region_model_has_the_region_in_it():
    model = RegionModel(NET, REGION)
    maps, _ = GridSaliency(model, **SMALL)(IMAGES, target=TARGETS)
    expected, _ = GridSaliency(NET, region=REGION, **SMALL)(IMAGES, target=TARGETS)
    assert torch.equal(maps, expected)


def test_without_a_target_the_best_class_of_the_region_is_explained():
    best = [int(k) for k in NET(IMAGES)[:, :, REGION].mean(2).argmax(1)]
    maps, _ = GridSaliency(NET, region=REGION, **SMALL)(IMAGES)
    assert torch.equal(maps, GridSaliency(NET, region=REGION, **SMALL)(IMAGES, target=best)[0])


def test_a_target_that_contradicts_the_explainers_class_is_refused():
    explainer = GridSaliency(NET, 1, region=REGION, **SMALL)
    assert torch.equal(explainer(IMAGES, target=1)[0], explainer(IMAGES)[0])
    with pytest.raises(ValueError, match=r"input 2 is 2, but this explainer is made for `target_class` 1"):
        explainer(IMAGES, target=[1, 1, 2])
    best = int(NET(IMAGES[:1])[:, :, REGION].mean(2).argmax())
    other = GridSaliency(NET, (best + 1) % 3, region=REGION, **SMALL)
    with pytest.raises(ValueError, match=rf"input 0 is {best}, but .*`target={(best + 1) % 3}`"):
        metfa.explain(other, IMAGES[:1], noise=metfa.noise.Uniform(0.1), n_samples=2)


def test_networks_that_give_probabilities():
    probabilities = lambda images: NET(images).softmax(1)  # noqa: E731
    maps, _ = GridSaliency(metfa.Called(probabilities, softmax=False), 1, region=REGION, **SMALL)(IMAGES)
    expected, _ = GridSaliency(NET, 1, region=REGION, **SMALL)(IMAGES)
    assert torch.allclose(maps, expected, atol=1e-10)
    maps, _ = GridSaliency(RegionModel(probabilities, REGION, softmax=False), 1, **SMALL)(IMAGES)
    assert torch.allclose(maps, expected, atol=1e-10)


def test_a_single_foreground_class():
    two = lambda images: NET(images)[:, :2]  # noqa: E731
    one = lambda images: two(images)[:, 1:] - two(images)[:, :1]  # noqa: E731
    maps, _ = GridSaliency(one, 1, region=REGION, **SMALL)(IMAGES)
    assert torch.allclose(maps, GridSaliency(two, 1, region=REGION, **SMALL)(IMAGES)[0], atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_results_are_at_least_single(dtype):
    net = network(torch.float32)
    if dtype == torch.float16:
        net = lambda images: NET(images.double()).to(dtype)  # noqa: E731
    maps, scores = GridSaliency(net, 1, region=REGION, **SMALL)(IMAGES.to(dtype))
    assert maps.dtype == scores.dtype == torch.float32
    expected, _ = GridSaliency(NET, 1, region=REGION, **SMALL)(IMAGES)
    assert torch.allclose(maps.double(), expected, atol=1e-4 if dtype == torch.float32 else 0.05)


def test_the_model_is_left_as_found():
    net = network().train()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    net[0].weight.grad = torch.ones_like(net[0].weight)
    with pytest.warns(metfa.ModelStateWarning, match="training mode"):
        GridSaliency(net, 1, region=REGION, **SMALL)(IMAGES)
    assert net.training
    assert all(parameter.requires_grad for parameter in net.parameters())
    assert (net[0].weight.grad == 1).all()
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())


def test_the_model_is_left_as_found_after_an_error():
    net, calls = network(), []

    def breaks(module, given):
        calls.append(len(calls))
        if len(calls) == 4:
            raise RuntimeError("no more")

    handle = net.register_forward_pre_hook(breaks)
    with pytest.raises(RuntimeError, match="no more"):
        GridSaliency(net, 1, region=REGION, **SMALL)(IMAGES)
    handle.remove()
    assert all(parameter.requires_grad and parameter.grad is None for parameter in net.parameters())


def test_inputs_and_generators_are_left_alone():
    images, state = IMAGES.clone(), torch.get_rng_state()
    GridSaliency(NET, 1, region=REGION, **SMALL)(images)
    assert torch.equal(images, IMAGES)
    assert torch.equal(state, torch.get_rng_state())


def test_noise_is_needed_for_it_has_no_randomness_of_its_own():
    with pytest.raises(ValueError, match="takes no `rngs`"):
        metfa.explain(GridSaliency(NET, 1, region=REGION), IMAGES[:1], 1, noise=None)


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"region": None}, TypeError, "`region` is needed"),
        ({"region": REGION[:5]}, ValueError, r"\(12, 16\), got \(5, 16\)"),
        ({"target_class": -1}, ValueError, "got -1"),
        ({"target_class": "car"}, TypeError, "'car'"),
        ({"target_class": 7}, ValueError, r"0\.\.2 .*got 7"),
        ({"grid": 0}, ValueError, "at least 1, got 0"),
        ({"grid": (3, 4, 5)}, ValueError, r"\(3, 4, 5\)"),
        ({"n_iterations": 0}, ValueError, "at least 1, got 0"),
        ({"learning_rate": 0}, ValueError, "above 0, got 0"),
        ({"momentum": 1.0}, ValueError, "below 1, otherwise steps never end, got 1.0"),
        ({"init": 1.5}, ValueError, r"\[0, 1\], got 1.5"),
        ({"l1_weight": -1}, ValueError, "not negative, got -1"),
        ({"baseline": "black"}, TypeError, "'black'"),
        ({"baseline": (0.0, 0.0, 0.0)}, ValueError, "2 channels, got 3"),
        ({"baseline": lambda images: images[:, :1]}, ValueError, r"got \(3, 1, 12, 16\)"),
    ],
)
def test_bad_settings(settings, error, said):
    with pytest.raises(error, match=said):
        GridSaliency(**{"called": NET, "target_class": 1, "region": REGION, **settings})(IMAGES)


def test_a_region_given_twice():
    with pytest.raises(ValueError, match="given twice"):
        GridSaliency(RegionModel(NET, REGION), 1, region=REGION)
    with pytest.raises(TypeError, match="got int"):
        GridSaliency(3, 1, region=REGION)


@pytest.mark.parametrize(
    ("images", "error", "said"),
    [
        (IMAGES[0], ValueError, r"got shape \(2, 12, 16\)"),
        (IMAGES.numpy(), TypeError, "torch.Tensor, got ndarray"),
        (IMAGES * torch.nan, ValueError, "input 0 holds NaN"),
        ((IMAGES * 255).to(torch.uint8), TypeError, "images / 255"),
    ],
)
def test_bad_images(images, error, said):
    with pytest.raises(error, match=said):
        GridSaliency(NET, 1, region=REGION)(images)


def test_a_classifier_is_no_segmentation_network():
    with pytest.raises(ValueError, match=r"class scores \(batch, classes, height, width\), got shape \(3, 3\)"):
        GridSaliency(lambda images: NET(images).mean((2, 3)), 1, region=REGION)(IMAGES)


def without_graph(images):
    with torch.no_grad():
        return NET(images)


@pytest.mark.parametrize("cut", [without_graph, lambda images: NET(images).detach()])
def test_a_network_that_cuts_the_gradient_is_refused(cut):
    """The weight on the mask has a gradient of its own, and would empty the mask: no context needed."""
    with pytest.raises(ValueError, match="no gradient by its input: it detaches them"):
        GridSaliency(cut, 1, region=REGION, **SMALL)(IMAGES)


@pytest.mark.parametrize("value", [torch.inf, -torch.inf])
def test_infinite_scores_behind_the_mask_are_refused(value):
    """They have no gradient, so that the weight alone would decide."""

    def breaks(images):
        immune = images[:, 1, 5, 10] > 0.5  # a pixel of the object, which is never hidden
        dark = images[:, 0].mean((1, 2)) < 0.4
        scores = NET(images).clone()
        scores[dark & ~immune, 1] = value
        return scores

    images = torch.full((2, 2, 12, 16), 0.7, dtype=torch.float64)
    images[1, 1, 5, 10] = 0.2
    explainer = GridSaliency(metfa.Called(breaks, batch_size=1), 1, region=REGION, baseline=0.0, **SMALL)
    assert explainer(images[:1])[0].isfinite().all()
    with pytest.raises(ValueError, match="scores of input 1, whole or with hidden context, are not finite"):
        explainer(images)


def test_probabilities_and_logits_are_told_apart():
    probabilities = lambda images: NET(images).softmax(1)  # noqa: E731
    with pytest.raises(ValueError, match="contradicts the RegionModel"):
        GridSaliency(metfa.Called(RegionModel(probabilities, REGION), softmax=False), 1)
    with pytest.raises(ValueError, match="for networks that give probabilities"):
        GridSaliency(metfa.Called(NET, softmax=False), 1, region=REGION, **SMALL)(IMAGES)
    with pytest.warns(metfa.ModelOutputWarning, match="look like probabilities"):
        GridSaliency(lambda images: NET(images)[:, :1].sigmoid(), 1, region=REGION, **SMALL)(IMAGES)


def test_weights_of_another_precision():
    with pytest.raises(TypeError, match="float32, but the model's weights"):
        GridSaliency(NET, 1, region=REGION)(IMAGES.float())


def sharp(images):
    """Finds the object at +13 with its shore, loses it at -30 without: between them no gradient tells the way."""
    shore = images[..., :4].mean((1, 2, 3), keepdim=True)
    found = 5 * (12 * images[:, :1] * shore - 6)
    return torch.cat([0 * found, found], 1)


def shore_scene():
    image = torch.full((1, 1, 12, 16), 0.05)
    image[..., :4], image[..., 4:7, 9:13] = 0.9, 0.8
    return image


def test_a_network_that_is_sure_either_way():
    """A mask that sets out where the object is lost for good has no gradient, and would be emptied by its weight."""
    maps, _ = GridSaliency(sharp, 1, region=REGION, baseline=0.0)(shore_scene())
    assert maps[0, :, :3].min() > 0.5
    alone = shore_scene() * torch.as_tensor(REGION)
    assert sharp(alone)[0, 1, 5, 10] < -25


def test_rows_that_set_out_again_do_not_touch_others():
    images = torch.cat([shore_scene(), 0.9 * shore_scene()])
    together, _ = GridSaliency(sharp, 1, region=REGION, baseline=0.0)(images)
    alone = [GridSaliency(sharp, 1, region=REGION, baseline=0.0)(images[k : k + 1])[0][0] for k in range(2)]
    assert torch.allclose(together, torch.stack(alone), atol=1e-6)


def test_a_descent_that_went_astray_is_told():
    with pytest.warns(
        metfa.DegenerateAttributionsWarning, match=r"the masks of 1 of 1 row of one call \(.*\) lose more of the object"
    ):
        GridSaliency(sharp, 1, region=REGION, baseline=0.0, learning_rate=50.0)(shore_scene())
