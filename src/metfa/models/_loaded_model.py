"""What `load` returns: a model with all that is needed to show it a picture and to read its answer."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from PIL import Image
from torch import nn

__all__ = ["LoadedModel"]


@dataclass(frozen=True)
class LoadedModel:
    """A network, the way into it from a picture, and the names of its classes.

    Parameters
    ----------
    module : torch.nn.Module
        Maps pixels in [0, 1], of shape (batch, 3, height, width), to one logit per class, (batch, n_classes), for
        segmentation of each pixel. It normalises inside. `load` gives it back in eval mode, on the CPU.
    preprocess : callable
        ``preprocess(image)`` makes a float32 tensor (3, height, width) in [0, 1] of a PIL image; stack these to a
        batch. `load` uses a `CentreCrop`.
    class_names : tuple of str, optional
        One name per logit; None where they are not known.
    name : str, optional
        What the model was loaded as.
    weights : str, optional
        Where the weights come from: the package with its version, and the file or tag. None for random weights and
        for models made by a callable of the user.
    """

    module: nn.Module = field(repr=False)
    preprocess: Callable[[Image.Image], torch.Tensor]
    class_names: tuple[str, ...] | None = field(default=None, repr=False)
    name: str | None = None
    weights: str | None = None
