"""`LoadedModel`: a network with its preprocessing and the names of its classes, as `load` returns it."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from PIL import Image
from torch import nn

__all__ = ["LoadedModel"]


@dataclass(frozen=True)
class LoadedModel:
    """A network, the preprocessing of a picture for it, and the names of its classes.

    Parameters
    ----------
    module : torch.nn.Module
        Maps pixels in [0, 1], of shape (batch, 3, height, width), to one logit per class, (batch, n_classes); a
        segmentation network gives one per class and pixel. It normalises inside. `load` returns it in eval mode, on
        the CPU.
    preprocess : callable
        ``preprocess(image)`` turns a PIL image into a float32 tensor (3, height, width) in [0, 1]; stack several of
        them to make a batch. `load` uses a `CentreCrop`.
    class_names : tuple of str, optional
        One name per logit; None where they are not known.
    name : str, optional
        The name by which the model was loaded.
    weights : str, optional
        Where the weights come from: the package with its version, and the file or tag. None for random weights, and
        for models that a callable of the user made.
    """

    module: nn.Module = field(repr=False)
    preprocess: Callable[[Image.Image], torch.Tensor]
    class_names: tuple[str, ...] | None = field(default=None, repr=False)
    name: str | None = None
    weights: str | None = None
