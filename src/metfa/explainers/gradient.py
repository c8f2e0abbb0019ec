"""The gradient explainer: the size of the class score's gradient at each pixel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from metfa._base.validation import check_flag, keep
from metfa.calls.held import asks_a_model, hold, model_itself, rows_as_the_model
from metfa.explainers.heatmaps import check_channel_axis, check_differentiable, heat_maps

__all__ = ["Gradient"]


@asks_a_model
@dataclass(frozen=True)
class Gradient:
    r"""Absolute gradient of the class score, maximum over channels (Simonyan et al. 2013; the paper's Gradient).

    Parameters
    ----------
    called : torch.nn.Module, callable or Called
        Model, or a `metfa.Called` that says how it is asked: inputs (batch, channels, \*features) -> scores
        (batch, classes), before a softmax. A model of several inputs takes a tuple of them in the order of its
        arguments, or a dict by their names.
    channel_axis : int, None, or tuple or dict of them
        Axis of the channels, at least 1 (axis 0 is the batch), reduced by the maximum; None where there are none
        (tables). For several inputs one for each, as a tuple or dict like the inputs.
    scale : bool
        Scale each map to [0, 1] by its smallest and largest value (the paper's convention), that of each input by
        itself. False: raw gradients.

    Examples
    --------
    >>> import torch
    >>> from metfa.explainers import Gradient
    >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 3))
    >>> maps, scores = Gradient(model.eval())(torch.rand(2, 3, 2, 2), target=0)
    >>> maps.shape, scores.shape
    (torch.Size([2, 2, 2]), torch.Size([2, 3]))

    Of an image and a table, which the model takes as two arguments:

    >>> def both(image, table):
    ...     return torch.stack([image.mean((1, 2, 3)) + table[:, 0], table[:, 1] ** 2], dim=1)
    >>> maps, _ = Gradient(both, channel_axis=(1, None))((torch.rand(2, 3, 2, 2), torch.rand(2, 4)), target=0)
    >>> [part.shape for part in maps]
    [torch.Size([2, 2, 2]), torch.Size([2, 4])]
    """

    called: Any
    channel_axis: Any = field(default=1, kw_only=True)
    scale: bool = field(default=True, kw_only=True)

    model: ClassVar[property] = model_itself
    rows_independent: ClassVar[property] = rows_as_the_model
    differentiable = True

    def __post_init__(self) -> None:
        hold(self)
        check_channel_axis(self.channel_axis)
        keep(self, scale=check_flag(self.scale, "scale"))

    def __call__(self, inputs: Any, target: Any = None) -> tuple[Any, torch.Tensor]:
        r"""Maps and scores of a batch.

        Parameters
        ----------
        inputs : torch.Tensor, (batch, channels, \*features), or tuple or dict of them
            Floating point. Where they require a gradient, the maps are differentiable in them. Of several inputs those
            of integers and booleans, such as tokens and masks, get no map.
        target : int, sequence or tensor, optional
            Class of each row; None: the predicted one.

        Returns
        -------
        maps : torch.Tensor, (batch, \*features), or tuple or dict of them
            float32 (or wider), in [0, 1] with `scale`. A dict by place for a tuple of inputs that do not all get one.
        scores : torch.Tensor, (batch, classes)
            The model's scores, detached.
        """
        check_differentiable(inputs, self.channel_axis, "a gradient", self.model, several=True)
        gradient, scores = self.called.gradient(inputs, target)
        return heat_maps(gradient, self.channel_axis, scale=self.scale), scores
