"""`fold_batch_norm`: batch normalisation folded into the layer before it, for a faster model."""

import copy

import torch
from torch import nn

from metfa._base.validation import shown
from metfa.calls.folding import folded_in_place

__all__ = ["fold_batch_norm"]


def fold_batch_norm(model: nn.Module, example: torch.Tensor) -> nn.Module:
    """Copy of a model, in evaluation mode, with each batch normalisation folded into the convolution before it.

    The copy computes the same scores up to rounding, and is faster: EfficientNet-Lite0's forward pass took 0.75 to
    0.9 of the time on two cores. It is meant for explainers that call a model thousands of times. Explainers that look
    into the model (LRP, Score-CAM) take it as well, but its layers differ from the original's.

    Parameters
    ----------
    model : torch.nn.Module
        The model, which is not changed. Its batch normalisations count as in evaluation mode.
    example : torch.Tensor
        Batch that the model takes, such as one image (1, 3, 224, 224). One forward pass on it shows which layer feeds
        which other layer, so it does not matter how the model is written. A second pass checks that the copy computes
        the same scores for this batch.

    Returns
    -------
    torch.nn.Module
        The copy, with `torch.nn.Identity` where a batch normalisation was folded. A batch normalisation stays if it
        does not directly follow a convolution or linear layer, has no running statistics, or has hooks.

    Raises
    ------
    ValueError
        If the copy does not compute the same scores, because a layer's output is also used elsewhere.

    Examples
    --------
    >>> import torch
    >>> from metfa.models import fold_batch_norm
    >>> model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU()).eval()
    >>> fold_batch_norm(model, torch.rand(1, 3, 8, 8))
    Sequential(
      (0): Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1))
      (1): Identity()
      (2): ReLU()
    )
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"`model` must be a torch.nn.Module, got {type(model).__name__}")
    if not isinstance(example, torch.Tensor):
        raise TypeError(f"`example` must be a batch that the model takes, a torch.Tensor, got {shown(example)}")
    folded = copy.deepcopy(model).eval()
    _, error = folded_in_place(folded, lambda: folded(example))
    if error is not None:
        raise ValueError(
            f"`model` without its batch normalisations is another function (scores differ by {error:.3g}): "
            "the output of a layer before one of them is also used elsewhere, so they cannot be folded"
        )
    return folded
