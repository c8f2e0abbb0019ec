"""The gradient explainer: the size of the class score's gradient at each pixel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from metfa.calls.called import answered, checked_scores
from metfa.calls.differentiation import chosen_scores, weights_frozen
from metfa.calls.inputs import check_values, require_tensor
from metfa.explainers._model_explainer import ModelExplainer
from metfa.explainers.heatmaps import check_channel_axis, reduce_channels, require_channels

__all__ = ["Gradient"]


@dataclass(frozen=True)
class Gradient(ModelExplainer):
    r"""Absolute gradient of the class score, maximum over channels (Simonyan et al. 2013; the paper's Gradient).

    Parameters
    ----------
    model : torch.nn.Module or callable
        Inputs (batch, channels, \*features) -> scores (batch, classes), before a softmax.
    channel_axis : int or None
        Axis of the channels, at least 1 (axis 0 is the batch), reduced by the maximum; None where there are none
        (tables).
    scale : bool
        Scale each map to [0, 1] by its smallest and largest value (the paper's convention). False: raw gradients.
    autocast : torch.dtype, optional
        Run the model in this lower precision, such as ``torch.bfloat16``: faster, and each single map changes (they
        correlate at about .9 on EfficientNet-Lite0), while the significance map agrees as well as between two runs with
        other noise. Maps are float32.
    memory_format : torch.memory_format, optional
        Layout of the inputs, such as ``torch.channels_last``: often faster for convolutions on a CPU, the same maps to
        rounding. The model itself is never converted.

    Examples
    --------
    >>> import torch
    >>> from metfa.explainers import Gradient
    >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 3))
    >>> maps, scores = Gradient(model.eval())(torch.rand(2, 3, 2, 2), target=0)
    >>> maps.shape, scores.shape
    (torch.Size([2, 2, 2]), torch.Size([2, 3]))
    """

    channel_axis: int | None = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_channel_axis(self.channel_axis)

    def __call__(self, inputs: torch.Tensor, target: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
        r"""Maps and scores of a batch.

        Parameters
        ----------
        inputs : torch.Tensor, (batch, channels, \*features)
            Floating point. Where they require a gradient, the maps are differentiable in them.
        target : int, sequence or tensor, optional
            Class of each row; None: the predicted one.

        Returns
        -------
        maps : torch.Tensor, (batch, \*features)
            float32 (or wider), in [0, 1] with `scale`.
        scores : torch.Tensor, (batch, classes)
            The model's scores, detached.
        """
        gradient, scores = self._signed(inputs, target)
        return self._finished(reduce_channels(gradient, self.channel_axis)), scores

    def _signed(self, inputs: torch.Tensor, target: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Gradient of each row's score by the inputs, with its sign, and all scores."""
        self._check(inputs)
        differentiable = inputs.requires_grad and torch.is_grad_enabled()
        with torch.enable_grad(), weights_frozen(self.model), self._precision(inputs):
            leaf = self._laid_out(inputs if differentiable else inputs.detach())
            if not differentiable:
                leaf = leaf.requires_grad_()
            scores = checked_scores(answered(self.model, leaf), len(leaf))
            chosen = chosen_scores(scores, target)
            (gradient,) = torch.autograd.grad(chosen.sum(), leaf, create_graph=differentiable)
        return gradient, scores.detach()

    def _check(self, inputs: Any) -> None:
        require_tensor(inputs)
        if not inputs.is_floating_point():
            raise TypeError(f"`inputs` must be floating point to have a gradient, got {inputs.dtype}")
        require_channels(inputs, self.channel_axis, "inputs")
        check_values(inputs)
