"""Attention step by step against torch's kernels, and the weights that are seen in models of all kinds."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from metfa.calls.attention import attention, multi_head_attention
from metfa.calls.attention_pass import AttentionPass

RANDOM = torch.Generator().manual_seed(3)


def numbers(*shape, dtype=torch.float64):
    return torch.randn(shape, generator=RANDOM, dtype=torch.float64).to(dtype)


def assert_equal(a, b, **tolerance):
    torch.testing.assert_close(a, b, **(tolerance or {"rtol": 1e-12, "atol": 1e-12}))


def seen_in(model, *inputs):
    forward = AttentionPass(model)
    with forward.watching():
        output = model(*inputs)
    return output, forward


def test_by_hand():
    """q = 1, k = (ln 3, 0): the weights are 3/4 and 1/4."""
    query, key, value = (
        torch.tensor(x, dtype=torch.float64) for x in ([[1.0]], [[math.log(3)], [0.0]], [[4.0], [8.0]])
    )
    output, weights = attention(query, key, value, scale=1.0)
    assert_equal(weights, torch.tensor([[0.75, 0.25]], dtype=torch.float64))
    assert_equal(output, torch.tensor([[5.0]], dtype=torch.float64))


QUERY, KEY, VALUE = numbers(2, 4, 5, 6), numbers(2, 4, 7, 6), numbers(2, 4, 7, 3)
VISIBLE = torch.rand(5, 7, generator=RANDOM) > 0.4
VISIBLE[2] = False  # this query sees nothing
SETTINGS = {
    "plain": {},
    "scale": {"scale": 0.7},
    "causal": {"is_causal": True},
    "bool": {"attn_mask": VISIBLE},
    "float": {"attn_mask": numbers(2, 1, 5, 7)},
    "hidden by float": {"attn_mask": torch.zeros(5, 7, dtype=torch.float64).masked_fill(~VISIBLE, -math.inf)},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_as_torch(name):
    output, weights = attention(QUERY, KEY, VALUE, **SETTINGS[name])
    assert_equal(output, functional.scaled_dot_product_attention(QUERY, KEY, VALUE, **SETTINGS[name]))
    assert_equal(weights @ VALUE, output)
    sums = weights.sum(-1)
    hidden = "hidden" in name or name == "bool"
    assert_equal(sums, torch.ones_like(sums) * (VISIBLE.any(-1).double() if hidden else 1.0))


def test_rows_that_see_nothing_have_finite_gradients():
    query = QUERY.clone().requires_grad_()
    attention(query, KEY, VALUE, attn_mask=VISIBLE)[0].sum().backward()
    assert query.grad.isfinite().all()


def test_grouped_queries():
    key, value = KEY[:, :2], VALUE[:, :2]
    output, weights = attention(QUERY, key, value, enable_gqa=True)
    assert_equal(output, functional.scaled_dot_product_attention(QUERY, key, value, enable_gqa=True))
    assert weights.shape == (2, 4, 5, 7)


def test_dropout_is_off():
    torch.testing.assert_close(attention(QUERY, KEY, VALUE, dropout_p=0.9), attention(QUERY, KEY, VALUE))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_lower_precision(dtype):
    given = [x.to(dtype) for x in (QUERY, KEY, VALUE)]
    output, weights = attention(*given)
    assert output.dtype == dtype
    assert weights.dtype == torch.float32
    expected = functional.scaled_dot_product_attention(*given)
    tolerance = 1e-6 if dtype == torch.float32 else 0.02
    assert_equal(output, expected, rtol=tolerance, atol=tolerance)


def test_autocast_casts_nothing_inside():
    with torch.autocast("cpu", torch.bfloat16):
        _, weights = attention(QUERY.float(), KEY.float(), VALUE.bfloat16())
    assert_equal(weights, attention(QUERY.float(), KEY.float(), VALUE.float())[1], rtol=1e-6, atol=1e-6)


def attended(given=None, **settings):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.MultiheadAttention(6, 2, **{"dropout": 0.5, **settings}).double().eval(), given or {}


X = numbers(5, 3, 6)
PADDED = torch.tensor([[False] * 5, [False] * 4 + [True], [True] + [False] * 4])
MULTI_HEAD = {
    "plain": attended(),
    "averaged": attended({"need_weights": True}),
    "of each head": attended({"need_weights": True, "average_attn_weights": False}),
    "no weights": attended({"need_weights": False}),
    "bool mask": attended({"attn_mask": torch.ones(5, 5, dtype=torch.bool).triu(1)}),
    "causal": attended({"attn_mask": torch.ones(5, 5, dtype=torch.bool).triu(1), "is_causal": True}),
    "float mask of each head": attended({"attn_mask": numbers(6, 5, 5)}),
    "padding": attended({"key_padding_mask": PADDED}),
    "both": attended({"key_padding_mask": PADDED, "attn_mask": numbers(5, 5)}),
    "one more key": attended({"attn_mask": numbers(5, 5)}, add_bias_kv=True),
    "a zero": attended({"key_padding_mask": PADDED}, add_zero_attn=True),
    "no bias": attended(bias=False),
    "other widths": attended(kdim=4, vdim=3),
}


@pytest.mark.filterwarnings("ignore:Support for mismatched key_padding_mask:UserWarning")
@pytest.mark.parametrize("name", MULTI_HEAD)
def test_multi_head_as_torch(name):
    module, given = MULTI_HEAD[name]
    key, value = (numbers(5, 3, 4), numbers(5, 3, 3)) if name == "other widths" else (X, X)
    expected, their_weights = module(X, key, value, **given)
    (output, handed), forward = seen_in(module, X, key, value) if not given else called_with(module, key, value, given)
    assert_equal(output, expected)
    assert (handed is None) == (their_weights is None)
    if handed is not None:
        assert_equal(handed, their_weights)
    (call,) = forward.calls
    full = module(X, key, value, **{**given, "need_weights": True, "average_attn_weights": False})[1]
    assert_equal(call.weights, full)


def called_with(module, key, value, given):
    forward = AttentionPass(module)
    with forward.watching():
        return module(X, key, value, **given), forward


def test_multi_head_of_one_sequence():
    module, _ = MULTI_HEAD["plain"]
    expected = module(X[:, 0], X[:, 0], X[:, 0])
    found, forward = seen_in(module, X[:, 0], X[:, 0], X[:, 0])
    assert_equal(found[0], expected[0])
    assert_equal(found[1], expected[1])
    assert forward.calls[0].weights.shape == (1, 2, 5, 5)


def test_keys_that_are_given():
    module, _ = MULTI_HEAD["plain"]
    weights = (module.in_proj_weight, module.in_proj_bias, None, None, False, 0.0, module.out_proj.weight, None)
    static = {"static_k": numbers(6, 4, 3), "static_v": numbers(6, 4, 3)}
    expected = functional.multi_head_attention_forward(X, X, X, 6, 2, *weights, **static)
    (output, _), _ = multi_head_attention(X, X, X, 6, 2, *weights, **static)
    assert_equal(output, expected[0])


@pytest.mark.parametrize("grad", [True, False])
def test_the_fast_path_of_an_encoder_is_seen(grad):
    """Without a gradient torch calls one kernel for the whole layer."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(6, 2, 8, batch_first=True)
        encoder = nn.TransformerEncoder(layer, 2).double().eval()
    with torch.set_grad_enabled(grad):
        expected = encoder(X)
        output, forward = seen_in(encoder, X)
    assert_equal(output, expected)
    assert [call.place for call in forward.calls] == ["layers.0.self_attn", "layers.1.self_attn"]
    assert forward.calls[0].weights.shape == (5, 2, 3, 3)


class Written(nn.Module):
    """Attention as people write it, by hand."""

    def __init__(self, weigh, sums):
        super().__init__()
        self.weigh, self.sums, self.dropout = weigh, sums, nn.Dropout(0.3)

    def forward(self, q, k, v):
        return self.sums(self.dropout(self.weigh(q @ k.transpose(-1, -2) / 2)), v)


SELF = numbers(2, 3, 5, 4)
WEIGHED = {
    "method": lambda s: s.softmax(-1),
    "function": lambda s: functional.softmax(s, dim=-1, dtype=torch.float32).to(s.dtype),
    "torch": lambda s: torch.softmax(s, 3),
    "module": nn.Softmax(dim=-1),
}
SUMMED = {
    "operator": lambda a, v: a @ v,
    "matmul": torch.matmul,
    "einsum": lambda a, v: torch.einsum("bhqk,bhkd->bhqd", a, v),
    "einsum of a list": lambda a, v: torch.einsum("b h q k, b h k d -> b q h d", [a, v]).transpose(1, 2),
}


@pytest.mark.parametrize("weigh", WEIGHED)
@pytest.mark.parametrize("sums", SUMMED)
def test_eager_attention_is_seen(weigh, sums):
    model = Written(WEIGHED[weigh], SUMMED[sums]).eval()
    output, forward = seen_in(model, SELF, SELF, SELF)
    assert torch.equal(output, model(SELF, SELF, SELF))
    (call,) = forward.calls
    tolerance = 1e-6 if weigh == "function" else 1e-12
    assert_equal(call.weights, attention(SELF, SELF, SELF, scale=0.5)[1], rtol=tolerance, atol=tolerance)
    assert call.place == ""
    assert forward.unread() is None


UNKNOWN = {
    "talking heads": lambda a, v: torch.einsum("gh,bhqk->bgqk", torch.ones(3, 3).double(), a) @ v,
    "halved": lambda a, v: (a / 2) @ v,
    "from the other side": lambda a, v: (v.transpose(-1, -2) @ a.transpose(-1, -2)).transpose(-1, -2),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_made_of_a_softmax_and_not_known_is_said(name):
    _, forward = seen_in(Written(WEIGHED["method"], UNKNOWN[name]).eval(), SELF, SELF, SELF)
    assert forward.calls == []
    assert str(forward.unread()) == "'the model' of shape (2, 3, 5, 5)"


def test_other_softmaxes_are_no_attention():
    class Classifier(nn.Module):
        def forward(self, x):
            return x.mean((1, 2)).softmax(-1), (x @ x.transpose(-1, -2)).softmax(1)

    _, forward = seen_in(Classifier(), SELF)
    assert forward.calls == []
    assert forward.unread() is None


def test_hooks_are_gone_after_an_exception():
    module = MULTI_HEAD["plain"][0]
    forward = AttentionPass(module)
    with pytest.raises(RuntimeError, match="cannot be multiplied"), forward.watching():
        module(X, X, X[..., :2])
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())
    assert torch.overrides._len_torch_function_stack() == 0
