"""ESPNet, a small network for segmenting road scenes, and its weights for CamVid.

S. Mehta et al., "ESPNet: Efficient Spatial Pyramid of Dilated Convolutions for Semantic Segmentation", ECCV 2018
(arXiv 1803.06815), with p = 2 and q = 8. It is written from the paper, with the names in the authors' weights. `load`
reads these: pretrained/decoder/espnet_p_2_q_8_camvid.pth of github.com/sacmehta/ESPNet (MIT), 12 classes, 358,193
values.

Where the paper's text leaves a choice, the weights decide it: if the maps are concatenated in another order, or batch
normalisation has torch's default epsilon, mean IoU falls from 0.57 to below 0.07.
"""

from collections import OrderedDict
from itertools import accumulate
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import avg_pool2d

from metfa.models import Normalised

__all__ = ["ESPNet", "Preprocessed", "load"]

N_CLASSES = 12  # 11 of CamVid and void
P, Q = 2, 8  # numbers of pyramids at a quarter and at an eighth of the picture's sides
DILATIONS = (1, 2, 4, 8, 16)
EPSILON = 1e-3  # of batch normalisation
MEAN_BGR = (110.33, 108.41, 105.03)  # of pixels from 0 to 255
STD_BGR = (72.13, 72.69, 69.90)


def named(**layers: nn.Module) -> nn.Sequential:
    """Layers one after the other, under their names in the weights."""
    return nn.Sequential(OrderedDict(layers))


def convolution(n_in: int, n_out: int, side: int, *, stride: int = 1, dilation: int = 1) -> nn.Conv2d:
    """A convolution without bias that keeps height and width, except for its stride."""
    return nn.Conv2d(n_in, n_out, side, stride, padding=side // 2 * dilation, dilation=dilation, bias=False)


def doubling(n: int) -> nn.ConvTranspose2d:
    """A transposed convolution without bias that turns each pixel into 2 x 2."""
    return nn.ConvTranspose2d(n, n, kernel_size=2, stride=2, bias=False)


def norm(n: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(n, eps=EPSILON)


def norm_act(n: int) -> nn.Sequential:
    return named(bn=norm(n), act=nn.PReLU(n))


def conv_norm_act(n_in: int, n_out: int, *, stride: int = 1) -> nn.Sequential:
    return named(conv=convolution(n_in, n_out, 3, stride=stride), bn=norm(n_out), act=nn.PReLU(n_out))


class Pyramid(nn.Module):
    """The common part of both kinds of ESP module: reduce, convolve with each dilation, sum up, concatenate.

    The sums go from the smallest dilation to the largest, so that none shows the gaps of its dilation. The convolution
    without dilation is not in the sums; it takes the channels that are left when `n_out` does not divide.
    """

    def __init__(self, n_in: int, n_out: int, *, side: int = 1, stride: int = 1) -> None:
        super().__init__()
        n = n_out // len(DILATIONS)
        self.c1 = named(conv=convolution(n_in, n, side, stride=stride))
        for dilation in DILATIONS:
            n_here = n_out - n * (len(DILATIONS) - 1) if dilation == 1 else n
            self.add_module(f"d{dilation}", named(conv=convolution(n, n_here, 3, dilation=dilation)))

    def concatenated(self, x: torch.Tensor) -> torch.Tensor:
        reduced = self.c1(x)
        undilated, *dilated = (self.get_submodule(f"d{dilation}")(reduced) for dilation in DILATIONS)
        return torch.cat([undilated, *accumulate(dilated)], dim=1)


class ESP(Pyramid):
    """The paper's ESP module; its input is added if input and output have equally many channels."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__(n_in, n_out)
        self.bn = norm_act(n_out)
        self.residual = n_in == n_out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.concatenated(x)
        return self.bn(y + x if self.residual else y)


class StridedESP(Pyramid):
    """The ESP module that halves height and width: its reduction is a 3 x 3 convolution with stride 2."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__(n_in, n_out, side=3, stride=2)
        self.bn = norm(n_out)
        self.act = nn.PReLU(n_out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(self.bn(self.concatenated(x)))


class Encoder(nn.Module):
    """Maps at a half and a quarter of the picture's sides, and scores at an eighth."""

    def __init__(self) -> None:
        super().__init__()
        self.level1 = conv_norm_act(3, 16, stride=2)
        self.b1 = norm_act(16 + 3)
        self.level2_0 = StridedESP(16 + 3, 64)
        self.level2 = nn.Sequential(*(ESP(64, 64) for _ in range(P)))
        self.b2 = norm_act(64 + 64 + 3)
        self.level3_0 = StridedESP(64 + 64 + 3, 128)
        self.level3 = nn.Sequential(*(ESP(128, 128) for _ in range(Q)))
        self.b3 = norm_act(128 + 128)
        self.classifier = named(conv=convolution(128 + 128, N_CLASSES, 1))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        halved = avg_pool2d(x, 3, stride=2, padding=1)
        quartered = avg_pool2d(halved, 3, stride=2, padding=1)
        half = self.b1(torch.cat([self.level1(x), halved], dim=1))
        first = self.level2_0(half)
        quarter = self.b2(torch.cat([self.level2(first), first, quartered], dim=1))
        first = self.level3_0(quarter)
        eighth = self.b3(torch.cat([first, self.level3(first)], dim=1))
        return half, quarter, self.classifier(eighth)


class ESPNet(nn.Module):
    """Normalised pictures (batch, 3, height, width), sides multiples of 8, to scores (batch, 12, height, width)."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = Encoder()
        self.br = norm(N_CLASSES)
        self.up_l3 = nn.Sequential(doubling(N_CLASSES))
        self.level3_C = named(conv=convolution(64 + 64 + 3, N_CLASSES, 1))
        self.combine_l2_l3 = nn.Sequential(norm_act(2 * N_CLASSES), ESP(2 * N_CLASSES, N_CLASSES))
        self.up_l2 = nn.Sequential(doubling(N_CLASSES), norm_act(N_CLASSES))
        self.conv = conv_norm_act(N_CLASSES + 16 + 3, N_CLASSES)
        self.classifier = doubling(N_CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        half, quarter, eighth = self.encoder(x)
        y = self.up_l3(self.br(eighth))
        y = self.up_l2(self.combine_l2_l3(torch.cat([self.level3_C(quarter), y], dim=1)))
        return self.classifier(self.conv(torch.cat([y, half], dim=1)))


class Preprocessed(nn.Module):
    """An ESPNet that takes RGB pixels in [0, 1], (batch, 3, height, width), and normalises them inside.

    Its scores, before softmax, have the picture's height and width. Nothing is padded or cut: if a side is not a
    multiple of 8, it raises a ValueError.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        mean = [level / 255 for level in MEAN_BGR]
        self.network = Normalised(network, mean, STD_BGR)  # as the authors do: (level - mean) / std / 255

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if images.ndim != 4 or images.shape[1] != 3 or 0 in images.shape or any(side % 8 for side in images.shape[2:]):
            raise ValueError(
                "`images` must be of shape (batch, 3, height, width), height and width multiples of 8, "
                f"got {tuple(images.shape)}; resize or cut them"
            )
        return self.network(images.flip(1))


def load(path: str | Path) -> Preprocessed:
    """The network with the authors' weights, in evaluation mode on the CPU."""
    weights = torch.load(path, weights_only=True, map_location="cpu")
    with torch.random.fork_rng(devices=[]):  # the random weights are overwritten
        network = ESPNet()
    network.load_state_dict(weights)
    return Preprocessed(network).eval()
