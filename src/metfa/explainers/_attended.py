"""What explainers by attention have in common: one forward pass, and maps made of one number for each token."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from metfa._arrays import widen
from metfa._base.validation import positive_int
from metfa.calls.attention_pass import AttentionPass
from metfa.calls.differentiation import chosen_scores, weights_frozen
from metfa.calls.inputs import check_images, require_tensor
from metfa.calls.no_gradient import gradient_expected
from metfa.calls.parts import asked_scores
from metfa.calls.row_dependence import row_by_row
from metfa.explainers._places import Places, Tokens
from metfa.explainers.cam import enlarged, warn_if_constant
from metfa.explainers.heatmaps import finished

__all__ = ["Attended", "check_patch_grid", "explained", "with_heads"]

INSTEAD = (
    'explain it by `Gradient(model)`, or by `ScoreCAM(model)` or `from_gradcam("GradCAM", model)`, which take the last '
    "feature map or a `layer=`"
)


@dataclass(frozen=True)
class Attended:
    """One forward pass of a model whose attention is over all tokens."""

    called: Any
    inputs: torch.Tensor
    target: Any
    scores: torch.Tensor  # (batch, classes)
    chosen: torch.Tensor  # (batch,): the score of each row's target
    weights: list[torch.Tensor]  # of each layer, (batch, heads, tokens, tokens), or without heads
    forward: AttentionPass
    tokens: Tokens
    differentiable: bool

    def gradients(self) -> tuple[torch.Tensor, ...]:
        """Gradients of the chosen scores by the weights of each layer."""
        return torch.autograd.grad(self.chosen.sum(), self.weights, create_graph=self.differentiable, retain_graph=True)

    def read_out(self, gradient: torch.Tensor | None = None) -> torch.Tensor:
        """How much of each token the model takes for its scores, (batch, tokens), with sum 1 in each row.

        Seen in the last layer: a token whose attention has a gradient is read. Prefix tokens that are read count
        alike, and so do patches; where both are read, each kind counts half. `gradient` is that of the last layer.
        """
        if gradient is None:
            (gradient,) = torch.autograd.grad(self.chosen.sum(), self.weights[-1], retain_graph=True)
        read = (with_heads(gradient.detach()) != 0).any(-1).any(1).to(gradient.dtype)
        placed = torch.tensor(self.tokens.places, device=read.device) >= 0
        kinds = torch.stack([read * placed, read * ~placed])
        shares = kinds / kinds.sum(-1, keepdim=True).clamp(min=1)
        total = shares.sum(0)
        return total / total.sum(-1, keepdim=True).clamp(min=1)


def with_heads(weights: torch.Tensor) -> torch.Tensor:
    """Weights (batch, heads, tokens, tokens), with one head where there is no axis of heads."""
    return weights if weights.ndim == 4 else weights[:, None]


def check_patch_grid(patch_grid: Any) -> tuple[int, int] | None:
    """The pair (rows, columns), or None."""
    if patch_grid is None:
        return None
    if not isinstance(patch_grid, tuple | list) or len(patch_grid) != 2:
        raise TypeError(f"`patch_grid` must be a pair (rows, columns) of patches, or None, got {patch_grid!r}")
    return positive_int(patch_grid[0], "patch_grid"), positive_int(patch_grid[1], "patch_grid")


def explained(
    explainer: Any, inputs: Any, target: Any, of_tokens: Callable[[Attended], torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Maps and scores, from a function that gives each token a number, (batch, tokens)."""
    require_tensor(inputs)
    check_images(inputs)
    called = explainer.called
    differentiable = inputs.requires_grad and torch.is_grad_enabled()
    with (
        torch.enable_grad(),
        weights_frozen(called.model),
        gradient_expected(called.model, inputs),
        called.precision(inputs),
    ):
        seen = _attended(explainer, inputs, target, differentiable=differentiable)
        values = of_tokens(seen)
        dependent = called.row_look.finds_dependence(inputs.detach(), seen.scores.detach())
    if dependent:
        return row_by_row(explainer, inputs, target)
    maps = widen(seen.tokens.on_grid(values if differentiable else values.detach()))
    warn_if_constant(maps.detach(), "attention passes nothing from the patches to the score, or as much from each")
    return finished(enlarged(maps, inputs.shape[2:]), scale=explainer.scale), seen.scores.detach()


def _attended(explainer: Any, inputs: torch.Tensor, target: Any, *, differentiable: bool) -> Attended:
    called, kind = explainer.called, type(explainer).__name__
    leaf = called.laid_out(inputs if differentiable else inputs.detach())
    if not differentiable:
        leaf = leaf.requires_grad_()
    forward, places = AttentionPass(called.model), Places(inputs.shape[2:])
    with places, forward.watching():  # the model gets a copy, as it may work in place
        scores = asked_scores(called.model, leaf.clone())
    chosen = chosen_scores(scores, target, leaf)
    n_tokens = _check_global(forward, len(leaf), kind)
    tokens = _tokens(places, len(leaf), n_tokens, explainer.patch_grid)
    weights = [call.weights for call in forward.calls]
    return Attended(called, inputs, target, scores, chosen, weights, forward, tokens, differentiable)


def _check_global(forward: AttentionPass, n_rows: int, kind: str) -> int:
    """Number of tokens; raises unless every attention of the model is of all tokens to all tokens."""
    if not forward.calls:
        raise ValueError(
            f"{kind} needs the weights of attention, and none was seen in the model: it must use "
            "`torch.nn.functional.scaled_dot_product_attention`, `torch.nn.MultiheadAttention`, or a softmax and a "
            f"product, no kernel of another package; or {INSTEAD}"
        )
    unread = forward.unread()
    if unread is not None:
        raise ValueError(
            f"{kind}: what the model makes of the softmax in {unread} is not known, since values are not multiplied by "
            f"it right away; {INSTEAD}"
        )
    n_tokens = forward.calls[0].weights.shape[-1]
    for call in forward.calls:
        rows, *_, queries, keys = call.weights.shape
        if (rows, queries, keys) != (n_rows, n_tokens, n_tokens) or call.weights.ndim > 4:
            raise ValueError(
                f"{kind} is not defined for this model: its attention must be of all tokens to all tokens, (batch, "
                f"heads, tokens, tokens) with the same tokens in each layer, and is in {call} for {n_rows} inputs, as "
                f"in Swin, whose attention sees windows, or where an attention pools the tokens; {INSTEAD}"
            )
        if not call.weights.requires_grad:
            raise ValueError(f"{kind}: the attention in {call} has no gradient; {INSTEAD}")
    return n_tokens


def _tokens(places: Places, n_rows: int, n_tokens: int, patch_grid: Any) -> Tokens:
    found = places.of(n_rows, n_tokens)
    if patch_grid is not None:
        if found is not None and found.grid != patch_grid:
            raise ValueError(f"`patch_grid` is {patch_grid}, but the model lays its patches on a grid {found.grid}")
        return found or Tokens.behind_prefixes(patch_grid, n_tokens)
    if found is None:
        raise ValueError(
            f"where the {n_tokens} tokens of the model lie in the image could not be seen (its patches come from no "
            "convolution): write `patch_grid=(rows, columns)`, the grid of patches; what is left of the tokens, such "
            "as a class token, then comes before them"
        )
    return found
