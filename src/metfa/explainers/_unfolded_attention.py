"""Attention that is one call, step by step: in each step there is a function with a rule."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch.nn import functional

__all__ = ["unfolded_attention", "unfolded_multi_head"]

OF_MULTI_HEAD = inspect.signature(functional.multi_head_attention_forward)


def unfolded_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    _: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    **__: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Values and weights of ``scaled_dot_product_attention``, without dropout."""
    if enable_gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~seen, -torch.inf)
    elif attn_mask is not None:
        is_flag = attn_mask.dtype == torch.bool
        scores = scores.masked_fill(~attn_mask, -torch.inf) if is_flag else scores + attn_mask
    weights = functional.softmax(scores, dim=-1)
    return weights @ value, weights


def unfolded_multi_head(*args: Any, **kwargs: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
    """``torch.nn.functional.multi_head_attention_forward``, without dropout."""
    bound = OF_MULTI_HEAD.bind(*args, **kwargs)
    bound.apply_defaults()
    given = bound.arguments
    if given["add_zero_attn"] or any(given[name] is not None for name in ("bias_k", "bias_v", "static_k", "static_v")):
        raise ValueError(
            "LRP has no rule for a torch.nn.MultiheadAttention with `add_bias_kv`, `add_zero_attn` or static keys: "
            "write the attention by torch.nn.functional.scaled_dot_product_attention"
        )
    query, key, value = given["query"], given["key"], given["value"]
    alone, heads = query.ndim == 2, given["num_heads"]
    q, k, v = (
        functional.linear(x.unsqueeze(1) if alone else x, weight, bias).unflatten(-1, (heads, -1)).permute(1, 2, 0, 3)
        for x, (weight, bias) in zip((query, key, value), _projections(given), strict=True)
    )  # (batch, heads, length, size)
    mask = _mask(given["attn_mask"], given["key_padding_mask"], q, k)
    weights = None
    if given["need_weights"]:
        attended, weights = unfolded_attention(q, k, v, mask)
    else:
        attended = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    output = attended.permute(2, 0, 1, 3).flatten(2)
    output = functional.linear(output, given["out_proj_weight"], given["out_proj_bias"])
    if weights is not None:
        weights = weights.mean(1) if given["average_attn_weights"] else weights
        weights = weights[0] if alone else weights
    return (output[:, 0] if alone else output), weights


def _projections(given: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Weight and bias of queries, keys and values."""
    if given["use_separate_proj_weight"]:
        weights = [given[name] for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight")]
    else:
        weights = given["in_proj_weight"].chunk(3)
    bias = given["in_proj_bias"]
    return list(zip(weights, [None] * 3 if bias is None else bias.chunk(3), strict=True))


def _mask(of_pairs: Any, of_keys: Any, q: torch.Tensor, k: torch.Tensor) -> Any:
    """Both masks as one that is added to the scores (batch, heads, queries, keys)."""
    masks = []
    if of_pairs is not None:
        masks.append(_additive(of_pairs, q.dtype).unflatten(0, (-1, q.shape[1])) if of_pairs.ndim == 3 else of_pairs)
    if of_keys is not None:
        masks.append(of_keys.reshape(-1, 1, 1, k.shape[2]))
    masks = [_additive(mask, q.dtype) for mask in masks]
    return sum(masks[1:], masks[0]) if masks else None


def _additive(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A mask of torch.nn.MultiheadAttention, in which true means hidden."""
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(mask, -torch.inf)
