"""The gradient explainer: the size of the class score's gradient at each pixel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch

from metfa._guard import model_in_evaluation
from metfa._targets import row_targets
from metfa.explainers.heatmaps import check_channel_axis, reduce_channels, require_channels, scale_to_unit

__all__ = ["Gradient"]


@dataclass(frozen=True)
class Gradient:
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

    model: Any
    channel_axis: int | None = field(default=1, kw_only=True)
    scale: bool = field(default=True, kw_only=True)
    autocast: torch.dtype | None = field(default=None, kw_only=True)
    memory_format: torch.memory_format | None = field(default=None, kw_only=True)

    @property
    def rows_independent(self) -> bool:
        """Whether rows cannot depend on each other: true of a module in evaluation mode, unknown of a function."""
        return isinstance(self.model, torch.nn.Module) and not any(map(_mixes_rows, self.model.modules()))

    def __post_init__(self) -> None:
        if not callable(self.model):
            raise TypeError(f"`model` must be a module or a function inputs -> scores, got {type(self.model).__name__}")
        check_channel_axis(self.channel_axis)
        for name, kind in (("autocast", torch.dtype), ("memory_format", torch.memory_format)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise TypeError(
                    f"`{name}` must be a torch.{kind.__name__} or None, got {type(value).__name__}: {value!r}"
                )

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
        self._check(inputs)
        differentiable = inputs.requires_grad and torch.is_grad_enabled()
        with torch.enable_grad(), weights_frozen(self.model), self._precision(inputs.device):
            leaf = inputs if differentiable else inputs.detach()
            if self.memory_format is not None and leaf.ndim in (4, 5):
                leaf = leaf.contiguous(memory_format=self.memory_format)
            if not differentiable:
                leaf = leaf.requires_grad_()
            scores = self.model(leaf)
            chosen = chosen_scores(scores, target)
            (gradient,) = torch.autograd.grad(chosen.sum(), leaf, create_graph=differentiable)
        strength = reduce_channels(gradient, self.channel_axis)
        strength = strength.float() if strength.dtype.itemsize < 4 else strength
        return scale_to_unit(strength) if self.scale else strength, scores.detach()

    def _check(self, inputs: Any) -> None:
        if not isinstance(inputs, torch.Tensor):
            raise TypeError(f"`inputs` must be a torch.Tensor, got {type(inputs).__name__}")
        if not inputs.is_floating_point():
            raise TypeError(f"`inputs` must be floating point to have a gradient, got {inputs.dtype}")
        require_channels(inputs, self.channel_axis, "inputs")

    def _precision(self, device: torch.device) -> Any:
        return nullcontext() if self.autocast is None else torch.autocast(device.type, dtype=self.autocast)


def _mixes_rows(module: torch.nn.Module) -> bool:
    return isinstance(module, torch.nn.modules.batchnorm._BatchNorm) and module.running_mean is None


@contextmanager
def weights_frozen(model: Any) -> Iterator[None]:
    """The model in evaluation mode, and its weights without gradients, so that the backward pass is spared them."""
    parameters = model.parameters() if isinstance(model, torch.nn.Module) else ()
    trained = [parameter for parameter in parameters if parameter.requires_grad and parameter.is_leaf]
    with model_in_evaluation(model):
        try:
            for parameter in trained:
                parameter.requires_grad_(False)
            yield
        finally:
            for parameter in trained:
                parameter.requires_grad_(True)


def chosen_scores(scores: torch.Tensor, target: Any) -> torch.Tensor:
    """Score of each row's target, (batch,); the best class where `target` is None."""
    targets = row_targets(target, scores.detach().float().cpu().numpy(), len(scores))
    if scores.ndim == 1:
        return scores
    rows = torch.arange(len(scores), device=scores.device)
    if all(isinstance(entry, int) for entry in targets):
        return scores[rows, torch.tensor(targets, device=scores.device)]
    if all(isinstance(entry, tuple | list) for entry in targets):
        return torch.stack([scores[(row, *entry)] for row, entry in enumerate(targets)])
    raise TypeError("`target` must be class indices, or one tuple of indices for each row")
