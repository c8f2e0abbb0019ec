"""Rollout, gradient rollout and LeGrad on transformers of all kinds, and against their formulas written out."""

import numpy as np
import pytest
import timm
import torch
from torch import nn
from torch.nn import functional

import metfa
from metfa.explainers import AttentionRollout, Gradient, GradientRollout, LeGrad, ScoreCAM, from_gradcam
from metfa.explainers.cam import enlarged
from metfa.explainers.rollout import rolled_out, with_residual

from .transformers_of_all_kinds import FAMILIES, PIXELS, TARGETS, WINDOWED, network, pixels_for, timm_model

KINDS = [AttentionRollout, GradientRollout, LeGrad]
VIT = FAMILIES["timm's ViT"]


class TestByHand:
    """Three tokens, two layers of one head."""

    FIRST = torch.tensor([[0.6, 0.2, 0.2], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]], dtype=torch.float64)
    SECOND = torch.tensor([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2], [0.1, 0.1, 0.8]], dtype=torch.float64)
    READ = torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64)

    def rolled(self, *layers):
        return rolled_out([with_residual(layer[None, None]) for layer in layers], self.READ)[0].tolist()

    def test_the_later_layer_is_on_the_left(self):
        assert self.rolled(self.FIRST, self.SECOND) == pytest.approx([0.515, 0.3075, 0.1775])
        assert self.rolled(self.SECOND, self.FIRST) == pytest.approx([0.505, 0.275, 0.22])

    def test_rows_are_normalised(self):
        identity = torch.eye(3, dtype=torch.float64)
        layers = [(identity + layer)[None] for layer in (self.FIRST, self.SECOND)]
        assert rolled_out(layers, self.READ)[0].tolist() == pytest.approx([2.06, 1.23, 0.71])


def recorded(net, pixels):
    """Scores, weights (in the graph) and outputs of the blocks of timm's ViT, whose attention is switched to eager."""
    weights, outputs, hooks = [], [], []
    for block in net.blocks:
        block.attn.fused_attn = False
        hooks.append(block.attn.attn_drop.register_forward_hook(lambda *a: weights.append(a[2])))
        hooks.append(block.register_forward_hook(lambda *a: outputs.append(a[2])))
    scores = net(pixels.clone().requires_grad_())
    for hook in hooks:
        hook.remove()
    return scores, weights, outputs


def on_grid(values, prefixes=1, size=(24, 32)):
    return enlarged(values[:, prefixes:].unflatten(1, (3, 4)), size)


def test_rollout_is_its_formula():
    _, weights, _ = recorded(network(VIT.make), PIXELS)
    expected = []
    for row in range(3):
        product = np.eye(13)
        for layer in weights:
            mixed = layer[row].detach().numpy().mean(0) + np.eye(13)
            product = (mixed / mixed.sum(1, keepdims=True)) @ product
        expected.append(product[0])
    maps, scores = AttentionRollout(network(VIT.make), scale=False)(PIXELS, TARGETS)
    torch.testing.assert_close(maps, on_grid(torch.from_numpy(np.array(expected))))
    torch.testing.assert_close(scores, network(VIT.make)(PIXELS).detach())


def test_gradient_rollout_is_its_formula():
    """The authors' loop: R = R + Ā R, with the gradient of one image at a time."""
    expected = []
    for row, target in enumerate(TARGETS):
        scores, weights, _ = recorded(network(VIT.make), PIXELS[row : row + 1])
        gradients = torch.autograd.grad(scores[0, target], weights)
        relevance = torch.eye(13, dtype=torch.float64)
        for layer, gradient in zip(weights, gradients, strict=True):
            relevance = relevance + (gradient * layer)[0].clamp(min=0).mean(0) @ relevance
        expected.append(relevance[0].detach())
    maps, _ = GradientRollout(network(VIT.make), scale=False)(PIXELS, TARGETS)
    torch.testing.assert_close(maps, on_grid(torch.stack(expected)))


def legrad_by_hand(net, pixels, targets, prefixes=1):
    expected = []
    for row, target in enumerate(targets):
        _, weights, outputs = recorded(net, pixels[row : row + 1])
        layers = []
        for layer, output in zip(weights, outputs, strict=True):
            score = net.head(net.norm(output.mean(1)))[0, target]
            (gradient,) = torch.autograd.grad(score, layer, retain_graph=True)
            layers.append(gradient[0].relu().mean((0, 1)))
        expected.append(torch.stack(layers).mean(0))
    return on_grid(torch.stack(expected), prefixes)


@pytest.mark.parametrize("name", ["timm's ViT", "timm's ViT with registers", "timm's ViT, average"])
def test_legrad_is_its_formula(name):
    family = FAMILIES[name]
    expected = legrad_by_hand(network(family.make), PIXELS, TARGETS, family.prefixes)
    maps, scores = LeGrad(network(family.make), scale=False)(PIXELS, TARGETS)
    torch.testing.assert_close(maps, expected)
    torch.testing.assert_close(scores, network(family.make)(PIXELS).detach())


def test_legrad_of_one_block():
    def make():
        return timm_model("vit_tiny_patch16_224", depth=1)

    maps, _ = LeGrad(network(make), scale=False)(PIXELS, TARGETS)
    torch.testing.assert_close(maps, legrad_by_hand(network(make), PIXELS, TARGETS))


@pytest.fixture(params=FAMILIES)
def family(request):
    return FAMILIES[request.param]


@pytest.mark.parametrize("kind", KINDS)
def test_of_all_kinds(family, kind):
    """A finite map that is not constant, the model's scores, and each row as if it were alone."""
    net, pixels = network(family.make), pixels_for(family)
    explainer = kind(net, scale=False)
    maps, scores = explainer(pixels, TARGETS)
    assert maps.shape == (3, *family.size)
    assert maps.isfinite().all()
    assert (maps.amax((1, 2)) > 1.01 * maps.amin((1, 2))).all()
    torch.testing.assert_close(scores, net(pixels).detach())
    for row, target in enumerate(TARGETS):
        torch.testing.assert_close(explainer(pixels[row : row + 1], target)[0][0], maps[row], rtol=1e-9, atol=1e-12)


def test_places_of_tokens_are_those_of_the_model(family):
    from metfa.explainers._places import Places

    pixels, places = pixels_for(family), Places(family.size)
    with places:
        network(family.make)(pixels)
    tokens = places.of(3, family.prefixes + family.grid[0] * family.grid[1])
    assert tokens is not None
    assert tokens.grid == family.grid
    assert tokens.places == (-1,) * family.prefixes + tuple(range(family.grid[0] * family.grid[1]))


def test_eager_and_fused_attention_give_one_map():
    pytest.importorskip("transformers")
    fused, eager = (network(FAMILIES["Hugging Face's ViT"].make) for _ in range(2))
    eager.model.set_attn_implementation("eager")
    for kind in KINDS:
        found, expected = kind(eager)(PIXELS, TARGETS), kind(fused)(PIXELS, TARGETS)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)  # its softmax is in float32
    assert fused.model.config._attn_implementation == "sdpa"
    assert eager.model.config._attn_implementation == "eager"


def test_the_target_changes_nothing_in_rollout_and_something_in_the_others():
    net = network(VIT.make)
    assert torch.equal(AttentionRollout(net)(PIXELS, 0)[0], AttentionRollout(net)(PIXELS, 3)[0])
    for kind in (GradientRollout, LeGrad):
        assert (kind(net)(PIXELS, 0)[0] - kind(net)(PIXELS, 3)[0]).abs().max() > 0.1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_lower_precision(kind, dtype):
    exact, _ = kind(network(VIT.make))(PIXELS, TARGETS)
    maps, scores = kind(network(VIT.make, dtype))(PIXELS.to(dtype), TARGETS)
    assert maps.dtype == torch.float32
    assert scores.dtype == dtype
    assert (maps - exact).abs().mean() < (1e-5 if dtype == torch.float32 else 0.1)
    autocast = metfa.Called(network(VIT.make, torch.float32), fast="bfloat16")
    assert (kind(autocast)(PIXELS.float(), TARGETS)[0] - exact).abs().mean() < 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_maps_are_differentiable_where_the_inputs_require_it(kind):
    net = network(lambda: timm_model("vit_tiny_patch16_224", img_size=(8, 16)))
    pixels = PIXELS[:1, :, :8, :16].clone().requires_grad_()
    explainer = kind(net, scale=False)
    direction = torch.randn(pixels.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    (gradient,) = torch.autograd.grad(explainer(pixels, 1)[0].square().sum(), pixels)
    ahead, behind = (
        explainer(pixels.detach() + step * direction, 1)[0].square().sum().item() for step in (1e-6, -1e-6)
    )
    assert (gradient * direction).sum().item() == pytest.approx((ahead - behind) / 2e-6, rel=1e-4)
    assert not explainer(pixels.detach(), 1)[0].requires_grad


class Looking(nn.Module):
    """A class token that looks at one patch in each layer, the one that `patch` names."""

    def __init__(self, patch, cut):
        super().__init__()
        self.cut, self.patch = cut, patch
        self.token, self.head = nn.Parameter(torch.zeros(1, 1, 6)), nn.Linear(6, 4)

    def forward(self, x):
        tokens = self.cut(x)
        tokens = functional.layer_norm(torch.cat([self.token.expand(len(x), -1, -1), tokens], dim=1), (6,))
        mask = torch.zeros(13, 13, dtype=x.dtype)
        mask[0, 1 + self.patch] = 5
        for _ in range(2):
            tokens = tokens + functional.scaled_dot_product_attention(tokens, tokens, tokens, attn_mask=mask)
        return self.head(tokens[:, 0])


class ByConvolution(nn.Module):
    def __init__(self, across):
        super().__init__()
        self.proj, self.across = nn.Conv2d(3, 6, 8, 8), across

    def forward(self, x):
        pixels = self.proj(x)
        return (pixels.transpose(2, 3) if self.across else pixels).flatten(2).transpose(1, 2)


class ByReshaping(nn.Module):
    """No convolution cuts the patches."""

    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(192, 6)

    def forward(self, x):
        rows, columns = x.shape[2] // 8, x.shape[3] // 8
        patches = x.reshape(len(x), 3, rows, 8, columns, 8).permute(0, 2, 4, 1, 3, 5).reshape(len(x), -1, 192)
        return self.proj(patches)


def places_of_peaks(maps):
    """Patches (row, column) at which maps that are not constant are largest."""
    peaks = [np.unravel_index(one.numpy().argmax(), one.shape) for one in maps if np.ptp(one.numpy())]
    return {(peak[0] // 8, peak[1] // 8) for peak in peaks}


@pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning")
@pytest.mark.parametrize("kind", [AttentionRollout, GradientRollout])
@pytest.mark.parametrize("across", [False, True])
def test_the_patch_that_is_looked_at_is_the_one_on_the_map(kind, across):
    """Patch 6 lies at row 1, column 2 of 3 x 4; laid out by columns, at row 0, column 2."""
    net = network(lambda: Looking(6, ByConvolution(across)))
    maps, _ = kind(net)(PIXELS, TARGETS)
    assert places_of_peaks(maps) == {(0, 2) if across else (1, 2)}


@pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning")
@pytest.mark.parametrize("kind", [AttentionRollout, GradientRollout])
def test_a_grid_that_cannot_be_seen_is_an_argument(kind):
    net = network(lambda: Looking(6, ByReshaping()))
    with pytest.raises(ValueError, match=r"where the 13 tokens .* write `patch_grid=\(rows, columns\)`"):
        kind(net)(PIXELS, TARGETS)
    maps, _ = kind(net, patch_grid=(3, 4))(PIXELS, TARGETS)
    assert places_of_peaks(maps) == {(1, 2)}
    with pytest.raises(ValueError, match=r"`patch_grid` \(4, 4\) has 16 patches, but the model has 13 tokens"):
        kind(net, patch_grid=(4, 4))(PIXELS, TARGETS)
    with pytest.raises(
        ValueError, match=r"`patch_grid` is \(4, 3\), but the model lays its patches on a grid \(3, 4\)"
    ):
        kind(network(VIT.make), patch_grid=(4, 3))(PIXELS, TARGETS)
    torch.testing.assert_close(
        kind(network(VIT.make), patch_grid=[3, 4])(PIXELS, TARGETS), kind(network(VIT.make))(PIXELS, TARGETS)
    )


def test_images_of_another_size_have_another_grid():
    net = network(lambda: timm_model("vit_tiny_patch16_224", dynamic_img_size=True))
    pixels = functional.interpolate(PIXELS, (40, 16), mode="bilinear")
    for kind in KINDS:
        maps, _ = kind(net, scale=False)(pixels, TARGETS)
        assert maps.shape == (3, 40, 16)
    weights = recorded(net, pixels)[1]
    row = rolled_out(
        [with_residual(layer) for layer in weights], functional.one_hot(torch.zeros(3).long(), 11).double()
    )
    expected = enlarged(row[:, 1:].unflatten(1, (5, 2)), (40, 16)).detach()
    torch.testing.assert_close(AttentionRollout(net, scale=False)(pixels)[0], expected)


ADVICE = {
    "Gradient(model)": Gradient,
    "ScoreCAM(model)": ScoreCAM,
    'from_gradcam("GradCAM", model)': lambda model: from_gradcam("GradCAM", model),
}


@pytest.mark.parametrize("name", WINDOWED)
@pytest.mark.parametrize("kind", KINDS)
def test_windows_are_refused(name, kind):
    net = network(WINDOWED[name])
    with pytest.raises(ValueError, match=rf"^{kind.__name__} is not defined .* of shape \(36, 2, 4, 4\)") as refused:
        kind(net)(PIXELS, TARGETS)
    assert all(f"`{advice}`" in str(refused.value) for advice in ADVICE)


@pytest.mark.parametrize("kind", KINDS)
def test_models_without_attention_are_refused(kind):
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 4)).double().eval()
    with pytest.raises(ValueError, match=f"{kind.__name__} needs the weights of attention, and none was seen"):
        kind(net)(PIXELS, TARGETS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_softmax_whose_use_is_not_known_is_refused(kind):
    net = network(lambda: timm.create_model(
        "cait_xxs24_224", img_size=24, patch_size=8, embed_dim=12, depth=1, num_heads=2, num_classes=4
    ))  # fmt: skip
    with pytest.raises(ValueError, match=r"what the model makes of the softmax in 'blocks\.0\.attn' of shape"):
        kind(net)(PIXELS[..., :24], TARGETS)


class Leaking(nn.Module):
    """What the patches were reaches the scores beside the blocks, or the blocks are no modules."""

    def __init__(self, vit, beside):
        super().__init__()
        self.vit, self.beside = vit, beside

    def forward(self, x):
        scores = self.vit(x)
        return scores + x.mean((1, 2, 3))[:, None] if self.beside else scores


class Stream(nn.Module):
    """Its residual stream lies in no module."""

    def __init__(self, vit):
        super().__init__()
        self.vit = vit

    def forward(self, x):
        tokens = self.vit.patch_embed(x)
        for block in self.vit.blocks:
            tokens = tokens + block.attn(block.norm1(tokens))
        return self.vit.head(tokens.mean(1))


@pytest.mark.parametrize("rows", [1, 3])
def test_legrad_refuses_models_whose_blocks_are_not_all(rows):
    leaking = network(lambda: Leaking(VIT.make(), beside=True))
    with pytest.raises(ValueError, match=r"do not depend on the output of its last block 'vit\.blocks\.1' alone"):
        LeGrad(leaking)(PIXELS[:rows], TARGETS[:rows])
    with pytest.raises(ValueError, match=r"^LeGrad"):
        LeGrad(network(lambda: Stream(VIT.make())))(PIXELS[:rows], TARGETS[:rows])
    right = network(lambda: Leaking(VIT.make(), beside=False))
    torch.testing.assert_close(LeGrad(right)(PIXELS, TARGETS)[0], LeGrad(right.vit)(PIXELS, TARGETS)[0])


def test_legrad_refuses_blocks_that_are_called_twice():
    class Twice(nn.Module):
        def __init__(self, vit):
            super().__init__()
            self.vit = vit
            vit.blocks = nn.Sequential(vit.blocks[0], vit.blocks[0])

        def forward(self, x):
            return self.vit(x)

    with pytest.raises(ValueError, match="LeGrad needs blocks that follow one another"):
        LeGrad(network(lambda: Twice(VIT.make())))(PIXELS, TARGETS)


def test_functions_are_taken_where_no_blocks_are_needed():
    net = network(VIT.make)
    for kind in (AttentionRollout, GradientRollout):
        torch.testing.assert_close(kind(lambda x: net(x))(PIXELS, TARGETS), kind(net)(PIXELS, TARGETS))
    with pytest.raises(
        TypeError, match=r"`model` must be a torch\.nn\.Module, got function: LeGrad looks at its blocks"
    ):
        LeGrad(lambda x: net(x))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("grid", "error", "message"),
    [
        (7, TypeError, r"`patch_grid` must be a pair \(rows, columns\) of patches, or None, got 7"),
        ((3, 4, 5), TypeError, "`patch_grid` must be a pair"),
        ((3, 0), ValueError, "`patch_grid` must be at least 1, got 0"),
    ],
)
def test_unfit_grids(kind, grid, error, message):
    with pytest.raises(error, match=message):
        kind(network(VIT.make), patch_grid=grid)


def test_nothing_passes_a_model_that_reads_no_patch():
    """Its class token sees itself alone."""

    class Blind(Looking):
        def forward(self, x):
            tokens = torch.cat([self.token.expand(len(x), -1, -1) + x.mean(), self.cut(x)], dim=1)
            tokens = functional.layer_norm(tokens, (6,))
            hidden = torch.ones(13, 13, dtype=torch.bool).tril()
            for _ in range(2):
                tokens = tokens + functional.scaled_dot_product_attention(tokens, tokens, tokens, attn_mask=hidden)
            return self.head(tokens[:, 0])

    with pytest.warns(metfa.DegenerateAttributionsWarning, match="3 of 3 maps are constant: attention passes nothing"):
        maps, _ = AttentionRollout(network(lambda: Blind(0, ByConvolution(across=False))))(PIXELS, TARGETS)
    assert (maps == 0).all()
