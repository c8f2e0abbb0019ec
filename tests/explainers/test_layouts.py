"""Layers whose channels are not on axis 1: Swin, ConvNeXt and ViT of torchvision and timm, with random weights.

What is right: the same explainer on the layer's output permuted by hand, in a module of its own.
"""

import os
from functools import partial

import numpy as np
import pytest
import pytorch_grad_cam
import timm
import torch
import torchvision
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget
from torch import nn
from torchvision.models.convnext import CNBlockConfig, ConvNeXt
from torchvision.models.swin_transformer import SwinTransformer
from torchvision.models.vision_transformer import VisionTransformer

from metfa.explainers import LRP, ScoreCAM, from_gradcam
from metfa.explainers._layers import watched
from metfa.explainers.heatmaps import scale_to_unit

pytestmark = pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning")
PIXELS = torch.rand(2, 3, 32, 40, generator=torch.Generator().manual_seed(1))
TARGETS = [1, 3]


@pytest.fixture(autouse=True)
def no_progress_bars(monkeypatch):
    monkeypatch.setitem(os.environ, "TQDM_DISABLE", "1")


def torchvision_swin():
    sizes = {"patch_size": [4, 4], "embed_dim": 6, "depths": [1, 1], "num_heads": [2, 2], "window_size": [2, 2]}
    return SwinTransformer(**sizes, num_classes=5)


def timm_swin():
    sizes = {"embed_dim": 6, "depths": (1, 1), "num_heads": (2, 2), "window_size": 2, "img_size": (32, 40)}
    return timm.create_model("swin_tiny_patch4_window7_224", num_classes=5, **sizes)


def torchvision_convnext():
    return ConvNeXt([CNBlockConfig(6, 12, 1), CNBlockConfig(12, None, 1)], num_classes=5)


def timm_convnext():
    return timm.create_model("convnext_tiny", num_classes=5, depths=(1, 1, 1, 1), dims=(6, 12, 8, 10))


def torchvision_vit():
    sizes = {"image_size": 32, "patch_size": 8, "num_layers": 2, "num_heads": 2, "hidden_dim": 6, "mlp_dim": 12}
    made = VisionTransformer(**sizes, num_classes=5)
    nn.init.normal_(made.heads.head.weight)  # it starts at 0
    return made


def timm_vit():
    sizes = {"img_size": (32, 40), "patch_size": 8, "embed_dim": 6, "depth": 2, "num_heads": 2}
    return timm.create_model("vit_tiny_patch16_224", num_classes=5, **sizes)


def network(make):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make().eval()


class First(nn.Module):
    def forward(self, x):
        return x.permute(0, 3, 1, 2)


class Last(nn.Module):
    def forward(self, x):
        return x.permute(0, 2, 3, 1)


def permuted(make, layer):
    """The network with a module "<layer>.1" whose output is the layer's, channels first."""
    net = network(make)
    parent, _, name = layer.rpartition(".")
    net.get_submodule(parent)._modules[name] = nn.Sequential(net.get_submodule(layer), First(), Last()).eval()
    return net


# A layer with channels last, and one of the same network with channels first.
CHANNELS_LAST = {
    "torchvision's Swin": (torchvision_swin, "norm", "permute"),
    "torchvision's Swin, a block": (torchvision_swin, "features.3", "features.0.0"),
    "timm's Swin": (timm_swin, "layers.1", "patch_embed.proj"),
    "torchvision's ConvNeXt": (torchvision_convnext, "features.3.0.block.2", "features.3"),
    "timm's ConvNeXt": (timm_convnext, "stages.1.blocks.0.norm", "stages.1.blocks.0"),
}


@pytest.fixture(params=CHANNELS_LAST)
def case(request):
    return CHANNELS_LAST[request.param]


def as_it_is(output):
    return output


@pytest.mark.parametrize("variant", ["original", "grad-cam"])
def test_score_cam(case, variant):
    make, last, first = case
    settings = {"variant": variant, "scale": False}
    found = ScoreCAM(network(make), last, **settings)
    by_hand = ScoreCAM(permuted(make, last), f"{last}.1", reshape_transform=as_it_is, **settings)
    torch.testing.assert_close(found.channel_weights(PIXELS, TARGETS), by_hand.channel_weights(PIXELS, TARGETS))
    maps, scores = found(PIXELS, TARGETS)
    torch.testing.assert_close(maps, by_hand(PIXELS, TARGETS)[0])
    torch.testing.assert_close(scores, network(make)(PIXELS).detach())
    found = ScoreCAM(network(make), first, **settings)(PIXELS, TARGETS)
    torch.testing.assert_close(
        found, ScoreCAM(network(make), first, reshape_transform=as_it_is, **settings)(PIXELS, TARGETS)
    )


METHODS = ["GradCAM", "HiResCAM", "LayerCAM", "GradCAMPlusPlus", "AblationCAM", "ScoreCAM", "EigenCAM"]


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_grad_cam_s_methods(case, name):
    make, last, _ = case
    by_hand = permuted(make, last)
    kind = getattr(pytorch_grad_cam, name)
    for row in range(2):  # EigenCAM is decided by rounding in a batch
        cam = kind(by_hand, [by_hand.get_submodule(f"{last}.1")])
        expected = cam(PIXELS[row : row + 1], [ClassifierOutputTarget(TARGETS[row])])
        given = {"rngs": [np.random.default_rng(0)]} if name == "EigenCAM" else {}
        maps, _ = from_gradcam(name, network(make), last)(PIXELS[row : row + 1], TARGETS[row], **given)
        np.testing.assert_allclose(maps, scale_to_unit(torch.from_numpy(expected)), atol=1e-4)


def test_an_object_of_grad_cam_is_made_for_its_layer():
    net = network(torchvision_swin)
    right = pytorch_grad_cam.GradCAM(net, [net.norm], reshape_transform=lambda x: x.permute(0, 3, 1, 2).clone())
    maps, _ = from_gradcam(right)(PIXELS, TARGETS)
    np.testing.assert_allclose(maps, from_gradcam("GradCAM", net, "norm")(PIXELS, TARGETS)[0], atol=1e-5)
    wrong = from_gradcam(pytorch_grad_cam.GradCAM(net, [net.norm]))
    with pytest.raises(ValueError, match=r"reads layer 'norm', of shape \(2, 4, 5, 12\), with its height as channels"):
        wrong(PIXELS, TARGETS)


def test_a_method_that_ignores_the_transform_is_refused():
    with pytest.raises(ValueError, match="ShapleyCAM of grad-cam reads channels on axis 1 only"):
        from_gradcam("ShapleyCAM", network(torchvision_swin), "norm")(PIXELS, TARGETS)


def test_layers_of_both_kinds_are_not_mixed():
    with pytest.raises(ValueError, match="some give channels first and some channels last"):
        from_gradcam("GradCAM", network(torchvision_swin), ["norm", "permute"])(PIXELS, TARGETS)


TOKENS = {
    "torchvision's ViT": (torchvision_vit, "encoder.layers.encoder_layer_1.ln_1", (4, 4), 32),
    "timm's ViT": (timm_vit, "blocks.1.norm1", (4, 5), 40),
}


@pytest.mark.parametrize("name", TOKENS)
@pytest.mark.parametrize("explain", [ScoreCAM, partial(from_gradcam, "GradCAM")])
def test_tokens_are_laid_on_their_grid(name, explain):
    make, layer, (rows, columns), width = TOKENS[name]
    pixels = PIXELS[..., :width]
    by_hand = lambda tokens: tokens[:, 1:].unflatten(1, (rows, columns)).movedim(-1, 1)  # noqa: E731
    maps, _ = explain(network(make), layer)(pixels, TARGETS)
    torch.testing.assert_close(maps, explain(network(make), layer, reshape_transform=by_hand)(pixels, TARGETS)[0])
    assert maps.shape == (2, 32, width)
    assert maps.isfinite().all()
    assert torch.equal(explain(network(make))(pixels, TARGETS)[0], maps)  # it is the usual layer
    with pytest.raises(ValueError, match=r"`reshape_transform` must make a feature map .* got shape \(2, 6\)"):
        explain(network(make), layer, reshape_transform=lambda tokens: tokens[:, 0])(pixels, TARGETS)


def test_the_advice_is_the_definition_on_tokens_laid_out_by_hand():
    class Grid(nn.Module):
        def forward(self, tokens):
            return tokens[:, 1:].transpose(1, 2).reshape(2, 6, 4, 5)

    class Whole(nn.Module):
        """The tokens again, with a module on the way that gives their map."""

        def __init__(self, layer):
            super().__init__()
            self.layer, self.grid = layer, Grid()

        def forward(self, x):
            tokens = self.layer(x)
            return torch.cat([tokens[:, :1], self.grid(tokens).flatten(2).transpose(1, 2)], dim=1)

    net = network(timm_vit)
    net.blocks[1].norm1 = Whole(net.blocks[1].norm1).eval()
    reshape = lambda tokens: tokens[:, 1:].unflatten(1, (4, 5)).movedim(-1, 1)  # noqa: E731
    maps, _ = from_gradcam("GradCAM", network(timm_vit), "blocks.1.norm1", reshape_transform=reshape)(PIXELS, TARGETS)
    expected, _ = from_gradcam("GradCAM", net, "blocks.1.norm1.grid", reshape_transform=as_it_is)(PIXELS, TARGETS)
    torch.testing.assert_close(maps, expected)


class Cut(nn.Module):
    """Patches that come from no convolution."""

    def __init__(self):
        super().__init__()
        self.fc, self.proj, self.norm = nn.Linear(3 * 64, 6), nn.Identity(), nn.LayerNorm(6)

    def forward(self, x):
        rows, columns = x.shape[2] // 8, x.shape[3] // 8
        patches = x.reshape(len(x), 3, rows, 8, columns, 8).permute(0, 2, 4, 1, 3, 5).reshape(len(x), -1, 192)
        return self.norm(self.proj(self.fc(patches)))


@pytest.mark.parametrize("explain", [ScoreCAM, partial(from_gradcam, "GradCAM")])
def test_tokens_whose_places_are_not_seen_are_refused_with_what_to_write(explain):
    def make():
        net = timm_vit()
        net.patch_embed = Cut()
        return net

    with pytest.raises(ValueError, match=r"gives tokens, of shape \(2, 21, 6\)") as refused:
        explain(network(make), "blocks.1.norm1")(PIXELS, TARGETS)
    advice = "lambda tokens: tokens.unflatten(1, (height, width)).movedim(-1, 1)"
    assert f"`reshape_transform={advice}`" in str(refused.value)
    behind = eval(advice.replace("tokens.u", "tokens[:, 1:].u"), {"height": 4, "width": 5})
    maps, _ = explain(network(make), "blocks.1.norm1", reshape_transform=behind)(PIXELS, TARGETS)
    assert maps.shape == (2, 32, 40)


TRANSFORMERS = [torchvision_swin, timm_swin, timm_vit]


@pytest.mark.parametrize("make", TRANSFORMERS)
def test_fullgrad_is_refused(make):
    with pytest.raises(ValueError, match="FullGrad knows the biases of convolutions and batch normalisations alone"):
        from_gradcam("FullGrad", network(make))(PIXELS, TARGETS)


@pytest.mark.parametrize("make", [*TRANSFORMERS, torchvision_convnext, timm_convnext])
def test_lrp_names_what_it_has_no_rule_for(make):
    with pytest.raises(ValueError, match=r"has parts for which the composite has no rule: .*LayerNorm"):
        LRP(network(make))(PIXELS, TARGETS)


class Parts(nn.Module):
    """A convolution, a step, an activation that is the layer, another step, and a classifier of `width` numbers."""

    def __init__(self, channels, before, after, width=None):
        super().__init__()
        self.conv, self.act = nn.Conv2d(3, channels, 4, 4), nn.ReLU()
        self.before, self.after, self.fc = before, after, nn.Linear(width or channels, 5)

    def forward(self, x):
        return self.fc(self.after(self.act(self.before(self.conv(x)))))


def to_last(y):
    return y.permute(0, 2, 3, 1)


WEIGHT = torch.randn(12, 12, generator=torch.Generator().manual_seed(2))
BEHIND = {
    "mean": (12, lambda y: y.mean((1, 2))),
    "amax": (12, lambda y: y.amax((1, 2))),
    "flat": (12, lambda y: y.flatten(1, 2).mean(1)),
    "permuted back": (12, lambda y: y.permute(0, 3, 1, 2).mean((2, 3))),
    "transposed back": (12, lambda y: y.transpose(2, 3).transpose(1, 2).mean((2, 3))),
    "a product": (12, lambda y: (y @ WEIGHT).mean((1, 2))),
    "as many channels as rows": (8, lambda y: y.mean((1, 2))),
}


@pytest.mark.parametrize("name", BEHIND)
@pytest.mark.parametrize("explain", [partial(ScoreCAM, scale=False), partial(from_gradcam, "GradCAM")])
def test_channels_last_on_a_square_image_are_seen_by_where_they_come_from(name, explain):
    channels, after = BEHIND[name]
    net = network(lambda: Parts(channels, to_last, after))
    pixels = PIXELS[..., :32]
    right = explain(net, "act", reshape_transform=lambda y: y.permute(0, 3, 1, 2))(pixels, TARGETS)[0]
    torch.testing.assert_close(explain(net, "act")(pixels, TARGETS)[0], right)
    torch.testing.assert_close(explain(net)(pixels, TARGETS)[0], right)  # it is the last one


def on_grid(shape):
    return lambda y: y.flatten(1).reshape(-1, *shape)


UNKNOWN = {  # behind a reshape nothing shows where the channels are; on a square image, where not even the sizes do
    "eight": (8, (8, 8, 8)),
    "channels last": (12, (8, 8, 12)),
    "a little taller": (12, (12, 8, 8)),
}


@pytest.mark.parametrize("name", UNKNOWN)
@pytest.mark.parametrize("explain", [ScoreCAM, partial(from_gradcam, "GradCAM")])
def test_what_is_not_certain_is_refused(name, explain):
    channels, shape = UNKNOWN[name]
    net = network(lambda: Parts(channels, on_grid(shape), lambda y: y.mean((2, 3)), shape[0]))
    pixels = PIXELS[..., :32]
    with pytest.raises(ValueError, match=r"'act' gives a map whose channels may be its second or its last axis") as e:
        explain(net, "act")(pixels, TARGETS)
    assert "`reshape_transform=lambda output: output`" in str(e.value)
    for advice in ("lambda output: output", "lambda output: output.permute(0, 3, 1, 2)"):
        assert f"`reshape_transform={advice}`" in str(e.value)
        maps, _ = explain(net, "act", reshape_transform=eval(advice))(pixels, TARGETS)
        assert maps.shape == (2, 32, 32)


def test_what_uses_the_map_or_its_size_shows_channels_first():
    pooled = nn.AdaptiveAvgPool2d(1)
    used = network(lambda: Parts(8, on_grid((8, 8, 8)), lambda y: pooled(y.sqrt()).flatten(1)))
    sizes = network(lambda: Parts(24, on_grid((24, 8, 10)), lambda y: y.mean((2, 3))))
    for net, pixels in ((used, PIXELS[..., :32]), (sizes, PIXELS)):
        maps, _ = ScoreCAM(net, "act")(pixels, TARGETS)
        torch.testing.assert_close(maps, ScoreCAM(net, "act", reshape_transform=as_it_is)(pixels, TARGETS)[0])


def test_heads_of_an_attention_are_no_map():
    vit = network(
        lambda: timm.create_model(
            "vit_tiny_patch16_224",
            num_classes=5,
            img_size=(32, 32),
            patch_size=8,
            embed_dim=6,
            depth=1,
            num_heads=2,
            qk_norm=True,
        )
    )
    for layer in ("blocks.0.attn.q_norm", "blocks.0.attn.attn_drop"):
        vit.blocks[0].attn.fused_attn = False
        with pytest.raises(ValueError, match="gives a map whose channels may be its second or its last axis"):
            ScoreCAM(vit, layer)(PIXELS[..., :32], TARGETS)


ORDINARY = {
    "resnet18": (torchvision.models.resnet18, "layer4"),
    "densenet121": (torchvision.models.densenet121, "features.denseblock2.denselayer3"),
    "googlenet": (partial(torchvision.models.googlenet, init_weights=False), "inception4a"),
    "regnet": (torchvision.models.regnet_y_400mf, "trunk_output.block3"),
    "shufflenet": (torchvision.models.shufflenet_v2_x0_5, "stage4"),
    "mobilenet": (torchvision.models.mobilenet_v3_small, "features.8"),
    "efficientnet": (torchvision.models.efficientnet_b0, "features.6"),
    "vgg": (torchvision.models.vgg11, "features.14"),
    "squeezenet": (torchvision.models.squeezenet1_1, "features.7"),
    "timm's resnet": (partial(timm.create_model, "resnet18"), "layer4"),
    "timm's efficientnet": (partial(timm.create_model, "efficientnet_b0"), "blocks.5"),
    "timm's convnext": (timm_convnext, "stages.1"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_networks_are_read_as_they_are(name):
    make, layer = ORDINARY[name]
    net = network(make)
    pixels = torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    for named in (None, layer):
        with torch.no_grad(), watched(net, named) as watch:
            net(pixels)
        assert watch.reshaping() is None
        assert watch.feature_map(1).shape[2] == watch.feature_map(1).shape[3]


@pytest.mark.parametrize("given", [{"layer": None}, {"layer": "norm", "reshape_transform": "no"}])
def test_a_transform_needs_a_layer_and_is_a_function(given):
    with pytest.raises(TypeError, match="`reshape_transform` must be a function of the output of the layer that"):
        ScoreCAM(network(torchvision_swin), **{"reshape_transform": lambda x: x, **given})
