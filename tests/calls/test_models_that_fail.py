"""Models and inputs that do not fit each other: errors say what came, and the advice in them works."""

import numpy as np
import pytest
import torch
from captum import attr
from torch import nn

import metfa
from metfa import FixedBatch, metrics
from metfa.explainers import CAM, LRP, RISE, Gradient, ScoreCAM, from_captum, from_gradcam

SETTINGS = {"noise": metfa.noise.Uniform(0.1, bounds=(0, 1)), "n_samples": 3, "rng": 0}
IMAGES = torch.rand(5, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def made(*layers):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(*(make() for make in layers)).eval()


def net():
    return made(lambda: nn.Conv2d(3, 4, 3), nn.ReLU, nn.Flatten, lambda: nn.Linear(4 * 36, 3))


class OfTwo(nn.Module):
    """Takes two rows."""

    def __init__(self):
        super().__init__()
        self.free = made(
            lambda: nn.Conv2d(3, 4, 3), nn.ReLU, lambda: nn.AdaptiveAvgPool2d(1), nn.Flatten, lambda: nn.Linear(4, 3)
        )

    def forward(self, x):
        return self.free(x.reshape(2, 3, 8, 8))


BY_GRADIENT = {
    "Gradient": Gradient,
    "LRP": LRP,
    "GradCAM": lambda model: from_gradcam("GradCAM", model),
    "Saliency": lambda model: from_captum(model, "Saliency"),
}
AT_LAYERS = {
    "CAM": CAM,
    "ScoreCAM": ScoreCAM,
    "LRP": LRP,
    "GradCAM": lambda model: from_gradcam("GradCAM", model),
    "DeepLift": lambda model: from_captum(model, "DeepLift"),
}


@pytest.mark.parametrize("name", AT_LAYERS)
def test_a_fixed_batch_at_layers(name):
    fixed = OfTwo().eval()
    with pytest.raises(ValueError, match=r"at the layers of a model .* cannot take that, and need a model for any"):
        AT_LAYERS[name](fixed)(IMAGES, [0] * 5)
    with pytest.raises(TypeError, match=r"`model` must be a torch\.nn\.Module"):
        AT_LAYERS[name](FixedBatch(fixed, 2))
    AT_LAYERS[name](fixed.free)(IMAGES, [0] * 5)
    found, _ = Gradient(FixedBatch(fixed, 2))(IMAGES, [0] * 5)
    torch.testing.assert_close(found, Gradient(fixed.free)(IMAGES, [0] * 5)[0])


@pytest.mark.parametrize("size", [1, 3])
def test_the_wrong_size_of_a_fixed_batch(size):
    fixed = OfTwo().eval()
    with pytest.raises(ValueError, match=rf"`size` is {size}, .* write `metfa.FixedBatch\(model, 2\)`"):
        FixedBatch(fixed, size)(IMAGES)
    torch.testing.assert_close(FixedBatch(fixed, 2)(IMAGES), fixed.free(IMAGES))


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((3, 8, 8), "cannot be multiplied"),
        ((2, 1, 8, 8), "3 channels, but got 1"),
        ((2, 4, 8, 8), "3 channels, but got 4"),
        ((2, 3, 9, 9), "cannot be multiplied"),
    ],
)
@pytest.mark.parametrize("make", [Gradient, lambda model: RISE(lambda x: model(torch.as_tensor(x)), n_masks=4, rng=0)])
def test_inputs_of_another_shape(make, shape, said):
    with pytest.raises(ValueError, match=r"`inputs` must be \(batch, \.\.\.\), as the model takes them") as raised:
        metfa.explain(make(net()), torch.rand(shape), **SETTINGS)
    assert str(shape) in str(raised.value)
    assert said in str(raised.value)


@pytest.mark.filterwarnings("ignore:.torch.jit:FutureWarning", "ignore:.torch.jit:DeprecationWarning")
@pytest.mark.parametrize("freeze", [torch.jit.freeze, torch.jit.optimize_for_inference])
def test_frozen_programs(freeze):
    frozen = freeze(torch.jit.script(net()))
    expected, _ = Gradient(net())(IMAGES, 1)
    torch.testing.assert_close(RISE(frozen, n_masks=8, rng=0)(IMAGES, 1), RISE(net(), n_masks=8, rng=0)(IMAGES, 1))
    curves = [metrics.insertion(model, IMAGES, expected, 1, steps=4).values for model in (frozen, net())]
    np.testing.assert_allclose(*curves, rtol=1e-4)
    if freeze is torch.jit.freeze:
        torch.testing.assert_close(Gradient(frozen)(IMAGES, 1)[0], expected)
        assert metfa.explain(Gradient(metfa.models.Normalised(frozen, [0.5] * 3, [0.5] * 3)), IMAGES, 1, **SETTINGS)


def test_grad_cam_in_bfloat16():
    with pytest.raises(TypeError, match=r"in torch\.bfloat16: write `model\.float\(\)` and `inputs\.float\(\)`"):
        from_gradcam("GradCAM", net().bfloat16())(IMAGES.bfloat16(), 1)
    maps, _ = from_gradcam("GradCAM", net().bfloat16().float())(IMAGES.bfloat16().float(), 1)
    assert maps.shape == (5, 8, 8)


@pytest.mark.parametrize("name", ["GuidedBackprop", "Deconvolution", "DeepLift", "LRP"])
def test_functions_have_no_layers_for_captum(name):
    model = net()
    with pytest.raises(TypeError, match=rf"must be a torch\.nn\.Module, because captum's {name} works at its layers"):
        from_captum(lambda images: model(images), name)


@pytest.mark.parametrize("answer", [np.array(["cat"] * 5), np.array([["cat", "dog"]] * 5, dtype=object)])
def test_a_model_that_answers_text(answer):
    with pytest.raises(TypeError, match=r"`model` must return numbers .*, got text such as 'cat'.* `predict_proba`"):
        RISE(lambda images: answer, n_masks=4, rng=0)(IMAGES.numpy())


@pytest.mark.parametrize("name", BY_GRADIENT)
def test_inference_mode_of_the_caller(name):
    explainer = BY_GRADIENT[name](net())
    with torch.inference_mode(), pytest.raises(ValueError, match=r"`torch\.inference_mode\(\)` is on around this call"):
        explainer(IMAGES, 1)
    with torch.inference_mode():
        inside = metfa.explain(explainer, IMAGES, 1, **SETTINGS)
    np.testing.assert_array_equal(inside.values, metfa.explain(explainer, IMAGES, 1, **SETTINGS).values)


def test_maps_of_channels_last_images():
    with pytest.raises(ValueError, match=r"the channels must come first"):
        metrics.insertion(net(), np.zeros((2, 16, 16, 3), np.float32), np.zeros((2, 16, 16)), 1)


def test_labels_of_a_model_are_not_said_of_predict():
    class Labels(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net()

        def forward(self, x):
            return self.net(x).argmax(1)

    with pytest.raises(TypeError, match=r"`model` must return scores \(batch, classes\), got one torch.int64 a row"):
        metfa.explain(from_gradcam("GradCAM", Labels().eval(), "net.0"), IMAGES, **SETTINGS)


@pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning")
def test_one_logit_as_two_classes_and_cam():
    logit = made(
        lambda: nn.Conv2d(3, 4, 3), nn.ReLU, lambda: nn.AdaptiveAvgPool2d(1), nn.Flatten, lambda: nn.Linear(4, 1)
    )
    two = metfa.models.TwoClasses(logit)
    with pytest.raises(ValueError, match="CAM needs a model that averages"):
        CAM(two)(IMAGES, 1)
    assert ScoreCAM(two)(IMAGES, 1)[0].shape == (5, 8, 8)


def test_what_captum_s_lrp_leaves_on_modules_is_removed():
    class Odd(nn.Module):
        def forward(self, x):
            return x * x.sigmoid()

    model = nn.Sequential(*net(), Odd()).eval()
    model[-1].weight = nn.Parameter(torch.ones(1))
    model[0].activations = mine = object()
    before = [set(vars(part)) for part in model.modules()]
    with pytest.raises(TypeError, match="has no rule defined"):
        metfa.explain(attr.LRP(model).attribute, IMAGES, 1, predict=model, **SETTINGS)
    assert [set(vars(part)) for part in model.modules()] == before
    assert model[0].activations is mine
