"""Captum's methods by name against Captum's own calls."""

import numpy as np
import pytest
import torch
from captum import attr

import metfa
from metfa._base.warnings import ModelStateWarning
from metfa.explainers import heatmap
from metfa.explainers.captum_adapter import from_captum

PIXELS = torch.rand(2, 3, 6, 5, generator=torch.Generator().manual_seed(1))
SEGMENTS = (torch.arange(30) // 8).reshape(1, 1, 6, 5)


def network():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return torch.nn.Sequential(
            torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(48, 3)
        ).eval()  # fmt: skip


NET = network()
DETERMINISTIC = [
    ("Saliency", {}),
    ("Saliency", {"abs": False}),
    ("InputXGradient", {}),
    ("IntegratedGradients", {"n_steps": 7, "multiply_by_inputs": False}),
    ("DeepLift", {}),
    ("DeepLiftShap", {"baselines": torch.rand(4, 3, 6, 5, generator=torch.Generator().manual_seed(2))}),
    ("GuidedBackprop", {}),
    ("Deconvolution", {}),
    ("FeatureAblation", {"feature_mask": SEGMENTS}),
    ("Occlusion", {"sliding_window_shapes": (3, 2, 2), "strides": (3, 2, 1), "baselines": 0.5}),
    ("ShapleyValues", {"feature_mask": SEGMENTS}),
]
RANDOM = [
    ("GradientShap", {"baselines": torch.zeros(1, 3, 6, 5), "stdevs": 0.1}),
    ("ShapleyValueSampling", {"feature_mask": SEGMENTS, "n_samples": 3}),
    ("Lime", {"feature_mask": SEGMENTS, "n_samples": 20}),
    ("KernelShap", {"feature_mask": SEGMENTS, "n_samples": 20}),
]


@pytest.mark.filterwarnings("ignore:Setting .*backward hooks:UserWarning")
@pytest.mark.parametrize(("name", "settings"), DETERMINISTIC)
def test_is_captums_method(name, settings):
    constructor = {key: value for key, value in settings.items() if key == "multiply_by_inputs"}
    method = getattr(attr, name)(NET, **constructor)
    rest = {key: value for key, value in settings.items() if key not in constructor}
    theirs = heatmap(lambda inputs, target: method.attribute(inputs.clone().requires_grad_(), target=target, **rest))
    with torch.no_grad():
        assert from_captum(NET, name, **settings)(PIXELS, torch.tensor([2, 0])).shape == (2, 6, 5)
    maps = from_captum(NET, name, **settings)(PIXELS, torch.tensor([2, 0]))
    np.testing.assert_allclose(maps, theirs(PIXELS, torch.tensor([2, 0])).detach(), atol=1e-6)
    assert not maps.requires_grad


@pytest.mark.parametrize("name", ["Saliency", "InputXGradient", "IntegratedGradients"])
def test_maps_of_gradients_are_differentiable_where_the_inputs_require_it(name):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3))
    net = net.double().eval()
    explainer = from_captum(net, name)
    inputs = PIXELS[:, :, :2, :2].double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: explainer(x, [0, 1]), (inputs,))
    assert torch.equal(explainer(inputs, [0, 1]).detach(), explainer(inputs.detach(), [0, 1]))
    assert all(parameter.grad is None for parameter in net.parameters())
    assert inputs.grad is None


@pytest.mark.parametrize(("name", "settings"), RANDOM)
def test_random_methods_draw_by_row(name, settings):
    net = network()
    net[-1].weight.data *= 100  # Captum's Lime shrinks small coefficients to zero
    explainer = from_captum(net, name, **settings)
    state = torch.random.get_rng_state()
    samples = [metfa.explain(explainer, PIXELS, 1, noise=None, n_samples=4, rng=0, batch_size=size) for size in (1, 3)]
    np.testing.assert_array_equal(samples[0].values, samples[1].values)
    assert samples[0].values.shape == (4, 2, 6, 5)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_every_method_by_name_is_tried_here():
    from metfa.explainers.captum_adapter import RANDOM as RANDOM_NAMES
    from metfa.explainers.captum_adapter import _methods

    assert {name for name, _ in RANDOM} == RANDOM_NAMES
    assert set(_methods()) == {name for name, _ in DETERMINISTIC + RANDOM} | {"LRP"}


def test_captums_lrp_where_it_has_rules():
    net = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3)).eval()
    rows = torch.rand(2, 4)
    maps = from_captum(net, "LRP", channel_axis=None)(rows, 1)
    theirs = heatmap(attr.LRP(net).attribute, channel_axis=None)(rows.clone().requires_grad_(), 1)
    np.testing.assert_allclose(maps, theirs.detach(), atol=1e-6)


def test_explain_finds_the_model_and_the_predicted_class():
    noise = metfa.noise.Uniform(0.1, bounds=(0, 1))
    sample = metfa.explain(from_captum(NET, "Saliency"), PIXELS, noise=noise, n_samples=4, rng=0)
    assert list(sample.target) == NET(PIXELS).argmax(1).tolist()
    direct = from_captum(NET, "Saliency")(PIXELS)
    np.testing.assert_allclose(sample.vanilla, direct, atol=1e-6)
    positive = from_captum(NET, "InputXGradient", sign="positive", channel_axis=None)(PIXELS, 0)
    assert positive.shape == PIXELS.shape


def test_model_and_inputs_are_left_as_found_also_after_an_exception():
    net = network()
    for name, settings, message in (
        ("GuidedBackprop", {"target": 99}, "`target` must lie in"),
        ("Saliency", {"target": 99}, "`target` must lie in"),
        ("IntegratedGradients", {"target": 0, "n_steps": 0}, "cannot explain this"),
    ):
        inputs, target = PIXELS.clone(), settings.pop("target")
        with pytest.raises(ValueError, match=message):
            from_captum(net, name, **settings)(inputs, target)
        assert not inputs.requires_grad
        assert not any(m._forward_hooks or m._forward_pre_hooks or m._backward_hooks for m in net.modules())
    with pytest.warns(ModelStateWarning, match="training mode"):
        from_captum(net.train(), "Saliency")(PIXELS, 0)
    assert net.training


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("saliency", {}, "no method 'saliency', did you mean 'Saliency'"),
        ("IntegratedGradient", {}, "did you mean 'IntegratedGradients'"),
        ("LayerGradCam", {}, "LayerGradCam needs more than a model"),
        ("LimeBase", {}, "LimeBase needs more than a model"),
        ("FeaturePermutation", {}, "FeaturePermutation is no explainer here: it permutes features across the rows"),
        ("NoiseTunnel", {}, r"NoiseTunnel is no explainer here: `metfa\.explain"),
        ("visualization", {}, "visualization needs more than a model|no method 'visualization'"),
        ("IntegratedGradients", {"steps": 3}, "no setting 'steps', did you mean 'n_steps'"),
        ("Saliency", {"inputs": 3}, "no setting 'inputs'; it has abs|no setting 'inputs', did you mean"),
        ("InputXGradient", {"n_steps": 3}, "no setting 'n_steps'; it has none"),
        ("Occlusion", {}, "Occlusion needs the setting sliding_window_shapes"),
        ("GradientShap", {"n_samples": 3}, "GradientShap needs the setting baselines"),
    ],
)
def test_unfit_names_and_settings(name, settings, message):
    with pytest.raises(ValueError, match=message):
        from_captum(NET, name, **settings)


class TestFlips:
    """The model is asked about the noisy copies where the explainer gives no scores; own explainers give the same."""

    @pytest.mark.filterwarnings("ignore:Input Tensor 0 did not already require gradients")  # Captum's own
    def test_captums_objects_report_them_too(self):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 3)).eval()
        images = torch.rand(2, 3, 2, 2)
        settings = {"noise": metfa.noise.Gaussian(1.0), "n_samples": 8, "rng": 0, "batch_size": 3}
        own = metfa.explain(metfa.explainers.Gradient(model), images, **settings)
        assert (own.flip_rate > 0).any()
        for explainer in (attr.Saliency(model).attribute, from_captum(model, "Saliency")):
            found = metfa.explain(explainer, images, **settings)
            np.testing.assert_array_equal(found.predictions, own.predictions)
            np.testing.assert_array_equal(found.flip_rate, own.flip_rate)
        mapped = metfa.explain(lambda inputs, target: inputs * 2, images, predict=model, **settings)
        np.testing.assert_array_equal(mapped.predictions, own.predictions)
        unknown = metfa.explain(lambda inputs, target: inputs * 2, images, 0, **settings)
        assert unknown.flip_rate is None

    def test_a_model_with_one_output_has_no_class_to_change(self):
        def model(inputs):
            return inputs.sum(axis=1, keepdims=True)

        found = metfa.explain(
            lambda inputs, target: inputs, np.ones((1, 4)), 0, noise=metfa.noise.Gaussian(1.0), n_samples=8, rng=0,
            predict=model,
        )  # fmt: skip
        assert found.flip_rate is None
        assert "flips" not in str(found.summary(threshold=0.5)[0])
