"""Attention rolled out through the layers of a vision transformer: by itself, or weighed by gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from metfa._base.validation import check_flag, keep
from metfa.calls.held import asks_a_model, hold, model_itself, rows_as_the_model
from metfa.explainers._attended import Attended, check_patch_grid, explained, with_heads

__all__ = ["AttentionRollout", "GradientRollout"]


@asks_a_model
@dataclass(frozen=True)
class AttentionRollout:
    r"""Attention rollout (Abnar and Zuidema 2020): how much of each patch arrives where the model reads its scores.

    Each layer mixes tokens by :math:`\bar A = (\mathrm{mean}_h A + I) / \mathrm{row\ sum}`, the mean of its heads'
    attention weights and the residual connection. The product :math:`\bar A^L \cdots \bar A^1`, the later layer on the
    left, says how much of each token is in each token behind the last layer. The map is the row of the token that the
    model reads, at the patches. `target` changes nothing: the map is the same for every class. To ask about a class,
    use `GradientRollout` or `LeGrad`.

    Parameters
    ----------
    called : torch.nn.Module, callable or Called
        Model, or a `metfa.Called` that says how it is asked: images (batch, channels, height, width) -> scores
        (batch, classes). A vision transformer whose attention is of all tokens to all tokens, such as ViT and DeiT of
        timm, torchvision and Hugging Face (with `metfa.models.Selected`).
    patch_grid : pair of int, optional
        The grid of patches (rows, columns), where it cannot be seen in the model. Tokens before them, such as a class
        token, are left out. None: found by following the pixels of the convolution that cuts the patches.
    scale : bool
        Scale each map to [0, 1] by its smallest and largest value (the authors' convention). False: the row of the
        product.

    Notes
    -----
    The weights are recorded where the model computes them. Its implementation of attention (fused or eager) stays as it
    is. Class, distillation and register tokens take part in the product and have no place in the map. A model that
    averages its patches has the mean of their rows, and one that reads several tokens before the patches the mean of
    those; where it reads both kinds, each counts half.

    It is refused where attention sees windows or where the number of tokens changes (Swin, PVT): no product of their
    weights is defined.

    References
    ----------
    S. Abnar and W. Zuidema, "Quantifying Attention Flow in Transformers", ACL 2020, section 3.

    Examples
    --------
    >>> import torch
    >>> from torchvision.models import VisionTransformer
    >>> from metfa.explainers import AttentionRollout
    >>> model = VisionTransformer(32, 8, 2, 2, 8, 16, num_classes=4).eval()
    >>> head = torch.nn.init.normal_(model.heads.head.weight)  # torchvision makes it 0
    >>> maps, scores = AttentionRollout(model)(torch.rand(2, 3, 32, 32))
    >>> maps.shape, scores.shape
    (torch.Size([2, 32, 32]), torch.Size([2, 4]))
    """

    called: Any
    patch_grid: tuple[int, int] | None = field(default=None, kw_only=True)
    scale: bool = field(default=True, kw_only=True)

    model: ClassVar[property] = model_itself
    rows_independent: ClassVar[property] = rows_as_the_model
    differentiable = True

    def __post_init__(self) -> None:
        hold(self, at_layers="AttentionRollout")
        keep(self, patch_grid=check_patch_grid(self.patch_grid), scale=check_flag(self.scale, "scale"))

    def __call__(self, inputs: torch.Tensor, target: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Maps and scores of a batch.

        Parameters
        ----------
        inputs : torch.Tensor, (batch, channels, height, width)
            Floating point. Where they require a gradient, the maps are differentiable in them.
        target : int, sequence or tensor, optional
            Class of each row. It is checked, and changes nothing.

        Returns
        -------
        maps : torch.Tensor, (batch, height, width)
            float32 (or wider), in [0, 1] with `scale`.
        scores : torch.Tensor, (batch, classes)
            The model's scores, detached.

        Raises
        ------
        ValueError
            If no attention is seen, if it is not of all tokens to all tokens, or if the grid of patches is not found.
        """
        return explained(self, inputs, target, _rollout)


@asks_a_model
@dataclass(frozen=True)
class GradientRollout:
    r"""Attention weighed by the class score's gradients and rolled out (Chefer, Gur and Wolf 2021b).

    Each layer passes on :math:`\bar A = \mathrm{mean}_h (\nabla A \odot A)^+`, with :math:`\nabla A` the gradient of
    the class score by the attention weights. The relevance starts as :math:`R = I` and becomes :math:`R + \bar A R`,
    layer by layer from the first one on. The map is the row of R - I of the token that the model reads, at the patches.

    Parameters
    ----------
    called : torch.nn.Module, callable or Called
        As for `AttentionRollout`. Scores before a softmax: logits.
    patch_grid : pair of int, optional
        As for `AttentionRollout`.
    scale : bool
        Scale each map to [0, 1] by its smallest and largest value (the authors' convention). False: the row of R - I.

    Notes
    -----
    The definition is equations 5 and 6 for self-attention, as in the authors' code
    (``hila-chefer/Transformer-MM-Explainability``). Their notebooks start at the first layer for ViT and at the last
    one for CLIP; here it is always the first. Their earlier method (2021a, "Transformer Interpretability Beyond
    Attention Visualization") weighs attention by its relevance instead, and is another one.

    What is said of tokens and models under `AttentionRollout` holds here too.

    References
    ----------
    H. Chefer, S. Gur and L. Wolf, "Generic Attention-model Explainability for Interpreting Bi-Modal and
    Encoder-Decoder Transformers", ICCV 2021, section 3.

    Examples
    --------
    >>> import torch
    >>> from torchvision.models import VisionTransformer
    >>> from metfa.explainers import GradientRollout
    >>> model = VisionTransformer(32, 8, 2, 2, 8, 16, num_classes=4).eval()
    >>> head = torch.nn.init.normal_(model.heads.head.weight)  # torchvision makes it 0
    >>> maps, scores = GradientRollout(model)(torch.rand(2, 3, 32, 32), target=1)
    >>> maps.shape, scores.shape
    (torch.Size([2, 32, 32]), torch.Size([2, 4]))
    """

    called: Any
    patch_grid: tuple[int, int] | None = field(default=None, kw_only=True)
    scale: bool = field(default=True, kw_only=True)

    model: ClassVar[property] = model_itself
    rows_independent: ClassVar[property] = rows_as_the_model
    differentiable = True

    def __post_init__(self) -> None:
        hold(self, at_layers="GradientRollout")
        keep(self, patch_grid=check_patch_grid(self.patch_grid), scale=check_flag(self.scale, "scale"))

    def __call__(self, inputs: torch.Tensor, target: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Maps and scores of a batch.

        Parameters
        ----------
        inputs : torch.Tensor, (batch, channels, height, width)
            Floating point. Where they require a gradient, the maps are differentiable in them.
        target : int, sequence or tensor, optional
            Class of each row; None: the predicted one.

        Returns
        -------
        maps : torch.Tensor, (batch, height, width)
            float32 (or wider), in [0, 1] with `scale`.
        scores : torch.Tensor, (batch, classes)
            The model's scores, detached.

        Raises
        ------
        ValueError
            If no attention is seen, if it is not of all tokens to all tokens, or if the grid of patches is not found.
        """
        return explained(self, inputs, target, _gradient_rollout)


def _rollout(seen: Attended) -> torch.Tensor:
    return rolled_out([with_residual(weights) for weights in seen.weights], seen.read_out())


def _gradient_rollout(seen: Attended) -> torch.Tensor:
    gradients = seen.gradients()
    passed = [with_heads(g * a).clamp(min=0).mean(1) for g, a in zip(gradients, seen.weights, strict=True)]
    identity = torch.eye(passed[0].shape[-1], dtype=passed[0].dtype, device=passed[0].device)
    read = seen.read_out(gradients[-1])
    return rolled_out([identity + one for one in passed], read) - read


def with_residual(weights: torch.Tensor) -> torch.Tensor:
    """Attention weights (batch, heads, tokens, tokens) as (batch, tokens, tokens) with the residual, rows of sum 1."""
    mixed = with_heads(weights).mean(1)
    mixed = mixed + torch.eye(mixed.shape[-1], dtype=mixed.dtype, device=mixed.device)
    return mixed / mixed.sum(-1, keepdim=True)


def rolled_out(layers: Sequence[torch.Tensor], read: torch.Tensor) -> torch.Tensor:
    """`read` (batch, tokens) times the matrices (batch, tokens, tokens) of all layers, the last layer first."""
    row = read[:, None]
    for layer in reversed(layers):
        row = row @ layer
    return row[:, 0]
