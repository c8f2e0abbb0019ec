"""Attention as products and a softmax, so that its weights can be seen and differentiated.

Torch computes attention by kernels that keep no weights. Here the same numbers are computed step by step: softmax(q kᵀ
scale + mask) v. The function inside of `torch.nn.MultiheadAttention`, ``multi_head_attention_forward``, is unfolded as
well.
"""

from __future__ import annotations

import inspect
import math
from typing import Any

import torch
from torch.nn import functional

from metfa._arrays import widen

__all__ = ["attention", "multi_head_attention"]


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """What `torch.nn.functional.scaled_dot_product_attention` gives, and the weights of its sum.

    Half precision and autocast are left for float32 inside, as in torch's kernels. There is no dropout.

    Returns
    -------
    output : torch.Tensor, (..., queries, features)
        In the precision of `value`.
    weights : torch.Tensor, (..., queries, keys)
        At least float32. Each row adds up to 1; it is 0 where the mask hides all keys.
    """
    del dropout_p
    dtype = value.dtype
    with torch.autocast(query.device.type, enabled=False):
        query, key, value = widen(query), widen(key), widen(value)
        if enable_gqa:
            groups = query.shape[-3] // key.shape[-3]
            key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
        scores = query @ key.mT * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
        if is_causal:
            attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        if attn_mask is not None:
            scores = scores + _additive(attn_mask, scores.dtype, hidden=False)
        nothing = (scores == -math.inf).all(-1, keepdim=True)
        weights = scores.masked_fill(nothing, 0.0).softmax(-1).masked_fill(nothing, 0.0)
        return (weights @ value).to(dtype), weights


def multi_head_attention(*args: Any, **kwargs: Any) -> tuple[Any, torch.Tensor]:
    """What `torch.nn.functional.multi_head_attention_forward` returns, and the weights (batch, heads, queries, keys).

    Takes the arguments of that function. There is no dropout.
    """
    bound = inspect.signature(functional.multi_head_attention_forward).bind(*args, **kwargs)
    bound.apply_defaults()
    given = bound.arguments
    query, key, value = given["query"], given["key"], given["value"]
    hidden = given["key_padding_mask"]
    batched = query.ndim == 3
    if not batched:
        query, key, value = query[:, None], key[:, None], value[:, None]
        hidden = None if hidden is None else hidden[None]
    (length, rows, _), heads = query.shape, given["num_heads"]
    query, key, value = _projected(query, key, value, given)
    added = 0
    if given["bias_k"] is not None:
        key = torch.cat([key, given["bias_k"].expand(1, rows, -1)])
        value = torch.cat([value, given["bias_v"].expand(1, rows, -1)])
        added += 1
    query = _by_heads(query, heads)
    key = _by_heads(key, heads) if given["static_k"] is None else given["static_k"].unflatten(0, (rows, heads))
    value = _by_heads(value, heads) if given["static_v"] is None else given["static_v"].unflatten(0, (rows, heads))
    if given["add_zero_attn"]:
        key, value = (functional.pad(x, (0, 0, 0, 1)) for x in (key, value))
        added += 1
    mask = _mask(given["attn_mask"], hidden, rows, heads, query.dtype, added)
    output, weights = attention(query, key, value, mask)
    output = output.permute(2, 0, 1, 3).reshape(length, rows, -1)
    output = functional.linear(output, given["out_proj_weight"], given["out_proj_bias"])
    handed = None
    if given["need_weights"]:
        handed = weights.mean(1) if given["average_attn_weights"] else weights
        handed = handed.to(output.dtype)
    if not batched:
        output, handed = output[:, 0], None if handed is None else handed[0]
    return (output, handed), weights


def _projected(query: Any, key: Any, value: Any, given: dict[str, Any]) -> list[torch.Tensor]:
    names = "q_proj_weight", "k_proj_weight", "v_proj_weight"
    separate = given["use_separate_proj_weight"]
    weights = [given[name] for name in names] if separate else given["in_proj_weight"].chunk(3)
    biases = [None] * 3 if given["in_proj_bias"] is None else given["in_proj_bias"].chunk(3)
    return [functional.linear(*parts) for parts in zip((query, key, value), weights, biases, strict=True)]


def _by_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    """Rows (length, batch, features) as (batch, heads, length, features of a head)."""
    return x.unflatten(2, (heads, -1)).permute(1, 2, 0, 3)


def _mask(attn_mask: Any, hidden: Any, rows: int, heads: int, dtype: Any, added: int) -> torch.Tensor | None:
    """Both masks of ``multi_head_attention_forward`` as one to be added; `added` keys at the end are never hidden."""
    mask = None
    if attn_mask is not None:
        mask = _additive(attn_mask, dtype, hidden=True)
        mask = mask if mask.ndim == 2 else mask.unflatten(0, (rows, heads))
    if hidden is not None:
        hidden = _additive(hidden, dtype, hidden=True)[:, None, None]
        mask = hidden if mask is None else mask + hidden
    return mask if mask is None or not added else functional.pad(mask, (0, added))


def _additive(mask: torch.Tensor, dtype: Any, *, hidden: bool) -> torch.Tensor:
    """A mask that is added to scores; `hidden` is what the True of a boolean mask says."""
    if mask.dtype != torch.bool:
        return mask.to(dtype)
    return torch.zeros_like(mask, dtype=dtype).masked_fill(mask if hidden else ~mask, -math.inf)
