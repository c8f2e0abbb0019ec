"""AttnLRP and CP-LRP: published two-token values, networks written with detached factors, and the exact identity."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import metfa
from metfa.explainers.lrp import LRP

BOTH = pytest.mark.parametrize("composite", ["attnlrp", "cplrp"])
SLOW = pytest.mark.slow
IMAGES = torch.rand(2, 3, 16, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.fixture(autouse=True)
def same_weights_each_time():
    with torch.random.fork_rng():
        torch.manual_seed(3)
        yield


class Written(nn.Module):
    """A function as a module."""

    def __init__(self, function, **parts):
        super().__init__()
        self.function = function
        for name, part in parts.items():
            self.add_module(name, part)

    def forward(self, x):
        return self.function(x)


def wild(net, std=0.3):
    """Weights that are larger than fresh ones, biases and tables included, so that every part counts."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for name, parameter in net.named_parameters():
            nn.init.normal_(parameter, std=std)
            if parameter.ndim == 1 and "norm" in name.lower() and "weight" in name:
                parameter.data += 1
    return net.double().eval()


def relevance(net, x, target=0, composite="attnlrp", **settings):
    return LRP(net, composite=composite, scale=False, channel_axis=None, **settings)(x, target)


def total(shares):
    return shares.inputs + shares.tokens + shares.positions + shares.biases + shares.softmax


def check_identity(net, x, target=1, atol=1e-12, **settings):
    """The parts are the score, the map's sum is the inputs' part, and a row alone is the row of the batch."""
    net = net.eval()
    found = {}
    for composite in ("attnlrp", "cplrp"):
        explainer = LRP(net, composite=composite, scale=False, **settings)
        shares = explainer.shares(x, target)
        maps, scores = explainer(x, target)
        with torch.no_grad():
            np.testing.assert_allclose(scores, net(x), atol=atol, rtol=0)
        np.testing.assert_allclose(shares.scores, scores[:, target], atol=atol)
        np.testing.assert_allclose(total(shares), shares.scores, atol=atol)
        np.testing.assert_allclose(maps.flatten(1).sum(1), shares.inputs, atol=atol)
        for row in range(len(x)):
            alone, _ = explainer(x[row : row + 1], target)
            np.testing.assert_allclose(alone[0], maps[row], atol=atol)
        assert maps[0].abs().max() > 1e3 * atol
        assert (maps[0] - maps[1]).abs().max() > 1e3 * atol
        found[composite] = shares
    assert (found["cplrp"].softmax == 0).all()
    return found


# One query, two keys, two values


def columns(x):
    """Query (batch, 1, 1), keys and values (batch, 2, 1) of five numbers."""
    return x[:, :1, None], x[:, 1:3, None], x[:, 3:5, None]


def by_kernel(q, k, v):
    return functional.scaled_dot_product_attention(q, k, v, scale=1.0)


def by_kernel_with_names(q, k, v):
    return functional.scaled_dot_product_attention(query=q, key=k, value=v, scale=1.0, attn_mask=None)


def by_matmul(q, k, v):
    return torch.matmul((q @ k.transpose(1, 2)).softmax(-1), v)


def by_bmm(q, k, v):
    return torch.bmm(functional.softmax(torch.bmm(q, k.mT), dim=-1), v)


def by_baddbmm(q, k, v):
    scores = torch.baddbmm(torch.zeros(1, 1, 2, dtype=q.dtype), q, k.mT)
    return torch.baddbmm(torch.zeros(1, 1, 1, dtype=q.dtype), batch1=torch.softmax(scores, -1), batch2=v)


def by_einsum(q, k, v):
    return torch.einsum("bqk,bkd->bqd", torch.softmax(torch.einsum("bqd,bkd->bqk", q, k), -1), v)


def by_addcmul(q, k, v):
    zero = torch.zeros(1, 2, 1, dtype=q.dtype)
    return torch.addcmul(zero, torch.addcmul(zero, q.expand_as(k), k).softmax(1), v).sum(1, keepdim=True)


def by_products(q, k, v):
    return ((q * k).softmax(1) * v).sum(1, keepdim=True)


def in_place(q, k, v):
    scores = (q @ k.mT).clone()
    scores *= 1.0
    weights = scores.softmax(-1).transpose(1, 2).clone()
    weights *= v
    return weights.sum(1, keepdim=True)


WAYS = [by_kernel, by_kernel_with_names, by_matmul, by_bmm, by_baddbmm, by_einsum, by_addcmul, by_products, in_place]
TOKENS = torch.tensor([[1, math.log(3), 0, 4, 8]], dtype=torch.float64)


def two_tokens(way, key_bias=0.0):
    def answer(x):
        q, k, v = columns(x)
        output = way(q, k + torch.full((1, 1, 1), key_bias, dtype=x.dtype) if key_bias else k, v)[:, 0]
        return torch.cat([output, -output], 1)

    return Written(answer).eval()


class TestTwoTokens:
    """Values of lxt's explicit rules, from its own code."""

    @pytest.mark.parametrize("way", WAYS)
    def test_attnlrp(self, way):
        found, scores = relevance(two_tokens(way), TOKENS)
        np.testing.assert_allclose(scores, [[5, -5]], atol=1e-12)
        np.testing.assert_allclose(found, [[-0.20599, -0.20599, 0, 1.5, 1]], atol=5e-6)

    @pytest.mark.parametrize("way", WAYS)
    def test_cplrp(self, way):
        found, _ = relevance(two_tokens(way), TOKENS, composite="cplrp")
        np.testing.assert_allclose(found, [[0, 0, 0, 3, 2]], atol=1e-12)

    @pytest.mark.parametrize("way", [by_kernel, by_matmul])
    def test_a_bias_of_the_keys_moves_their_relevance_and_no_score(self, way):
        biased, _ = relevance(two_tokens(way, key_bias=1.0), TOKENS)
        plain, _ = relevance(two_tokens(way), TOKENS)
        np.testing.assert_allclose(biased[:, [0, 3, 4]], plain[:, [0, 3, 4]], atol=1e-12)
        shares = LRP(two_tokens(way, key_bias=1.0), composite="attnlrp", channel_axis=None).shares(TOKENS, 0)
        whole = torch.tensor([-0.39349, 0.18750])  # of the keys with their bias
        np.testing.assert_allclose(biased[0, 1:3].sum() + shares.biases[0], whole.sum(), atol=5e-6)
        np.testing.assert_allclose(total(shares), 5, atol=1e-12)

    def test_keys_with_their_bias(self):
        """The constants are those of the keys that attention sees."""
        seen = TOKENS + torch.tensor([[0, 1, 1, 0, 0]])
        np.testing.assert_allclose(
            relevance(two_tokens(by_kernel), seen)[0], [[-0.20599, -0.39349, 0.18750, 1.5, 1]], atol=5e-6
        )

    def test_one_tensor_in_three_roles(self):
        def by_itself(x):
            x = x[:, :, None]
            return functional.scaled_dot_product_attention(x, x, x).flatten(1)

        def apart(x):
            x = x[:, :, None]
            return functional.scaled_dot_product_attention(x.clone(), x.clone(), x.clone()).flatten(1)

        np.testing.assert_allclose(
            relevance(Written(by_itself).eval(), TOKENS)[0], relevance(Written(apart).eval(), TOKENS)[0], atol=1e-14
        )

    @pytest.mark.parametrize("bias", [False, True])
    @pytest.mark.parametrize("first", [False, True])
    def test_multi_head_attention_as_a_module_is_that_of_its_parts(self, bias, first):
        attention = wild(nn.MultiheadAttention(6, 2, bias=bias, batch_first=first))
        x = torch.randn(2, 5, 6).double()
        hidden = torch.tensor([[False, True, False, False, True]])
        causal = torch.ones(5, 5, dtype=torch.bool).triu(1)

        def parts(x):
            qkv = functional.linear(x, attention.in_proj_weight, attention.in_proj_bias)
            q, k, v = qkv.unflatten(-1, (3, 2, 3)).permute(2, 0, 3, 1, 4)
            mask = ~(causal | hidden[:, None, None])
            o = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            return attention.out_proj(o.transpose(1, 2).flatten(2))[:, 3]

        for need_weights in (False, True):

            def module(x, need_weights=need_weights):
                given = x if first else x.transpose(0, 1)
                masks = {
                    "key_padding_mask": hidden.expand(len(x), -1),
                    "attn_mask": causal,
                    "need_weights": need_weights,
                }
                output, _ = attention(given, given, given, **masks)
                return output[:, 3] if first else output[3]

            whole, of_parts = Written(module, attention=attention).eval(), Written(parts, attention=attention).eval()
            for composite in ("attnlrp", "cplrp"):
                found, scores = relevance(whole, x, 1, composite)
                expected, _ = relevance(of_parts, x, 1, composite)
                np.testing.assert_allclose(found, expected, atol=1e-13)
                np.testing.assert_allclose(scores, whole(x).detach(), atol=1e-13)


class TestNormalisations:
    NUMBERS = torch.tensor([[1.0, 2.0, 6.0]], dtype=torch.float64)

    def test_layer_norm(self):
        net = Written(lambda x: functional.layer_norm(x, (3,), eps=0.0)).eval()
        found, scores = relevance(net, self.NUMBERS)
        np.testing.assert_allclose(scores[0, 0], -0.92582, atol=5e-6)
        np.testing.assert_allclose(found, [[0.30861, -0.30861, -0.92582]], atol=5e-6)

    @BOTH
    def test_all_ways_to_write_them_are_the_same(self, composite):
        weight, bias = torch.randn(4).double(), torch.randn(4).double()
        x = torch.randn(3, 4).double()

        def mean(x):
            return x - x.mean(-1, keepdim=True)

        layer = {
            "function": lambda x: functional.layer_norm(x, (4,), weight, bias, 1e-3),
            "root": lambda x: mean(x) / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-3) * weight + bias,
            "inverse": lambda x: mean(x) * torch.rsqrt(mean(x).pow(2).mean(-1, keepdim=True) + 1e-3) * weight + bias,
            "group": lambda x: functional.group_norm(x[:, :, None], 1, weight, bias, 1e-3)[:, :, 0],
        }
        root = {
            "function": lambda x: functional.rms_norm(x, (4,), weight, 1e-3),
            "Hugging Face": lambda x: weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-3)),
            "quotient": lambda x: weight * x / (x.square().mean(-1, keepdim=True) + 1e-3).sqrt(),
        }
        length = {
            "function": lambda x: functional.normalize(x, dim=1),
            "quotient": lambda x: x / x.norm(dim=1, keepdim=True),
        }
        first = torch.randn(4, 4).double()
        for kind in (layer, root, length):
            maps = [relevance(Written(lambda x, f=f: f(x @ first)).eval(), x, 2, composite)[0] for f in kind.values()]
            for found in maps[1:]:
                np.testing.assert_allclose(found, maps[0], atol=1e-12)

    def test_groups_and_affine_weights(self):
        norm = wild(nn.GroupNorm(2, 4))
        check_identity(nn.Sequential(wild(nn.Conv2d(3, 4, 3)), norm, nn.Flatten()), IMAGES[:, :, :5, :5])


ACTIVATIONS = [
    nn.GELU(), nn.GELU(approximate="tanh"), nn.SiLU(), nn.Tanh(), nn.ReLU(), nn.LeakyReLU(), nn.ELU(), nn.SELU(),
    nn.Mish(), nn.Hardswish(), nn.ReLU6(), nn.SiLU(inplace=True), nn.CELU(),
]  # fmt: skip


class TestActivations:
    NUMBERS = torch.tensor([[-3, -1e-6, -1e-10, 0, 1e-300, 1e-10, 1e-6, 0.5, 2]], dtype=torch.float64)

    @pytest.mark.parametrize("activation", ACTIVATIONS, ids=str)
    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
    def test_relevance_passes_unchanged_whatever_the_sign_and_size(self, activation, dtype):
        x = self.NUMBERS.to(dtype)
        net = Written(lambda x: activation(x * torch.ones_like(x)).sum(1, keepdim=True).expand(-1, 2)).eval()
        found, _ = relevance(net, x)
        np.testing.assert_allclose(found, activation(x.clone()), rtol=1e-6, atol=1e-300)

    @pytest.mark.parametrize(
        ("activation", "slope"),
        [
            (functional.gelu, 0.5),
            (functional.silu, 0.5),
            (torch.tanh, 1.0),
            (functional.elu, 1.0),
            (functional.mish, 0.6),
        ],
    )
    def test_at_zero_the_factor_is_its_limit(self, activation, slope):
        """A bias of 0 behind x = 0 cannot show it; a factor of 1 / 0 would be seen as not finite relevance."""
        net = nn.Sequential(nn.Linear(2, 2, bias=False), Written(activation), nn.Linear(2, 2)).double().eval()
        net[0].weight.data = torch.tensor([[1.0, -1.0], [1.0, -1.0]]).double()
        x = torch.tensor([[1.0, 1.0]]).double()
        found, _ = relevance(net, x, 1)
        by_slope = slope * (net[2].weight[1].detach() @ net[0].weight.detach())
        np.testing.assert_allclose(found[0], by_slope, rtol=1e-12)

    @BOTH
    @pytest.mark.parametrize("name", ["gelu_new", "quick_gelu", "gelu_fast", "gelu", "silu", "relu2", "gelu_python"])
    def test_those_of_transformers_are_one_step(self, name, composite):
        activations = pytest.importorskip("transformers.activations")
        activation = activations.ACT2FN[name]
        x = torch.randn(2, 6).double()
        found, _ = relevance(nn.Sequential(nn.Identity(), activation).eval(), x, 2, composite)
        np.testing.assert_allclose(found[:, 2], activation(x)[:, 2], rtol=1e-12)

    def test_a_gate_shares_or_is_a_constant(self):
        gate, up = wild(nn.Linear(4, 3, bias=False)), wild(nn.Linear(4, 3, bias=False))

        def gated(x):
            return functional.dropout(functional.silu(gate(x[:, :4]))[:, None], 0.5, False)[:, 0] * up(x[:, 4:])

        net = Written(gated, gate=gate, up=up).eval()
        x = torch.randn(1, 8).double()
        for composite, share in (("attnlrp", 0.5), ("cplrp", 0.0)):
            found, scores = relevance(net, x, 1, composite)
            np.testing.assert_allclose(found[0, :4].sum(), share * scores[0, 1], atol=1e-14)
            np.testing.assert_allclose(found[0, 4:].sum(), (1 - share) * scores[0, 1], atol=1e-14)


# Networks by hand, with the factors detached


class OwnLlama(nn.Module):
    """A decoder with rotary positions, grouped queries, RMSNorm and SwiGLU; `hand` writes the rules by detaching."""

    def __init__(self, hand=None, size=8, heads=4, groups=2, n_layers=2, kernel=True):
        super().__init__()
        self.hand, self.heads, self.groups, self.size, self.kernel = hand, heads, groups, size, kernel
        self.layers = nn.ModuleList()
        for _ in range(n_layers):
            part = nn.ModuleDict({name: nn.Linear(size, size) for name in ("q", "o", "gate", "up", "down")})
            part.update({name: nn.Linear(size, size * groups // heads) for name in ("k", "v")})
            part.update({name: nn.RMSNorm(size) for name in ("norm1", "norm2")})
            self.layers.append(part)
        self.head = nn.Linear(size, 3)

    def norm(self, x, norm):
        if self.hand is None:
            return norm(x)
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + torch.finfo(x.dtype).eps).detach() * norm.weight

    def turned(self, x):
        angle = torch.arange(x.shape[-2], dtype=x.dtype)[:, None] * torch.tensor([1.0], dtype=x.dtype)
        a, b = x.chunk(2, -1)
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)

    def forward(self, x):
        for part in self.layers:
            y = self.norm(x, part["norm1"])
            q, k, v = (part[n](y).unflatten(-1, (-1, self.size // self.heads)).transpose(1, 2) for n in "qkv")
            x = x + part["o"](self.attend(self.turned(q), self.turned(k), v).transpose(1, 2).flatten(2))
            y = self.norm(x, part["norm2"])
            x = x + part["down"](self.gated(part["gate"](y), part["up"](y)))
        return self.head(x.mean(1))

    def attend(self, q, k, v):
        if self.hand is None and self.kernel:
            return functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        times = self.heads // self.groups
        k, v = k.repeat_interleave(times, 1), v.repeat_interleave(times, 1)
        seen = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).tril()
        if self.hand == "attnlrp":
            q, k, v = ((x * part + (x * (1 - part)).detach()) for x, part in ((q, 0.25), (k, 0.25), (v, 0.5)))
        if self.hand == "cplrp":
            q, k = q.detach(), k.detach()
        return (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~seen, -torch.inf).softmax(-1) @ v

    def gated(self, gate, up):
        if self.hand is None:
            return functional.silu(gate) * up
        act = gate * torch.sigmoid(gate).detach()
        if self.hand == "cplrp":
            return act.detach() * up
        whole = act * up
        return whole / 2 + whole.detach() / 2


def llama(**settings):
    return wild(OwnLlama(**settings), std=0.5)


@BOTH
@pytest.mark.parametrize("kernel", [True, False])
def test_a_decoder_is_as_written_with_detached_factors(composite, kernel):
    net, by_hand = llama(kernel=kernel), llama(hand=composite)
    x = torch.randn(2, 5, 8).double().requires_grad_()
    scores = by_hand(x)
    (gradient,) = torch.autograd.grad(scores[:, 2].sum(), x)
    if composite == "attnlrp":  # half of each value's gradient is handed on by the query's, key's and value's parts
        assert gradient.abs().max() > 0
    found, own = relevance(net, x.detach(), 2, composite)
    np.testing.assert_allclose(own, scores.detach(), atol=1e-12)
    np.testing.assert_allclose(found, (x * gradient).detach(), atol=1e-12)


def vit(name):
    if name == "timm":
        timm = pytest.importorskip("timm")
        return timm.models.VisionTransformer(
            img_size=16, patch_size=8, embed_dim=12, depth=2, num_heads=3, num_classes=3, reg_tokens=2
        )
    if name == "torchvision":
        models = pytest.importorskip("torchvision").models
        return models.VisionTransformer(16, 8, 2, 3, 12, 24, num_classes=3)
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 24}
    kind = name.partition(" ")[2]
    config = getattr(transformers, f"{kind}Config")(**sizes, image_size=16, patch_size=8, num_labels=3)
    return getattr(transformers, f"{kind}ForImageClassification")(config)


class TestIdentity:
    """Inputs, biases, tokens, positions and the softmax of attention are the score, to 1e-12."""

    @pytest.mark.parametrize(
        "name",
        [
            "timm",
            *(pytest.param(n, marks=SLOW) for n in ("torchvision", "HF ViT", "HF DeiT", "HF Dinov2WithRegisters")),
        ],
    )
    def test_vision_transformers(self, name):
        net = wild(vit(name))
        net = metfa.models.Selected(net, "logits") if name.startswith("HF") else net
        found = check_identity(net, IMAGES)["attnlrp"]
        for parts in (found.tokens, found.positions, found.biases, found.softmax):
            assert (np.abs(parts) > 1e-9).all()
        named = {name.rpartition(".")[2] for name in found.named}
        assert named & {"cls_token", "class_token"}, named
        assert named & {"pos_embed", "pos_embedding", "position_embeddings"}
        if name == "timm":
            assert "reg_token" in named
        np.testing.assert_allclose(sum(found.named.values()), found.tokens + found.positions, atol=1e-12)

    @SLOW
    @pytest.mark.parametrize("version", [1, 2])
    def test_swin_of_torchvision(self, version):
        swin = pytest.importorskip("torchvision").models.swin_transformer
        block, merge = (None, swin.PatchMerging) if version == 1 else (swin.SwinTransformerBlockV2, swin.PatchMergingV2)
        net = swin.SwinTransformer(
            [2, 2], 8, [2, 2], [1, 2], [2, 2], num_classes=3, block=block, downsample_layer=merge
        )
        assert (check_identity(wild(net), IMAGES)["attnlrp"].positions != 0).all()

    @SLOW
    def test_swin_and_other_networks_of_timm(self):
        timm = pytest.importorskip("timm")
        sizes = {"img_size": 16, "patch_size": 2, "embed_dim": 8, "window_size": 4, "num_classes": 3}
        check_identity(wild(timm.models.SwinTransformer(**sizes, depths=(2, 2), num_heads=(2, 2))), IMAGES)
        convnext = timm.models.ConvNeXt(depths=(1, 1, 1, 1), dims=(4, 4, 8, 8), num_classes=3)
        check_identity(wild(convnext), torch.rand(2, 3, 32, 32).double())

    @pytest.mark.parametrize("kernel", [True, pytest.param(False, marks=SLOW)])
    def test_a_decoder_with_grouped_queries(self, kernel):
        shares = check_identity(llama(kernel=kernel), torch.randn(2, 5, 8).double(), channel_axis=2)
        assert (np.abs(shares["attnlrp"].softmax) > 1e-6).all()

    @SLOW
    @pytest.mark.parametrize("implementation", ["sdpa", "eager"])
    @pytest.mark.parametrize(
        ("family", "atol"), [("GPT2", 1e-12), ("Bert", 1e-12), ("Llama", 1e-6)]
    )  # Llama's norms compute in float32
    def test_language_models_of_transformers(self, family, atol, implementation):
        net = Embedded(language_model(family, implementation))
        shares = check_identity(net, torch.randn(2, 5, 8).double(), atol=atol, channel_axis=2)["attnlrp"]
        assert (np.abs(shares.softmax) > 1e-6).all()
        assert ((np.abs(shares.positions) > 1e-9) == (family != "Llama")).all()

    @pytest.mark.parametrize("layout", ["tokens", "in place", "dropout"])
    def test_steps_that_other_networks_take(self, layout):
        """Batch normalisation whose gradient comes in tokens' layout (wrong by torch itself), steps in place."""
        conv, norm, qkv, head = nn.Conv2d(3, 4, 4, stride=4), nn.BatchNorm2d(4), nn.Linear(4, 12), nn.Linear(4, 3)
        norm.running_var.uniform_(0.5, 2)

        def forward(x):
            x = norm(conv(x))
            if layout == "in place":
                x = functional.hardswish(x, inplace=True)
                x *= 2
                x += 1
            x = x.flatten(2).transpose(1, 2)
            q, k, v = qkv(x).chunk(3, -1)
            weights = (q @ k.mT).softmax(-1)
            if layout == "dropout":
                weights = functional.dropout(weights, 0.5, training=False, inplace=True)
            return head((weights @ v).mean(1))

        net = wild(Written(forward, conv=conv, norm=norm, qkv=qkv, head=head), std=0.5)
        check_identity(net, IMAGES)

    @SLOW
    @pytest.mark.parametrize("name", ["levit_128s", "xcit_nano_12_p16_224", "tnt_s_patch16_224", "convit_tiny"])
    def test_hybrid_networks_of_timm(self, name):
        timm = pytest.importorskip("timm")
        sizes = {} if name.startswith("levit") else {"depth": 2}
        net = timm.create_model(name, pretrained=False, num_classes=3, **sizes).double().eval()
        image = torch.rand(1, 3, 224, 224).double()
        for composite in ("attnlrp", "cplrp"):
            shares = LRP(net, composite=composite).shares(image, 1)
            np.testing.assert_allclose(total(shares), shares.scores, atol=1e-12)

    def test_attnlrp_does_not_conserve_without_the_softmax(self):
        shares = check_identity(wild(vit("timm")), IMAGES)
        lost = shares["attnlrp"].scores - total(shares["attnlrp"]) + shares["attnlrp"].softmax
        assert (np.abs(lost) > 1e-6).all()

    @BOTH
    def test_what_cannot_be_seen_is_said(self, composite):
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, gradient):
                return 2 * gradient * ctx.saved_tensors[0]

        net = nn.Sequential(nn.Linear(3, 3), Written(Square.apply)).double().eval()
        with pytest.raises(ValueError, match=r"the parts of input 0 add up to .*, and its score is"):
            LRP(net, composite=composite, channel_axis=None).shares(torch.rand(1, 3).double(), 0)

    def test_shares_of_other_composites_are_refused(self):
        with pytest.raises(ValueError, match=r'known for `composite="attnlrp"` and `composite="cplrp"`, got \'epsilon'):
            LRP(nn.Linear(3, 3).eval(), composite="epsilon_plus", channel_axis=None).shares(torch.rand(1, 3), 0)


def language_model(family, implementation="sdpa"):
    transformers = pytest.importorskip("transformers")
    ids = {"vocab_size": 11, "num_labels": 3, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 16}
    if family == "GPT2":
        sizes = {"n_embd": 8, "n_layer": 2, "n_head": 4}
    if family == "Llama":
        sizes["num_key_value_heads"] = 2
    config = getattr(transformers, f"{family}Config")(**ids, **sizes, attn_implementation=implementation)
    return wild(getattr(transformers, f"{family}ForSequenceClassification")(config))


class Embedded(nn.Module):
    """A language model that takes word vectors (batch, length, size), some of which are hidden."""

    def __init__(self, net, hidden=()):
        super().__init__()
        self.net, self.hidden = net, hidden

    def forward(self, x):
        mask = torch.ones(x.shape[:2], dtype=torch.int64)
        mask[:, list(self.hidden)] = 0
        given = {"position_ids": (mask.cumsum(1) - 1).clamp(min=0)} if "GPT2" in type(self.net).__name__ else {}
        base = getattr(self.net, self.net.base_model_prefix)
        states = base(inputs_embeds=x, attention_mask=mask, **given).last_hidden_state
        last = max(set(range(x.shape[1])) - set(self.hidden))
        return states[:, last] @ torch.linspace(-1, 1, 24, dtype=x.dtype).reshape(8, 3)


@BOTH
@pytest.mark.parametrize(("family", "atol"), [("GPT2", 1e-12), ("Llama", 1e-6)])
@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_changes_nothing(family, atol, implementation, side, composite):
    if (family, implementation, side) == ("Llama", "eager", "left"):
        pytest.skip("the model itself answers NaN in float64")
    net = language_model(family, implementation)
    words, padding = torch.randn(1, 4, 8).double(), torch.randn(1, 2, 8).double()
    expected, scores = relevance(Embedded(net).eval(), words, 1, composite)
    parts = [padding, words] if side == "left" else [words, padding]
    hidden = (0, 1) if side == "left" else (4, 5)
    found, padded_scores = relevance(Embedded(net, hidden).eval(), torch.cat(parts, 1), 1, composite)
    np.testing.assert_allclose(padded_scores, scores, atol=atol)
    kept = found[:, 2:] if side == "left" else found[:, :4]
    np.testing.assert_allclose(kept, expected, atol=atol)
    assert (found[:, list(hidden)] == 0).all()


class TestInputs:
    @BOTH
    def test_normalisation_inside_or_outside_is_the_same(self, composite):
        net, mean, std = wild(vit("timm")), [0.5, 0.4, 0.3], [0.2, 0.3, 0.4]
        column = {name: torch.tensor(v).double()[:, None, None] for name, v in (("mean", mean), ("std", std))}
        outside = (IMAGES - column["mean"]) / column["std"]
        expected, _ = LRP(net, composite=composite, scale=False)(outside, 1)
        inside = metfa.models.Normalised(net, mean, std).eval()
        np.testing.assert_allclose(LRP(inside, composite=composite, scale=False)(IMAGES, 1)[0], expected, atol=1e-7)
        turned = Written(lambda x: net((x.flip(1).permute(0, 3, 1, 2) - column["mean"]) / column["std"]), net=net)
        channels_last = IMAGES.permute(0, 2, 3, 1).flip(1)
        found, _ = LRP(turned.eval(), composite=composite, scale=False, channel_axis=3)(channels_last, 1)
        last, _ = LRP(net, composite=composite, scale=False)(
            (channels_last.flip(1).permute(0, 3, 1, 2) - column["mean"]) / column["std"], 1
        )
        np.testing.assert_allclose(found.flip(1), last, atol=1e-13)

        def by_operators(x):
            x = x.clone()
            x.sub_(column["mean"]).div_(column["std"])
            return net(x)

        found, _ = LRP(Written(by_operators, net=net).eval(), composite=composite, scale=False)(IMAGES, 1)
        np.testing.assert_allclose(found, expected, atol=1e-13)

    @BOTH
    def test_on_a_network_of_rectifiers_it_is_gradient_times_normalised_input(self, composite):
        net = nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Conv2d(4, 4, 2),
            nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3),
        )  # fmt: skip
        net = wild(net)
        x = IMAGES.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(net(x)[:, 1].sum(), x)
        found, _ = relevance(net, IMAGES, 1, composite)
        np.testing.assert_allclose(found, (x * gradient).detach(), atol=1e-13)
        check_identity(net, IMAGES)

    @BOTH
    def test_a_model_that_only_scales_its_inputs(self, composite):
        x = torch.randn(2, 3).double()
        for net in (nn.Identity(), Written(lambda x: 2 * x + 1)):
            found, scores = relevance(net.eval(), x, 1, composite)
            np.testing.assert_array_equal(found, scores * torch.tensor([0, 1, 0]))

    @pytest.mark.parametrize("length", [1, 3])
    def test_positions_are_no_normalisation(self, length):
        positions = nn.Embedding(5, 4).double()

        def added(x):
            return (x + positions(torch.arange(x.shape[1]))).mean(1)

        x = torch.randn(2, length, 4).double()
        net = Written(added, positions=positions).eval()
        found, _ = relevance(net, x, 2)
        np.testing.assert_allclose(found[:, :, 2], x[:, :, 2] / length, atol=1e-14)
        shares = LRP(net, composite="attnlrp", channel_axis=2).shares(x, 2)
        np.testing.assert_allclose(shares.scores, shares.inputs + shares.positions + shares.biases, atol=1e-14)

    def test_inputs_used_before_and_after_a_step_in_place(self):
        def twice(x):
            y = x.clone()
            first = y @ torch.ones(3, 3, dtype=x.dtype)
            y.mul_(torch.rand(3, 3, dtype=x.dtype))
            return first + y

        with pytest.raises(ValueError, match="'mul' works in place on a tensor that was used before"):
            relevance(Written(twice).eval(), torch.rand(3, 3).double())


class TestGraph:
    @BOTH
    @pytest.mark.parametrize("kernel", [True, pytest.param(False, marks=SLOW)])
    def test_maps_are_differentiable_where_the_inputs_require_it(self, composite, kernel):
        net = llama(kernel=kernel, n_layers=1, size=4, heads=2, groups=1)
        explainer = LRP(net, composite=composite, scale=False, channel_axis=2)
        x = torch.randn(1, 2, 4).double().requires_grad_()
        assert torch.autograd.gradcheck(lambda x: explainer(x, 1)[0], (x,), atol=1e-6)
        assert not explainer(x.detach(), 1)[0].requires_grad

    def test_layer_norm_and_gelu(self):
        net = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 2))
        explainer = LRP(wild(net), composite="attnlrp", scale=False, channel_axis=None)
        x = torch.randn(1, 4).double().requires_grad_()
        assert torch.autograd.gradcheck(lambda x: explainer(x, 1)[0], (x,), atol=1e-6)


def state_of(net):
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks) for m in net.modules()]
    return hooks, [(id(p), p.requires_grad, p.grad, p._version) for p in net.parameters()]


class TestModel:
    @BOTH
    @pytest.mark.parametrize("target", [1, 9])
    def test_is_left_as_found(self, composite, target):
        net = wild(vit("timm"))
        patched, state = functional.scaled_dot_product_attention, state_of(net)
        weights = copy.deepcopy(net.state_dict())
        if target == 9:
            with pytest.raises(ValueError, match="got 9"):
                LRP(net, composite=composite)(IMAGES, target)
            with pytest.raises(ValueError, match="got 9"):
                LRP(net, composite=composite).shares(IMAGES, target)
        else:
            LRP(net, composite=composite)(IMAGES, target)
            LRP(net, composite=composite).shares(IMAGES, target)
        assert state_of(net) == state
        assert all(torch.equal(weights[key], value) for key, value in net.state_dict().items())
        assert functional.scaled_dot_product_attention is patched

    def test_is_left_as_found_after_a_failure_inside(self):
        def fails(x):
            raise RuntimeError("broken inside")

        net = nn.Sequential(nn.Linear(3, 3), Written(fails)).eval()
        state = state_of(net)
        with pytest.raises(RuntimeError, match="broken inside"):
            LRP(net, composite="attnlrp", channel_axis=None)(torch.rand(1, 3), 0)
        assert state_of(net) == state
        assert type(torch.ones(1) @ torch.ones(1)) is torch.Tensor

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    @BOTH
    def test_halves_are_explained_in_float32(self, dtype, composite):
        net = wild(vit("timm")).to(dtype)
        maps, _ = LRP(net, composite=composite, scale=False)(IMAGES.to(dtype), 1)
        expected, _ = LRP(copy.deepcopy(net).float(), composite=composite, scale=False)(IMAGES.to(dtype).float(), 1)
        assert maps.dtype == torch.float32
        np.testing.assert_array_equal(maps, expected)
        assert {parameter.dtype for parameter in net.parameters()} == {dtype}

    def test_autocast_is_close(self):
        net = wild(vit("timm")).float()
        exact, _ = LRP(net, composite="cplrp", scale=False)(IMAGES.float(), 0)
        maps, _ = LRP(metfa.Called(net, fast="bfloat16"), composite="cplrp", scale=False)(IMAGES.float(), 0)
        assert 0 < (maps - exact).abs().max() < 0.2 * exact.abs().max()

    def test_an_answer_in_a_dictionary_is_refused_with_what_to_write(self):
        net = wild(vit("HF ViT"))
        with pytest.raises(TypeError, match=r"write `metfa\.models\.Selected\(model, 'logits'\)`"):
            LRP(net, composite="cplrp")(IMAGES, 1)

    def test_by_name_in_bfloat16(self):
        from metfa.by_name.methods import check_settings, explainer_of

        check_settings("lrp", {"composite": "cplrp"})
        net = wild(vit("timm")).float()
        named = explainer_of("lrp", net, {"composite": "cplrp"}, fast="bfloat16")
        maps, _ = named(IMAGES.float(), 1)
        exact, _ = LRP(net, composite="cplrp")(IMAGES.float(), 1)
        assert np.corrcoef(maps.flatten(), exact.flatten())[0, 1] > 0.95

    @SLOW
    def test_under_noise(self):
        explainer = LRP(wild(vit("timm")), composite="cplrp")
        sample = metfa.explain(explainer, IMAGES, 1, noise=metfa.noise.Gaussian(0.1), n_samples=4, rng=0)
        assert sample.values.shape == (4, 2, 16, 16)


class TestRefusals:
    @pytest.mark.parametrize(
        ("function", "message"),
        [
            (
                lambda x: x * torch.sigmoid(x),
                r"function sigmoid in '1'\. Write `x \* torch\.sigmoid\(x\)` as `torch\.nn",
            ),
            (lambda x: x**2, r"function pow in '1'\. Write `x\*\*2` as `x \* x`"),
            (
                lambda x: x.exp() / x.exp().sum(1, keepdim=True),
                r"function exp in '1'\. Write an attention's weights by",
            ),
            (lambda x: x.log_softmax(1), r"function log_softmax in '1'\. LRP starts at logits"),
            (
                lambda x: functional.batch_norm(x, None, None, training=True),
                r"function batch_norm in '1'\. Give batch norm",
            ),
            (
                lambda x: functional.instance_norm(x[None])[0],
                r"function instance_norm in '1'\. Write `instance_norm` by",
            ),
            (lambda x: functional.softplus(x), "function softplus in '1'"),
            (lambda x: x.clamp(min=0.5), "function clamp in '1'"),
        ],
    )
    @BOTH
    def test_functions_are_named_with_what_to_write_instead(self, function, message, composite):
        net = nn.Sequential(nn.Linear(3, 3), Written(function)).eval()
        with pytest.raises(ValueError, match=message):
            LRP(net, composite=composite, channel_axis=None)(torch.rand(2, 3), 0)

    def test_the_advice_works(self):
        for function in (functional.silu, lambda x: x * x, lambda x: x.softmax(1) * x):
            net = nn.Sequential(nn.Linear(3, 3), Written(function)).eval()
            assert LRP(net, composite="attnlrp", channel_axis=None)(torch.rand(2, 3), 0)[0].isfinite().all()

    def test_values_put_into_places(self):
        def put(x):
            y = x.clone()
            y[:, 0] = 0
            return y

        net = nn.Sequential(nn.Linear(3, 3), Written(put)).eval()
        with pytest.raises(ValueError, match=r"function setitem in '1'\. Write `x\[\.\.\.\] = y` by `torch\.where`"):
            LRP(net, composite="attnlrp", channel_axis=None)(torch.rand(2, 3), 0)

    @BOTH
    def test_a_softmax_at_the_end(self, composite):
        net = nn.Sequential(nn.Linear(3, 3), nn.Softmax(1)).eval()
        with pytest.raises(ValueError, match="LRP starts at logits: give the model without its softmax"):
            LRP(net, composite=composite, channel_axis=None)(torch.rand(2, 3), 0)

    def test_attention_with_keys_of_its_own(self):
        attention = nn.MultiheadAttention(4, 2, add_bias_kv=True, batch_first=True)
        net = Written(lambda x: attention(x, x, x, need_weights=False)[0][:, 0], attention=attention).eval()
        with pytest.raises(ValueError, match=r"`add_bias_kv`, `add_zero_attn` or static keys: write the attention by"):
            LRP(net, composite="attnlrp", channel_axis=None)(torch.rand(2, 3, 4), 0)

    @pytest.mark.parametrize("name", ["timm", "torchvision", "HF ViT"])
    def test_the_default_composite_names_those_for_transformers(self, name):
        net = wild(vit(name)).float()
        net = metfa.models.Selected(net, "logits") if name.startswith("HF") else net
        with pytest.raises(ValueError, match=r'LayerNorm in .*write `composite="cplrp"` or `composite="attnlrp"`'):
            LRP(net)(IMAGES.float(), 1)
