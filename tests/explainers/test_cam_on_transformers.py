"""CAM, Score-CAM and grad-cam on tokens and on channels last: which layer, which tokens, and what is refused."""

import re
from functools import partial

import numpy as np
import pytest
import pytorch_grad_cam
import torch
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget
from torch import nn

import metfa
from metfa.explainers import CAM, ScoreCAM, from_gradcam
from metfa.explainers._layers import layer_of, watched
from metfa.explainers.cam import enlarged
from metfa.explainers.heatmaps import scale_to_unit

from .transformers_of_all_kinds import FAMILIES, PIXELS, TARGETS, WINDOWED, Family, network, pixels_for, timm_model

pytestmark = pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning")
ALL = {**FAMILIES, **{name: Family(make, 0) for name, make in WINDOWED.items()}}
USUAL_LAYER = {
    "timm's ViT": "blocks.1.norm1",
    "timm's DeiT": "blocks.1.norm1",
    "timm's ViT with registers": "blocks.1.norm1",
    "timm's ViT, average": "blocks.1.norm1",
    "timm's ViT, average behind a class token": "blocks.1.norm1",
    "torchvision's ViT": "encoder.layers.encoder_layer_1.ln_1",
    "Hugging Face's ViT": "vit.layers.1.layernorm_before",
    "Hugging Face's DeiT": "deit.layers.1.layernorm_before",
    "Hugging Face's DINOv2 with registers": "encoder.layer.1.norm1",
    "timm's Swin": "norm",
    "torchvision's Swin": "norm",
    "Hugging Face's Swin": "layers.1.blocks.1.layernorm_before",
}
VIT = FAMILIES["timm's ViT"]
GRAD_CAM = partial(from_gradcam, "GradCAM")


def by_hand(family):
    """How the output of the usual layer lies in the image, written out."""
    return lambda output: (
        output[:, family.prefixes :].unflatten(1, family.grid).movedim(-1, 1)
        if output.ndim == 3
        else output.permute(0, 3, 1, 2)
    )


@pytest.fixture(params=ALL)
def name(request):
    return request.param


def test_the_usual_layer(name):
    family = ALL[name]
    net, pixels = network(family.make), pixels_for(family)
    with torch.no_grad(), watched(net, size=family.size) as watch:
        net(pixels)
    features = watch.feature_map(3)
    assert watch.name.strip("'").endswith(USUAL_LAYER[name])
    assert features.shape == (3, 12, *family.grid)
    torch.testing.assert_close(features, by_hand(family)(watch.output))


@pytest.mark.slow
@pytest.mark.parametrize("explain", [partial(ScoreCAM, scale=False), GRAD_CAM])
def test_as_with_the_transform_by_hand(name, explain):
    family = ALL[name]
    net, pixels = network(family.make), pixels_for(family)
    maps, scores = explain(net)(pixels, TARGETS)
    expected, _ = explain(net, USUAL_LAYER[name], reshape_transform=by_hand(family))(pixels, TARGETS)
    torch.testing.assert_close(maps, expected)
    torch.testing.assert_close(scores, net(pixels).detach().to(scores.dtype))
    for row, target in enumerate(TARGETS):
        torch.testing.assert_close(explain(net)(pixels[row : row + 1], target)[0][0], maps[row])


@pytest.mark.parametrize("method", ["GradCAM", "HiResCAM", "AblationCAM", "EigenCAM"])
def test_as_grad_cam_itself(method, monkeypatch):
    monkeypatch.setenv("TQDM_DISABLE", "1")
    settings = {"reshape_transform": lambda tokens: by_hand(VIT)(tokens).clone()}
    if method == "AblationCAM":
        settings["ablation_layer"] = pytorch_grad_cam.ablation_layer.AblationLayerVit()
    net = network(VIT.make)
    cam = getattr(pytorch_grad_cam, method)(net, [net.blocks[-1].norm1], **settings)
    given = {"rngs": [np.random.default_rng(0)]} if method == "EigenCAM" else {}
    expected = cam(PIXELS[:1], [ClassifierOutputTarget(0)])
    maps, _ = from_gradcam(method, network(VIT.make))(PIXELS[:1], 0, **given)
    np.testing.assert_allclose(maps, scale_to_unit(torch.from_numpy(expected)), atol=1e-5)


def test_score_cam_masks_by_each_entry_of_the_embedding():
    """One entry at a time: it is enlarged, scaled to [0, 1] and multiplied with the image."""
    net, calls = network(VIT.make), []
    net.register_forward_pre_hook(lambda _, args: calls.append(len(args[0])))
    maps, _ = ScoreCAM(net, scale=False)(PIXELS[:1], 2)
    seen = []
    hook = net.blocks[-1].norm1.register_forward_hook(lambda *a: seen.append(a[2].detach()))
    net(PIXELS[:1])
    hook.remove()
    assert sum(calls[:-1]) == 1 + 2 + 12 + 2  # the layer, whether patches are read, one mask an entry, two masks alone
    total = torch.zeros(24, 32, dtype=torch.float64)
    for entry in range(12):
        channel = enlarged(seen[0][:, 1:, entry].reshape(1, 3, 4), (24, 32))
        mask = (channel - channel.min()) / (channel.max() - channel.min())
        total += net(PIXELS[:1] * mask[:, None]).detach().softmax(1)[0, 2] * channel[0]
    torch.testing.assert_close(maps[0], total.relu())


AVERAGING = {
    "timm's ViT, average": (lambda net: net.head, "norm"),
    "timm's Swin": (lambda net: net.head.fc, "norm"),
    "torchvision's Swin": (lambda net: net.head, "norm"),
    "Hugging Face's Swin": (lambda net: net.model.classifier, "model.swin.layernorm"),
}


@pytest.mark.parametrize("name", AVERAGING)
def test_cam_is_exact_where_patches_are_averaged(name):
    family, (classifier, layer) = ALL[name], AVERAGING[name]
    net, seen = network(family.make), []
    hook = net.get_submodule(layer).register_forward_hook(lambda *a: seen.append(a[2].detach()))
    net(PIXELS)
    hook.remove()
    weights, bias = classifier(net).weight.detach()[TARGETS], classifier(net).bias.detach()[TARGETS]
    expected = torch.einsum("bk,bkhw->bhw", weights, by_hand(family)(seen[0]))
    maps, scores = CAM(net, scale=False, upsample=False)(PIXELS, TARGETS)
    torch.testing.assert_close(maps, expected)
    torch.testing.assert_close(maps.mean((1, 2)) + bias, scores[range(3), TARGETS])


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in AVERAGING])
def test_cam_is_refused_where_a_class_token_is_read(name):
    family = FAMILIES[name]
    with pytest.raises(ValueError, match=r"CAM needs a model that averages .* use `ScoreCAM\(model\)` or"):
        CAM(network(family.make))(pixels_for(family), TARGETS)


# Layers behind the last attention of models that read class tokens.
BEHIND = {
    "timm's ViT": ("blocks.1", "blocks.1.norm2", "norm"),
    "timm's DeiT": ("blocks.1", "norm"),
    "timm's ViT with registers": ("blocks.1.ls2", "norm"),
    "torchvision's ViT": ("encoder.layers.encoder_layer_1", "encoder.ln", "encoder"),
    "Hugging Face's ViT": ("vit.layers.1", "vit.layernorm"),
    "Hugging Face's DeiT": ("deit.layernorm",),
}
PAIRS = [(name, layer) for name, layers in BEHIND.items() for layer in layers]


@pytest.mark.parametrize(("name", "layer"), PAIRS)
@pytest.mark.parametrize("explain", [ScoreCAM, GRAD_CAM])
def test_no_layer_is_taken_behind_which_no_patch_is_read(name, layer, explain):
    family = FAMILIES[name]
    net, pixels = network(family.make), pixels_for(family)
    with pytest.raises(ValueError, match=f"{re.escape(layer)}' gives tokens .* reads no patch") as refused:
        explain(net, layer)(pixels, TARGETS)
    (advised,) = re.findall(r"such as `layer='(.*)'`$", str(refused.value))
    assert advised.endswith(USUAL_LAYER[name])
    maps, _ = explain(net, advised)(pixels, TARGETS)
    assert maps.isfinite().all()
    with pytest.raises(ValueError, match="reads no patch"):
        explain(net, layer, reshape_transform=by_hand(family))(pixels, TARGETS)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in net.modules())


def test_gradients_at_the_patches_are_zero_there_and_nowhere_else():
    """What is refused, and what is not, is what the gradients say."""
    for name, layers in {**BEHIND, "timm's ViT, average": ("blocks.1", "norm")}.items():
        family, net = FAMILIES[name], network(FAMILIES[name].make)
        for layer in (*layers, USUAL_LAYER[name]):
            seen = []
            hook = layer_of(net, layer).register_forward_hook(lambda *a, seen=seen: seen.append(a[2]))
            score = net(pixels_for(family).requires_grad_())[:, 1].sum()
            hook.remove()
            (gradient,) = torch.autograd.grad(score, seen)
            is_zero = not gradient[:, family.prefixes :].any()
            assert is_zero == (name in BEHIND and layer != USUAL_LAYER[name])


@pytest.mark.slow
def test_behind_an_average_every_layer_is_taken():
    for name, layers in {"timm's ViT, average": ("blocks.1", "norm"), "Hugging Face's DINOv2 with registers": (
        "dinov2_with_registers.layernorm",)}.items():  # fmt: skip
        for layer in layers:
            for explain in (ScoreCAM, GRAD_CAM):
                maps, _ = explain(network(FAMILIES[name].make), layer)(PIXELS, TARGETS)
                assert maps.isfinite().all()


def test_an_object_of_grad_cam_is_checked_too():
    net = network(VIT.make)
    made = pytorch_grad_cam.GradCAM(net, [net.blocks[-1]], reshape_transform=by_hand(VIT))
    with pytest.raises(ValueError, match="reads no patch"):
        from_gradcam(made)(PIXELS, TARGETS)
    without = pytorch_grad_cam.GradCAM(net, [net.blocks[-1].norm1])
    with pytest.raises(ValueError, match=r"of shape \(3, 13, 12\), with its tokens as channels") as refused:
        from_gradcam(without)(PIXELS, TARGETS)
    advice = r"lambda tokens: tokens[:, 1:].unflatten(1, (3, 4)).movedim(-1, 1)"
    assert f"`reshape_transform={advice}`" in str(refused.value)
    right = pytorch_grad_cam.GradCAM(net, [net.blocks[-1].norm1], reshape_transform=eval(advice))
    torch.testing.assert_close(from_gradcam(right)(PIXELS, TARGETS)[0], GRAD_CAM(net)(PIXELS, TARGETS)[0])


def test_several_layers_of_tokens():
    net = network(VIT.make)
    maps, _ = GRAD_CAM(net, ["blocks.0.norm1", "blocks.1.norm1"])(PIXELS, TARGETS)
    expected, _ = GRAD_CAM(net, ["blocks.0.norm1", "blocks.1.norm1"], reshape_transform=by_hand(VIT))(PIXELS, TARGETS)
    torch.testing.assert_close(maps, expected)
    with pytest.raises(ValueError, match="some give channels first and some channels last, or tokens"):
        GRAD_CAM(net, ["patch_embed.proj", "blocks.1.norm1"])(PIXELS, TARGETS)


def test_other_sizes_of_images_have_other_grids():
    net = network(lambda: timm_model("vit_tiny_patch16_224", dynamic_img_size=True))
    pixels = nn.functional.interpolate(PIXELS, (40, 16), mode="bilinear")
    expected = ScoreCAM(
        net, "blocks.1.norm1", reshape_transform=lambda t: t[:, 1:].unflatten(1, (5, 2)).movedim(-1, 1)
    )(pixels, TARGETS)
    torch.testing.assert_close(ScoreCAM(net)(pixels, TARGETS), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_lower_precision(dtype):
    exact, _ = ScoreCAM(network(VIT.make))(PIXELS, TARGETS)
    maps, _ = ScoreCAM(network(VIT.make, dtype))(PIXELS.to(dtype), TARGETS)
    assert maps.dtype == torch.float32
    assert (maps - exact).abs().mean() < (1e-4 if dtype == torch.float32 else 0.1)
    autocast = metfa.Called(network(VIT.make, torch.float32), fast="bfloat16")
    assert (ScoreCAM(autocast)(PIXELS.float(), TARGETS)[0] - exact).abs().mean() < 0.1
